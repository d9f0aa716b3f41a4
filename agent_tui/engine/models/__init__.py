"""Models by name, and what servers taught about them."""
