"""Markdown becomes flows of text: split as it streams, parsed, its code and tables painted."""
