"""Text and numbers for people and for providers: the one place that cleans, shortens and writes them."""
