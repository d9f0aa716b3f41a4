"""How much of a text the transcript shows: what is beyond anything readable is named, not drawn."""

from __future__ import annotations

from agent_tui.text.numbers import plural

MAX_LINE = 100_000
"""Characters of one line that are shown. Far beyond anything readable, small enough to lay out at once."""
MAX_TEXT = 1_000_000
"""Characters of one text that are shown; copying still gives all of it."""


def cap_line(line: str) -> str:
    """A line of at most ``MAX_LINE`` characters, saying how many are missing."""
    return line if len(line) <= MAX_LINE else line[:MAX_LINE] + hidden(len(line) - MAX_LINE)


def hidden(count: int) -> str:
    """What stands for text that is not shown."""
    return f" … {plural(count, 'more character')}"
