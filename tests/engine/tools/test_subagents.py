"""Subagents through the whole agent: their conversations are kept, in nobody's way, and end with the turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.models.events import ToolOutput
from agent_tui.models.messages import INTERRUPTED_RESULT
from agent_tui.store.store import Store
from tests.support.agents import results, running, say
from tests.support.developer import answering, once, parts, until
from tests.support.scripts import step


@pytest.mark.quick
async def test_a_subagent_searches_by_itself_and_only_its_answer_returns(tmp_path: Path, project: Path) -> None:
    script = (
        step(subagent={"description": "find add", "prompt": "Where is add defined?"})
        + step(bash={"command": "make tags"})
        + step(
            "Searching.", grep={"pattern": "def add"}, todo={"items": []}, subagent={"description": "x", "prompt": "y"}
        )
        + step("add is in src/calc.py:1.")
        + step("Found it.")
        + step("And again.")
    )
    async with running(parts(tmp_path, project, script)) as (agent, seen):
        asked = answering(agent, allow=False)
        await say(agent, "where is add?")
        assert [a.reason for a in asked] == ["subagent “find add”: runs make"]
        (answer,) = results(agent)
        assert answer.text == "add is in src/calc.py:1." and not answer.is_error
        assert [m.role for m in agent.conversation.path] == ["user", "assistant", "tool", "assistant"]
        assert "".join(e.text for e in seen.of(ToolOutput)).startswith("make tags\ngrep def add\n")
        kinds = [s.kind for s in agent.conversation.steps]
        assert kinds.count("subagent") == 3 and kinds.count("turn") == 2
        usage = agent.context.usage()
        turns = {s.id for s in agent.conversation.steps if s.kind == "turn"}
        assert usage.anchor_step in turns
        everything = sum(s.usage.input for s in agent.conversation.steps if s.usage is not None)
        assert usage.session.usage is not None and usage.session.usage.input == everything
        await say(agent, "again")
        assert (
            agent.context.usage().anchor_step == agent.conversation.steps[-1].id
            and agent.conversation.steps[-1].kind == "turn"
        )
        # Its conversation is kept, and in nobody's way.
        store = agent.store
        assert [s.id for s in store.sessions.all(project)] == [agent.conversation.info.id]
        newest = store.sessions.newest(project)
        assert newest is not None and newest.id == agent.conversation.info.id
        (child,) = [s for s in store.sessions.all(project, subagents=True) if s.id != agent.conversation.info.id]
        assert child.parent_session == agent.conversation.info.id and child.kind == "subagent"
        denied = [m.tool_result for m in store.messages.path(child.id, child.head_id) if m.tool_result is not None][2:]
        todo, nested = denied
        assert todo.is_error and "no tool named" in todo.text
        assert nested.is_error and "(agent.subagent_depth = 1)" in nested.text
        await agent.sessions.fork()
        assert [s.id for s in store.sessions.all(project)] == [agent.conversation.info.id, newest.id]
        fork_of_child = store.fork(child.id, child.head_id)
        assert fork_of_child.id in [s.id for s in store.sessions.all(project)]
        await agent.sessions.resume(newest.id)
        store.delete(newest.id)
        assert child.id not in [s.id for s in store.sessions.all(project, subagents=True)]


@pytest.mark.slow
async def test_an_interrupted_subagent_leaves_both_conversations_valid(tmp_path: Path, project: Path) -> None:
    script = step(subagent={"description": "wait", "prompt": "wait"}) + step(bash={"command": "echo begun; sleep 600"})
    async with running(parts(tmp_path, project, script, "auto")) as (agent, seen):
        begun = once(agent, lambda e: isinstance(e, ToolOutput))
        agent.turns.submit("go")
        await until(begun)
        assert agent.turns.interrupt()
        await agent.turns.join()
        assert seen.last_end.stop_reason == "interrupted"
        assert [r.text for r in results(agent)] == [INTERRUPTED_RESULT]
        (child,) = [s for s in agent.store.sessions.all(project, subagents=True) if s.id != agent.conversation.info.id]
        path = agent.store.messages.path(child.id, child.head_id)
        assert path[-1].tool_result is not None and path[-1].tool_result.text.startswith(INTERRUPTED_RESULT)
        assert agent.store.locks.take(child.id).held


async def test_session_lists_leave_nothing_of_an_unused_session(tmp_path: Path, project: Path) -> None:
    async with running(parts(tmp_path, project, "")):
        pass
    with Store.open(tmp_path / "home" / "data" / "sessions.db") as store:
        assert store.sessions.all(project, subagents=True) == []


@pytest.mark.slow
async def test_a_subagent_recalls_from_its_own_session_alone(tmp_path: Path, project: Path) -> None:
    script = (
        step("The quokka sleeps. " + " ".join(f"It does, night {n}." for n in range(1_000)))
        + step("Fine.")
        + step(recall={"query": "quokka"}, subagent={"description": "look", "prompt": "What sleeps?"})
        + step(recall={"query": "quokka"})
        + step("Nothing is known.")
        + step("Done.")
    )
    async with running(parts(tmp_path, project, script)) as (agent, _):
        await say(agent, "what sleeps?")
        await say(agent, "and now?")
        store = agent.store
        await agent.compaction.now("")
        await say(agent, "look again")
        own, _ = results(agent)[-2:]
        assert "The quokka sleeps." in own.text and not own.is_error
        (child,) = [s for s in store.sessions.all(project, subagents=True) if s.id != agent.conversation.info.id]
        (result,) = [m.tool_result for m in store.messages.path(child.id, child.head_id) if m.tool_result is not None]
        assert "quokka" not in result.text and "all of it is above" in result.text
