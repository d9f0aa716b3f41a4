"""Insert mode as seen from outside: where it begins, and what was typed when it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_tui.ui.vim.text import Place, Text


@dataclass(slots=True, frozen=True)
class Typed:
    """So many characters removed before the place where it began, and then ``text``."""

    removed: int
    text: str

    def onto(self, text: Text, place: Place) -> tuple[Text, Place]:
        """Types the same there."""
        row, column = place
        start = (row, max(0, column - self.removed))
        return text.replaced(start, place, self.text), text.advanced(start, self.text)


@dataclass(slots=True, frozen=True)
class Session:
    """``before`` is the text before the command that led here, ``opened`` the one after it, ``at`` the place where
    typing begins. ``times`` and ``new_lines``: ``3o`` opens two more lines with the same at the end."""

    before: Text
    opened: Text
    at: Place
    undo_at: Place
    times: int = 1
    new_lines: bool = False
    began: bool = False

    def typed(self, now: Text) -> Typed:
        """What was typed, by what the text is now."""
        old, new = str(self.opened), str(now)
        at = len("\n".join((*self.opened.lines[: self.at[0]], self.opened.lines[self.at[0]][: self.at[1]])))
        head, tail = old[:at], old[at:]
        if not new.endswith(tail) or len(new) < len(tail):
            # The cursor was moved in between: only the last stretch can be told, as one.
            same = _shared(old, new)
            rest = _shared(old[same:][::-1], new[same:][::-1])
            return Typed(0, new[same : len(new) - rest])
        front = new[: len(new) - len(tail)]
        same = _shared(head, front)
        return Typed(len(head) - same, front[same:])

    def multiplied(self, now: Text, cursor: Place, typed: Typed) -> tuple[Text, Place]:
        """With the same typed as often again as a count asked for."""
        if self.times == 1 or (not typed.text and not self.new_lines):
            return now, cursor
        more = (f"\n{typed.text}" if self.new_lines else typed.text) * (self.times - 1)
        return now.replaced(cursor, cursor, more), now.advanced(cursor, more)


def _shared(one: str, two: str) -> int:
    """How many characters both begin with."""
    count = 0
    for a, b in zip(one, two, strict=False):
        if a != b:
            break
        count += 1
    return count


def _at(place: Callable[[Text, Place], Place]) -> Callable[[Text, Place], Session]:
    def begin(text: Text, cursor: Place) -> Session:
        at = place(text, cursor)
        return Session(text, text, at, at, began=True)

    return begin


def _line(below: int) -> Callable[[Text, Place], Session]:
    def begin(text: Text, cursor: Place) -> Session:
        row = cursor[0] + below
        return Session(text, text.with_rows(row, row - 1, ("",)), (row, 0), cursor, began=True)

    return begin


OPENERS: dict[str, Callable[[Text, Place], Session]] = {
    "i": _at(lambda text, cursor: cursor),
    "a": _at(lambda text, cursor: text.after(cursor)),
    "I": _at(lambda text, cursor: (cursor[0], text.indent(cursor[0]))),
    "A": _at(lambda text, cursor: (cursor[0], text.length(cursor[0]))),
    "o": _line(1),
    "O": _line(0),
}
"""The commands that go into insert mode and change nothing themselves, or open a line."""
