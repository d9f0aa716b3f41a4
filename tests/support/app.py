"""Starting the application in a test, with a fake agent and a clock the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual._context import visible_screen_stack
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from agent_tui.config import Settings
from agent_tui.ui.app import AgentApp
from agent_tui.ui.keys import ALONE, PAUSE
from tests.support.fake_agent import FakeAgent
from tests.support.waiting import PATIENCE


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Running:
    """An application whose agent is ready."""

    app: AgentApp
    agent: FakeAgent
    pilot: Pilot[int]
    clock: Clock

    async def until(self, what: Callable[[], object]) -> None:
        """Waits until something has become true; fails after a generous while."""
        async with asyncio.timeout(PATIENCE):
            while not what():
                await self.pilot.pause()
                await asyncio.sleep(0)

    async def answer(self, *keys: str) -> None:
        """Presses keys at a question; a letter that answers is followed by nothing for a while."""
        await press_alone(self.app, self.pilot, self.clock, keys)

    async def screen(self, kind: type[Screen[Any]]) -> None:
        """Waits until a screen of that kind is on top and has drawn itself."""
        await self.until(lambda: isinstance(self.app.screen, kind) and self.app.screen.is_mounted)
        await self.until(lambda: self.app.screen.query("#rows") and self.app.screen.query("#rows").first().is_mounted)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Types a text, key by key."""
        await self.pilot.press(*text)
        await self.pilot.pause()

    def shown(self) -> str:
        """What stands on the screen, line by line."""
        return shown(self.app)


async def press_alone(app: AgentApp, pilot: Pilot[Any], clock: Clock, keys: Iterable[str]) -> None:
    """Presses keys, and waits after each until the question has taken it for an answer or for words."""
    for key in keys:
        await pilot.press(key)
        clock.now += 2 * ALONE
        async with asyncio.timeout(PATIENCE):
            while (panel := app.chat.questions.panel) is not None and panel.is_attached and panel._letters:
                await pilot.pause()
                await asyncio.sleep(0)
        await pilot.pause()
        clock.now += 2 * PAUSE


def shown(app: App[Any]) -> str:
    """What stands on the screen of an app, line by line."""
    # Textual sets it before it draws; the program's own frames have no need of it.
    visible_screen_stack.set(app._background_screens)
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


@asynccontextmanager
async def running(
    home: Path, agent: FakeAgent | None = None, size: tuple[int, int] = (80, 24), settings: Settings | None = None
) -> AsyncIterator[Running]:
    """The application with an agent that has opened its session."""
    agent = agent or FakeAgent(home)
    clock = Clock()
    settings = settings or Settings()

    async def factory() -> FakeAgent:
        return agent

    app = AgentApp(factory, settings, agent.paths, home, clock=clock)
    async with app.run_test(size=size) as pilot:
        await asyncio.wait_for(app.opened.wait(), PATIENCE)
        await pilot.pause()
        yield Running(app, agent, pilot, clock)
    if app.net.errors:
        raise app.net.errors[0]
    if app.failure is not None:
        raise app.failure
