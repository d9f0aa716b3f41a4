"""Painting a line: segments with the offsets that text selection needs, the selection and what was found marked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from agent_tui.records import dataclass
from agent_tui.ui.flow.layout import Decoration, Flow, Line
from agent_tui.ui.flow.palette import Palette

ROW_BITS = 24
"""Bits of the row in a selection's y; above it the piece, then the entry. See ``key``."""


def key(entry: int, piece: int, row: int) -> int:
    """A logical row as one number that grows down the transcript: the y of Textual's selection offsets.

    It does not change when things above change height, so a selection stays on its text."""
    return (entry << 2 * ROW_BITS) | (piece << ROW_BITS) | row


def unkey(value: int) -> tuple[int, int, int]:
    """Entry, piece, row."""
    mask = (1 << ROW_BITS) - 1
    return value >> 2 * ROW_BITS, (value >> ROW_BITS) & mask, value & mask


Mark = tuple[int, int, str]
"""From and to which character, and the style's name."""


def paint(line: Line, y: int, width: int, palette: Palette, marks: list[Mark], selection: Style | None) -> Strip:
    """The line at exactly ``width`` cells. ``marks`` are ranges of characters of the row to be marked."""
    # Where there is no text nothing can be marked.
    if line.strip is not None and not (marks and line.text) and line.strip.cell_length == width:
        return line.strip
    out: list[Segment] = []
    starts = [start for _, _, start in line.segments if start >= 0]
    at = starts[0] if starts else 0
    for text, style, start in line.segments:
        if start < 0:
            offset = Style(meta={"offset": (at, y)})
            out += [Segment(char, style + offset) for char in text] if len(text) < 8 else [Segment(text, style)]
            continue
        cuts = sorted({0, len(text), *(p - start for a, b, _ in marks for p in (a, b) if 0 < p - start < len(text))})
        for a, b in itertools.pairwise(cuts):
            marked = style
            for begin, end, name in marks:
                if begin <= start + a and start + b <= end:
                    marked += selection if name == "selected" and selection is not None else palette(name)
            out.append(Segment(text[a:b], marked + Style(meta={"offset": (start + a, y)})))
        at = start + len(text)
    used = sum(cell_len(segment.text) for segment in out)
    if not starts:
        out.append(Segment(" " * max(1, width - used), line.fill + Style(meta={"offset": (0, y)})))
        used = max(width, used + 1)
    strip = Strip(out, used)
    if used != width:
        strip = strip.adjust_cell_length(width, line.fill)
    if not marks:
        line.strip = strip
    return strip


def found(places: Iterable[tuple[int, int]], current: int | None) -> list[Mark]:
    """Marks of all matches in a row; the one that starts at ``current`` looks different."""
    return [(start, end, "match_now" if start == current else "match") for start, end in places]


@dataclass(slots=True, eq=False)
class Piece:
    """Makes its rows when they are needed and keeps its lines until told to ``forget`` them."""

    make: Callable[[], list[Flow]]
    _: KW_ONLY
    gap: int = 0
    """The empty rows before it, drawn with ``margin``."""
    margin: Decoration = ()
    chars: int = 0
    """With ``rows`` the estimate of its height until it is laid out."""
    rows: int = 1
    glue: str | None = None
    """Copied between it and the piece before it, where it goes on with the last row of that one."""
    lines: list[Line] | None = None
    width: int = 0
    height: int = 0

    def flows(self) -> list[Flow]:
        """The logical rows, gap included."""
        made = self.make()
        return [Flow(first=self.margin) for _ in range(self.gap)] + made if self.gap else made

    def guess(self, width: int) -> int:
        """The height at ``width``: exact once laid out, else estimated."""
        if self.width == width:
            return self.height
        return self.gap + self.rows + self.chars // max(16, width - 4)

    def lay(self, width: int, palette: Palette) -> list[Line]:
        """The lines at ``width``."""
        if self.lines is None or self.width != width:
            self.lines = [line for row, flow in enumerate(self.flows()) for line in flow.lay(row, width, palette)]
            self.width, self.height = width, len(self.lines)
        return self.lines

    def forget(self) -> None:
        """Drops the lines; the height stays known."""
        self.lines = None
