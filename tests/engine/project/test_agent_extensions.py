"""An agent with what a project brings along: memory, skills, an MCP server and commands, in real turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.calls import next_call
from agent_tui.engine.extensions import Extensions, Workspace
from agent_tui.models.context import ContextRow
from agent_tui.models.events import ContextChanged, Notice, QuestionAsked, ToolOutput, ToolStarted
from agent_tui.models.messages import INTERRUPTED_RESULT
from agent_tui.models.steps import Step
from agent_tui.models.usage import LearnedLimit
from agent_tui.tools.files.access import FileAccess
from agent_tui.tools.mcp_names import CALL, READ, SEARCH
from tests.support.agents import Recorder, parts_for, running, say
from tests.support.contexts import leaves
from tests.support.mcp_managers import known
from tests.support.mcp_servers import stdio
from tests.support.waiting import Bell

pytestmark = pytest.mark.usefixtures("forked_host", "forked_servers")


@asynccontextmanager
async def started(
    tmp_path: Path, script: str, *arguments: str, wait: bool = True, denied: Sequence[str] = ()
) -> AsyncIterator[tuple[Agent, Recorder]]:
    project = tmp_path / "project"
    skill = project / ".agents/skills/tidy/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: keeps things tidy\n---\nPut it away.")
    (project / "AGENTS.md").write_text("Use tabs.")
    settings = Settings(permissions=PermissionsConfig(mode="auto", allow=["mcp(test.*)"], deny=list(denied)))
    settings.mcp = {"test": stdio(*arguments)}
    parts = parts_for(tmp_path / "home", project, script=script, settings=settings)
    assert parts.trust.accept()
    extensions = Extensions(
        settings, parts.paths, parts.permissions.files, project, parts.trust, home=tmp_path / "home"
    )
    parts.extensions, parts.extra_tools = extensions, extensions.tools
    brought = extensions.memory.blocks, extensions.skills.blocks, extensions.mcp.instructions
    parts.workspace = Workspace(FileAccess([project]), project, brought)
    async with asyncio.timeout(60), running(parts) as (agent, recorder):
        if wait:
            await extensions.mcp.settled()
            await agent.context.ready()
        yield agent, recorder


def results(agent: Agent) -> list[str]:
    return [m.tool_result.text for m in agent.conversation.path if m.tool_result is not None]


def row(agent: Agent, name: str) -> ContextRow:
    return next(r for r in agent.context.usage().rows if r.id == name)


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
        agent.turns.submit("go")
        await agent.turns.join()
        assert recorder.last_end.stop_reason == "end"
        added, skill, died = results(agent)
        assert added == "23" and "Put it away." in skill and "the server exited" in died
        usage = agent.context.usage()
        assert sum(r.tokens for r in usage.rows) == usage.total
        assert [c.id for c in row(agent, "tools").children] == ["builtin", "mcp:test"]
        assert row(agent, "memory").tokens > 0 and row(agent, "skills").tokens > 0
        listed = {name: (group, enabled) for name, group, _, _, enabled in agent.project.tools()}
        assert listed["mcp__test__add"] == ("mcp:test", True) and listed["skill"] == ("builtin", True)
        assert [name for name, _, _ in agent.project.skills()] == ["tidy"]


async def test_what_a_server_says_of_its_use_is_a_row_that_is_sent_and_counted(tmp_path: Path) -> None:
    async with started(tmp_path, CALLS, "--instructions", "Add before you take away.") as (agent, recorder):
        agent.turns.submit("go")
        await agent.turns.join()
        assert recorder.last_end.stop_reason == "end"
        servers = row(agent, "servers")
        assert servers.label == "MCP instructions (1)" and [c.label for c in servers.children] == ["test"]
        usage = agent.context.usage()
        assert servers.tokens > 10 and sum(r.tokens for r in usage.rows) == usage.total
        sent = [block.text for block in agent.runtime.request_prefix.system if block.row == "servers"]
        assert len(sent) == 1 and "Add before you take away." in sent[0]
        before = agent.runtime.request_prefix.fingerprint
        agent.turns.submit("again")
        await agent.turns.join()
        assert agent.runtime.request_prefix.fingerprint == before, "the cache holds"
    async with started(tmp_path / "other", CALLS) as (agent, _):
        assert "servers" not in [r.id for r in agent.context.usage().rows], "no empty row for those without"


@pytest.mark.forms(1)
@pytest.mark.parametrize(
    ("denied", "begins"), [([], "remember this"), (["mcp(test.read_resource)"], "mcp(test.read_resource) denies this")]
)
async def test_the_model_reads_a_resource_as_rules_allow(tmp_path: Path, denied: list[str], begins: str) -> None:
    script = '[[step]]\ntool_calls = [{ name = "mcp_read", arguments = { server = "test", uri = "test://notes" } }]\n'
    async with started(tmp_path, script + '[[step]]\ntext = "Done."\n', denied=denied) as (agent, _):
        agent.turns.submit("read it")
        await agent.turns.join()
        assert begins in results(agent)[0]


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
        before = [p.fingerprint for p in agent.runtime.request_prefix.fixed] if agent.runtime is not None else []
        agent.turns.submit("what is on?")
        await agent.turns.join()
        found, called = results(agent)
        assert "mcp__test__calendar_1" in found and called == "1 Oslo"
        assert agent.runtime is not None and [p.fingerprint for p in agent.runtime.request_prefix.fixed] == before


async def test_the_text_behind_every_fixed_row_is_what_is_sent(tmp_path: Path) -> None:
    async with started(tmp_path, CALLS, "--big", "60") as (agent, _):
        shown = [leaf for leaf in leaves(agent.context.usage().rows[:-1]) if leaf.id != "preamble"]
        texts = {leaf.label: agent.context.part_text(leaf.fingerprint or "") or "" for leaf in shown if leaf.tokens}
        request = next_call(agent.runtime, agent.runtime.usage()).request
        assert {block.text for block in request.system} <= set(texts.values())
        assert all(texts[tool.name] == tool.text for tool in request.tools)
        assert len(texts) == len(request.system) + len(request.tools)
        deferred = {
            leaf.label: agent.context.part_text(leaf.fingerprint or "") for leaf in shown if leaf.deferred_tokens
        }
        assert len(deferred) > 28 and all(text and name in text for name, text in deferred.items())
        assert agent.context.part_text("nothing") is None


async def test_a_message_is_told_as_it_is_sent(tmp_path: Path) -> None:
    async with started(tmp_path, CALLS) as (agent, _):
        agent.turns.submit("do it")
        await agent.turns.join()
        for message in agent.conversation.path:
            item = agent.conversation.sent_message(message.id)
            assert item is not None and item.message is message and item.stored is None
        assert agent.conversation.sent_message("nothing") is None


async def test_an_interrupt_ends_a_hanging_call_and_leaves_a_valid_conversation(
    tmp_path: Path, bell: Callable[[str], Bell]
) -> None:
    begun, cancelled = bell("begun"), bell("cancelled")
    script = f"""
