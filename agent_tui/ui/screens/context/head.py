"""The top of the context screen: title with the numbers, the stacked bar, when it compacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agent_tui.models.context import ContextUsage
from agent_tui.models.rows import CONTEXT_ROWS, FREE, RESERVE
from agent_tui.text.cells import shorten
from agent_tui.text.clean import one_line
from agent_tui.ui.draw import Piece, width_of
from agent_tui.ui.screens.context import lines as words
from agent_tui.ui.screens.context.rows import bar_cells
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.lines import Lines

PLAIN_FILL = {row.id: row.pattern for row in (*CONTEXT_ROWS, FREE, RESERVE)}
"""Without colours the segments differ by their pattern."""


class ShowsUsage(Protocol):
    """Whose numbers the head shows."""

    @property
    def usage(self) -> ContextUsage: ...

    @property
    def in_flight(self) -> int:
        """Tokens of the running answer that no usage knows yet."""

    def next_request(self) -> str:
        """What sending the next request costs, where that is known."""


class Head(Lines):
    """Title with the numbers, the stacked bar, and when it compacts."""

    DEFAULT_CSS = "Head { padding: 0 1; }"

    def __init__(self, shows: ShowsUsage) -> None:
        super().__init__(id="head", height=4)
        self._shows = shows
        self.thick = 1

    def set_thick(self, thick: int) -> None:
        """How many lines the bar has."""
        if thick != self.thick:
            self.thick = thick
            self.set_height(3 + thick)

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        usage = self._shows.usage
        match y if y < 2 else max(1, y - self.thick + 1):
            case 0:
                return self._title(usage, width, paint)
            case 1:
                return self.bar(usage, width, paint)
            case 2:
                color = "error" if usage.over else "muted"
                return [(shorten(words.subtitle(usage, self._shows.next_request()), width), paint(color))]
            case _:
                return []

    def _title(self, usage: ContextUsage, width: int, paint: Paint) -> list[Piece]:
        size, share, basis = words.header(usage, self._shows.in_flight)
        right: list[Piece] = [(size, paint("foreground", bold=True))]
        if share:
            right += [("  ", paint()), (share, paint("primary", bold=True))]
        if width > 60:
            right += [("  ", paint()), (basis, paint("muted"))]
        left = shorten(f"Context · {one_line(usage.model, 60)}", max(0, width - width_of(right) - 1))
        gap = max(0, width - width_of(right) - width_of([(left, paint())]))
        return [(left, paint("foreground", bold=True)), (" " * gap, paint()), *right]

    def bar(self, usage: ContextUsage, width: int, paint: Paint) -> list[Piece]:
        plain = self.app.no_color
        pieces: list[Piece] = []
        for name, cells in bar_cells(usage, width):
            if name == "limit":
                pieces.append(("┊", paint("warning", bold=True)))
            elif plain:
                pieces.append((PLAIN_FILL.get(name, "█") * cells, paint()))
            elif name == "free":
                pieces.append(("─" * cells, paint("context-free")))
            else:
                pieces.append((("▒" if name == "reserve" else "█") * cells, paint(f"context-{name}")))
        return pieces
