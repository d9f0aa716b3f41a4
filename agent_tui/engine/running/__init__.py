"""What runs: turns one after the other, the messages that wait for them, and what excludes them."""
