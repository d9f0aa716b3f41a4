"""The bookkeeping of the context screen: how its number was made, and whether it holds, in the room there is."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.commands.usage_text import Entry, Tone
from agent_tui.ui.draw import Piece
from agent_tui.ui.screens.context.wrapping import wrapped
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.lines import Lines

NAME = 13
"""Cells of the names where the words stand beside them."""

TONES: dict[Tone, str] = {"plain": "foreground", "good": "success", "bad": "error", "warning": "warning"}

Line = tuple[str, str, Tone]
"""A name, words, and how they are meant."""


def below(entries: Sequence[Entry], width: int) -> list[Line]:
    """The words beside their names, for the foot of the screen."""
    return [
        ("" if number else entry.name, text, entry.tone)
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


class Words(Lines):
    """Lines of the bookkeeping. ``names`` is how many cells the names have beside the words; 0: they stand above."""

    DEFAULT_CSS = """
    Words { padding: 0 1; }
    #below { border-top: solid $line; }
    #beside { border-left: solid $line; padding: 0 1 0 2; height: 100%; }
    """

    def __init__(self, id: str, names: int) -> None:
        super().__init__(id=id)
        self.lines: list[Line] = []
        self._names = names

    def show(self, lines: list[Line]) -> None:
        self.lines = lines

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if y >= len(self.lines):
            return []
        name, text, tone = self.lines[y]
        label = name.ljust(self._names) if self._names else name
        return [(label, paint("muted")), (text, paint(TONES[tone]))]
