"""Only what changed, in rows: what a frame is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from rich.segment import Segment
from textual._compositor import Compositor, CompositorUpdate, LayoutUpdate
from textual._context import visible_screen_stack
from textual.color import Color
from textual.filter import LineFilter
from textual.geometry import Region, Size
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from rich.console import Console

Cells: TypeAlias = dict[int, str]
"""Parts of a row as they are sent, by the column they begin at."""


class Glass(Protocol):
    """What the terminal shows; ``terminal.glass`` says more."""

    def forget(self) -> None: ...

    def forget_rows(self, rows: Sequence[int]) -> None: ...

    def fit(self, width: int, height: int) -> None: ...

    @property
    def shapes(self) -> int: ...

    def knows(self, y: int, columns: Sequence[int]) -> bool: ...

    def draw(self, changes: Mapping[int, Cells], whole: Mapping[int, bool]) -> str: ...


class FrameUpdate(CompositorUpdate):
    """Rows by their number, as they are sent; ``whole``: of which rows these are all parts."""

    def __init__(self, size: Size, rows: dict[int, Cells], whole: dict[int, bool]) -> None:
        self.size = size
        self.rows = rows
        self.whole = whole


def whole_screen(update: LayoutUpdate, console: Console) -> FrameUpdate:
    """All rows, as Textual has put them together."""
    rows: dict[int, Cells] = {}
    for y, strips in enumerate(update.strips, update.region.y):
        row = rows[y] = {}
        x = update.region.x
        for strip in strips:
            row[x] = strip.render(console)
            x += strip.cell_length
    return FrameUpdate(update.region.size, rows, dict.fromkeys(rows, True))


class Part(NamedTuple):
    """A part of a row that one widget draws: from column ``x`` to ``end``."""

    x: int
    end: int
    widget: Widget


Asked: TypeAlias = Mapping[Widget, Mapping[int, list[Part]]]
"""Parts of rows, by the widget that draws them."""


class FrameCompositor(Compositor):
    """Asks widgets for the lines that changed and for no others, and leaves lines whole that nothing covers."""

    def __init__(self, glass: Glass) -> None:
        super().__init__()
        self.glass = glass
        self.known_parts: list[list[Part] | None] = []
        self.parts_of: object = None
        self.known_shapes: object = None

    def render_partial_update(self) -> FrameUpdate | None:  # type: ignore[override]
        """What is dirty; with it whatever the terminal does not show for certain."""
        regions, glass = self._dirty_regions.copy(), self.glass
        self._dirty_regions.clear()
        if not regions or self.root is None:
            return None
        width, height = self.size
        glass.fit(width, height)
        spans: dict[int, list[tuple[int, int]]] = {}
        for y, begin, end in self._regions_to_spans(regions):
            if 0 <= y < height:
                spans.setdefault(y, []).append((begin, end))
        whole = dict.fromkeys(spans, False)
        cuts = self.cuts
        if (shapes := (cuts, glass.shapes)) != self.known_shapes:
            self.known_shapes = shapes
            whole |= {y: True for y, columns in enumerate(cuts) if not glass.knows(y, columns[:-1])}
        rows: dict[int, Cells] = {}
        asked: dict[Widget, dict[int, list[Part]]] = {}
        for y in sorted(whole):
            row = rows[y] = {}
            for part in self.parts(y):
                x, end, widget = part
                if whole[y] or any(x < right and end > left for left, right in spans[y]):
                    row[x] = ""  # all columns in their order; what no widget fills stays empty
                    asked.setdefault(widget, {}).setdefault(y, []).append(part)
        self.draw(rows, asked)
        return FrameUpdate(self.size, rows, whole)

    def parts(self, y: int) -> list[Part]:
        """Who draws which part of a row. It stays as it is until there is another layout."""
        cuts = self.cuts
        if self.parts_of is not cuts:
            self.known_parts, self.parts_of = [None] * len(cuts), cuts
        found = self.known_parts[y]
        if found is None:
            owners: dict[int, Widget] = {}
            for widget, (region, clip) in self.visible_widgets.items():  # those in front come first
                area = region.intersection(clip)
                if area.y <= y < area.bottom:
                    for x in cuts[y]:
                        if area.x <= x < area.right:
                            owners.setdefault(x, widget)
            ends = zip(cuts[y], cuts[y][1:], strict=False)
            found = self.known_parts[y] = [Part(x, end, owners[x]) for x, end in ends if x in owners]
        return found

    def draw(self, rows: dict[int, Cells], asked: Asked) -> None:
        """Fills those parts of the rows with what the widgets show there."""
        assert self.root is not None
        console = self.root.app.console
        for y, x, strip in self.shown(asked):
            rows[y][x] = strip.render(console)

    def shown(self, asked: Asked) -> Iterator[tuple[int, int, Strip]]:
        """What the widgets show in those parts, each with its row and its column."""
        for widget, lines in asked.items():
            region, clip = self.visible_widgets[widget]
            area = region.intersection(clip)
            for first, count in runs(lines):
                crop = Region(area.x - region.x, first - region.y, area.width, count)
                for y, strip in zip(range(first, first + count), lines_of(widget, crop), strict=False):
                    parts = lines[y]
                    if len(parts) == 1 and parts[0].x == area.x and strip.cell_length == parts[0].end - area.x:
                        yield y, area.x, strip
                        continue
                    own = [cut for cut in self.cuts[y] if area.x <= cut <= area.right]
                    pieces = dict(zip(own, strip.divide([cut - area.x for cut in own[1:]]), strict=False))
                    for part in parts:
                        if part.x in pieces:
                            yield y, part.x, pieces[part.x]

    def rows_behind(self, first: int, count: int, front: Screen[object]) -> Iterator[Strip]:
        """Rows of this screen as one line each, as they are seen through the one in ``front``."""
        tint, base = Tint.of(front.styles.background), front.visual_style.rich_style
        filters, background = front.get_line_filters(), front.background_colors[1]
        asked: dict[Widget, dict[int, list[Part]]] = {}
        rows: dict[int, dict[int, Strip]] = {}
        for y in range(first, first + count):
            rows[y] = {}
            for part in self.parts(y):
                asked.setdefault(part.widget, {}).setdefault(y, []).append(part)
        for y, x, strip in self.shown(asked):
            # Each of these is remembered by the line it is made of, which is the same as long as nothing changes there.
            rows[y][x] = through(strip.apply_filter(tint, background).apply_style(base), filters, background)
        for row in rows.values():
            yield Strip.join([row[x] for x in sorted(row)])


def lines_of(widget: Widget, crop: Region) -> list[Strip]:
    """What a widget shows there."""
    if not isinstance(widget, Screen):
        return widget.render_lines(crop)
    below = behind(widget)
    if below is None:
        visible_screen_stack.set(widget.app._background_screens)  # which it empties at each drawing
        return widget.render_lines(crop)
    begin, end = crop.column_span
    return [strip.crop(begin, end) for strip in below.rows_behind(crop.y, crop.height, widget)]


def behind(screen: Screen[object]) -> FrameCompositor | None:
    """What can be seen through a screen, where it is of the same size and nothing else is drawn between."""
    stack, styles = screen.app.screen_stack, screen.styles
    at = stack.index(screen) if screen in stack else 0
    if at == 0 or styles.background.a == 1 or styles.gutter.totals != (0, 0) or styles.opacity < 1:
        return None
    found = stack[at - 1]._compositor
    return found if isinstance(found, FrameCompositor) and found.size == screen.size and found.root else None


class Tint(LineFilter):
    """What lies behind a screen of this colour: darker, and nothing in it can be clicked."""

    def __init__(self, color: Color) -> None:
        super().__init__()
        self.color = color

    @classmethod
    @lru_cache(16)
    def of(cls, color: Color) -> Tint:
        """The same one for the same colour: lines keep what they look like behind it."""
        return cls(color)

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return list(BackgroundScreen.process_segments(segments, self.color))


def through(strip: Strip, filters: Sequence[LineFilter], background: Color) -> Strip:
    """A line behind filters that may have to know what is behind it."""
    for line_filter in filters:
        strip = strip.apply_filter(line_filter, background)
    return strip


def runs(rows: Mapping[int, object]) -> list[tuple[int, int]]:
    """Rows that follow each other: the first of them, and how many."""
    out: list[tuple[int, int]] = []
    for y in rows:  # from the top
        if out and out[-1][0] + out[-1][1] == y:
            out[-1] = out[-1][0], out[-1][1] + 1
        else:
            out.append((y, 1))
    return out
