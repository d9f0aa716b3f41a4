"""Text becomes lines: wrapped to a width, cleaned of what would reach the terminal, painted with a palette."""
