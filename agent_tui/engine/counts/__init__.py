"""Counts that the calculator builds on: stored, exact, calibrated."""
