uv run scripts/cli.py cache refresh
uv run scripts/cli.py cache clear --expired
