"""Damaged databases: looked at, rebuilt, repaired."""
