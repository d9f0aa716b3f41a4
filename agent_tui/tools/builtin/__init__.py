"""The tools every session has, one file each, and what only they need."""
