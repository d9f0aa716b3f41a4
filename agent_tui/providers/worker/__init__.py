"""The worker process, its client, and what passes between them."""
