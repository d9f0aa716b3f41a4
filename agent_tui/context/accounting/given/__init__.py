"""What the formula stands on: its inputs, and what follows from them before anything is summed."""
