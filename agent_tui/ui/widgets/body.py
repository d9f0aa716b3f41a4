"""The text that a question is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len, chop_cells

from agent_tui.text.clean import spelled
from agent_tui.ui.draw import Piece
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.rows import RowList

NEAR = 24
"""A word of a command is cut only when it is longer than this many characters."""


class Body(RowList, can_focus=False):
    """A text, whole: long lines are wrapped, never cut. ``color`` says which colour a line has."""

    def __init__(self, text: str, color: Callable[[str], str] = lambda line: "foreground") -> None:
        super().__init__(classes="body")
        self._color = color
        self.lines: list[tuple[str, str]] = []
        self._wrapped = 0
        self.set_text(text)

    def set_text(self, text: str) -> None:
        """Another text; foreign text is spelled out."""
        self.text = spelled(text).expandtabs(4).rstrip("\n")
        width, self._wrapped = self._wrapped, 0
        self.wrap(width)

    def wrap(self, width: int) -> None:
        if width == self._wrapped or width <= 0:
            return
        self._wrapped = width
        self.lines = []
        for line in self.text.split("\n") if self.text else ():
            self.lines += [(piece, self._color(line)) for piece in pieces_of(line, max(1, width - 1))]
        self.set_count(len(self.lines))

    def selectable(self, index: int) -> bool:
        return False

    def on_resize(self) -> None:
        self.wrap(self.scrollable_content_region.width)

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        text, color = self.lines[index]
        return [(text, paint(color))]


def pieces_of(line: str, width: int) -> list[str]:
    """A line in pieces of at most ``width`` cells that together are the line, broken behind a blank if one is near."""
    pieces: list[str] = []
    at = 0
    while True:
        window = line[at : at + 4 * width]
        head = window
        if cell_len(window) > width:
            head = chop_cells(window, width)[0] or window[:1]
            blank = head.rfind(" ", max(0, len(head) - NEAR)) + 1
            head = head[:blank] if blank else head
        pieces.append(head)
        at += len(head)
        if at >= len(line):
            return pieces
