"""Commands that run in the background: started by a tool call, held by the session."""
