"""Compactions carried out: when, by which call, and what is committed."""
