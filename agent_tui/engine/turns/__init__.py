"""Turns and steps: from a user message to the last answer."""
