from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import Settings
from agent_tui.context.trust import FolderTrust
from agent_tui.engine.extensions import Extensions
from agent_tui.engine.questions import PermissionDesk
from agent_tui.engine.request_prefix import build_request_prefix
from agent_tui.errors import AgentError
from agent_tui.models.events import Event, PermissionAsked
from agent_tui.models.messages import ToolCallPart
from agent_tui.models.usage import Limits
from agent_tui.paths import Paths
from agent_tui.store.store import Store
from agent_tui.tools.files.access import FileAccess
from agent_tui.tools.registry import ToolRegistry
from tests.support.mcp_servers import stdio
from tests.support.tool_context import make_context, permissions_of

pytestmark = pytest.mark.usefixtures("forked_host", "forked_servers")


def make(tmp_path: Path, settings: Settings | None = None) -> Extensions:
    """Extensions of a project that nobody trusted; where there are ``settings``, their servers may be started."""
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    paths = Paths(*(tmp_path / name for name in ("config", "data", "state", "cache")))
    with Store.open(paths.database) as store:
        trust = FolderTrust(root, store.trust)
        if settings is not None:
            trust.commands = [(name, [one.command or "", *one.args]) for name, one in settings.mcp.items()]
            assert trust.accept()
    return Extensions(settings or Settings(), paths, FileAccess([root]), root, trust, home=tmp_path / "home")


def fill(root: Path) -> None:
    skill = root / ".agents/skills/s/SKILL.md"
    command = root / ".agent-tui/commands/go.md"
    for path in (skill, command):
        path.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: d\n---\ntext")
    command.write_text("go $1")
    server = stdio()
    servers = {"test": {"command": server.command, "args": server.args}}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


async def test_trust_brings_in_what_was_ignored(tmp_path: Path) -> None:
    extensions = make(tmp_path)
    fill(tmp_path / "project")
    extensions = make(tmp_path)
    (notice,) = extensions.notices()
    assert notice.code == "untrusted" and "1 MCP server, 1 skill, 1 command are ignored" in notice.text
    changes: list[int] = []
    extensions.tools.start(lambda: changes.append(1))
    try:
        assert extensions.skill_rows() == [] and extensions.user_commands() == [] and extensions.tools.tools() == []
        assert [state for _, state, _ in extensions.mcp.servers()] == ["untrusted"]
        assert extensions.mcp._host.pid is None
        with Store.open(tmp_path / "data" / "sessions.db") as store:
            extensions._trust._stored = store.trust
            assert extensions._trust.accept()
        extensions.reload_servers(Settings())
        async with asyncio.timeout(60):
            await extensions.mcp.settled()
        assert changes and extensions.mcp.servers()[0][1] == "connected"
        assert [row[0] for row in extensions.skill_rows()] == ["s"]
        commands = {c.name: c for c in extensions.user_commands()}
        assert set(commands) == {"go", "s", "test:review"} and commands["go"].expand("x") == "go x"
        prompt = commands["test:review"].expand("a.py tone=harsh")
        assert not isinstance(prompt, str) and await prompt == "Review a.py, be harsh."
        missing = commands["test:review"].expand("")
        with pytest.raises(AgentError, match="needs path"):
            assert not isinstance(missing, str) and await missing
        names = [t.schema.name for t in ToolRegistry([], extensions.tools.tools).tools()]
        assert "skill" in names and "mcp__test__add" in names
    finally:
        await extensions.tools.close()


async def test_deferred_tools_are_listed_with_what_they_would_cost_and_not_sent(tmp_path: Path) -> None:
    settings = Settings(mcp={"test": stdio("--big", "20")})
    extensions = make(tmp_path, settings)
    extensions.tools.start(lambda: None)
    try:
        async with asyncio.timeout(60):
            await extensions.mcp.settled()
        request_prefix = build_request_prefix([], extensions.tools.offered(Limits(8_000, None, None, "config")))
        assert [t.name for t in request_prefix.tools] == ["tool_search", "mcp_call", "mcp_read"]
        deferred = [p for p in request_prefix.fixed if p.deferred_tokens is not None]
        assert len(deferred) == 28 and {p.group for p in deferred} == {"mcp:test"}
        assert all(p.raw_tokens == 0 for p in deferred)
    finally:
        await extensions.tools.close()


async def test_always_allowing_a_deferred_call_allows_that_tool_alone(tmp_path: Path) -> None:
    settings = Settings(mcp={"test": stdio()})
    extensions = make(tmp_path, settings)
    extensions.tools.start(lambda: None)
    asked: list[PermissionAsked] = []

    def answer(event: Event) -> None:
        if isinstance(event, PermissionAsked):
            asked.append(event)
            desk.answer(event.request_id, True, event.offers[0], "")

    saved: list[str] = []
    permissions = permissions_of(tmp_path, replace(settings.permissions), save=saved.append)
    desk = PermissionDesk(permissions, answer)
    try:
        async with asyncio.timeout(60):
            await extensions.mcp.settled()
        tool = ToolRegistry([], extensions.tools.tools).get("mcp_call")
        context = make_context(tmp_path / "p")
        for name in ("mcp__test__add", "mcp__test__add", "mcp__test__die"):
            intent = tool.intent({"name": name, "arguments": {}}, context)
            assert (await desk.judge(ToolCallPart("c", "mcp_call", "{}"), tool, intent)).allowed
        assert [a.tool for a in asked] == ["mcp__test__add", "mcp__test__die"]
        assert saved == ["mcp(test.add)", "mcp(test.die)"]
    finally:
        await extensions.tools.close()
