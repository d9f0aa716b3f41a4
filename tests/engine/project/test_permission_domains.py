"""What an answer to a question about a command means: where it runs."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig, SandboxConfig, Settings
from agent_tui.engine.questions import CallVerdict, PermissionDesk
from agent_tui.models.events import Event, Notice, PermissionAnswered, PermissionAsked, RuleOffer
from agent_tui.models.messages import ToolCallPart
from agent_tui.tools.base import Intent
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.builtin.edit import EditTool
from agent_tui.tools.rules.decision import Decision
from agent_tui.tools.sandbox.backends import Seatbelt
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain
from tests.support.agents import parts_for, running
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.quick


async def verdict(
    tmp_path: Path, command: str, mode: PermissionMode, holds: bool = True
) -> tuple[CallVerdict, list[str]]:
    """The verdict when every question is answered with yes, and the reasons that were given."""
    events: list[Event] = []
    tried: list[bool] = []

    async def ready() -> None:
        tried.append(True)

    permissions = permissions_of(
        tmp_path, PermissionsConfig(mode), holds=lambda domain: domain == "free" or (holds and bool(tried))
    )

    def publish(event: Event) -> None:
        events.append(event)
        if isinstance(event, PermissionAsked):
            asyncio.get_running_loop().call_soon(desk.answer, event.request_id, True, None, "")

    desk = PermissionDesk(permissions, publish, ready)
    found = await desk.judge(ToolCallPart("c", "bash", "{}"), BashTool(), Intent("command", command, command=command))
    return found, [event.reason for event in events if isinstance(event, PermissionAsked)]


@pytest.mark.parametrize(
    ("command", "mode", "domain", "network", "said"),
    [
        ("ls", "ask", "look", None, ""),
        ("cat $X", "plan", "look", None, ""),
        ("pytest -q", "auto", "work", None, ""),
        ("pytest -q", "accept-edits", "work", None, ""),
        ("touch x", "ask", "work", None, "runs in the sandbox"),
        ("pytest -q", "ask", "look", None, ""),
        (
            "npm install",
            "auto",
            "work",
            "allow",
            "runs in the sandbox, with the network open: any host, as hosts cannot be told apart here",
        ),
        ("gh pr merge", "auto", "free", None, "runs outside the sandbox"),
        ("cat /etc/hostname", "auto", "free", None, "runs outside the sandbox"),
    ],
)
async def test_a_command_runs_where_its_question_says(
    tmp_path: Path, command: str, mode: PermissionMode, domain: str, network: str | None, said: str
) -> None:
    found, reasons = await verdict(tmp_path, command, mode)
    assert (found.allowed, found.domain, found.network) == (True, domain, network)
    assert [reason.rpartition(" · ")[2] for reason in reasons] == ([said] if said else [])


async def test_where_nothing_holds_nothing_is_claimed(tmp_path: Path) -> None:
    found, reasons = await verdict(tmp_path, "pytest -q", "ask", holds=False)
    assert found.allowed and reasons == ["runs pytest"]


@pytest.mark.parametrize("holds", [True, False])
async def test_auto_without_a_sandbox_says_what_it_means_when_it_is_entered(tmp_path: Path, holds: bool) -> None:
    parts = parts_for(tmp_path / "home", tmp_path / "p", settings=Settings(permissions=PermissionsConfig(mode="ask")))
    proven: frozenset[Domain] = frozenset(("look", "work")) if holds else frozenset()
    backend = Seatbelt("/none") if holds else None
    parts.jail = Jail(SandboxConfig(), parts.root, tmp_path / "cache", sandbox=Sandbox(backend, proven))
    async with running(parts) as (agent, seen):
        said = [n for n in seen.of(Notice) if n.code == "unheld"]
        assert said == []
        agent.mode.set("auto")
        await agent.events.settled()
        said = [n for n in seen.of(Notice) if n.code == "unheld"]
        assert [(n.level, "reach all your files" in n.text) for n in said] == ([] if holds else [("warning", True)])
        assert any("reach all your files" in line for line in (await agent.project.sandbox_lines())[1:]) is not holds
        rows = [detail for _, what, detail in await agent.project.doctor() if what == "sandbox"]
        assert ["auto mode without a sandbox" in row for row in rows] == [not holds]


async def test_bypass_says_what_it_means_before_anything_can_run(tmp_path: Path) -> None:
    """However short the run is: nothing has to be tried for it."""
    settings = Settings(permissions=PermissionsConfig(mode="bypass"))
    async with running(parts_for(tmp_path / "home", tmp_path / "p", settings=settings)) as (_, seen):
        said = [n for n in seen.of(Notice) if n.code == "unheld"]
        assert [(n.level, n.text.startswith("bypass mode: commands run without asking")) for n in said] == [
            ("warning", True)
        ]


async def test_a_change_of_the_mode_answers_the_open_question(tmp_path: Path) -> None:
    for mode, allowed, domain in (("accept-edits", True, "work"), ("plan", False, "free"), ("ask", None, None)):
        permissions = permissions_of(tmp_path, PermissionsConfig("ask"), holds=lambda domain: True)
        asked = asyncio.Event()
        answered: list[bool] = []

        def publish(event: Event, asked: asyncio.Event = asked, answered: list[bool] = answered) -> None:
            if isinstance(event, PermissionAsked):
                asked.set()
            elif isinstance(event, PermissionAnswered):
                answered.append(event.allowed)

        desk = PermissionDesk(permissions, publish)
        intent = Intent("command", "x", command="echo x > new")
        judging = asyncio.ensure_future(desk.judge(ToolCallPart("c", "bash", "{}"), BashTool(), intent))
        await asked.wait()
        permissions.change_mode(mode)  # type: ignore[arg-type]
        if allowed is None:
            desk.answer("another question", True, None, "")
            judging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await judging
            assert answered == [False], "what asks for it no longer has it closed"
            continue
        found = await judging
        assert found.allowed == allowed and answered == [allowed]
        assert not allowed or found.domain == domain
        assert ("plan mode" in found.text) == (mode == "plan")


@pytest.mark.parametrize("fails", [False, True])
async def test_a_yes_after_a_change_of_the_mode_is_one_in_that_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """However long it takes to decide in it, and also where that fails."""
    permissions = permissions_of(tmp_path, PermissionsConfig("ask"), holds=lambda domain: True)
    asked: asyncio.Queue[str] = asyncio.Queue()

    def publish(event: Event) -> None:
        if isinstance(event, PermissionAsked):
            asked.put_nowait(event.request_id)

    desk = PermissionDesk(permissions, publish)
    intent = Intent("command", "x", command="echo x > new")
    judging = asyncio.ensure_future(desk.judge(ToolCallPart("c", "bash", "{}"), BashTool(), intent))
    request = await asked.get()
    decide, answered = permissions.decide, threading.Event()

    def slow(name: str, intent: Intent) -> Decision:
        answered.wait(20)
        if fails:
            raise OSError("the folder is gone")
        return decide(name, intent)

    monkeypatch.setattr(permissions, "decide", slow)
    permissions.change_mode("auto")
    permissions.change_mode("plan")
    desk.answer(request, True)
    await asyncio.sleep(0)
    answered.set()
    if fails:
        with pytest.raises(OSError, match="gone"):
            await judging
    else:
        found = await judging
        assert not found.allowed and "plan mode" in found.text


async def test_an_answer_for_the_session_is_not_remembered(tmp_path: Path) -> None:
    saved: list[str] = []
    permissions = permissions_of(tmp_path, PermissionsConfig("ask"), save=saved.append)
    asked: list[PermissionAsked] = []

    def publish(event: Event) -> None:
        if isinstance(event, PermissionAsked):
            asked.append(event)
            loop.call_soon(desk.answer, event.request_id, True, event.offers[-1], "")

    loop = asyncio.get_running_loop()
    desk = PermissionDesk(permissions, publish)
    for name in ("a", "b"):
        intent = Intent("edit", f"edit {name}", [tmp_path / name])
        assert (await desk.judge(ToolCallPart(name, "edit", "{}"), EditTool(), intent)).allowed
    assert [event.offers[-1] for event in asked] == [RuleOffer(("edit(./**)",), "session")] and saved == []


async def test_a_folder_that_brings_nothing_needs_no_trust(tmp_path: Path) -> None:
    parts = parts_for(tmp_path / "home", tmp_path / "p")
    async with running(parts) as (agent, _):

        async def folder() -> list[str]:
            return [state for state, what, _ in await agent.project.doctor() if what == "folder"]

        assert await folder() == ["ok"]
        (parts.root / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "true"}}}')
        assert await folder() == ["warn"]
