astro deployment logs clx9k2 --keyword "billing_sync" -c 100
astro deployment logs clx9k2 --scheduler --keyword "Failed to import" -c 50
astro deployment variable list --deployment-id clx9k2 --save --env .env.backup
astro deployment variable create --deployment-id clx9k2 --key PAGER_TOKEN --value abc123
astro deployment variable list --deployment-id clx9k2 --key AWS_REGION
