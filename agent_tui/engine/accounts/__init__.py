"""The numbers of the next request: its fixed parts, its counts, its usage."""
