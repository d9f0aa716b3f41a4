"""What the user drops is sent no longer, comes back one by one or by an undo, and no request is refused for it."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest import mock

import pytest

from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.plan import message_tokens
from agent_tui.context.past_reasons import difference
from agent_tui.context.tokens import estimate_message, family_of, round_up
from agent_tui.context.view import dropped_ids
from agent_tui.engine import cache_forecast as foresight
from agent_tui.engine.agent import Agent
from agent_tui.errors import AgentError
from agent_tui.models.codec import dumps
from agent_tui.models.events import CompactionEnded, Event, Notice, ToolStarted
from agent_tui.models.messages import AttachmentPart, recall_id
from tests.support.agents import parts_for, running, say
from tests.support.compaction_world import assert_valid


def world(folder: Path, resume: str | None = None):  # type: ignore[no-untyped-def]
    (folder / "p").mkdir(exist_ok=True)
    (folder / "p" / "notes.txt").write_text("a note\n" * 200)
    return running(parts_for(folder / "home", folder / "p", resume=resume))


def sent(agent: Agent) -> list[str]:
    return [item.key for item in agent.conversation.view()]


def body(agent: Agent) -> str:
    return dumps([item.message for item in agent.conversation.view()])


def words(agent: Agent) -> str:
    """What is said to the model in the user's name."""
    return " ".join(item.message.text for item in agent.conversation.view() if item.message.role == "user")


@pytest.mark.asyncio
async def test_a_call_goes_with_its_results_and_comes_back_byte_for_byte(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "read notes.txt")
        await say(agent, "why?")
        before, total = body(agent), agent.context.usage().total
        result = next(m for m in agent.conversation.path if m.role == "tool")
        plan = agent.edits.plan([recall_id(result.id)])
        assert result.id in plan.message_ids and len(plan.message_ids) == 2
        line = await agent.edits.drop([result.id])
        assert "2 messages" in line
        assert result.id not in sent(agent)
        assert agent.context.usage().total == pytest.approx(total - plan.freed, abs=1)
        assert {d.message.id for d in agent.edits.dropped()} == set(plan.message_ids)
        assert_valid(agent.conversation.view())
        await agent.edits.undo()
        assert body(agent) == before and agent.context.usage().total == total
        assert not agent.edits.dropped()


@pytest.mark.asyncio
async def test_dropped_messages_are_restored_one_by_one_also_after_a_restart(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "why?")
        await say(agent, "tell me more")
        before, mine = body(agent), [m.id for m in agent.conversation.path if m.role == "user"]
        await agent.edits.drop(agent.edits.range(mine[0], mine[1]))
        dropped, session = sent(agent), agent.conversation.info.id
        assert mine[0] not in dropped and mine[1] not in dropped
    async with world(tmp_path, session) as (agent, _):
        assert sent(agent) == dropped
        for each in [d.message.id for d in agent.edits.dropped()]:
            await agent.edits.restore([each])
        assert body(agent) == before
        await agent.edits.undo()
        assert len(agent.edits.dropped()) == 1


@pytest.mark.asyncio
async def test_where_an_answer_would_come_first_the_question_leaves_a_placeholder(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "why?")
        first, answer = agent.conversation.path[0], agent.conversation.path[1]
        await agent.edits.drop([first.id])
        assert agent.conversation.view()[0].message.text == "[Message dropped]"
        await agent.edits.drop([answer.id])
        assert sent(agent) == []
        await say(agent, "and now?")
        assert_valid(agent.conversation.view())


@pytest.mark.asyncio
async def test_what_cannot_be_dropped_says_why_in_a_line(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "why?")
        first = agent.conversation.path[0]
        for ids in (["999999"], ["msg_nowhere"], [""]):
            with pytest.raises(AgentError, match="No message of this conversation"):
                agent.edits.plan(ids)
        await agent.edits.drop([first.id])
        with pytest.raises(AgentError, match="dropped already"):
            agent.edits.plan([first.id])
        with pytest.raises(AgentError, match="Nothing of that is dropped"):
            await agent.edits.restore([agent.conversation.path[1].id])
        await agent.edits.undo()
        with pytest.raises(AgentError, match="no edit to undo"):
            await agent.edits.undo()
        agent.pins.pin_message(first)
        with pytest.raises(AgentError, match="/unpin"):
            agent.edits.plan([first.id])


