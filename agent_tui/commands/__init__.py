"""Slash commands: one registry; a command returns a result and touches no widget."""
