"""Sessions as files for people and programs."""
