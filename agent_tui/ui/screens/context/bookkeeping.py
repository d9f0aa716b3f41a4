"""The bookkeeping of the context screen: how its number was made, and whether it holds, in the room there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_tui.commands.usage_text import Entry, Tone
from agent_tui.ui.screens.context.wrapping import wrapped
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.lines import Lines

NAME = 13
"""Cells of the names where the words stand beside them."""

WIDE = 120
"""From so many columns on the bookkeeping stands beside the rows."""
TALL = 30
"""From so many lines on it stands below them; on lower screens it is one line of proof, limit and why."""
LOW = 10
"""Below so many lines there are only rows and keys."""
LEAST_ROWS = 12
"""Lines that the rows have at least, where it takes no more than leaving out other words."""
LEAST_PAST_ROWS = 8
"""The same for what is told of a step of the past: what was billed and what changed are what one goes there for."""
SIDE = (40, 64)
"""Cells that the column beside the rows has at least and at most."""

TONES: dict[Tone, str] = {"plain": "foreground", "good": "success", "bad": "error", "warning": "warning"}

Line = tuple[str, str, Tone]
"""A name, words, and how they are meant."""


def below(entries: Sequence[Entry], width: int) -> list[Line]:
    """The words beside their names, for the foot of the screen."""
    return [
        (("" if number else entry.name).ljust(NAME), text, entry.tone)
        for entry in entries
        for number, text in enumerate(wrapped(entry.text, width - NAME))
    ]


def beside(entries: Sequence[Entry], width: int) -> list[Line]:
    """The words below their names, for a narrow column."""
    lines: list[Line] = []
    for entry in entries:
        lines += [("", "", "plain")] if lines else []
        lines.append((entry.name, "", "plain"))
        lines += [("", text, entry.tone) for text in wrapped(entry.text, width)]
    return lines


@dataclass(slots=True, frozen=True)
class Placed:
    """Where the bookkeeping stands: one of three places. ``side`` is how many cells the column beside the rows has."""

    side: int = 0
    beside: list[Line] = field(default_factory=list)
    below: list[Line] = field(default_factory=list)
    folded: list[Line] = field(default_factory=list)


def place(entries: Sequence[Entry], fold: list[Line], width: int, height: int, room: int) -> Placed:
    """The place for a screen of ``width`` and ``height`` cells with ``room`` lines for rows and bookkeeping: where all
    of it can be seen, else folded."""
    if width >= WIDE:
        side = min(SIDE[1], max(SIDE[0], width * 3 // 10))
        lines = beside(entries, side - 4)
        if len(lines) <= room:
            return Placed(side, lines)
    if height >= TALL:
        lines = below(entries, width - 2)
        if len(lines) + 2 + LEAST_ROWS <= room:
            return Placed(below=lines)
    return Placed(folded=fold if height >= LOW else [])


class Words(Lines):
    """Lines of the bookkeeping, beside or below the rows."""

    DEFAULT_CSS = """
    Words { padding: 0 1; }
    Words.-below { border-top: solid $line; }
    Words.-beside { border-left: solid $line; padding: 0 1 0 2; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Line] = []

    def show(self, placed: Placed) -> None:
        """The lines of a place, as wide and as high as they are there."""
        self.lines = placed.beside or placed.below or placed.folded
        self.set_class(bool(placed.side), "-beside")
        self.set_class(bool(placed.below), "-below")
        self.set_height(len(self.lines) + bool(placed.below))
        self.styles.width = placed.side or "100%"
        if placed.side:
            self.styles.height = "100%"
        self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if y >= len(self.lines):
            return []
        name, text, tone = self.lines[y]
        return [(name, paint("muted")), (text, paint(TONES[tone]))]
