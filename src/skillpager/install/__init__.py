"""The MCP server in agents' configuration files, and stubs of skills."""
