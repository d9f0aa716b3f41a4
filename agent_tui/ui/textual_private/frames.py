"""Draws only what changed, in rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rich.segment import Segment
from textual._compositor import Compositor, CompositorUpdate
from textual.color import Color
from textual.filter import LineFilter
from textual.geometry import Region
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from agent_tui.ui.screen_buffer import runs, through

if TYPE_CHECKING:
    from rich.console import Console
    from textual.geometry import Offset

    from agent_tui.ui.screen_buffer import Cells, Frame
    from agent_tui.ui.textual_private.who_draws import DrawingWatch


class FrameUpdate(CompositorUpdate):
    """The text that is to be sent for a frame. The terminal counts as showing it once Textual takes the text to send
    it."""

    def __init__(self, drawing: DrawingWatch, frame: Frame, cursor: Offset) -> None:
        self.drawing = drawing
        self.frame = frame
        self.cursor = cursor

    def render_segments(self, console: Console) -> str:
        self.drawing.buffer.sent(self.frame)
        self.drawing.cursor = self.cursor
        return self.frame.text


class RowPart(NamedTuple):
    """A part of a row that one widget draws: from column ``x`` to ``end``."""

    x: int
    end: int
    widget: Widget


Asked: TypeAlias = Mapping[Widget, Mapping[int, list[RowPart]]]
"""Parts of rows, by the widget that draws them."""


class FrameCompositor(Compositor):
    """Asks widgets for the lines that changed and for no others, and leaves lines whole that nothing covers."""

    def __init__(self, drawing: DrawingWatch) -> None:
        super().__init__()
        self.drawing = drawing
        self.known_parts: list[list[RowPart] | None] = []
        self.parts_of: object = None
        self.known_shapes: object = None
        self.for_picture = False

    def render_update(
        self, full: bool = False, screen_stack: list[Screen[object]] | None = None, simplify: bool = False
    ) -> Any:
        """Draws what changed; ``full`` is asked for by who wants a picture of the screen, which is Textual's."""
        self.for_picture = full
        try:
            return super().render_update(full, screen_stack, simplify)
        finally:
            self.for_picture = False

    def render_full_update(self, simplify: bool = False) -> Any:
        """Draws every row."""
        if self.for_picture or self.root is None or self.drawing.problem:
            return super().render_full_update(simplify)
        return self.drawing.attempt(partial(self.frame, True), super().render_full_update)

    def render_partial_update(self) -> Any:
        """Draws what is dirty, and with it whatever the terminal does not show for certain."""
        if self.root is None or self.drawing.problem:
            return super().render_partial_update()
        return self.drawing.attempt(self.frame, super().render_full_update)

    def frame(self, full: bool = False) -> FrameUpdate | None:
        """Returns the frame that has to be sent; None where the terminal shows all of it already."""
        regions, buffer = self._dirty_regions.copy(), self.drawing.buffer
        self._dirty_regions.clear()
        if not (regions or full):
            return None
        width, height = self.size
        buffer.fit(width, height)
        spans: dict[int, list[tuple[int, int]]] = {}
        for region in regions:
            for y in region.line_range:
                if 0 <= y < height:
                    spans.setdefault(y, []).append(region.column_span)
        whole = dict.fromkeys(range(height) if full else spans, full)
        cuts = self.cuts
        if (shapes := (cuts, buffer.shapes)) != self.known_shapes:
            self.known_shapes = shapes
            whole |= {y: True for y, columns in enumerate(cuts) if not buffer.knows(y, columns[:-1])}
        rows: dict[int, Cells] = {}
        asked: dict[Widget, dict[int, list[RowPart]]] = {}
        for y in sorted(whole):
            row = rows[y] = {}
            for part in self.parts(y):
                x, end, widget = part
                if whole[y] or any(x < right and end > left for left, right in spans[y]):
                    row[x] = ""  # all columns in their order; what no widget fills stays empty
                    asked.setdefault(widget, {}).setdefault(y, []).append(part)
        assert self.root is not None
        app = self.root.app
        for y, x, strip in self.shown(asked):
            rows[y][x] = strip.render(app.console)
        frame = buffer.frame(rows, whole)
        cursor = app.screen.outer_size.clamp_offset(app.cursor_position)
        return FrameUpdate(self.drawing, frame, cursor) if frame.text or cursor != self.drawing.cursor else None

    def parts(self, y: int) -> list[RowPart]:
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
            found = self.known_parts[y] = [RowPart(x, end, owners[x]) for x, end in ends if x in owners]
        return found

    def shown(self, asked: Asked) -> Iterator[tuple[int, int, Strip]]:
        """Yields what the widgets show in those parts, each with its row and its column."""
        for widget, lines in asked.items():
            region, clip = self.visible_widgets[widget]
            area = region.intersection(clip)
            asked_rows: Sequence[int] = list(lines)
            if isinstance(widget, Screen) and behind(widget) is None:  # it forgets what is behind it once it was asked
                asked_rows = range(asked_rows[0], asked_rows[-1] + 1)
            for first, count in runs(asked_rows):
                crop = Region(area.x - region.x, first - region.y, area.width, count)
                for y, strip in zip(range(first, first + count), lines_of(widget, crop), strict=False):
                    parts = lines.get(y, [])
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
        asked: dict[Widget, dict[int, list[RowPart]]] = {}
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
    """Returns the lines that a widget shows there."""
    if not isinstance(widget, Screen):
        return widget.render_lines(crop)
    below = behind(widget)
    if below is None:
        return widget.render_lines(crop)
    begin, end = crop.column_span
    return [strip.crop(begin, end) for strip in below.rows_behind(crop.y, crop.height, widget)]


def behind(screen: Screen[object]) -> FrameCompositor | None:
    """Returns the compositor of the screen that can be seen through this one, where it is of the same size and nothing
    else is drawn between."""
    stack, styles = screen.app.screen_stack, screen.styles
    at = stack.index(screen) if screen in stack else 0
    if at == 0 or styles.background.a == 1 or styles.gutter.totals != (0, 0) or styles.opacity < 1:
        return None
    found = stack[at - 1]._compositor
    return found if isinstance(found, FrameCompositor) and found.size == screen.size and found.root else None


class Tint(LineFilter):
    """A filter for what lies behind a screen of this colour: darker, and nothing in it can be clicked."""

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