[[step]]
tool_calls = [{{ name = "mcp__test__hang", arguments = {{ started = "{begun}", cancelled = "{cancelled}" }} }}]
[[step]]
text = "Never said."
"""
    async with started(tmp_path, script) as (agent, recorder):
        agent.turns.submit("go")
        await begun.rung()
        assert agent.turns.interrupt()
        await agent.turns.join()
        assert recorder.last_end.stop_reason == "interrupted"
        assert results(agent) == [INTERRUPTED_RESULT]
        await cancelled.rung()


async def test_the_users_own_command_is_counted_and_seen_by_the_model(tmp_path: Path) -> None:
    async with started(tmp_path, '[[step]]\ntext = "I see."\n') as (agent, recorder):
        before = agent.context.usage().total
        await agent.shell("printf 'x%.0s' $(seq 1 4000)")
        assert agent.context.usage().total > before + 500
        assert [e.summary[:8] for e in recorder.of(ToolStarted)] == ["! printf"]
        assert not agent.turns.busy
        running_shell = asyncio.create_task(agent.shell("echo begun; sleep 60"))
        await recorder.until(lambda: any("begun" in e.text for e in recorder.of(ToolOutput)))
        assert agent.turns.busy and agent.turns.interrupt()
        await running_shell
        agent.turns.submit("what was that?")
        await agent.turns.join()
        assert [m.role for m in agent.conversation.path] == ["user", "user", "user", "assistant"]
        assert recorder.last_end.stop_reason == "end"


async def test_a_server_that_comes_later_moves_the_number_between_turns(
    tmp_path: Path, bell: Callable[[str], Bell]
) -> None:
    go = bell("go")
    async with started(tmp_path, '[[step]]\ntext = "ok"\n', "--wait-for", str(go), wait=False) as (agent, recorder):
        await agent.context.ready()
        before = agent.context.usage()
        assert [c.id for c in row(agent, "tools").children] == ["builtin"] and agent.project.mcp_resources() == []
        go.ring()
        assert agent.parts.extensions is not None
        await agent.parts.extensions.mcp.settled()
        await agent.context.ready()
        after = agent.context.usage()
        assert after.total > before.total and sum(r.tokens for r in after.rows) == after.total
        (server,) = [c for c in row(agent, "tools").children if c.id == "mcp:test"]
        # While it started the model had the two tools that wait for it and reach its own; now it can read, too.
        stood_in = sum(leaf.tokens for r in before.rows for leaf in r.leaves() if leaf.label in (SEARCH, CALL))
        reads = sum(leaf.tokens for r in after.rows for leaf in r.leaves() if leaf.label == READ)
        assert stood_in and 0 < reads < 70 and after.total - before.total == server.tokens + reads - stood_in
        assert recorder.of(ContextChanged)[-1].usage.total == after.total
        assert agent.project.mcp_resources() == [("test:test://notes", "Some notes.")]
        parts, problems = await agent.project.mcp_attachments("see @test:test://notes.")
        assert [p.text for p in parts] == ["remember this"] and problems == []


async def test_a_message_that_goes_out_before_a_server_has_started_says_so_once(
    tmp_path: Path, bell: Callable[[str], Bell]
) -> None:
    go = bell("go")
    async with started(tmp_path, '[[step]]\nrepeat = 0\ntext = "ok"\n', "--wait-for", str(go), wait=False) as (
        agent,
        recorder,
    ):
        for _ in range(2):
            await say(agent, "hello")
        told = [notice.text for notice in recorder.of(Notice) if notice.code == "mcp"]
        assert told == ["MCP server test is still starting; its tools join when it is ready."]
        go.ring()


async def test_a_turn_finds_and_calls_tools_of_a_server_that_was_still_starting(
    tmp_path: Path, bell: Callable[[str], Bell]
) -> None:
    go = bell("go")
    script = """
