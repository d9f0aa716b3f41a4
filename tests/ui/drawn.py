"""The app over a driver that hands what it writes to a model of a terminal, and what the terminal should show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual._context import visible_screen_stack
from textual.app import App
from textual.drivers import headless_driver
from textual.widget import Widget

from agent_tui.ui.terminal.driver import WholeFrames
from tests.support.app import Running, running
from tests.support.screen_model import Cell, ScreenModel
from tests.support.waiting import PATIENCE

NO_WRAP = "\x1b[?7l"


class Drawn:
    """A running app and the terminal it writes to; ``sent`` is each of its writes."""

    def __init__(self, run: Running, terminal: ScreenModel, sent: list[str]) -> None:
        self.run = run
        self.terminal = terminal
        self.sent = sent

    async def settle(self) -> None:
        """Waits until everything that changed was drawn."""
        calm, waits = 0, ""
        try:
            async with asyncio.timeout(PATIENCE):
                while calm < 2:
                    await self.run.pilot.pause()
                    waits = self._waits()
                    calm = 0 if waits else calm + 1
        except TimeoutError:
            raise AssertionError(f"never drawn: {waits}") from None

    def _waits(self) -> str:
        """What waits to be drawn, of the screens that are seen: one that is hidden waits until it is."""
        app = self.run.app
        for screen in app.screen_stack:
            if not screen.is_current:
                continue
            if screen._dirty_widgets:
                return f"{screen}: {screen._dirty_widgets}"
            for node in screen.walk_children(with_self=True):
                if isinstance(node, Widget):
                    asked = node._repaint_required, node._layout_required, node._scroll_required
                    if any(asked):
                        return f"{screen}: {node}, repaint, layout, scroll: {asked}"
        return "the transcript" if app.transcript._dirty or app.transcript._frame_pending else ""

    def expected(self) -> list[list[Cell]]:
        """The cells that the compositor holds."""
        return cells_of(self.run.app)

    def check(self, after: object = "") -> None:
        """Fails where the terminal shows anything else than the compositor holds, or the compositor holds anything else
        than the transcript wants to be seen."""
        expected, shown = self.expected(), self.terminal.rows
        app, text = self.run.app, self.terminal.text()
        if len(app.screen_stack) == 1:
            for y in range(app.transcript.size.height):
                line = app.transcript.render_line(y).text
                assert text[app.transcript.region.y + y].startswith(line), f"after {after}: {line!r} is not shown"
        assert not self.terminal.synchronized
        for y, (want, have) in enumerate(zip(expected, shown, strict=True)):
            if want != have:
                x = next(x for x, (a, b) in enumerate(zip(want, have, strict=True)) if a != b)
                rows = [("".join(cell.text for cell in row)) for row in (want, have)]
                raise AssertionError(f"after {after}: row {y}, column {x}: {want[x]} is shown as {have[x]}\n{rows}")


def cells_of(app: App[Any]) -> list[list[Cell]]:
    """The cells of an app's screen, drawn anew from what its compositor holds."""
    visible_screen_stack.set(list(app._background_screens))
    width, height = app.size
    fresh = ScreenModel(width, height)
    fresh.feed(NO_WRAP)
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        fresh.feed(f"\x1b[{y + 1};1H{strip.render(app.console)}")
    return fresh.rows


@asynccontextmanager
async def drawn(home: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> AsyncIterator[Drawn]:
    """The app with an agent that does nothing, in a terminal that knows synchronized output."""
    terminal = ScreenModel(*size)
    terminal.feed(NO_WRAP)
    sent: list[str] = []
    frames = WholeFrames()

    class Writes(headless_driver.HeadlessDriver):
        @property
        def is_headless(self) -> bool:
            return False

        def write(self, data: str) -> None:
            if whole := frames.take(data):
                sent.append(whole)
                terminal.feed(whole)

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(headless_driver, "HeadlessDriver", Writes)
    async with running(home, size=size) as run:
        run.app._sync_available = True
        yield Drawn(run, terminal, sent)
