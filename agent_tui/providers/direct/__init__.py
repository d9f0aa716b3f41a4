"""Calls straight to a provider's HTTP API: bodies, addresses and the connection. Nothing of LiteLLM is imported."""