@pytest.mark.asyncio
async def test_while_a_turn_runs_a_drop_waits_for_the_end_of_its_step(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, recorder):
        await say(agent, "why?")
        answer = agent.conversation.path[1]
        tasks: list[asyncio.Task[str]] = []
        refused: list[str] = []

        def press(event: Event) -> None:
            if isinstance(event, ToolStarted) and not tasks:
                tasks.append(asyncio.create_task(agent.edits.drop([answer.id])))
                for message in agent.conversation.path[-2:]:
                    with pytest.raises(AgentError) as raised:
                        agent.edits.plan([message.id])
                    refused.append(str(raised.value))

        agent.subscribe(press)
        await say(agent, "read notes.txt")
        assert "Dropped 1 message" in await tasks[0]
        assert any("at the end of this step" in notice.text for notice in recorder.of(Notice))
        assert answer.id not in sent(agent)
        assert "being answered" in refused[0] and "its tools have answered" in refused[1]
        before, after = [s for s in agent.conversation.steps if s.kind == "turn"][-2:]
        assert len(after.prune_ids) == 1 and not before.prune_ids
        assert after.usage is not None and after.estimated_input == pytest.approx(after.usage.input, abs=20)
        assert_valid(agent.conversation.view())


@pytest.mark.asyncio
async def test_what_is_dropped_later_goes_once_the_cache_is_cold(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "why?")
        await say(agent, "tell me a lot")
        first, whole = agent.conversation.path[1], body(agent)
        assert "will be dropped" in await agent.edits.drop([first.id], later=True)
        assert [d.waiting for d in agent.edits.dropped()] == [True]
        assert body(agent) == whole
        assert "waited to be dropped will not be" in await agent.edits.undo() and not agent.edits.dropped()
        await agent.edits.drop([first.id], later=True)
        session = agent.conversation.info.id
    async with world(tmp_path, session) as (agent, recorder):
        await agent.context.ready()
        assert [d.waiting for d in agent.edits.dropped()] == [True]
        with mock.patch.object(foresight, "time", mock.Mock(time=lambda: time.time() + 1e7)):
            agent.context.tell()
        if [d.waiting for d in agent.edits.dropped()] == [True]:  # a cache of which nobody knows how long it lives
            agent.events.publish(CompactionEnded("done", ""))
        assert [d.waiting for d in agent.edits.dropped()] == [False]
        assert first.id not in sent(agent) and not agent.conversation.info.state.drops_waiting
        assert any(notice.code == "dropped" for notice in recorder.of(Notice))


@pytest.mark.asyncio
async def test_no_summary_stands_for_what_was_dropped(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "the secret is never to push to main")
        secret = agent.conversation.path[0]
        for number in range(6):
            await say(agent, f"{number}: tell me a lot " + "and more " * 90)
        await agent.edits.drop([secret.id])
        await agent.compaction.now()
        made = [r for r in agent.conversation.records if r.kind == "summary"]
        assert made and secret.id not in made[0].message_ids
        assert "never to push" not in words(agent)
        assert secret.id not in {message.id for message in agent.conversation.past().path}
        await agent.compaction.undo()
        assert secret.id in {d.message.id for d in agent.edits.dropped()} and "never to push" not in words(agent)
        await agent.edits.undo()
        assert "never to push" in words(agent)


