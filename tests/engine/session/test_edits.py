"""What the user drops is sent no longer, comes back one by one or by an undo, and no request is refused for it."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from agent_tui.commands.export import render
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.plan import message_tokens
from agent_tui.context.cuts import dropped_ids
from agent_tui.context.tokens import estimate_message, family_of, round_up
from agent_tui.engine import cache_forecast as foresight
from agent_tui.engine.agent import Agent
from agent_tui.errors import AgentError
from agent_tui.models.codec import dumps
from agent_tui.models.events import Event, Notice, ToolStarted
from agent_tui.models.messages import CLEARED_RESULT, TOLD, AttachmentPart, attachments_of, recall_id
from agent_tui.tools.builtin.recall import said
from tests.support.agents import parts_for, running, say
from tests.support.compaction_world import assert_valid
from tests.support.forms import one_of
from tests.support.pixel import PIXEL_BASE64
from tests.support.scripts import step


def world(folder: Path, resume: str | None = None, script: str | None = None):  # type: ignore[no-untyped-def]
    (folder / "p").mkdir(exist_ok=True)
    (folder / "p" / "notes.txt").write_text("a note\n" * 200)
    return running(parts_for(folder / "home", folder / "p", resume=resume, script=script))


def sent(agent: Agent) -> list[str]:
    return [item.key for item in agent.conversation.view()]


def body(agent: Agent) -> str:
    return dumps([item.message for item in agent.conversation.view()])


def words(agent: Agent) -> str:
    """What is said to the model in the user's name."""
    return " ".join(item.message.text for item in agent.conversation.view() if item.message.role == "user")


@pytest.mark.asyncio
@pytest.mark.quick
async def test_a_call_goes_with_its_results_and_comes_back_byte_for_byte(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "read notes.txt")
        await say(agent, "why?")
        before, total = body(agent), agent.context.usage().total
        result = next(m for m in agent.conversation.path if m.role == "tool")
        plan = agent.edits.plan([recall_id(result.id)])
        assert result.id in plan.part_ids and len(plan.part_ids) == 2
        assert "2 messages (1 more than chosen: an answer and the results of its calls go together)" in plan.line
        assert "chosen" not in agent.edits.plan(list(plan.part_ids)).line
        assert not agent.edits.refusal([result.id]) and not agent.edits.undoable
        line = await agent.edits.drop([result.id])
        assert "2 messages" in line and agent.edits.undoable
        assert agent.edits.refusal([result.id]).startswith("Nothing to drop")
        assert result.id not in sent(agent)
        assert agent.context.usage().total == pytest.approx(total - plan.freed, abs=1)
        assert {d.message.id for d in agent.edits.dropped()} == set(plan.part_ids)
        assert_valid(agent.conversation.view())
        await agent.edits.undo()
        assert body(agent) == before and agent.context.usage().total == total
        assert not agent.edits.dropped()


PICTURE = AttachmentPart("shot.png", "image/png", data=PIXEL_BASE64)
TWO_READS = step("Both.", read1={"path": "notes.txt"}, read2={"path": "notes.txt", "limit": 5}) + step("Read.")


@pytest.mark.asyncio
async def test_one_result_of_several_goes_alone_and_the_last_one_with_its_call(tmp_path: Path) -> None:
    async with world(tmp_path, script=TWO_READS) as (agent, _):
        await say(agent, "read them")
        await say(agent, "why?")
        call, first, second = agent.conversation.path[1:4]
        before, usage = body(agent), agent.context.usage()
        plan = agent.edits.plan([recall_id(first.id)])
        assert plan.part_ids == (first.id,) and plan.freed > 100
        await agent.edits.drop([first.id])
        assert_valid(agent.conversation.view())
        assert results(agent)[0] == CLEARED_RESULT and "a note" in results(agent)[1]
        assert agent.context.usage().total == usage.total - plan.freed
        assert "a note" not in said(agent.conversation.past().path[2])
        with pytest.raises(AgentError, match="already dropped"):
            agent.edits.plan([first.id])
        assert agent.edits.plan([second.id]).part_ids == (call.id, first.id, second.id)
        await agent.edits.drop([second.id])
        assert call.id not in sent(agent) and not results(agent)
        await agent.edits.restore([second.id])
        assert [d.message.id for d in agent.edits.dropped()] == [first.id] and call.id in sent(agent)
        assert "dropped from the context" in exported(agent)
        await agent.edits.restore([call.id])
        assert body(agent) == before and agent.context.usage().rows == usage.rows
        for _ in range(4):
            await agent.edits.undo()
        assert body(agent) == before and not agent.edits.dropped()


