"""A piece: what is laid out and kept as one, from a heading to a hundred lines of code."""

from __future__ import annotations

from collections.abc import Callable

from agent_tui.ui.flow.lines import Decoration, Flow, Line, blank
from agent_tui.ui.flow.palette import Palette


class Piece:
    """Makes its rows when they are needed and keeps its lines until told to ``forget`` them.

    ``gap`` is the empty rows before it (drawn with ``gap_margin``); ``chars`` and ``rows`` of its source give the
    estimate of its height until it is laid out. ``glue`` is set where it goes on with the last row of the piece before
    it: that is what copying puts between them.
    """

    __slots__ = ("chars", "gap", "gap_margin", "glue", "height", "lines", "make", "rows", "width")

    def __init__(
        self,
        make: Callable[[], list[Flow]],
        *,
        gap: int = 0,
        gap_margin: Decoration = (),
        chars: int = 0,
        rows: int = 1,
        glue: str | None = None,
    ) -> None:
        self.make = make
        self.gap = gap
        self.gap_margin = gap_margin
        self.chars = chars
        self.rows = rows
        self.glue = glue
        self.lines: list[Line] | None = None
        self.width = 0
        self.height = 0

    def flows(self) -> list[Flow]:
        """The logical rows, gap included."""
        made = self.make()
        return [blank(self.gap_margin) for _ in range(self.gap)] + made if self.gap else made

    def guess(self, width: int) -> int:
        """The height at ``width``: exact once laid out, else estimated."""
        if self.width == width:
            return self.height
        return self.gap + self.rows + self.chars // max(16, width - 4)

    def lay(self, width: int, palette: Palette) -> list[Line]:
        """The lines at ``width``."""
        if self.lines is None or self.width != width:
            lines: list[Line] = []
            for row, flow in enumerate(self.flows()):
                lines += flow.lay(row, width, palette)
            self.lines, self.width, self.height = lines, width, len(lines)
        return self.lines

    def forget(self) -> None:
        """Drops the lines; the height stays known."""
        self.lines = None
