"""The session in memory and in the store."""
