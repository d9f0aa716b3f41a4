"""The knowledge about programs: which only look, what they read, which start others, which reach out."""
