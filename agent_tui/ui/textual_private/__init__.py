"""The one place that uses what is private to Textual, a small function or class for each use."""
