"""The tools every session has, and what only they need. Programs that run as children have files of their own."""
