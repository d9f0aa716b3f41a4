"""What happened to a compaction is told once, in whatever way it came to nothing, and nothing is claimed of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.engine.agent import Agent
from agent_tui.models.events import CompactionStarted
from agent_tui.models.usage import Prices
from tests.engine.compaction.compaction_talks import (
    BAD_SUMMARIES,
    WINDOW,
    codes,
    fill,
    opened,
    outcomes,
    shown,
    summary_script,
    times,
    turn,
)
from tests.support.agents import Recorder

TOO_LONG = '[[step]]\nmatch = "now it"\nerror = { kind = "context_overflow" }\nrepeat = 0\n'
LOOPS = '[[step]]\nmatch = "look"\ntool_calls = [{ name = "list", arguments = {} }]\nrepeat = 3\n'

pytestmark = pytest.mark.usefixtures("unprepared")


@pytest.mark.slow
async def test_what_the_user_asked_for_is_done_without_a_summary_where_the_model_gives_none(tmp_path: Path) -> None:
    bad = {name: told for name, told in BAD_SUMMARIES.items() if "error" not in told[0]}
    steps = "".join(f'[[step]]\nkind = "compaction"\nrepeat = 2\n{step}\n' for step, _ in bad.values())
    async with opened(tmp_path, WINDOW + steps) as (agent, seen):
        before = await fill(agent, seen, 0.7)
        for number, (_, why) in enumerate(bad.values(), 1):
            seen.events.clear()
            await agent.compaction.now()
            assert times(seen, why) == 1, shown(seen)
            assert codes(seen).count("compaction_off") == (number == 3)
            assert outcomes(seen) == ["done"] and "summarised without the model" in str(shown(seen)), shown(seen)
            assert agent.conversation.records[-1].left_out and agent.context.usage().total < before
            await agent.compaction.undo()


async def test_a_call_that_fails_makes_nothing_of_what_the_user_asked_for(tmp_path: Path) -> None:
    step, why = BAD_SUMMARIES["refused by the provider"]
    async with opened(tmp_path, summary_script(step)) as (agent, seen):
        await fill(agent, seen, 0.7)
        for attempt in (1, 2, 3):
            seen.events.clear()
            await agent.compaction.now()
            assert times(seen, why) == 1, shown(seen)
            assert codes(seen).count("compaction_off") == (attempt == 3)
            assert outcomes(seen) == ["failed"] and not agent.conversation.own_records


@pytest.mark.slow
async def test_a_failure_after_a_refusal_as_too_long_is_told_once(tmp_path: Path) -> None:
    step, why = BAD_SUMMARIES["cut off"]
    async with opened(tmp_path, summary_script(step) + TOO_LONG) as (agent, seen):
        await fill(agent, seen, 0.7)
        seen.events.clear()
        await turn(agent, seen, "now it is too long")
        assert outcomes(seen) and times(seen, why) == 1, shown(seen)


@pytest.mark.slow
async def test_in_a_loop_of_steps_it_is_told_once_and_the_third_time_with_what_follows(tmp_path: Path) -> None:
    step, why = BAD_SUMMARIES["refused by the provider"]
    async with opened(tmp_path, summary_script(step) + LOOPS) as (agent, seen):
        await fill(agent, seen)
        seen.events.clear()
        await turn(agent, seen, "look around")
        assert outcomes(seen)[:3] == ["failed"] * 3 and "failed" not in outcomes(seen)[3:]
        lines = [line for line in shown(seen) if why in line]
        assert len(lines) == 2 and "3 failures in a row" in lines[1], shown(seen)
        assert codes(seen).count("not_compacted") == 1 and why in lines[0]


@pytest.mark.slow
async def test_a_failure_where_nothing_fits_is_told_with_what_was_done_instead(tmp_path: Path) -> None:
    step, why = BAD_SUMMARIES["empty"]
    async with opened(tmp_path, summary_script(step), auto=True) as (agent, seen):
        await fill(agent, seen, 0.9)
        seen.events.clear()
        await turn(agent, seen, "a long one: " + "and more of it " * 500)
        assert seen.of(CompactionStarted) and times(seen, why) == 1, shown(seen)


async def undone(agent: Agent, seen: Recorder) -> list[str]:
    seen.events.clear()
    await agent.compaction.undo()
    await agent.context.ready()
    return shown(seen)


@pytest.mark.slow
async def test_an_undo_below_the_limit_pauses_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (agent, seen):
        await fill(agent, seen, 0.7)
        await agent.compaction.now()
        (line,) = await undone(agent, seen)
        assert line.startswith("Compaction undone: ") and not agent.conversation.info.state.compaction_paused
        assert "paused" not in agent.context.usage().why
        await fill(agent, seen, 0.9)
        await turn(agent, seen, "a long one: " + "and more of it " * 500)
        assert outcomes(seen)[-1] == "done", "it compacts by itself as before"


@pytest.mark.slow
async def test_an_undo_above_the_limit_pauses_and_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as (agent, seen):
        await fill(agent, seen)
        await turn(agent, seen, "why?")
        assert outcomes(seen) == ["done"]
        lines = await undone(agent, seen)
        over = agent.context.usage().total > (agent.context.usage().limit or 0)
        assert over and len(lines) == 2 and "is paused until you run /compact" in lines[1]
        assert agent.conversation.info.state.compaction_paused and "paused" in agent.context.usage().why


@pytest.mark.slow
async def test_without_automatic_compaction_an_undo_says_nothing_of_it(tmp_path: Path) -> None:
    async with opened(tmp_path, auto=False) as (agent, seen):
        await fill(agent, seen)
        await agent.compaction.now()
        assert len(await undone(agent, seen)) == 1


async def test_a_budget_that_stops_the_summary_and_the_call_is_told_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as (agent, seen):
        await fill(agent, seen)
        agent.runtime.info = replace(agent.runtime.info, prices=Prices(3e-6, 15e-6))
        agent.budget.set("session", 1e-10)
        seen.events.clear()
        ended = await turn(agent, seen, "why?")
        assert ended.stop_reason == "budget" and outcomes(seen) == ["failed"]
        (line,) = shown(seen)
        assert "budget.session_usd" in line
