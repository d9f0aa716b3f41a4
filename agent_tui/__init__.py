"""agent-tui: a terminal chat agent whose context numbers are true and add up."""

__version__ = "0.1.0"
