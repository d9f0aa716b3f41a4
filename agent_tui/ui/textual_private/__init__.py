"""The one place that uses what is private to Textual; without any of it the chat still works (``names`` says how)."""
