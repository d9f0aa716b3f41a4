"""Pictures of the main screens at two sizes. ``pytest tests/ui/test_snapshots.py --snapshot-update`` takes new ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from textual.pilot import Pilot

from agent_tui.config import Settings
from agent_tui.models.events import JobsChanged, QueueChanged, WaitingMessage
from agent_tui.ui.app import AgentApp
from agent_tui.ui.screens.context_screen import ContextScreen
from tests.support import showcase
from tests.support.app import Clock
from tests.support.fake_agent import FakeAgent
from tests.support.forms import one_of
from tests.support.scenes import stop_the_clock

if TYPE_CHECKING:
    from agent_tui.ui.chat.view import Opened

SMALL = [pytest.param((80, 24), id="80x24")]
SIZES = [*SMALL, pytest.param((200, 50), id="200x50")]
IN_TURN = [*SMALL, pytest.param((200, 50), id="200x50", marks=pytest.mark.slow)]
"""Of what looks alike at both sizes."""
WAITS = [
    WaitingMessage("w1", "Leave the tests as they are.", "steer"),
    WaitingMessage("w2", "Then write the changelog line.", "queued"),
    WaitingMessage("w3", "And look whether the docs name the old greeting anywhere.", "queued"),
]
FAILED = [
    WaitingMessage("f1", "Rename the function.", "unanswered", "The key was refused. Set ANTHROPIC_API_KEY."),
    WaitingMessage("f2", "And its tests.", "unanswered", "The key was refused. Set ANTHROPIC_API_KEY."),
    WaitingMessage("f3", "Count the lines.", "failed", "The message could not be stored: the disk is full."),
    WaitingMessage("f4", "What was I about to do?", "held"),
]
Look = Callable[[AgentApp, "Pilot[Any]"], Awaitable[None]]


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    stop_the_clock(monkeypatch)


def picture(
    compare: Any, home: Path, size: tuple[int, int], look: Look | None = None, agent: FakeAgent | None = None, **ui: Any
) -> None:
    """Opens the application on the showcase, does what ``look`` says and compares the picture."""
    made = agent or showcase.agent(home)
    settings = Settings()
    for key, value in ui.items():
        setattr(settings.ui, key, value)

    async def factory() -> FakeAgent:
        return made

    app = AgentApp(factory, settings, made.paths, made.root, clock=Clock())

    async def prepare(pilot: Pilot[Any]) -> None:
        await asyncio.wait_for(app.opened.wait(), 20)
        await pilot.pause()
        if look is not None:
            await look(app, pilot)
        await pilot.pause()
        await pilot.pause()
        assert not app.net.errors

    assert compare(app, terminal_size=size, run_before=prepare)


def opening(name: Opened, *keys: str, data: str = "") -> Look:
    async def look(app: AgentApp, pilot: Pilot[Any]) -> None:
        app.open_screen(name, data)
        async with asyncio.timeout(8):
            while len(app.screen_stack) < 2 or not app.screen.query("#rows"):
                await pilot.pause()
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()

    return look


class TestScreens:
    @pytest.mark.slow
    @pytest.mark.parametrize("size", SIZES)
    def test_start(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        agent = showcase.agent(tmp_path, [])
        agent.conversation.info.title = ""
        agent.conversation.own_records = []
        picture(snap_compare, tmp_path, size, agent=agent)

    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.quick
    def test_chat(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        picture(snap_compare, tmp_path, size)

    @pytest.mark.parametrize("size", IN_TURN)
    def test_chat_opened(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        async def look(app: AgentApp, pilot: Pilot[Any]) -> None:
            await pilot.press("ctrl+o", "ctrl+t", "ctrl+home")

        picture(snap_compare, tmp_path, size, look)

    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.quick
    def test_permission(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        agent = showcase.agent(tmp_path)

        async def look(app: AgentApp, pilot: Pilot[Any]) -> None:
            agent.publish(showcase.question())
            await pilot.pause()

        picture(snap_compare, tmp_path, size, look, agent)

    @pytest.mark.slow
    @pytest.mark.parametrize("size", IN_TURN)
    def test_plan(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        agent = showcase.agent(tmp_path)

        async def look(app: AgentApp, pilot: Pilot[Any]) -> None:
            agent.publish(showcase.plan())
            await pilot.pause()

        picture(snap_compare, tmp_path, size, look, agent)

    @pytest.mark.slow
    @pytest.mark.parametrize("size", IN_TURN)
    @pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
    def test_question(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int], several: bool) -> None:
        agent = showcase.agent(tmp_path)

        async def look(app: AgentApp, pilot: Pilot[Any]) -> None:
            agent.publish(showcase.choice(several))
            await pilot.pause()

        picture(snap_compare, tmp_path, size, look, agent)

    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.quick
    def test_context(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        picture(snap_compare, tmp_path, size, opening("context"))

    @pytest.mark.parametrize("size", IN_TURN)
    def test_timeline(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        agent = showcase.agent(tmp_path)
        showcase.course(agent)
        picture(snap_compare, tmp_path, size, opening("context"), agent)

    @pytest.mark.parametrize("size", IN_TURN)
    def test_context_open(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        async def look(app: AgentApp, pilot: Pilot[Any]) -> None:
            await opening("context")(app, pilot)
            screen = app.screen
            assert isinstance(screen, ContextScreen)
            screen.view.opened |= {s.key for s in screen.view.rows.shown} | {"compactions"}
            screen.view.rebuild()

        picture(snap_compare, tmp_path, size, look)

    @pytest.mark.parametrize("size", IN_TURN)
    def test_compaction_preview(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        picture(snap_compare, tmp_path, size, opening("compact", data="preview"))

    @pytest.mark.slow
    @pytest.mark.parametrize("size", IN_TURN)
    def test_help(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        picture(snap_compare, tmp_path, size, opening("help"))

    @pytest.mark.slow
    @pytest.mark.parametrize("size", SIZES)
    def test_models(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        picture(snap_compare, tmp_path, size, opening("models"))

    @pytest.mark.slow
    @pytest.mark.parametrize("size", IN_TURN)
    def test_sessions(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        picture(snap_compare, tmp_path, size, opening("sessions", "down"))

    @pytest.mark.parametrize("size", IN_TURN)
    def test_jobs(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        agent = showcase.agent(tmp_path)
        agent.background.known = showcase.background()

        async def look(app: AgentApp, pilot: Pilot[Any]) -> None:
            agent.publish(JobsChanged(2))
            await opening("jobs", "down")(app, pilot)

        picture(snap_compare, tmp_path, size, look, agent)

    @pytest.mark.parametrize("size", IN_TURN)
    def test_themes(self, snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
        picture(snap_compare, tmp_path, size, opening("themes"))


@pytest.mark.forms(1)
@pytest.mark.parametrize("dialog", [False, True], ids=["lines", "dialog"])
@pytest.mark.parametrize("kind", ["waits", "failed"])
def test_queue(snap_compare: Any, tmp_path: Path, kind: str, dialog: bool) -> None:
    """What waits since the turn was ended; and what failed, beside what was left unsent."""
    agent = showcase.agent(tmp_path)
    waits = WAITS if kind == "waits" else FAILED

    async def look(app: AgentApp, pilot: Pilot[Any]) -> None:
        agent.waiting.listed = list(waits)
        agent.publish(QueueChanged(agent.waiting.listed, kind == "waits"))
        await pilot.pause()
        if dialog:
            await opening("queue")(app, pilot)

    picture(snap_compare, tmp_path, (80, 24), look, agent)


@pytest.mark.forms(1)
@pytest.mark.parametrize("theme", one_of(["agent-light", "high-contrast", "nord", "ansi", "solarized-dark"], every=3))
def test_theme(snap_compare: Any, tmp_path: Path, theme: str) -> None:
    picture(snap_compare, tmp_path, (100, 40), theme=theme)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 24), (20, 5)], ids=["60x24", "20x5"])
def test_narrow_chat(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    picture(snap_compare, tmp_path, size)


def test_markdown_gallery(snap_compare: Any, tmp_path: Path) -> None:
    from agent_tui.models.messages import Message, TextPart

    agent = showcase.agent(tmp_path, [Message("g", "assistant", [TextPart(showcase.GALLERY)])])
    agent.conversation.own_records = []
    picture(snap_compare, tmp_path, (100, 100), agent=agent)
