"""LiteLLM: found, imported quietly, mended where it must be. Knows nothing of the rest."""
