"""What the user drops is sent no longer, comes back one by one or by an undo, and no request is refused for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.engine.agent import Agent
from agent_tui.errors import AgentError
from agent_tui.models.codec import dumps
from agent_tui.models.messages import recall_id
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
