"""The facts known of each provider, and how its API is spoken: a file for a dialect."""