@pytest.mark.asyncio
async def test_an_attachment_goes_without_its_message(tmp_path: Path) -> None:
    notes = AttachmentPart("notes.md", "text/plain", text="the secret word\n" * 300)
    async with world(tmp_path) as (agent, _):
        await say(agent, "look at both", (notes, PICTURE))
        await say(agent, "why?")
        asked, before, usage = agent.conversation.path[0], body(agent), agent.context.usage()
        rows = {leaf.part_id: leaf for row in usage.rows for leaf in row.leaves() if leaf.attachment is not None}
        number = [part.name for part in attachments_of(asked)].index("notes.md") + 1
        one, other = f"{asked.id}#{number}", f"{recall_id(asked.id)}#{number + 1}"
        assert rows[one].label == "notes.md" and rows[f"{asked.id}#{number + 1}"].label == "shot.png"
        plan = agent.edits.plan([one])
        assert plan.part_ids == (one,) and plan.freed == pytest.approx(rows[one].tokens, rel=0.1)
        assert "1 attachment" in await agent.edits.drop([one])
        assert "dropped from the context: notes.md" in exported(agent)
        assert "look at both" in words(agent) and "secret" not in body(agent) and "notes.md" in body(agent)
        assert "secret" not in said(agent.conversation.past().path[0])
        await agent.edits.drop([other])
        assert PIXEL_BASE64 not in body(agent) and len(agent.edits.dropped()) == 2
        check_rows(agent)
        await say(agent, "and now?")
        step = agent.conversation.steps[-1]
        assert step.estimated_input == pytest.approx(step.usage.input, rel=0.05)
        check_rows(agent)
        session = agent.conversation.info.id
        await agent.sessions.fork()
        assert "secret" not in body(agent) and len(agent.edits.dropped()) == 2
    async with world(tmp_path, session) as (agent, _):
        for wrong, why in ((f"{asked.id}#9", "has attachments #1 to"), (one, "already dropped")):
            with pytest.raises(AgentError, match=why):
                agent.edits.plan([wrong])
        told = next((n for n, part in enumerate(attachments_of(asked), 1) if part.name in TOLD), None)
        if told is not None:
            with pytest.raises(AgentError, match="only be dropped with their message"):
                agent.edits.plan([f"{asked.id}#{told}"])
        await agent.edits.restore([one])
        assert "secret" in body(agent) and PIXEL_BASE64 not in body(agent)
        await agent.edits.restore([asked.id])
        assert body(agent).startswith(before[:-1])


