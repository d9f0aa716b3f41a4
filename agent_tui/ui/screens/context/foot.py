"""The bottom of the context screen: the words below the rows, and the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agent_tui.text.cells import shorten
from agent_tui.ui.draw import Piece
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.lines import Lines

KEYS = (
    ("Enter", "open"),
    ("e", "JSON"),
    ("x", "exact count"),
    ("s", "stats"),
    ("p", "preview"),
    ("w", "why"),
    ("Esc", "close"),
)


class Words(Lines):
    """Calculation, accuracy, session, proof and why, wrapped to the width."""

    DEFAULT_CSS = "Words { padding: 0 1; border-top: solid $line; }"

    def __init__(self) -> None:
        super().__init__(id="words")
        self.lines: list[list[Piece]] = []

    def show(self, lines: list[list[Piece]]) -> None:
        self.lines = lines
        self.set_height(len(self.lines) + 1 if self.lines else 0)
        self.refresh(layout=True)

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        return self.lines[y] if y < len(self.lines) else []


class HasMessage(Protocol):
    @property
    def message(self) -> str:
        """A line that stands in place of the keys; empty when there is none."""


class Foot(Lines):
    """The keys."""

    DEFAULT_CSS = "Foot { padding: 0 1; dock: bottom; background: $surface; }"

    def __init__(self, says: HasMessage) -> None:
        super().__init__(id="foot", height=1)
        self._says = says

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self._says.message:
            return [(shorten(self._says.message, width), paint("accent"))]
        pieces: list[Piece] = []
        for key, what in KEYS if width > 70 else (*KEYS[:4], KEYS[-1]):
            pieces += [(key, paint("primary", bold=True)), (f" {what}  ", paint("muted"))]
        return pieces


def wrapped(text: str, width: int) -> list[str]:
    """Text in lines of at most ``width`` cells, broken between the parts of a line where possible."""
    import textwrap

    glued = " · ".join(part.replace(" ", "\xa0") for part in text.split(" · ")) if " · " in text else text
    return [line.replace("\xa0", " ") for line in textwrap.wrap(glued, width)] or [""]
