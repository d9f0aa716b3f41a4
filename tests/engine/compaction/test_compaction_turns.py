"""Compaction as a turn meets it: the executor, the service, the conversation and the store together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

import pytest

from agent_tui.models.events import CompactionEnded, CompactionStarted, Notice, StepStarted
from agent_tui.models.failure import Failure
from agent_tui.models.requests import (
    Failed,
    ModelRequest,
    SentMessage,
    StreamItem,
    UsageReport,
)
from tests.support.compaction_bench import Make, ReadingModel
from tests.support.compaction_world import (
    guessed_info,
    model_info,
    sent_text,
    words,
)

pytestmark = pytest.mark.quick


async def test_one_long_turn_is_compacted_inside_and_ends(bench: Make) -> None:
    world = bench(ReadingModel(reads=16), tokens=2_000)
    ended = await world.turn("Read sixteen files. " + "Rule: be brief.")
    assert ended.stop_reason == "end"
    done = [e for e in world.events if isinstance(e, CompactionEnded)]
    assert len(done) >= 2
    assert {e.outcome for e in done} == {"done"}
    assert len(world.of(CompactionStarted)) == len(done)
    last = [request for request in world.model.requests if request.kind == "turn"][-1]
    assert "Rule: be brief." in sent_text(last.messages)
    for request in world.model.requests:
        assert request.max_output is not None
        assert request.max_output >= 1_024


async def test_the_trigger_and_the_screen_see_the_same_integer(bench: Make) -> None:
    world = bench(ReadingModel(reads=12), tokens=2_000)
    await world.turn("Read twelve files.")
    compactions = [r for r in world.conversation.records if r.before_tokens is not None]
    assert compactions
    for record in compactions:
        assert (record.before_tokens or 0) > 12_288 >= (record.after_tokens or 0)
    for step in world.conversation.steps:
        if step.kind == "turn":
            assert step.estimated_input is not None
            assert step.estimated_input <= 12_288


async def test_a_provider_overflow_is_recovered_once_and_retried_once(bench: Make) -> None:
    world = bench(ReadingModel(reads=14, window=6_000), guessed_info(200_000, 8_192))
    ended = await world.turn("Read fourteen files.")
    assert ended.stop_reason == "end"
    recovered = [e for e in world.events if isinstance(e, CompactionEnded)]
    assert recovered
    assert all(r.reason == "overflow" for r in world.conversation.records)


async def test_an_overflow_that_does_not_go_away_stops_the_turn(bench: Make) -> None:
    world = bench(ReadingModel(reads=0, window=0), model_info(200_000, 8_192))
    world.fill(40, 150)
    ended = await world.turn("Hello?")
    assert ended.stop_reason == "error"
    # Once for a shorter answer, once after a compaction.
    assert world.model.kinds.count("turn") <= 3
    assert world.model.kinds.count("compaction") <= 2, "the summary, and once what it lacks"


async def test_auto_compact_false_is_honoured_everywhere(bench: Make) -> None:
    world = bench(ReadingModel(reads=40, window=15_000), auto=False)
    ended = await world.turn("Read forty files.")
    assert ended.stop_reason == "error"
    assert "compaction" not in world.model.kinds
    assert world.conversation.records == []
    assert ended.failure is not None
    (notice,) = world.notices("context_full")
    assert "/compact" in notice.text
    assert "/model" in notice.text
    assert "/clear" in notice.text
    assert "auto_compact is false" in notice.text


async def test_the_warning_comes_before_the_first_compaction(bench: Make) -> None:
    world = bench(ReadingModel(reads=16))
    await world.turn("Read sixteen files.")
    warning = next(i for i, e in enumerate(world.events) if isinstance(e, Notice) and e.code == "context_80")
    start = next(i for i, e in enumerate(world.events) if isinstance(e, CompactionStarted))
    assert warning < start


async def test_after_three_failing_summaries_room_is_made_at_the_limit_without_them(bench: Make) -> None:
    refused = Failed(Failure("auth", "No key."))
    world = bench(ReadingModel(reads=3, summary=lambda: [refused]), tokens=100)
    world.fill(16, 775)
    await world.turn("Go on.")
    outcomes = [e.outcome for e in world.events if isinstance(e, CompactionEnded)]
    assert outcomes[:3] == ["failed", "failed", "failed"] and "failed" not in outcomes[3:]
    assert len(world.notices("compaction_off")) == 1
    assert outcomes[3:] == ["done"]
    (record,) = world.conversation.records
    usage = world.runtime.usage()
    assert record.left_out and usage.total < (usage.limit or 0), "it does not wait until nothing can be sent"
    world.restart()
    assert world.service.auto.off
    before = len(world.model.requests)
    await world.turn("And now?")
    assert world.model.kinds[before:] == ["turn"]


async def test_esc_during_the_summary_cancels_it_and_the_turn_goes_on(bench: Make) -> None:
    world = bench(ReadingModel(gate=asyncio.Event()), tokens=100)
    world.fill(16, 775)
    task = asyncio.create_task(world.turn("Go on."))
    await asyncio.wait_for(world.model.at_gate.wait(), 30)
    assert world.service.cancel()
    ended = await task
    assert ended.stop_reason == "end"
    (event,) = [e for e in world.events if isinstance(e, CompactionEnded)]
    assert event.outcome == "cancelled"
    assert world.conversation.records == []
    assert len(world.notices("not_compacted")) == 1
    assert [s.status for s in world.conversation.steps if s.kind == "compaction"] == ["stopped"]


async def test_cancelling_the_turn_during_the_summary_closes_everything(bench: Make) -> None:
    world = bench(ReadingModel(gate=asyncio.Event()), tokens=100)
    world.fill(16, 775)
    task = asyncio.create_task(world.turn("Go on."))
    await asyncio.wait_for(world.model.at_gate.wait(), 30)
    assert world.executor.cancel()
    ended = await task
    assert ended.stop_reason == "interrupted"
    assert [e.outcome for e in world.events if isinstance(e, CompactionEnded)] == ["cancelled"]
    assert world.conversation.records == []
    assert world.of(StepStarted) == []


async def test_undo_after_a_restart_restores_view_and_numbers_and_pauses(bench: Make) -> None:
    world = bench(ReadingModel(), tokens=100)
    world.fill(16, 775)
    await world.prepare()
    view: list[SentMessage] = list(world.conversation.view())
    usage = world.runtime.usage()
    result = await world.service.compact("manual", world.events.append)
    assert result.done
    assert world.conversation.view() != view
    world.restart()
    assert world.runtime.usage().total == result.after
    assert world.service.undo(world.events.append)
    assert world.conversation.view() == view
    now = world.runtime.usage()
    assert (now.total, now.rows, now.calculation) == (usage.total, usage.rows, usage.calculation)
    world.restart()
    assert world.service.auto.paused
    await world.turn("Next.")
    assert world.model.kinds[-1] == "turn"
    assert world.conversation.records[-1].active is False


async def test_before_a_switch_to_a_smaller_model_the_old_one_compacts(bench: Make) -> None:
    world = bench(ReadingModel(), model_info(200_000, 8_192), tokens=100)
    world.fill(16, 775)
    await world.prepare()
    small = model_info(8_192, 2_048)
    await world.service.before_switch(small, world.events.append)
    assert world.notices("compact_before_switch")
    assert {*world.model.kinds} == {"compaction"}
    (record,) = world.conversation.records
    assert record.reason == "switch"
    world.runtime.info = small
    usage = world.runtime.usage()
    assert usage.limit is not None
    assert usage.total <= usage.limit


async def test_a_summary_call_is_waited_for_as_a_step_is(bench: Make) -> None:
    world = bench(ReadingModel(), tokens=100)
    world.settings.agent.timeout, world.settings.agent.content_timeout = 33.0, 1_234.0
    world.settings.agent.answer_timeout = 5_678.0
    world.fill(16, 775)
    await world.service.compact("manual", world.events.append)
    request = world.model.requests[0]
    assert (request.kind, request.timeout, request.content_timeout) == ("compaction", 33.0, 1_234.0)
    assert request.answer_timeout == 5_678.0


async def test_where_one_model_compacts_says_nothing_of_the_model_switched_to(bench: Make) -> None:
    early = model_info(200_000, 8_192)
    early = replace(early, spec=replace(early.spec, compact_at=0.02))
    world = bench(ReadingModel(), early, tokens=100)
    world.fill(40, 200)
    await world.prepare()
    assert world.runtime.usage().limit == 4_000
    await world.service.before_switch(model_info(100_000, 8_192), world.events.append)
    assert world.events == []


@dataclass
class Gateway(ReadingModel):
    """Adds a prompt of its own to every request."""

    added: int = 30_000

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        async for item in super().stream(request):
            if isinstance(item, UsageReport):
                yield UsageReport(replace(item.usage, input=item.usage.input + self.added))
            else:
                yield item


async def test_what_a_gateway_adds_is_part_of_the_numbers_after_some_turns(bench: Make) -> None:
    world = bench(Gateway(), model_info(200_000, 8_192))
    await world.turn(words(500))
    assert world.runtime.usage().total < 1_000
    assert "looks wrong" in world.notices("usage")[0].text
    for _ in range(2):
        await world.turn(words(500))
    usage = world.runtime.usage()
    assert usage.anchor_step == world.conversation.steps[-1].id
    assert 31_000 < usage.total < 33_000
    assert len(world.notices("usage")) == 1
