"""A view that scrolls without an animation, and its scrollbar."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget


def filtered(widget: Widget, strips: list[Strip]) -> list[Strip]:
    """Lines as the user's terminal can show them: without colours where it has none, for example."""
    filters = widget.get_line_filters()
    if filters:
        background = widget.background_colors[1]
        for line_filter in filters:
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
    return strips


class LeanScrollBar(ScrollBar):
    """A vertical scrollbar whose lines are made without a console and without styles for each of them."""

    def render_lines(self, crop: Region) -> list[Strip]:
        bar = self.render()
        assert isinstance(bar, ScrollBarRender) and isinstance(bar.style, Style)
        style, (width, height) = bar.style, self.size
        drawn = bar.render_bar(
            size=height,
            virtual_size=bar.virtual_size,
            window_size=bar.window_size,
            position=bar.position,
            thickness=width,
            vertical=True,
            back_color=style.bgcolor or Color.default(),
            bar_color=style.color or Color.default(),
        )
        base = self.visual_style.rich_style
        strips = [one_segment(segment, width, base) for segment in drawn.segments[crop.y : crop.bottom]]
        begin, end = crop.column_span
        return [strip.crop(begin, end) for strip in filtered(self, strips)]


@lru_cache(256)
def one_segment(segment: Segment, width: int, base: Style) -> Strip:
    """A line that is one segment: the same strip for the same segment, so that it is made into text once."""
    return Strip([segment], width).apply_style(base)


class JumpingScrollView(ScrollView):
    """Scrolls without an animation, and takes a size and a place in one go, without a layout."""

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        if self._vertical_scrollbar is None:
            bar = self._vertical_scrollbar = LeanScrollBar(name="vertical", thickness=self.scrollbar_size_vertical)
            bar.display = False
            self.app._start_widget(self, bar)
        return self._vertical_scrollbar

    def _scroll_to(self, *arguments: Any, **options: Any) -> bool:
        options["animate"] = False
        return super()._scroll_to(*arguments, **options)

    def set_virtual_size(self, size: Size) -> None:
        """Tells the scrollbar of ``size`` without laying everything out again."""
        self.set_reactive(Widget.virtual_size, size)
        self._scroll_update(size)
