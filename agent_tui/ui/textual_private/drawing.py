"""Draws as soon as something changed, only that, and what a key did first; where that fails, Textual draws from then
on."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from agent_tui.ui.screen_buffer import through
from agent_tui.ui.textual_private.who_draws import DrawingWatch


class DrawsFrames(App[int]):
    """An app that sends the terminal only what it does not show yet."""

    drawing: DrawingWatch
    key_pressed = False
    """Whether a key was pressed whose effect is not on the terminal yet."""

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key):
            self.key_pressed = True
        elif isinstance(event, events.Resize):
            # The terminal was perhaps, for a moment, of yet another size, and what it shows is what that left.
            self.draw_again()
        await super().on_event(event)

    def get_default_screen(self) -> Screen[Any]:
        return self.drawn(EchoingScreen(id="_default"))

    def get_screen(self, screen: Any, screen_class: Any = None) -> Any:
        return self.drawn(super().get_screen(screen, screen_class))

    def drawn(self, screen: Screen[Any]) -> Screen[Any]:
        """Has a screen drawn in the program's own way."""

        def own() -> None:
            from agent_tui.ui.textual_private.frames import FrameCompositor

            if not isinstance(screen._compositor, FrameCompositor):
                screen._compositor = FrameCompositor(self.drawing)

        if not self.drawing.problem:
            self.drawing.attempt(own, lambda: None)
        return screen

    def _end_batch(self) -> None:
        """What changed meanwhile is drawn. (Of Textual's own no screen hears that it may be.)"""
        super()._end_batch()
        if not self._batch_count:
            for screen in self._screen_stack:
                screen.check_idle()

    def draw_again(self) -> None:
        """Writes every cell of the screen on top, with the next frame."""
        self.drawing.buffer.forget()
        self.screen.refresh()


class EchoingScreen(Screen[None]):
    """A screen that draws what a key did before everything else.

    ``frame_due`` is when a frame is drawn anyway, by the event loop's clock: what else changes until then is drawn with
    it, but for what a key did.
    """

    app: DrawsFrames

    def __init__(self, **names: Any) -> None:
        super().__init__(**names)
        self.frame_due = 0.0

    async def on_idle(self, event: events.Idle) -> None:
        """Textual goes on with what is left when this is done, unless there will be a frame for it."""
        if self.app.drawing.problem:
            return
        self.app.drawing.attempt(self.echo, self.refresh)
        if self.frame_due > get_running_loop().time():
            event.prevent_default()

    def echo(self) -> None:
        """Draws the widget that took a key."""
        app, widget = self.app, self.focused
        if widget not in self._dirty_widgets or not app.key_pressed or not self.is_current or app._batch_count:
            return
        app.key_pressed = False
        if self._layout_required:
            self._on_timer_update()
            return
        later = self._dirty_widgets - {widget}
        self._compositor.update_widgets({widget})
        self._compositor_refresh()
        self._dirty_widgets.update(later)

    def _compositor_refresh(self) -> None:
        """Behind another screen, that one draws what changed. (Textual's own also marks this screen as changed by
        that, once more and whole. And it asks the other one for a repaint, which forgets what changed there by
        itself at the same time.)"""
        app = self.app
        stack = app.screen_stack
        if self is stack[-1] or self not in stack or app.drawing.problem:
            super()._compositor_refresh()
        else:
            app.drawing.attempt(self.refresh_behind, super()._compositor_refresh)

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """What is to be drawn besides stays to be drawn. (Textual's own stops the timer that would do it: where a
        dialog opens, that of the screen behind it.)"""
        super()._refresh_layout(size, scroll)
        if self._repaint_required:
            self.check_idle()

    def refresh_behind(self) -> None:
        front = self.app.screen
        if changed := self._compositor._dirty_regions.copy():
            front._set_dirty(*changed)
            front._dirty_widgets.add(front)
            front.check_idle()
        self._compositor._dirty_regions.clear()
        self._dirty_widgets.clear()

    def draw_now(self) -> None:
        """Draws what is dirty, without waiting for Textual's next update."""
        self.frame_due = 0.0
        if self.app.drawing.problem:
            self.check_idle()
        else:
            self.app.drawing.attempt(self.draw_dirty, self.refresh)

    def draw_dirty(self) -> None:
        self._on_timer_update()
        # Not now: between two halves of a change, or nobody sees it.
        if self._dirty_widgets or self._repaint_required or self._layout_required:
            self.check_idle()


def filtered(widget: Widget, strips: list[Strip]) -> list[Strip]:
    """Lines as the user's terminal can show them: without colours where it has none, for example."""
    if filters := widget.get_line_filters():
        background = widget.background_colors[1]
        strips = [through(strip, filters, background) for strip in strips]
    return strips


class LeanScrollBar(ScrollBar):
    """A vertical scrollbar whose lines are made without a console and without styles for each of them."""

    drawn: Sequence[tuple[int, Segment]] = ()

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
        return changes(self.segments()) != list(self.drawn)


def changes(segments: Sequence[Segment]) -> list[tuple[int, Segment]]:
    """Returns the segments that are another object than the one before, with their places."""
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
        bar = super().vertical_scrollbar
        if type(bar) is ScrollBar:
            bar.__class__ = LeanScrollBar
        return bar

    def animate(self, attribute: str, value: Any, *, on_complete: Any = None, **options: Any) -> None:
        setattr(self, attribute, value)
        if on_complete is not None:
            on_complete()

    def mark(self, *regions: Region) -> None:
        """As ``refresh``, for the screen's next drawing."""
        self.mark_widget(self, *regions)

    def mark_widget(self, widget: Widget, *regions: Region) -> None:
        def own() -> None:
            widget._set_dirty(*regions)
            screen._dirty_widgets.add(widget)

        def textual() -> None:
            widget.refresh(*regions)

        screen = self.screen
        if isinstance(screen, EchoingScreen) and not screen.app.drawing.problem:
            screen.app.drawing.attempt(own, textual)
        else:
            textual()

    def place(self, size: Size, row: int) -> int:
        """Scrolls to a row, or as far as there is anything, in a text of this size; which row it is."""
        height = self.container_size.height
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self.show_vertical_scrollbar = size.height > height
        row = min(row, self.max_scroll_y)
        self.set_reactive(Widget.scroll_y, row)
        self.set_reactive(Widget.scroll_target_y, row)
        bar = self.vertical_scrollbar
        if self.show_vertical_scrollbar and isinstance(bar, LeanScrollBar) and bar.place(size.height, height, row):
            self.mark_widget(bar)
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
                if self.is_attached or call is not prepare:
                    call()
            except Exception as error:
                self.app._handle_exception(error)
