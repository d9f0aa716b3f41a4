"""Frames on their way to the terminal, and what a key did before everything else."""

from __future__ import annotations

import sys
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any

from textual import events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.screen import Screen

from agent_tui.ui.textual_private.frames import FrameCompositor, FrameUpdate, whole_screen

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from textual.widget import AwaitMount, Widget

    from agent_tui.ui.textual_private.frames import Glass


class DrawsFrames(App[int]):
    """An app that sends the terminal only what it does not show yet, each frame as one piece."""

    glass: Glass
    key_pressed = False
    """Whether a key was pressed whose effect is not on the terminal yet."""

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key):
            self.key_pressed = True
        elif isinstance(event, events.Resize):
            # The terminal was perhaps, for a moment, of yet another size, and what it shows is what that left.
            self.glass.forget()
            self.screen.refresh()
        await super().on_event(event)

    def _get_screen(self, screen: Screen[Any] | str) -> tuple[Screen[Any], AwaitMount]:
        """A screen on top of the first one is drawn in the same way."""
        found = self.get_screen(screen)
        if not isinstance(found._compositor, FrameCompositor):
            found._compositor = FrameCompositor(self.glass)
        return super()._get_screen(found)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        frame = as_frame(renderable, self.console)
        if frame is None:
            self.drawn_by_textual(renderable)
            super()._display(screen, renderable)
            return
        driver = self._driver
        if self._running and not (self._closed or self._batch_count or driver is None or driver.is_headless):
            try:
                text = self.sequence(frame)
            except Exception as error:
                self.glass.forget()
                self._handle_exception(error)
            else:
                if text:
                    frame_text = f"{SYNC_START}{text}{SYNC_END}" if self._sync_available else text
                    for at in range(0, len(frame_text), ONE_WRITE):
                        driver.write(frame_text[at : at + ONE_WRITE])
                    driver.flush()
        self.post_display_hook()

    def sequence(self, frame: FrameUpdate) -> str:
        self.glass.fit(*frame.size)
        text = self.glass.draw(frame.rows, frame.whole)
        cursor = self.screen.outer_size.clamp_offset(self.cursor_position)
        if text or cursor != self._previous_cursor_position:
            self._previous_cursor_position = cursor
            text += f"\x1b[{cursor.y + 1};{cursor.x + 1}H"
        return text

    def drawn_by_textual(self, renderable: RenderableType | None) -> None:
        if isinstance(renderable, ChopsUpdate):
            self.glass.forget_rows([y for y, _, _ in renderable.spans])
        elif renderable is not None:
            self.glass.forget()


ONE_WRITE = 8_192 if sys.platform == "win32" else 1 << 30
"""Characters that a terminal is given at once: the thread that writes may have to wait for each piece, but Python fails
on long ones on Windows."""


def as_frame(renderable: RenderableType | None, console: Console) -> FrameUpdate | None:
    if isinstance(renderable, LayoutUpdate):
        return whole_screen(renderable, console)
    return renderable if isinstance(renderable, FrameUpdate) else None


class EchoingScreen(Screen[None]):
    """A screen that draws only what changed, and what a key did before everything else.

    ``frame_due`` is when a frame is drawn anyway, by the event loop's clock: what else changes until then is drawn with
    it, but for what a key did.
    """

    app: DrawsFrames

    def __init__(self, glass: Glass, **names: Any) -> None:
        super().__init__(**names)
        self._compositor = FrameCompositor(glass)
        self.frame_due = 0.0

    async def _on_idle(self, event: events.Idle) -> None:
        """Textual goes on with what is left when this is done, unless there will be a frame for it."""
        app, widget = self.app, self.focused
        echoes = widget in self._dirty_widgets and app.key_pressed and self.is_current and not app._batch_count
        if widget is not None and echoes:
            app.key_pressed = False
            self.echo(widget)
        if self.frame_due > get_running_loop().time():
            event.prevent_default()

    def echo(self, widget: Widget) -> None:
        """Draws the widget that took a key."""
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
        front = app.screen
        if self is front or self not in app._background_screens:
            super()._compositor_refresh()
            return
        if changed := self._compositor._dirty_regions.copy():
            front._set_dirty(*changed)
            front._dirty_widgets.add(front)
            front.check_idle()
        self._compositor._dirty_regions.clear()
        self._dirty_widgets.clear()

    def draw_now(self) -> None:
        """Draws what is dirty, without waiting for Textual's next update."""
        app = self.app
        self.frame_due = 0.0
        if app._batch_count or not self.is_current:
            self.check_idle()
        elif self is not app.screen or self.needs_more():
            self._on_timer_update()
        else:
            self._update_timer.pause()
            self._compositor.update_widgets(self._dirty_widgets)
            app._display(self, self._compositor.render_update(screen_stack=app._background_screens))
            self._dirty_widgets.clear()
            if self._callbacks:
                self.call_next(self._invoke_and_clear_callbacks)

    def needs_more(self) -> bool:
        """Whether more is to be done than drawing."""
        return self._layout_required or self._scroll_required or self._repaint_required or self._recompose_required


def draw_again(app: DrawsFrames) -> None:
    """Writes every cell of the screen on top."""
    app.glass.forget()
    screen = app.screen
    app._display(screen, screen._compositor.render_update(full=True))
