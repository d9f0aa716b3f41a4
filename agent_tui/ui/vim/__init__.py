"""Editing as in vim: a state machine over text and cursor that knows no widget."""
