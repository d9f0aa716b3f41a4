"""agent-tui: a terminal chat agent whose context numbers are true and add up."""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """What programs use, imported where it is asked for: the start needs none of it."""
    rooms = {"Session": "agent_tui.session", "Question": "agent_tui.control.control"}
    if name not in rooms:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(rooms[name]), name)
