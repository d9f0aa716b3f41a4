"""A command line read as a shell reads it: its parts, words and values."""
