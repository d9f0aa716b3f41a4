"""How the agent stands: what runs, what it is bound to, who listens."""
