uv run cli.py concept import -p .astro/warehouse.md
uv run scripts/cli.py cache clear --stale-only
