"""The session as it was before each of its steps: what was given to the calculator then, and what changed since."""
