"""What the agent is doing is one state; the changes between them are few and written down."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agent_tui.engine.agent import Agent
from agent_tui.engine.state import BUSY, CHANGES, IllegalChangeError, RunState, RunStates
from agent_tui.errors import AgentError
from agent_tui.models.events import Event, StepStarted, TurnEnded
from agent_tui.models.requests import ModelRequest, StreamItem
from agent_tui.providers.demo import DemoProvider
from agent_tui.store.store import Store
from tests.support.agents import WordCounter, parts_for, running
from tests.support.every import every

pytestmark = pytest.mark.quick

OPENING, LOOKING, IDLE, TURN = RunState.OPENING, RunState.LOOKING, RunState.IDLE, RunState.TURN
INTERRUPTED, COMPACTING, WORKING, CLOSING = (
    RunState.INTERRUPTED,
    RunState.COMPACTING,
    RunState.WORKING,
    RunState.CLOSING,
)

WAYS = {
    OPENING: [],
    LOOKING: [LOOKING],
    IDLE: [IDLE],
    TURN: [IDLE, TURN],
    INTERRUPTED: [IDLE, TURN, INTERRUPTED],
    COMPACTING: [IDLE, COMPACTING],
    WORKING: [IDLE, WORKING],
    CLOSING: [CLOSING],
}


def at(state: RunState) -> RunStates:
    states = RunStates()
    for step in WAYS[state]:
        states.change(step)
    return states


@every(("before", "after"), itertools.product(RunState, RunState))
def test_only_a_legal_change_is_made(before: RunState, after: RunState) -> None:
    states = at(before)
    if after in CHANGES[before]:
        states.change(after)
        assert states.now is after
    else:
        with pytest.raises(IllegalChangeError, match=f"{before.value} → {after.value}"):
            states.change(after)
        assert states.now is before


def test_whatever_runs_can_be_closed_and_nothing_comes_after() -> None:
    assert all(CLOSING in CHANGES[state] for state in RunState if state is not CLOSING)
    assert not CHANGES[CLOSING]
    assert {state for state in RunState if at(state).busy} == BUSY


def test_work_begins_only_from_idle_and_leads_back_to_it() -> None:
    for work in (TURN, COMPACTING, WORKING):
        assert {s for s in RunState if work in CHANGES[s]} - {INTERRUPTED} == {IDLE}
    assert all(IDLE in CHANGES[state] for state in BUSY)


async def test_nothing_is_asked_of_a_session_that_is_still_opening(tmp_path: Path) -> None:
    agent = Agent(parts_for(tmp_path / "home", tmp_path / "p"))
    for ask in (
        lambda: agent.models.spec,
        lambda: agent.conversation.info,
        agent.context.usage,
    ):
        with pytest.raises(AgentError, match="still loading"):
            ask()
    for work in (
        agent.compaction.now(),
        agent.compaction.preview(),
        agent.sessions.clear(),
        agent.models.switch("demo"),
        agent.shell("true"),
        agent.sessions.fork(),
    ):
        with pytest.raises(AgentError, match="still loading"):
            await work
    assert (agent.turns.busy, agent.models.info, agent.context.in_flight, agent.turns.interrupt()) == (
        False,
        None,
        0,
        False,
    )
    agent.turns.submit("as soon as you can")
    await agent.start()
    await agent.turns.join()
    assert [m.text for m in agent.conversation.path if m.role == "user"] == ["as soon as you can"]
    await agent.close()


async def test_an_agent_that_is_closed_while_it_opens_begins_nothing(tmp_path: Path) -> None:
    agent = Agent(parts_for(tmp_path / "home", tmp_path / "p"))
    agent.turns.submit("too late")
    starting = asyncio.create_task(agent.start())
    await asyncio.sleep(0)
    await agent.close()
    await starting
    assert not agent.turns.busy
    with pytest.raises(AgentError, match="still loading"):
        agent.context.usage()


async def test_a_session_that_is_only_looked_at_runs_nothing(tmp_path: Path) -> None:
    agent = Agent(parts_for(tmp_path / "home", tmp_path / "p"))
    await agent.inspect()
    agent.turns.submit("hello")
    assert not agent.turns.busy and not agent.turns.interrupt()
    with pytest.raises(AgentError, match="Cannot compact now"):
        await agent.compaction.now()
    await agent.close()


class Held(DemoProvider):
    """Answers once it is let."""

    def __init__(self) -> None:
        super().__init__(WordCounter(), None, pace=0.0)
        self.asked, self.free = asyncio.Event(), asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.asked.set()
        await self.free.wait()
        async for item in super().stream(request):
            yield item


async def test_what_is_queued_when_the_agent_closes_is_not_begun_and_not_lost(tmp_path: Path) -> None:
    held, home = Held(), tmp_path / "home"
    async with running(parts_for(home, tmp_path / "p", provider=lambda _: held)) as (agent, seen):
        session = agent.conversation.info.id
        agent.turns.submit("first")
        await held.asked.wait()
        agent.turns.submit("second")
    assert seen.of(TurnEnded) == [TurnEnded("interrupted")]
    with Store.open(home / "data" / "sessions.db") as store:
        assert [m.text for m in store.messages.all(session).values() if m.role == "user"] == ["first"]
        assert [m.text for m in store.waiting.all(session)] == ["second"]


async def test_an_interrupt_ends_its_own_turn_and_not_the_one_after(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, seen):
        pressed: list[bool] = []

        def press(event: Event) -> None:
            if isinstance(event, StepStarted) and not pressed:
                pressed.append(agent.turns.interrupt())
                assert agent.turns.busy

        agent.subscribe(press)
        agent.turns.submit("first")
        await agent.turns.join()
        assert not agent.turns.busy
        agent.turns.submit("second")
        await agent.turns.join()
        assert pressed == [True]
        assert [e.stop_reason for e in seen.of(TurnEnded)] == ["interrupted", "end"]


async def test_a_subscriber_that_sends_at_the_end_of_a_turn_is_heard_after_it(tmp_path: Path) -> None:
    """The turn that has told its end still runs: what is sent then waits a moment and follows."""
    async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, seen):
        sent: list[str] = []

        def again(event: Event) -> None:
            if isinstance(event, TurnEnded) and not sent:
                sent.append("more")
                assert agent.turns.busy
                agent.turns.submit("more")

        agent.subscribe(again)
        agent.turns.submit("first")
        await agent.turns.join()
        assert [m.text for m in agent.conversation.path if m.role == "user"] == ["first", "more"]
        assert len(seen.of(TurnEnded)) == 2 and not agent.turns.busy
