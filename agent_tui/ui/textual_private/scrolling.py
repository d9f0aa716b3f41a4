"""A view that scrolls without an animation, and its scrollbar."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from agent_tui.ui.textual_private.frames import through
from agent_tui.ui.textual_private.screen import EchoingScreen


def filtered(widget: Widget, strips: list[Strip]) -> list[Strip]:
    """Lines as the user's terminal can show them: without colours where it has none, for example."""
    if filters := widget.get_line_filters():
        background = widget.background_colors[1]
        strips = [through(strip, filters, background) for strip in strips]
    return strips


class LeanScrollBar(ScrollBar):
    """A vertical scrollbar whose lines are made without a console and without styles for each of them."""

    def __init__(self, **names: Any) -> None:
        super().__init__(**names)
        self.drawn: list[tuple[int, Segment]] = []

    def render_lines(self, crop: Region) -> list[Strip]:
        width, base = self.size.width, self.visual_style.rich_style
        segments = self.segments()
        self.drawn = changes(segments)
        strips = [one_segment(segment, width, base) for segment in segments[crop.y : crop.bottom]]
        begin, end = crop.column_span
        return [strip.crop(begin, end) for strip in filtered(self, strips)]

    def segments(self) -> list[Segment]:
        """A segment for each line."""
        bar = self.render()
        assert isinstance(bar, ScrollBarRender) and isinstance(bar.style, Style)
        made = bar.render_bar(
            size=self.size.height,
            virtual_size=bar.virtual_size,
            window_size=bar.window_size,
            position=bar.position,
            thickness=self.size.width,
            vertical=True,
            back_color=bar.style.bgcolor or Color.default(),
            bar_color=bar.style.color or Color.default(),
        )
        return list(made.segments)

    def place(self, virtual: int, window: int, position: int) -> bool:
        """Takes what it shows, quietly; whether that looks different."""
        self.set_reactive(ScrollBar.window_virtual_size, virtual)
        self.set_reactive(ScrollBar.window_size, window)
        self.set_reactive(ScrollBar.position, position)
        return changes(self.segments()) != self.drawn


def changes(segments: Sequence[Segment]) -> list[tuple[int, Segment]]:
    """Where a segment is another object than the one before."""
    return [(y, one) for y, (one, last) in enumerate(zip(segments, [None, *segments], strict=False)) if one is not last]


@lru_cache(256)
def one_segment(segment: Segment, width: int, base: Style) -> Strip:
    """A line that is one segment: the same strip for the same segment, so that it is made into text once."""
    return Strip([segment], width).apply_style(base)


SOON = 0.04
"""Seconds that nobody sees a spinner, a hint or a popup wait."""


class JumpingScrollView(ScrollView):
    """Scrolls without an animation, and takes a size and a place in one go, without a layout.

    A frame that only scrolls needs none of the messages by which Textual brings a change to the screen."""

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

    def mark(self, *regions: Region) -> None:
        """As ``refresh``, for the screen's next drawing."""
        self._set_dirty(*regions)
        self.drawn_next(self)

    def drawn_next(self, widget: Widget) -> None:
        self.screen._dirty_widgets.add(widget)

    def place(self, size: Size, row: int) -> int:
        """Scrolls to a row, or as far as there is anything, in a text of this size; which row it is."""
        height = self.container_size.height
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            if self.show_vertical_scrollbar != (size.height > height):
                self._scroll_update(size)
        row = min(row, self.max_scroll_y)
        self.set_reactive(Widget.scroll_y, row)
        self.set_reactive(Widget.scroll_target_y, row)
        bar = self.vertical_scrollbar
        if self.show_vertical_scrollbar and isinstance(bar, LeanScrollBar) and bar.place(size.height, height, row):
            bar._set_dirty()
            self.drawn_next(bar)
        return row

    def frame_in(self, seconds: float, prepare: Callable[[], None]) -> None:
        """Draws a frame in so many seconds, and calls ``prepare`` just before. Where that is soon, what else changes
        until then is drawn with it."""
        loop, screen = get_running_loop(), self.screen
        if isinstance(screen, EchoingScreen) and seconds <= SOON:
            screen.frame_due = loop.time() + seconds
        loop.call_later(seconds, self.frame_now, prepare, screen)

    def frame_now(self, prepare: Callable[[], None], screen: Screen[Any]) -> None:
        """No message handles this: an error in it is one of the app."""
        for call in (prepare, screen.draw_now if isinstance(screen, EchoingScreen) else screen.check_idle):
            try:
                with self._context():
                    if self.is_attached or call is not prepare:
                        call()
            except Exception as error:
                self.app._handle_exception(error)
