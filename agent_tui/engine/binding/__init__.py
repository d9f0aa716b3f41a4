"""Binding a session to a model, and learning what the model is."""
