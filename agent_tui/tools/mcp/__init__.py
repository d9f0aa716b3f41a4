"""MCP: the host process with its servers, the client of it, and the tools they offer."""
