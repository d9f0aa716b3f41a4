"""The line under a text that does not fit: how much of it there is still to see, and the key that shows it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.text.numbers import plural
from agent_tui.ui.draw import Piece
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.lines import Lines
from agent_tui.ui.widgets.rows import RowList


class More(Lines):
    """Follows ``text``; ``way`` is what has to be pressed before the key, empty where nothing has to."""

    def __init__(self, text: RowList) -> None:
        super().__init__()
        self._text = text
        self.way = ""

    def on_mount(self) -> None:
        for what in ("scroll_y", "virtual_size"):
            self.watch(self._text, what, self._moved, init=False)

    def _moved(self) -> None:
        self.refresh()

    def say_way(self, way: str) -> None:
        self.way = way
        self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if (below := self._text.below) > 0:
            return [(f"… {plural(below, 'more line')}, {self.way}PgDn", paint("accent"))]
        return [(f"That is the end of {plural(self._text.count, 'line')}, {self.way}PgUp goes back", paint("muted"))]
