"""Only what changed, in rows: what a frame is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from textual._compositor import Compositor, CompositorUpdate
from textual.geometry import Region, Size
from textual.strip import Strip

if TYPE_CHECKING:
    from rich.console import Console


class Glass(Protocol):
    """What the terminal shows; ``terminal.glass`` says more."""

    def forget(self) -> None: ...

    def forget_rows(self, rows: Sequence[int]) -> None: ...

    def fit(self, width: int, height: int) -> None: ...

    def knows(self, y: int, columns: Sequence[int]) -> bool: ...

    def draw(self, changes: Mapping[int, dict[int, str]], whole: Mapping[int, bool]) -> str: ...


class FrameUpdate(CompositorUpdate):
    """Rows by their number, their parts by the column they begin at; ``whole``: of which rows these are all parts."""

    def __init__(self, size: Size, rows: dict[int, dict[int, Strip | None]], whole: dict[int, bool]) -> None:
        self.size = size
        self.rows = rows
        self.whole = whole

    def cells(self, console: Console) -> dict[int, dict[int, str]]:
        """The parts as they are sent."""
        return {
            y: {x: strip.render(console) if strip is not None else "" for x, strip in row.items()}
            for y, row in self.rows.items()
        }


class FrameCompositor(Compositor):
    """Asks widgets for the lines that changed and for no others, and leaves lines whole that nothing covers."""

    def __init__(self, glass: Glass) -> None:
        super().__init__()
        self.glass = glass

    def render_partial_update(self) -> FrameUpdate | None:  # type: ignore[override]
        """What is dirty; with it whatever the terminal does not show for certain."""
        regions, glass = self._dirty_regions.copy(), self.glass
        self._dirty_regions.clear()
        if not regions:
            return None
        width, height = self.size
        glass.fit(width, height)
        spans: dict[int, list[tuple[int, int]]] = {}
        for y, begin, end in self._regions_to_spans(regions):
            if 0 <= y < height:
                spans.setdefault(y, []).append((begin, end))
        rows: dict[int, dict[int, Strip | None]] = {}
        whole: dict[int, bool] = {}
        for y, cuts in enumerate(self.cuts):
            known = glass.knows(y, cuts[:-1])
            if not known:
                rows[y] = dict.fromkeys(cuts[:-1])
            elif y in spans:
                dirty = spans[y]
                rows[y] = {x: None for x, end in pairwise(cuts) if any(x < b and end > a for a, b in dirty)}
            else:
                continue
            whole[y] = not known
        self.fill(rows)
        return FrameUpdate(self.size, rows, whole)

    def fill(self, rows: dict[int, dict[int, Strip | None]]) -> None:
        """Asks the widgets, those in front first, for what is still missing."""
        missing = {y: sum(strip is None for strip in row.values()) for y, row in rows.items()}
        for widget, (region, clip) in self.visible_widgets.items():
            area = region.intersection(clip)
            lines = [y for y in area.line_range if missing.get(y) and missing_in(rows[y], area.x, area.right)]
            while lines:
                count = next((n for n, y in enumerate(lines) if y != lines[0] + n), len(lines))
                crop = Region(area.x - region.x, lines[0] - region.y, area.width, count)
                for y, strip in zip(lines[:count], widget.render_lines(crop), strict=False):
                    missing[y] -= self.put(rows[y], self.cuts[y], area, strip)
                lines = lines[count:]

    def put(self, row: dict[int, Strip | None], cuts: list[int], area: Region, strip: Strip) -> int:
        """Puts the line of a widget where nothing stands yet; how many parts that were."""
        own = [cut for cut in cuts if area.x <= cut <= area.right]
        pieces: Sequence[Strip]
        if len(own) > 1 and strip.cell_length == own[1] - own[0]:
            pieces = (strip,)
        else:
            pieces = strip.divide([cut - area.x for cut in own[1:]])
        count = 0
        for x, piece in zip(own, pieces, strict=False):
            if x in row and row[x] is None:
                row[x] = piece
                count += 1
        return count


def missing_in(row: dict[int, Strip | None], begin: int, end: int) -> bool:
    return any(strip is None and begin <= x < end for x, strip in row.items())
