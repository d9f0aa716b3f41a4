"""Calls that fail: told apart, and put into words without secrets."""
