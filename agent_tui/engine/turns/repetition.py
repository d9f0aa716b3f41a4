"""A model that goes in circles: an answer that repeats itself, and calls that bring the same again and again."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.errors import ToolError
from agent_tui.models.messages import Message, ToolCallPart
from agent_tui.tools.arguments import parse_arguments, short_summary

REPEATED_CHARS = 2_000
"""Characters at the end of an answer that are one and the same line again and again."""
LONGEST_PIECE = 500
"""Characters of such a line with its breaks: it stands there four times at least."""
LOOK_EVERY = 400
"""Characters that have to come before it is looked again."""

SAME_CALLS = 3
"""Times in a row that the same calls with the same results are run."""
WAITED_SECONDS = 5.0
"""A call that took so long waited for something: it may be made again."""


class RepetitionWatch:
    """Looks at text while it streams. ``piece`` is what it repeats, once it does."""

    def __init__(self) -> None:
        self.piece: str | None = None
        self._tail = ""
        self._since = 0

    def add(self, text: str) -> bool:
        """Takes in what came; True once the text is one piece again and again."""
        self._tail = (self._tail + text)[-REPEATED_CHARS:]
        self._since += len(text)
        if self._since < LOOK_EVERY or len(self._tail) < REPEATED_CHARS:
            return False
        self._since = 0
        self.piece = repeated_piece(self._tail)
        return self.piece is not None


def repeated_piece(text: str) -> str | None:
    """Returns the line of at most ``LONGEST_PIECE`` characters that a whole text repeats; None where it repeats none.
    Several lines that come again are a table, a list or a program, and what has no line break may be one long word."""
    at = text.find(text[:LONGEST_PIECE], 1)
    if not 0 < at <= LONGEST_PIECE or text[at:] != text[:-at]:
        return None
    piece = text[:at]
    begin = piece.find("\n") + 1  # as it is written, from the start of a line
    line = (piece[begin:] + piece[:begin]).strip()
    return None if not begin or "\n" in line else line or "blank lines"


class CallWatch:
    """Counts how often in a row the same calls had the same results. ``repeated`` is the call in words, once that was
    ``SAME_CALLS`` times."""

    def __init__(self) -> None:
        self.repeated: str | None = None
        self._last: tuple[tuple[str, str, str], ...] = ()
        self._times = 0

    def add(self, calls: Sequence[ToolCallPart], results: Sequence[Message]) -> None:
        """Takes in what one answer called and what came of it."""
        by_id = {part.call_id: part for message in results if (part := message.tool_result) is not None}
        now = tuple(
            (call.name, _sorted(call.arguments), by_id[call.call_id].text) for call in calls if call.call_id in by_id
        )
        waited = any((by_id[call.call_id].seconds or 0.0) >= WAITED_SECONDS for call in calls if call.call_id in by_id)
        self._times = self._times + 1 if now == self._last and not waited else 1
        self._last = now
        self.repeated = short_summary(calls[0]) if self._times >= SAME_CALLS and calls else None


def _sorted(arguments: str) -> str:
    """Arguments so that the order and spaces make no difference."""
    try:
        return repr(sorted(parse_arguments(arguments).items()))
    except ToolError:
        return arguments
