"""Edits beside everything else that goes on: another window, another model, a kill."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from agent_tui.commands import registry
from agent_tui.commands.edits import edited
from agent_tui.commands.tidy import dead_weight_in, tidy_lines
from agent_tui.config import ModelConfig
from agent_tui.context.compaction.plan import message_tokens
from agent_tui.engine import edit_targets
from agent_tui.errors import AgentError
from tests.engine.session.test_edits import body, sent
from tests.engine.session.test_edits_fold import talk, world
from tests.support.agents import TokenCounter, parts_for, running, say
from tests.support.cli import REPOSITORY
from tests.support.compaction_world import assert_valid
from tests.support.contexts import assert_identities
from tests.support.scripts import step

CHILD = Path(__file__).with_name("edit_child.py")


async def test_a_second_window_shows_what_was_sent_and_edits_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await talk(agent, 2)
        session, first, last = agent.conversation.info.id, agent.conversation.path[0].id, agent.conversation.path[-1].id
        async with world(tmp_path, session) as (second, _):
            before = body(second)
            for edit in ("drop", "fold", "restore"):
                with pytest.raises(AgentError, match="read-only"):
                    await edited(second, edit, [last])
            with pytest.raises(AgentError, match="read-only"):
                await second.edits.undo()
            await agent.edits.drop([first])
            assert body(second) == before and first not in [d.message.id for d in second.edits.dropped()]
    async with world(tmp_path, session) as (agent, _):
        assert [d.message.id for d in agent.edits.dropped()] == [first]
        await agent.edits.undo()
        assert body(agent) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "moment", "done"),
    [
        ("drop", "storing", False),
        ("drop", "stored", True),
        ("fold", "asked", False),
        ("fold", "storing", False),
        ("fold", "stored", True),
    ],
)
async def test_killed_in_an_edit_it_is_done_or_it_is_not(tmp_path: Path, edit: str, moment: str, done: bool) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "notes.txt").write_text("a note that is long enough to be read\n" * 60)
    arguments = [sys.executable, str(CHILD), str(tmp_path), edit, moment]
    child = await asyncio.to_thread(
        subprocess.run, arguments, cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}
    )
    assert child.returncode == -9
    session = (tmp_path / "session").read_text()
    parts = parts_for(tmp_path / "home", tmp_path / "p", counter=TokenCounter(), resume=session)
    async with running(parts) as (agent, _):
        await agent.context.ready()
        conversation = agent.conversation
        assert bool(conversation.own_records) == done
        assert bool(conversation.summaries) == (done and edit == "fold")
        assert all(each.status != "running" for each in conversation.steps)
        assert_valid(conversation.view())
        assert_identities(agent.context.usage())
        assert (conversation.path[1].id in sent(agent)) != done
        if done:
            await agent.edits.undo()
        assert [item.message.id for item in conversation.view()] == [message.id for message in conversation.path]
        await say(agent, "go on")
        assert_valid(conversation.view())


@pytest.mark.slow
async def test_a_fold_after_a_switch_is_written_by_the_model_in_front(tmp_path: Path) -> None:
    parts = parts_for(tmp_path / "home", tmp_path / "p")
    parts.settings.models["two"] = ModelConfig(model="demo")
    (tmp_path / "p").mkdir(exist_ok=True)
    (tmp_path / "p" / "notes.txt").write_text("a note that is long enough to be read\n" * 300)
    async with running(parts) as (agent, _):
        await talk(agent)
        await agent.models.switch("two")
        path, before, usage = agent.conversation.path, body(agent), agent.context.usage()
        line = await agent.edits.fold(path[0].id, path[7].id)
        assert line.startswith("Folded "), line
        assert_valid(agent.conversation.view())
        (call,) = [each for each in agent.conversation.steps if each.kind == "compaction"]
        assert call.model_key == "two"
        assert agent.context.usage().total < usage.total
        await say(agent, "go on")
        await agent.edits.undo()
        assert body(agent).startswith(before[:-1])


@pytest.mark.slow
async def test_many_ids_are_looked_up_once(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await talk(agent, 4)
        ids = [message.id for message in agent.conversation.path]
        with mock.patch.object(edit_targets, "recall_id", side_effect=AssertionError("they are whole")):
            assert set(agent.edits.plan(ids).part_ids) == set(ids)


async def test_the_numbers_of_tidy_are_those_of_the_list_that_was_told(tmp_path: Path) -> None:
    script = "".join(step(read={"path": f"{name}.txt"}) for name in "ababab") + step("Read.")
    (tmp_path / "p").mkdir()
    for name in "ab":
        (tmp_path / "p" / f"{name}.txt").write_text("".join(f"line {n} of {name}\n" for n in range(60)))
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=script)) as (agent, _):
        await say(agent, "read them")
        listed = await dead_weight_in(agent)
        assert len(tidy_lines(agent, listed)) > len(listed) > 2
        await agent.edits.drop(listed[0].message_ids)
        with pytest.raises(AgentError, match="Cannot drop 1 any more"):
            await registry.run(agent, "/tidy drop 1")
        await registry.run(agent, "/tidy drop 2")
        dropped = {d.message.id for d in agent.edits.dropped()}
        assert dropped == {*listed[0].message_ids, *listed[1].message_ids}


@pytest.mark.slow
async def test_after_drops_the_rows_are_what_the_next_request_has(tmp_path: Path) -> None:
    """The demo counts each request that it is sent, by a tokenizer and a template of its own: the rows must add up to
    that, and what is taken out must be missing there by as much as was said."""
    async with world(tmp_path) as (agent, _):
        await talk(agent, 4)
        results = [message.id for message in agent.conversation.path if message.role == "tool"]
        costs = message_tokens(agent.context.usage())
        for gone in (results[0], agent.conversation.path[-1].id):
            plan = agent.edits.plan([gone])
            expected = sum(costs[each] for each in plan.part_ids)
            assert plan.freed == pytest.approx(expected, rel=0.15, abs=30)
            await agent.edits.drop([gone])
            usage = agent.context.usage()
            assert sum(row.tokens for row in usage.rows) == usage.total
            await say(agent, "why?")
            newest = agent.conversation.steps[-1]
            assert newest.usage is not None and newest.estimated_input is not None
            assert abs(newest.usage.input - newest.estimated_input) <= max(40, newest.estimated_spread or 0)
            costs = message_tokens(agent.context.usage())