@pytest.mark.asyncio
async def test_what_is_dropped_is_not_pinned_and_not_folded(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        for number in range(6):
            await say(agent, f"{number}: tell me a lot " + "and more " * 90)
        path = agent.conversation.path
        await agent.edits.drop([path[0].id, path[3].id])
        with pytest.raises(AgentError, match="is dropped: restore it first"):
            agent.pins.pin_message(path[0])
        plan = await agent.edits.plan_fold(path[0].id, path[3].id)
        assert set(plan.message_ids) == {path[1].id, path[2].id}
        with pytest.raises(AgentError, match="All of that is dropped"):
            await agent.edits.plan_fold(path[0].id, path[0].id)


@pytest.mark.asyncio
async def test_a_drop_that_frees_nothing_says_so(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "why?")
        await say(agent, "ok")
        short = next(m for m in agent.conversation.path[1:] if m.role == "user")
        assert "frees nothing" in agent.edits.plan([short.id]).line
        assert "frees nothing" in await agent.edits.drop([short.id])


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(6))
async def test_rows_stay_near_what_is_sent_through_drops_restores_and_rewinds(tmp_path: Path, seed: int) -> None:
    """What was measured of a whole message is neither its placeholder's nor any other message's."""
    chance = random.Random(seed)
    async with world(tmp_path) as (agent, _):
        for number in range(14):
            path = agent.conversation.path
            act = chance.choice(["say", "say", "attach", "drop", "drop", "restore", "rewind"]) if path else "attach"
            if act in ("say", "attach"):
                file = AttachmentPart(f"n{number}.md", "text/plain", text="a line of notes\n" * 250)
                await say(agent, f"question {number}", (file,) if act == "attach" else ())
            elif act == "rewind":
                mine = [m.id for m in path if m.role == "user"]
                if len(mine) > 1:
                    await agent.branches.rewind(chance.choice(mine[1:]))
            elif act == "drop" and (
                sent := [m.id for m in path if m.id not in dropped_ids(agent.conversation.records)]
            ):
                await agent.edits.drop([sent[0] if chance.random() < 0.5 else chance.choice(sent)])
            elif act == "restore" and (gone := agent.edits.dropped()):
                await agent.edits.restore([chance.choice(gone).message.id])
            check_rows(agent)
        past = agent.context.history()
        moments = [past.moment(number) for number in range(1, past.count + 1)]
        for before, now in pairwise(moments):
            reasons = difference(before, now).reasons
            assert all(abs(r.tokens or 0) < 100 for r in reasons if r.why in ("measured", "reasoning")), reasons


def check_rows(agent: Agent) -> None:
    usage, runtime = agent.context.usage(), agent.runtime
    whole = calculate_context_usage(runtime.inputs())
    assert (usage.total, usage.rows) == (whole.total, whole.rows)
    assert usage.misfit == 0
    costs, family = message_tokens(usage), family_of(runtime.info.target)
    for item in agent.conversation.view():
        if item.message.role == "user":
            near = round_up(
                (runtime.calibration or family.beginning).tokens(estimate_message(item.message, family).content)
            )
            assert costs[item.message.id] == pytest.approx(near, rel=0.2, abs=10), item.message.text


@pytest.mark.asyncio
async def test_a_pin_takes_back_what_waits_and_leaves_the_rest_waiting(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        for text in ("one", "two", "three"):
            await say(agent, text)
        first, second = [m for m in agent.conversation.path if m.role == "user"][1:3]
        with mock.patch.object(agent.edits, "_cold", lambda: False):
            await agent.edits.drop([first.id], later=True)
            await agent.edits.drop([second.id], later=True)
            agent.pins.pin_message(second)
            assert [d.message.id for d in agent.edits.dropped() if d.waiting] == [first.id]


@pytest.mark.asyncio
async def test_while_tools_are_still_to_come_nothing_counts_as_cold(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "one")
        await say(agent, "two")
        asked = next(m for m in agent.conversation.path if m.text == "two")
        with mock.patch.object(type(agent.context), "starting", True):
            line = await agent.edits.drop([asked.id], later=True)
        assert "will be dropped" in line and asked.id in sent(agent)


@pytest.mark.asyncio
async def test_a_fork_waits_for_nothing_that_was_asked_for_in_its_source(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "one")
        await say(agent, "two")
        state = agent.conversation.info.state
        asked = next(m for m in agent.conversation.path if m.text == "two").id
        agent.conversation.set_state(replace(state, drops_waiting=(asked,), handed_to=("ses_1",), handed_from="ses_2"))
        await agent.sessions.fork()
        copy = agent.conversation.info.state
        assert (copy.drops_waiting, copy.handed_to, copy.handed_from) == ((), (), None)