@pytest.mark.asyncio
@pytest.mark.quick
async def test_what_waits_is_taken_back_one_by_one(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        for text in ("one", "two", "three"):
            await say(agent, text)
        first, second = [m.id for m in agent.conversation.path if m.role == "user"][1:]
        with mock.patch.object(agent.edits, "_cold", lambda: False):
            await agent.edits.drop([first], later=True)
            await agent.edits.drop([second], later=True)
            assert "1 message still waiting" in await agent.edits.undo()
            assert [d.message.id for d in agent.edits.dropped()] == [first]
            assert "still waiting" not in await agent.edits.undo()


def exported(agent: Agent) -> str:
    session = agent.conversation.info
    return render(session, agent.store.content(session.id), "md")


def results(agent: Agent) -> list[str]:
    return [result.text for item in agent.conversation.view() if (result := item.message.tool_result) is not None]


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
        told = agent.edits.plan([first.id])
        assert told.again > 0 and "your next message sends again" in told.line
        for ids in (["999999"], ["msg_nowhere"], [""]):
            with pytest.raises(AgentError, match="No such message"):
                agent.edits.plan(ids)
        await agent.edits.drop([first.id])
        with pytest.raises(AgentError, match="already dropped"):
            agent.edits.plan([first.id])
        with pytest.raises(AgentError, match="Nothing to restore"):
            await agent.edits.restore([agent.conversation.path[1].id])
        await agent.edits.undo()
        with pytest.raises(AgentError, match="Nothing to undo"):
            await agent.edits.undo()
        agent.pins.pin_message(first)
        with pytest.raises(AgentError, match="unpin it first"):
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
        assert any("when this step ends" in notice.text for notice in recorder.of(Notice))
        assert answer.id not in sent(agent)
        assert "being answered" in refused[0] and "still running its tools" in refused[1]
        before, after = [s for s in agent.conversation.steps if s.kind == "turn"][-2:]
        assert len(after.prune_ids) == 1 and not before.prune_ids
        assert after.usage is not None and after.estimated_input == pytest.approx(after.usage.input, abs=20)
        assert_valid(agent.conversation.view())


@pytest.mark.slow
@pytest.mark.asyncio
async def test_what_is_dropped_later_goes_once_the_cache_is_cold(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "why?")
        await say(agent, "tell me a lot")
        first, whole = agent.conversation.path[1], body(agent)
        assert "will be dropped" in await agent.edits.drop([first.id], later=True)
        assert [d.waiting for d in agent.edits.dropped()] == [True]
        assert body(agent) == whole
        assert "will no longer be dropped" in await agent.edits.undo() and not agent.edits.dropped()
        await agent.edits.drop([first.id], later=True)
        session = agent.conversation.info.id
    async with world(tmp_path, session) as (agent, recorder):
        await agent.context.ready()
        assert [d.waiting for d in agent.edits.dropped()] == [True]
        with mock.patch.object(foresight, "time", mock.Mock(time=lambda: time.time() + 1e7)):
            agent.context.tell()
        if [d.waiting for d in agent.edits.dropped()] == [True]:  # a cache of which nobody knows how long it lives
            await agent.compaction.now()
        assert [d.waiting for d in agent.edits.dropped()] == [False]
        assert first.id not in sent(agent) and not agent.conversation.info.state.drops_waiting
        assert any(notice.code == "dropped" for notice in recorder.of(Notice))


@pytest.mark.slow
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
        with pytest.raises(AgentError, match="is dropped"):
            agent.pins.pin_message(path[0])
        plan = await agent.edits.plan_fold(path[0].id, path[3].id)
        assert set(plan.part_ids) == {path[1].id, path[2].id}
        with pytest.raises(AgentError, match="every message in that range is dropped"):
            await agent.edits.plan_fold(path[0].id, path[0].id)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_drop_that_frees_nothing_says_so(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "why?")
        await say(agent, "ok")
        short = next(m for m in agent.conversation.path[1:] if m.role == "user")
        assert "frees nothing" in agent.edits.plan([short.id]).line
        assert "frees nothing" in await agent.edits.drop([short.id])


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", one_of(range(6)))
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
        assert all(moment.usage is not None for moment in moments)


def check_rows(agent: Agent) -> None:
    usage, runtime = agent.context.usage(), agent.runtime
    whole = calculate_context_usage(runtime.inputs())
    assert (usage.total, usage.rows) == (whole.total, whole.rows)
    costs, family = message_tokens(usage), family_of(runtime.info.target)
    for item in agent.conversation.view():
        if item.message.role == "user":
            near = round_up(
                (runtime.calibration or family.beginning).tokens(estimate_message(item.message, family).content)
            )
            assert costs[item.message.id] == pytest.approx(near, rel=0.2, abs=10), item.message.text


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_fork_waits_for_nothing_that_was_asked_for_in_its_source(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "one")
        await say(agent, "two")
        state = agent.conversation.info.state
        asked = next(m for m in agent.conversation.path if m.text == "two").id
        agent.conversation.set_state(
            replace(state, drops_waiting={asked: 1.0}, handed_to=("ses_1",), handed_from="ses_2")
        )
        await agent.sessions.fork()
        copy = agent.conversation.info.state
        assert (copy.drops_waiting, copy.handed_to, copy.handed_from) == ({}, (), None)
