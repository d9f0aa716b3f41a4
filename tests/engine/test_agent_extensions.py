"""An agent with what a project brings along: memory, skills, an MCP server and commands, in real turns."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent_tui.config import McpServer, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.extensions import Extensions
from agent_tui.engine.workspace import Workspace
from agent_tui.models.context import ContextRow
from agent_tui.models.events import ToolOutput, ToolStarted
from agent_tui.models.messages import INTERRUPTED_RESULT
from tests.support.agents import Recorder, parts_for, running

SERVER = str(Path(__file__).parents[1] / "support" / "mcp_server.py")


@asynccontextmanager
async def started(tmp_path: Path, script: str, *arguments: str) -> AsyncIterator[tuple[Agent, Recorder]]:
    project = tmp_path / "project"
    skill = project / ".agents/skills/tidy/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: keeps things tidy\n---\nPut it away.")
    (project / "AGENTS.md").write_text("Use tabs.")
    settings = Settings(permissions=PermissionsConfig(mode="auto"))
    settings.mcp = {"test": McpServer(command=sys.executable, args=[SERVER, *arguments])}
    parts = parts_for(tmp_path / "home", project, script=script, settings=settings)
    extensions = Extensions(settings, parts.paths, project, project, True, home=tmp_path / "home")
    parts.extensions, parts.extra_tools = extensions, extensions.tools
    parts.workspace = Workspace(project, project, (), extensions.memory.blocks, extensions.skills.blocks)
    async with asyncio.timeout(60), running(parts) as (agent, recorder):
        await extensions.ready(30)
        await agent.ready()
        yield agent, recorder


def results(agent: Agent) -> list[str]:
    return [m.tool_result.text for m in agent.messages if m.tool_result is not None]


def row(agent: Agent, name: str) -> ContextRow:
    return next(r for r in agent.context_usage().rows if r.id == name)


CALLS = """
[[step]]
text = "Let me see."
tool_calls = [
  { name = "mcp__test__add", arguments = { a = 20, b = 3 } },
  { name = "skill", arguments = { name = "tidy" } },
  { name = "mcp__test__die", arguments = {} },
]
[[step]]
text = "Done."
"""


async def test_a_turn_uses_servers_and_skills_and_everything_has_its_row(tmp_path: Path) -> None:
    async with started(tmp_path, CALLS) as (agent, recorder):
        agent.submit("go")
        await agent.join()
        assert recorder.last_end.stop_reason == "end"
        added, skill, died = results(agent)
        assert added == "23" and "Put it away." in skill and "the server ended" in died
        usage = agent.context_usage()
        assert sum(r.tokens for r in usage.rows) == usage.total
        assert [c.id for c in row(agent, "tools").children] == ["builtin", "mcp:test"]
        assert row(agent, "memory").tokens > 0 and row(agent, "skills").tokens > 0
        listed = {name: (group, enabled) for name, group, _, _, enabled in agent.tools()}
        assert listed["mcp__test__add"] == ("mcp:test", True) and listed["skill"] == ("builtin", True)
        assert [name for name, _, _ in agent.skills()] == ["tidy"]


async def test_deferred_tools_cost_nothing_until_they_are_called(tmp_path: Path) -> None:
    script = """
[[step]]
tool_calls = [{ name = "tool_search", arguments = { query = "calendar" } }]
[[step]]
tool_calls = [{ name = "mcp_call", arguments = { name = "mcp__test__calendar_1", arguments = { city = "Oslo" } } }]
[[step]]
text = "Done."
"""
    async with started(tmp_path, script, "--big", "60") as (agent, _):
        deferred = next(c for c in row(agent, "tools").children if c.id == "mcp:test")
        assert deferred.tokens == 0 and deferred.deferred_tokens
        before = [p.fingerprint for p in agent.runtime.prelude.fixed] if agent.runtime is not None else []
        agent.submit("what is on?")
        await agent.join()
        found, called = results(agent)
        assert "mcp__test__calendar_1" in found and called == "1 Oslo"
        assert agent.runtime is not None and [p.fingerprint for p in agent.runtime.prelude.fixed] == before


async def test_an_interrupt_ends_a_hanging_call_and_leaves_a_valid_conversation(tmp_path: Path) -> None:
    begun, cancelled = tmp_path / "begun", tmp_path / "cancelled"
    script = f"""
[[step]]
tool_calls = [{{ name = "mcp__test__hang", arguments = {{ started = "{begun}", cancelled = "{cancelled}" }} }}]
[[step]]
text = "Never said."
"""
    async with started(tmp_path, script) as (agent, recorder):
        agent.submit("go")
        while not begun.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        assert agent.interrupt()
        await agent.join()
        assert recorder.last_end.stop_reason == "interrupted"
        assert results(agent) == [INTERRUPTED_RESULT]
        while not cancelled.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_the_users_own_command_is_counted_and_seen_by_the_model(tmp_path: Path) -> None:
    async with started(tmp_path, '[[step]]\ntext = "I see."\n') as (agent, recorder):
        before = agent.context_usage().total
        await agent.shell("printf 'x%.0s' $(seq 1 4000)")
        assert agent.context_usage().total > before + 500
        assert [e.summary[:8] for e in recorder.of(ToolStarted)] == ["! printf"]
        assert not agent.busy
        running_shell = asyncio.create_task(agent.shell("echo begun; sleep 60"))
        while not recorder.of(ToolOutput):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        assert agent.busy and agent.interrupt()
        await running_shell
        agent.submit("what was that?")
        await agent.join()
        assert [m.role for m in agent.messages] == ["user", "user", "user", "assistant"]
        assert recorder.last_end.stop_reason == "end"
