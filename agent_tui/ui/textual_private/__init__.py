"""The one place that uses what is private to Textual."""
