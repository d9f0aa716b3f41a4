"""The chat as lines of text: for screen readers, braille displays, dumb terminals, pipes and files."""