[[step]]
tool_calls = [{ name = "tool_search", arguments = { query = "add numbers" } }]
[[step]]
tool_calls = [{ name = "mcp_call", arguments = { name = "mcp__test__add", arguments = { a = 20, b = 3 } } }]
[[step]]
text = "Done."
"""
    async with started(tmp_path, script, "--wait-for", str(go), wait=False) as (agent, recorder):
        agent.turns.submit("add")
        await recorder.until(lambda: "waiting for test" in "".join(o.text for o in recorder.of(ToolOutput)))
        go.ring()
        await agent.turns.join()
        found, called = results(agent)
        assert "mcp__test__add" in found and called == "23"


async def test_a_running_turn_keeps_its_tools_when_servers_and_documents_change(tmp_path: Path) -> None:
    script = """
[[step]]
tool_calls = [
  { name = "mcp__test__grow", arguments = {} },
  { name = "bash", arguments = { command = "echo new and longer than before > pinned.md" } },
]
[[step]]
tool_calls = [{ name = "mcp__test__add", arguments = { a = 1, b = 1 } }]
[[step]]
text = "Done."
[[step]]
text = "Next turn."
"""
    async with started(tmp_path, script) as (agent, recorder):
        pinned = agent.root / "pinned.md"
        agent.context.pin(str(_written(pinned)))
        await agent.context.ready()
        agent.turns.submit("read it")
        await agent.turns.join()
        extra = "mcp__test__extra"
        await recorder.until(lambda: any(tool.schema.name == extra for tool in agent.toolbox.registry.tools()))
        first, second, third = agent.conversation.steps
        assert tools_of(first) == tools_of(second) == tools_of(third) and "mcp__test__extra" not in tools_of(first)
        documents = [[p.fingerprint for p in s.fixed if p.row == "documents"] for s in agent.conversation.steps]
        assert documents[0] == documents[1] == documents[2]
        # What a tool has made of it is the model's to know; the next message tells it.
        await agent.context.ready()
        listed = [name for name, *_ in agent.project.tools()]
        assert "mcp__test__extra" in listed
        agent.turns.submit("and now")
        await agent.turns.join()
        # New tools rewrite the beginning anyway, and so it has the file as it is now.
        assert [p.fingerprint for p in agent.conversation.steps[-1].fixed if p.row == "documents"] != documents[0]
        assert "mcp__test__extra" in tools_of(agent.conversation.steps[-1])


def _written(path: Path) -> Path:
    path.write_text("old")
    return path


def tools_of(step: Step) -> list[str]:
    return [p.label for p in step.fixed if p.row == "tools"]


async def test_tools_are_deferred_by_the_window_that_is_known(tmp_path: Path) -> None:
    """They are offered before the model is described, whose window decides."""
    async with started(tmp_path, "window = 1_000_000\n", "--big", "60") as (agent, _):
        (server,) = [c for c in row(agent, "tools").children if c.id == "mcp:test"]
        assert server.tokens > 3_000 and not server.deferred_tokens
        key, spec = agent.models.spec.key, agent.models.spec
        small = LearnedLimit(spec.model, "", 16_000, None, 2_000, 1_000_000, None, None, 1.0, "")
        agent.store.learned.put_limit(small)
        await agent.models.switch(key)
        await agent.context.ready()
        (server,) = [c for c in row(agent, "tools").children if c.id == "mcp:test"]
        assert server.tokens == 0 and server.deferred_tokens
        assert await agent.models.forget_limits() == 1
        await agent.context.ready()
        (server,) = [c for c in row(agent, "tools").children if c.id == "mcp:test"]
        assert server.tokens > 3_000 and not server.deferred_tokens


GROWS = """
[[step]]
tool_calls = [{ name = "mcp__test__grow", arguments = {} }]
[[step]]
tool_calls = [{ name = "ask", arguments = { question = "Go on?", choices = ["yes", "no"] } }]
[[step]]
text = "Done."
[[step]]
text = "Next."
"""


async def test_a_tool_that_comes_in_a_turn_is_sent_with_the_next_message(tmp_path: Path) -> None:
    async with started(tmp_path, GROWS) as (agent, recorder):
        assert agent.parts.extensions is not None
        agent.turns.submit("grow")
        await recorder.until(lambda: recorder.of(QuestionAsked))
        # The turn stands still until the server's new tool is known here.
        await known(agent.parts.extensions.mcp, "mcp__test__extra")
        agent.questions.answer_question(recorder.of(QuestionAsked)[0].request_id, ["yes"])
        await agent.turns.join()
        agent.turns.submit("and now")
        await agent.turns.join()
        sent = [{part.label for part in step.fixed} for step in agent.conversation.steps if step.kind == "turn"]
        assert ["mcp__test__extra" in labels for labels in sent] == [False, False, False, True]
