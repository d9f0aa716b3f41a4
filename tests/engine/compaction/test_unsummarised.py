"""A summary that was ended, failed or could not be paid or stored: no message is left out *and* the next one sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agent_tui.engine.compaction.auto import MAX_FAILURES
from agent_tui.engine.model_call import ModelCall, NoRoomError, PlannedCall, open_call
from agent_tui.engine.runtime import Runtime
from agent_tui.errors import StoreError
from agent_tui.models.events import CompactionEnded, TurnEnded
from agent_tui.models.failure import Failure
from agent_tui.models.requests import Delta, Failed, Finished, StreamItem
from tests.support.compaction_bench import Bench, Make, ReadingModel
from tests.support.compaction_world import model_info, sections
from tests.support.forms import one_of

Ends = Callable[[Bench[ReadingModel], pytest.MonkeyPatch], None]

GOOD: list[StreamItem] = [Delta(0, "text", sections()), Finished("stop")]


def fails(kind: str) -> Callable[[], list[StreamItem]]:
    return lambda: [Failed(Failure(kind, "It did not work."))]  # type: ignore[arg-type]


def cut_in_the_middle() -> list[StreamItem]:
    return [Delta(0, "text", "## Go"), Failed(Failure("interrupted_stream", "Cut off."))]


async def full(bench: Make, summary: Callable[[], list[StreamItem]] = lambda: GOOD) -> Bench[ReadingModel]:
    """A session that does not fit its window any more without a summary."""
    world = bench(ReadingModel(summary=summary), model_info(4_096, 1_024), tokens=100)
    world.settings.agent.retries = 1
    world.fill(40, 200)
    return world


def untouched(world: Bench[ReadingModel]) -> None:
    assert world.conversation.records == [], "nothing was left out"
    assert "turn" not in world.model.kinds, "and nothing sent"
    assert len(world.conversation.view()) == len(world.conversation.path)


async def goes_on(world: Bench[ReadingModel]) -> None:
    """The next message has its summary, and its answer."""
    world.model.summary = lambda: GOOD
    world.model.gate = None
    ended = await world.turn("And now?")
    assert ended.stop_reason == "end"
    assert [record.left_out for record in world.conversation.records if record.kind == "summary"] == [0]


def told(ended: TurnEnded, *words: str) -> None:
    assert ended.stop_reason == "error" and ended.failure is not None
    for word in ("Not sent, and nothing was left out", *words):
        assert word in ended.failure.message, ended.failure.message


async def test_esc_while_it_is_compacted_sends_nothing(bench: Make) -> None:
    world = await full(bench)
    world.model.gate = asyncio.Event()
    task = asyncio.create_task(world.turn("Go on."))
    await asyncio.wait_for(world.model.at_gate.wait(), 30)
    assert world.service.cancel()
    told(await task, "you cancelled it in this turn")
    untouched(world)
    await goes_on(world)


@pytest.mark.slow
async def test_the_turns_end_while_it_is_compacted_sends_nothing(bench: Make) -> None:
    world = await full(bench)
    world.model.gate = asyncio.Event()
    task = asyncio.create_task(world.turn("Go on."))
    await asyncio.wait_for(world.model.at_gate.wait(), 30)
    assert world.executor.cancel()
    assert (await task).stop_reason == "interrupted"
    untouched(world)
    await goes_on(world)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", one_of(["auth", "not_found", "overloaded", "connection", "timeout", "invalid_request"], every=3)
)
async def test_a_call_that_fails_sends_nothing(bench: Make, kind: str) -> None:
    world = await full(bench, fails(kind))
    told(await world.turn("Go on."), "It did not work")
    untouched(world)
    await goes_on(world)


@pytest.mark.slow
async def test_a_summary_that_is_cut_off_in_the_middle_sends_nothing(bench: Make) -> None:
    world = await full(bench, cut_in_the_middle)
    told(await world.turn("Go on."), "Cut off")
    untouched(world)
    await goes_on(world)


@pytest.mark.slow
async def test_a_budget_without_room_for_it_sends_nothing(bench: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    poor = [True]

    async def refuse(runtime: Runtime, planned: PlannedCall, *told: Any) -> ModelCall:
        if poor:
            raise NoRoomError("The budget of $1 has no room for the summary call.")
        return await open_call(runtime, planned, *told)

    monkeypatch.setattr("agent_tui.engine.compaction.service.open_call", refuse)
    world = await full(bench)
    told(await world.turn("Go on."), "budget of $1")
    untouched(world)
    poor.clear()
    await goes_on(world)


@pytest.mark.slow
async def test_a_store_that_fails_when_it_is_committed_sends_nothing(
    bench: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await full(bench)

    def refuse(*_: object) -> None:
        raise StoreError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(type(world.store.compactions), "commit", refuse)
        ended = await world.turn("Go on.")
    assert ended.failure is not None and ended.failure.kind == "store"
    untouched(world)
    await goes_on(world)


async def test_a_refusal_for_its_length_whose_summary_fails_leaves_nothing_out(bench: Make) -> None:
    world = bench(ReadingModel(window=6_000, summary=fails("auth")), tokens=100)
    world.settings.agent.retries = 1
    world.fill(14, 715)
    ended = await world.turn("Go on.")
    assert ended.stop_reason == "error" and world.conversation.records == []
    assert all(event.outcome == "failed" for event in world.events if isinstance(event, CompactionEnded))


@pytest.mark.slow
async def test_what_fails_for_ever_ends_no_session(bench: Make) -> None:
    """The user is told that there will be no summaries, and the next message goes through without one."""
    world = await full(bench, fails("auth"))
    for number in range(MAX_FAILURES):
        assert not world.notices("compaction_off")
        told(await world.turn(f"{number}"), "It did not work")
        untouched(world)
    assert len(world.notices("compaction_off")) == 1
    assert (await world.turn("And now?")).stop_reason == "end"
    assert [record.left_out > 0 for record in world.conversation.records if record.kind == "summary"] == [True]
