"""A range folded at the user's word: its price is said before, a model writes the summary, and an undo is exact."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.commands import registry
from agent_tui.commands.edits import NotFoldedError, edited
from agent_tui.engine.agent import Agent
from agent_tui.engine.calls import next_call
from agent_tui.errors import AgentError
from agent_tui.models.events import CompactionEnded, Notice, SessionChanged, StepEnded
from agent_tui.models.messages import SummaryPart, recall_id
from agent_tui.models.usage import Prices
from agent_tui.providers.client import ModelClient
from agent_tui.providers.direct import encode
from agent_tui.providers.request import build_call
from tests.engine.compaction.test_warm_summary import summaries, talked
from tests.engine.session.test_edits import body, sent
from tests.support.agents import parts_for, running, say
from tests.support.compaction_world import assert_valid
from tests.support.forms import one_of


def world(folder: Path, resume: str | None = None):  # type: ignore[no-untyped-def]
    (folder / "p").mkdir(exist_ok=True)
    (folder / "p" / "notes.txt").write_text("a note that is long enough to be read\n" * 300)
    return running(parts_for(folder / "home", folder / "p", resume=resume))


async def talk(agent: Agent, turns: int = 4) -> None:
    for number in range(turns):
        await say(agent, f"read notes.txt, please ({number})")


async def test_a_fold_is_told_before_done_and_undone_byte_for_byte_also_after_a_restart(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await talk(agent)
        before, total, path = body(agent), agent.context.usage().total, agent.conversation.path
        first, last = path[2], path[9]
        made = len(agent.conversation.steps)
        plan = await agent.edits.plan_fold(recall_id(first.id), last.id)
        assert plan.line.startswith(f"Folds {len(plan.part_ids)} messages (~") and "less per request" in plan.line
        assert len(agent.conversation.steps) == made and body(agent) == before, "nothing was asked of a model"
        line = await agent.edits.fold(first.id, last.id)
        assert line.startswith("Folded ") and line.endswith("/context undo")
        assert first.id not in sent(agent) and path[0].id in sent(agent)
        assert_valid(agent.conversation.view())
        folded, fewer = body(agent), agent.context.usage().total
        assert fewer < total
        session = agent.conversation.info.id
    async with world(tmp_path, session) as (agent, _):
        assert body(agent) == folded and agent.context.usage().total == fewer
        await say(agent, "go on")
        assert_valid(agent.conversation.view())
        await agent.edits.undo()
        assert body(agent).startswith(before[:-1])
        assert not any(isinstance(s.message.parts[0], SummaryPart) for s in agent.conversation.view())


@pytest.mark.slow
async def test_a_fold_in_a_running_turn_waits_for_the_end_of_its_step(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, seen):
        await talk(agent, 3)
        path = agent.conversation.path
        agent.turns.submit("read notes.txt, please, once more")
        steps = len(seen.of(StepEnded))
        line = await agent.edits.fold(path[0].id, path[7].id)
        assert line.startswith("Folded ")
        assert any(n.code == "edit_waits" for n in seen.of(Notice))
        assert len(seen.of(StepEnded)) >= steps
        await agent.turns.join()
        assert path[0].id not in sent(agent)
        assert_valid(agent.conversation.view())


@pytest.mark.slow
async def test_a_later_summary_is_undone_before_the_fold_in_it(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await talk(agent, 6)
        path, whole = agent.conversation.path, body(agent)
        await agent.edits.fold(path[0].id, path[7].id)
        folded = body(agent)
        await agent.compaction.now()
        compacted = body(agent)
        if compacted != folded:
            with pytest.raises(AgentError, match="Run /compact undo first"):
                await agent.edits.undo()
            await agent.compaction.undo()
        assert body(agent) == folded
        await agent.edits.undo()
        assert body(agent) == whole


async def test_what_cannot_be_folded_is_said_in_a_line(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await say(agent, "why?")
        first = agent.conversation.path[0].id
        with pytest.raises(AgentError, match="as long as"):
            await agent.edits.plan_fold(first, first)
        with pytest.raises(AgentError, match="No such message"):
            await agent.edits.fold("msg_elsewhere", first)


async def test_a_budget_binds_a_fold_as_any_call(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, _):
        await talk(agent, 2)
        agent.runtime.info = replace(agent.runtime.info, prices=Prices(3e-6, 15e-6))
        agent.budget.set("session", 1e-10)
        before, path = body(agent), agent.conversation.path
        line = await agent.edits.fold(path[0].id, path[-1].id)
        assert "failed" in line and body(agent) == before
        with pytest.raises(NotFoldedError, match="Fold failed"):
            await edited(agent, "fold", [f"{recall_id(path[0].id)}..{recall_id(path[-1].id)}"])


@pytest.mark.slow
async def test_in_words_the_price_is_said_before_it_is_done(tmp_path: Path) -> None:
    async with world(tmp_path) as (agent, seen):
        await talk(agent)
        path, before = agent.conversation.path, body(agent)
        line = f"/context fold {recall_id(path[0].id)}..{recall_id(path[7].id)}"
        told = await registry.run(agent, line)
        assert isinstance(told, registry.Text) and told.text.startswith("Folds ") and told.then == f"{line} --yes"
        assert body(agent) == before
        assert isinstance(await registry.run(agent, told.then), registry.Nothing)
        assert seen.of(CompactionEnded)[-1].text.startswith("Folded ") and body(agent) != before
        await registry.run(agent, "/context undo")
        assert body(agent) == before


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", one_of(["anthropic", "responses", "gemini"]))
async def test_a_fold_is_asked_of_the_cache_and_taken_back_to_the_byte_and_the_next_request_is_valid(
    worker: ModelClient, tmp_path: Path, name: str
) -> None:
    async with talked(worker, tmp_path, name) as (agent, seen, run):

        def wire() -> str:
            call = next_call(agent.runtime, agent.context.usage())
            call.decide()
            return encode(build_call(call.request, call.info), call.request.spec, None).content.decode()

        path, before, usage = agent.conversation.path, wire(), agent.context.usage()
        await agent.edits.fold(path[4].id, path[20].id)
        assert wire() != before
        await agent.edits.undo()
        assert wire() == before
        assert (agent.context.usage().total, agent.context.usage().rows) == (usage.total, usage.rows)
        assert seen.of(SessionChanged)[-1].reload

        place = next(n for n, m in enumerate(path) if m.role == "user" and n > 3)
        total = agent.context.usage().total
        plan = await agent.edits.plan_fold(path[place].id, path[place + 12].id)
        assert "after it are no longer cached" in plan.line
        line = await agent.edits.fold(path[place].id, path[place + 12].id)
        assert line.startswith("Folded "), line
        call = summaries(run.server)[-1]
        assert call.usage.cache_read > call.usage.input * 0.8
        record = agent.conversation.own_records[-1]
        assert record.warm and record.reason == "edit"
        assert agent.context.usage().total < total
        async with asyncio.timeout(60):
            agent.turns.submit("[turn 5] and now?")
            await agent.turns.join()
        assert agent.conversation.steps[-1].status == "complete"
        step = agent.conversation.steps[-1]
        assert step.usage is not None and step.estimated_input is not None and step.estimated_spread is not None
        assert abs(step.usage.input - step.estimated_input) <= max(200, step.estimated_spread)
