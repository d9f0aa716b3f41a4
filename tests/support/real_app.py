"""The chat as it is shipped: the app over the agent that bootstrap builds, with its store, its worker and the demo
model. Driven by keys; what happens is waited for by the agent's own events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from agent_tui.bootstrap import make_agent
from agent_tui.config.files import early_settings
from agent_tui.engine.agent import Agent
from agent_tui.models.events import Event
from agent_tui.options import Options
from agent_tui.paths import user_paths
from agent_tui.providers.catalog import KEY_VARIABLES
from agent_tui.store.reading import open_for_reading
from agent_tui.store.store import Store
from agent_tui.ui.app import AgentApp, ChatStart
from tests.support.app import Clock, press_alone, shown
from tests.support.waiting import PATIENCE

E = TypeVar("E", bound=Event)


@dataclass
class Seen:
    """The agent's events in their order; each ``next`` goes on behind the one that was found before."""

    events: list[Event] = field(default_factory=list)
    at: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self.news.set()

    async def next(self, kind: type[E], where: Callable[[E], bool] = lambda event: True) -> E:
        """The first event of that kind since the last one that was found, waited for if it is still to come."""
        async with asyncio.timeout(PATIENCE):
            while True:
                while self.at < len(self.events):
                    event = self.events[self.at]
                    self.at += 1
                    if isinstance(event, kind) and where(event):
                        return event
                self.news.clear()
                await self.news.wait()


LONG_LINE = 200
"""Characters of a line that are typed: each key is drawn."""


@dataclass
class Chat:
    """A running chat. ``clock`` stands still until the test moves it."""

    app: AgentApp
    seen: Seen
    pilot: Pilot[int]
    clock: Clock
    project: Path

    async def until(self, what: Callable[[], object]) -> None:
        """Lets the screen work until something can be seen on it."""
        async with asyncio.timeout(PATIENCE):
            while not what():
                await self.pilot.pause()
                await asyncio.sleep(0)

    async def shows(self, *texts: str) -> None:
        """Waits until all of these stand on the screen."""
        try:
            await self.until(lambda: all(text in self.screen() for text in texts))
        except TimeoutError:
            raise AssertionError(f"not on the screen: {texts}\n{self.screen()}") from None

    async def hides(self, *texts: str) -> None:
        """Waits until none of these stands on the screen."""
        try:
            await self.until(lambda: not any(text in self.screen() for text in texts))
        except TimeoutError:
            raise AssertionError(f"still on the screen: {texts}\n{self.screen()}") from None

    def screen(self) -> str:
        """What stands on the screen, line by line."""
        return shown(self.app)

    @property
    def status(self) -> str:
        """The status line."""
        return self.screen().splitlines()[-1]

    @property
    def prompt(self) -> str:
        """What is typed and not sent."""
        return self.app.screen_stack[0].query_one("#prompt", TextArea).text

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def answer(self, *keys: str) -> None:
        """Presses keys at a question; a letter that answers is followed by nothing for a while."""
        await press_alone(self.app, self.pilot, self.clock, keys)

    async def say(self, text: str) -> None:
        """Types a line, key by key, and sends it; of a long one only the end is typed."""
        begun = max(0, len(text) - LONG_LINE)
        if begun:
            self.app.screen_stack[0].query_one("#prompt", TextArea).insert(text[:begun])
        await self.press(*text[begun:])
        await self.until(lambda: self.prompt == text)
        await self.press("enter")
        await self.until(lambda: self.prompt == "")

    async def look(self) -> None:
        """Lets the user look at the screen: what is pressed from here on is meant for what is shown."""
        await self.pilot.pause()
        self.clock.now += 5.0


@dataclass
class Home:
    """A user's home and project, in which chats can be opened one after the other."""

    project: Path
    monkeypatch: pytest.MonkeyPatch

    def script(self, text: str) -> None:
        """What the demo model answers in chats that are opened from here on."""
        path = self.project.parent / "script.toml"
        path.write_text(text, "utf-8")
        self.monkeypatch.setenv("AGENT_TUI_DEMO_SCRIPT", str(path))

    def configure(self, text: str) -> None:
        """The user's configuration."""
        path = user_paths().config_file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def store(self) -> Store:
        """The sessions as another process finds them on the disk; to be closed."""
        return open_for_reading(user_paths().database)

    @asynccontextmanager
    async def chat(self, options: Options | None = None, size: tuple[int, int] = (100, 40)) -> AsyncIterator[Chat]:
        """A chat that has opened its session; left as with ``/exit``."""
        seen, clock, paths = Seen(), Clock(), user_paths()
        wanted = options or Options(model="demo")

        async def factory() -> Agent:
            agent = await make_agent(wanted)
            agent.subscribe(seen)
            return agent

        app = AgentApp(
            factory,
            early_settings(None, paths),
            paths,
            self.project,
            ChatStart(wanted.prompt, wanted.resume == ""),
            clock,
        )
        try:
            async with app.run_test(size=size) as pilot:
                await asyncio.wait_for(app.opened.wait(), PATIENCE)
                await pilot.pause()
                yield Chat(app, seen, pilot, clock, self.project)
        finally:
            await app.close_agent()
        if app.net.errors:
            raise app.net.errors[0]
        if app.failure is not None:
            raise app.failure


def make_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home below ``folder`` in which no key of the machine's user is found."""
    for names in KEY_VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.setenv("AGENT_TUI_HOME", str(folder / "home"))
    project = folder / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return Home(project, monkeypatch)
