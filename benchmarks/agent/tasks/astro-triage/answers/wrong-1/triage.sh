astro deployment logs clx9k2 --search billing_sync --tail 100
astro deployment logs clx9k2 --component scheduler --search "Failed to import" --tail 50
astro deployment variable list clx9k2 > .env.backup
astro deployment variable create PAGER_TOKEN=abc123 --deployment-id clx9k2 --secret
astro deployment variable list --deployment-id clx9k2 --key AWS_REGION
