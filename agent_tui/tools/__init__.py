"""Tools the model may call, their permissions, and the host process of MCP servers."""
