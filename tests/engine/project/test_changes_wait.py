"""What would have the provider read the conversation anew waits for the user's next message, and says what it costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.engine.agent import Agent
from agent_tui.engine.state import AgentParts
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import ContextChanged, Event, MessageAdded, Notice, StepEnded, TurnEnded
from agent_tui.models.steps import Step
from tests.support.agents import Recorder, parts_for, running
from tests.support.tool_context import Tickets

pytestmark = pytest.mark.quick

SCRIPT = """
[[step]]
tool_calls = [{ name = "list", arguments = { path = "." } }]
[[step]]
text = "done"
[[step]]
text = "more"
"""
LONG = "We speak of many things at length here. " * 900
"""Enough that to pay it anew is worth a word."""


def at_first_result(agent: Agent, what: Callable[[], object]) -> None:
    """Does something once, in the middle of a turn."""
    done: list[Event] = []

    def listen(event: Event) -> None:
        if isinstance(event, MessageAdded) and event.message.role == "tool" and not done:
            done.append(event)
            what()

    agent.subscribe(listen)


def steps_of(seen: Recorder) -> list[Step]:
    return [e.step for e in seen.of(StepEnded)]


def last_usage(seen: Recorder) -> ContextUsage:
    return seen.of(ContextChanged)[-1].usage


async def test_thinking_switched_in_a_turn_holds_from_the_next_message_on(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=SCRIPT)) as (agent, seen):
        before = agent.models.effort
        assert before != "low"
        at_first_result(agent, lambda: agent.models.set_effort("low"))
        agent.turns.submit("go")
        await seen.until(lambda: len(steps_of(seen)) == 1)
        await agent.turns.join()
        assert agent.models.effort == "low"
        agent.turns.submit("and more")
        await agent.turns.join()
        assert [s.thinking for s in steps_of(seen)] == [before, before, "low"]


async def test_what_came_while_an_interrupted_turn_ran_holds_after_it(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=SCRIPT)) as (agent, seen):

        def switch() -> None:
            agent.models.set_effort("low")
            agent.turns.interrupt()

        at_first_result(agent, switch)
        agent.turns.submit("go")
        await agent.turns.join()
        assert seen.last_end.stop_reason == "interrupted"
        agent.turns.submit("and more")
        await agent.turns.join()
        assert steps_of(seen)[-1].thinking == "low" == agent.models.effort


async def test_tools_that_come_in_a_turn_wait_and_the_message_behind_it_says_what_they_cost(tmp_path: Path) -> None:
    tickets = Tickets(on=False)
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=SCRIPT)
    parts.extra_tools = tickets
    async with running(parts) as (agent, seen):

        def come() -> None:
            tickets.come()
            agent.turns.submit("the next, which waits")

        at_first_result(agent, come)
        agent.turns.submit(LONG)
        await agent.turns.join()
        steps = steps_of(seen)
        assert len(steps) == 3 and len(seen.of(TurnEnded)) == 2
        assert steps[0].fixed_fingerprint == steps[1].fixed_fingerprint != steps[2].fixed_fingerprint
        told = [n.text for n in seen.of(Notice) if n.code == "cache"]
        assert len(told) == 1
        second = seen.events.index(seen.of(TurnEnded)[0])
        begun = [e.usage for e in seen.events[second:] if isinstance(e, ContextChanged)]
        assert begun[0].expected_read is not None and begun[0].expected_read < 2_000 < (begun[-1].expected_read or 0)
        assert told[0].startswith("Next input: expected") and "tools changed: MCP server tickets added" in told[0]


async def test_tools_that_come_between_turns_are_told_with_the_numbers_alone(tmp_path: Path) -> None:
    tickets = Tickets(on=False)
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=SCRIPT)
    parts.extra_tools = tickets
    async with running(parts) as (agent, seen):
        agent.turns.submit(LONG)
        await agent.turns.join()
        forecast = last_usage(seen).forecast
        assert forecast is not None and forecast.cold is None and forecast.read > 5_000
        tickets.come()
        cold = last_usage(seen).forecast
        assert cold is not None and cold.cold is not None
        assert cold.cold.what == "tools changed: MCP server tickets added" and cold.cold.tokens > 5_000
        assert last_usage(seen).expected_read == cold.read < forecast.read
        agent.turns.submit("and more")
        await agent.turns.join()
        assert not [n for n in seen.of(Notice) if n.code == "cache"]
        after = last_usage(seen).forecast
        assert after is not None and after.cold is None


async def test_nothing_is_foretold_while_servers_are_on_their_way(tmp_path: Path) -> None:
    def parts(tickets: Tickets, resume: str | None = None) -> AgentParts:
        found = parts_for(tmp_path / "home", tmp_path / "p", script=SCRIPT, resume=resume)
        found.extra_tools = tickets
        return found

    there = Tickets(on=False)
    there.on = True
    async with running(parts(there)) as (agent, _):
        agent.turns.submit(LONG)
        await agent.turns.join()
        session = agent.conversation.info.id
    for comes in (True, False):
        later = Tickets(on=False)
        later.starting = True
        async with running(parts(later, session)) as (agent, seen):
            await agent.context.ready()
            await agent.events.settled()
            assert all(e.usage.forecast is None for e in seen.of(ContextChanged))
            assert not await agent.context.refresh()
            later.starting = False
            if comes:
                later.come()
            else:
                await agent.context.refresh()
            forecast = last_usage(seen).forecast
            assert forecast is not None
            assert (forecast.cold is None) == comes
            assert comes or (forecast.cold and forecast.cold.what == "tools changed: MCP server tickets removed")
