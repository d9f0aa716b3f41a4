"""LiteLLM: imported quietly, mended where it must be, and listened in on. Worker only."""
