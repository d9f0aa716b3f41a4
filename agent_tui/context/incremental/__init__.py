"""Reuse between two calculations of one session, owned by one object: the formula's answers, sooner."""
