from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from agent_tui.context.compaction.plan import message_tokens, undo_target
from agent_tui.context.tokens import message_text_for_count
from agent_tui.engine.compaction.compactor import Compactor
from agent_tui.engine.compaction.summary_call import MAX_HALVINGS
from agent_tui.engine.model_call import ModelCall, PlannedCall
from agent_tui.errors import WorkerError
from agent_tui.models.events import CompactionStarted, Event
from agent_tui.models.messages import RECALL_TOOL, ReasoningPart, SummaryPart, TextPart, ToolCallPart
from agent_tui.models.requests import ModelRequest, Started, StreamItem
from agent_tui.models.steps import FixedPart, Step
from tests.support.compaction_world import (
    TARGET,
    CharCounter,
    FakeModel,
    World,
    answer,
    assert_valid,
    calls_of,
    failure,
    long_sections,
    model_info,
    raw,
    sections,
    sent_text,
    words,
)


def chat_world(turns: int = 80, model: FakeModel | None = None) -> World:
    world = World(model=model or FakeModel())
    world.fixed.append(FixedPart("tools", "builtin", RECALL_TOOL, 4, "recall", 1))
    world.user("Always answer in French.")
    world.says("Oui.")
    world.tool_step("src/app.py", 150)
    for number in range(turns):
        world.user(f"Question {number}? " + words(40, f"q{number}"))
        world.says(f"Answer {number}. " + words(100, f"a{number}"))
    world.user("And now?")
    return world


async def test_a_summary_replaces_the_old_part() -> None:
    world = chat_world()
    before = world.usage()
    result = await world.compact(focus="the tests")
    assert result.outcome == "done"
    after = world.usage()
    assert result.before == before.total
    assert result.after == after.total <= (after.limit or 0)
    view = world.view()
    assert_valid(view)
    part = view[0].message.parts[0]
    assert isinstance(part, SummaryPart)
    assert view[0].message.role == "user"
    (record,) = result.records
    assert part.record_id == record.id
    assert record.kind == "summary"
    assert record.message_ids == [m.id for m in world.path[: len(record.message_ids)]]
    assert record.files == ["src/app.py"]
    assert record.focus == "the tests"
    assert (record.before_tokens, record.after_tokens) == (before.total, after.total)
    assert record.kept_messages == len(view) - 1
    assert [s.key for s in view[1:]] == [m.id for m in world.path[len(record.message_ids) :]]
    assert f"kept {len(view) - 1} messages" in result.text
    assert result.text.endswith("/compact undo")
    assert "- src/app.py (read" in part.text


@pytest.mark.slow
async def test_the_summary_call() -> None:
    world = chat_world()
    result = await world.compact(focus="the tests")
    request = world.model.requests[0]
    assert request.kind == "compaction"
    assert request.tools == []
    assert request.effort == "off"
    assert 2_048 <= (request.max_output or 0) <= 4_096
    text = request.messages[0].message.text
    assert "Always answer in French." in text
    assert "the tests" in text
    assert "And now?" not in text
    step = result.steps[0]
    assert step.kind == "compaction"
    assert step.status == "complete"
    assert step.usage is not None
    assert step.cost_usd == pytest.approx(step.usage.input * 1e-6 + step.usage.output * 2e-6)
    assert result.records[0].cost is not None
    assert result.records[0].cost.whole == pytest.approx(sum(s.cost_usd or 0.0 for s in result.steps))
    assert result.records[0].step_id == result.steps[-1].id
    assert world.model.closed == len(world.model.requests)


async def test_clearing_needs_no_model_call() -> None:
    world = World()
    world.user("go")
    for number in range(13):
        world.tool_step(f"f{number}", 1_000)
    result = await world.compact()
    assert result.outcome == "done"
    assert world.model.requests == []
    assert result.steps == []
    assert [r.kind for r in result.records] == ["prune"]
    assert result.after == world.usage().total
    assert "cleared 7 old tool results" in result.text
    assert_valid(world.view())


@pytest.mark.slow
async def test_the_previous_summary_is_fed_in_and_user_words_stay_verbatim() -> None:
    world = chat_world(model=FakeModel([answer(sections("FIRST SUMMARY FACT")), answer(sections("second"))]))
    await world.compact()
    for number in range(80):
        world.user(f"Later {number}? " + words(40, f"l{number}"))
        world.says(words(100, f"b{number}"))
    world.user("Last one?")
    result = await world.compact()
    assert result.outcome == "done"
    asked = [request.messages[0].message.text for request in world.model.requests]
    text = next(text for text in asked if "BEGIN PREVIOUS SUMMARY" in text)
    assert "FIRST SUMMARY FACT" in text
    assert "Answer 3." not in text, "what the first summary replaced is not sent again"
    assert world.records[1].message_ids[: len(world.records[0].message_ids)] == world.records[0].message_ids
    sent = sent_text(world.view())
    assert "Later 70?" in sent
    assert "src/app.py" in sent, "files of the part behind the first summary are still listed"
    assert_valid(world.view())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "words_"),
    [
        (failure("overloaded", "The provider is overloaded."), "The provider is overloaded. Nothing"),
        (lambda request: [Started(TARGET)], "ended before"),
    ],
)
async def test_a_summary_call_that_fails_changes_nothing(script: object, words_: str) -> None:
    world = chat_world(model=FakeModel([script]))  # type: ignore[list-item]
    view, usage = world.view(), world.usage()
    result = await world.compact()
    assert result.outcome == "failed"
    assert words_ in result.text
    assert result.text.startswith("Compaction failed: ")
    assert not result.records
    assert result.summary is None
    assert len(result.steps) == 1
    assert world.view() == view
    after = world.usage()
    assert (after.total, after.rows, after.calculation) == (usage.total, usage.rows, usage.calculation)
    assert after.session.steps == usage.session.steps + len(result.steps)


@pytest.mark.slow
async def test_a_summary_that_is_longer_than_expected_is_taken_when_what_it_leaves_can_be_sent() -> None:
    world = chat_world(110, FakeModel([answer(long_sections(1_250))]))
    result = await world.compact()
    assert result.outcome == "done"
    assert 12_288 < (result.after or 0) < 16_384 - 1_024
    assert result.after == world.usage().total


async def test_a_summary_call_that_is_too_long_is_made_in_parts_of_half_the_size() -> None:
    overflow = failure("context_overflow", "Too long.")
    world = chat_world(model=FakeModel([overflow, overflow, answer(sections("PART SO FAR"))]))
    result = await world.compact()
    assert result.outcome == "done"
    texts = [r.messages[0].message.text for r in world.model.requests]
    sizes = [len(text) for text in texts]
    assert sizes[0] > sizes[1] > sizes[2] and max(sizes[2:]) < sizes[0] / 3
    assert [s.status for s in result.steps[:3]] == ["failed", "failed", "complete"]
    parts = [text for text in texts[2:] if "BEGIN CONVERSATION" in text]
    assert all("PART SO FAR" in text for text in parts[1:]) and "PART SO FAR" not in parts[0]
    for number in range(40):
        assert sum(f"Question {number}? " in text for text in parts) == 1, "nothing is left out"
    assert result.records[0].cost is not None
    assert result.records[0].cost.whole == pytest.approx(sum(step.cost_usd or 0 for step in result.steps))

    world = chat_world(model=FakeModel([overflow]))
    result = await world.compact()
    assert result.outcome == "failed"
    assert len(world.model.requests) == 1 + MAX_HALVINGS
    assert result.failure is not None
    assert result.failure.kind == "context_overflow"


class Stalled:
    """Streams a little and then waits until it is closed."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        try:
            yield Started(TARGET)
            self.reached.set()
            await asyncio.Event().wait()
        finally:
            self.closed = True


@pytest.mark.slow
async def test_cancelling_leaves_nothing_behind() -> None:
    world, stalled = chat_world(), Stalled()
    compactor = Compactor(calls_of(stalled, world.info), CharCounter())
    view, total = world.view(), world.usage().total
    task = asyncio.create_task(compactor.run(world.plan()))
    await stalled.reached.wait()
    assert compactor.cancel()
    result = await task
    assert result.outcome == "cancelled"
    assert "cancelled" in result.text
    assert stalled.closed
    assert [s.status for s in result.steps] == ["stopped"]
    assert not result.records
    world.commit(result)
    assert world.view() == view
    assert world.usage().total == total
    assert not compactor.cancel()


@pytest.mark.slow
async def test_cancelling_the_caller_closes_the_call_and_is_raised() -> None:
    world, stalled = chat_world(), Stalled()
    begun: list[Step] = []
    begin = calls_of(stalled, world.info)

    async def opened(planned: PlannedCall) -> ModelCall:
        begun.append(planned.step)
        return await begin(planned)

    compactor = Compactor(opened)
    task = asyncio.create_task(compactor.run(world.plan()))
    await stalled.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stalled.closed
    assert [s.status for s in begun] == ["stopped"]
    assert not compactor.cancel()


async def test_not_worth_it_and_nothing_make_no_call_and_say_so_in_other_words_than_failure() -> None:
    world = World(model_info(200_000, 8_192))
    world.user("hi")
    nothing = await world.compact("manual")
    assert nothing.outcome == "nothing"
    world.says(words(50))
    for _ in range(3):
        world.user(words(300))
        world.says(words(30))
    not_worth = await world.compact("manual")
    assert not_worth.outcome == "not_worth_it"
    assert world.model.requests == []
    texts = {nothing.text.split(":")[0], not_worth.text.split(":")[0], "Compaction failed"}
    assert len(texts) == 3


@pytest.mark.slow
async def test_events_tell_when_something_is_done() -> None:
    events: list[Event] = []
    world = chat_world()
    result = await world.compactor().run(world.plan("manual"), emit=events.append)
    assert events == [CompactionStarted(result.before, result.why)]
    assert "asked for" in result.why or "over the limit" in result.why
    assert result.event().records == result.records


@pytest.mark.slow
async def test_another_model_may_write_the_summary() -> None:
    world = chat_world()
    small = model_info(8_192, 2_048)
    result = await world.compactor().run(world.plan(), small)
    assert result.outcome == "done"
    assert len(world.model.requests) > 1, "its window is too small for all of it"
    for request in world.model.requests:
        assert request.spec is small.spec
        assert (request.max_output or 0) <= 2_048
        assert raw(request.messages[0].message.text) + (request.max_output or 0) < 8_192
        assert "older messages left out" not in request.messages[0].message.text
    assert len(result.steps) == len(world.model.requests)


async def test_without_a_tokenizer_the_character_rule_judges() -> None:
    class Broken:
        running = True

        async def count(self, texts: object) -> list[tuple[int, ...]]:
            raise WorkerError("gone")

    world = chat_world()
    compactor = Compactor(calls_of(world.model, world.info), Broken(), world.clock)
    result = await compactor.run(world.plan())
    assert result.outcome == "done"
    assert result.summary is not None
    assert result.summary.raw_tokens is None


async def test_undo_goes_back_step_by_step_to_the_same_view_and_numbers() -> None:
    world = chat_world()
    stages = []
    for round_ in range(3):
        stages.append((world.view(), world.usage().total, world.usage().rows))
        assert (await world.compact()).outcome == "done"
        if round_ < 2:
            for number in range(80):
                world.user(f"More {number}? " + words(40))
                world.says(words(110))
    assert world.usage().total <= (world.usage().limit or 0)
    head = world.head
    for view, total, rows in reversed(stages):
        world.head = view[-1].message.id
        assert world.undo() is not None
        assert world.view() == view
        assert world.usage().total == total
        assert world.usage().rows == rows
    assert world.undo() is None
    world.head = head
    assert undo_target(world.records, world.path) is None


async def test_a_prune_and_a_summary_made_together_are_one_operation() -> None:
    world = World()
    for number in range(60):
        world.user(f"q{number} " + words(60))
        world.says(words(120))
    world.user("read the log")
    result_message = world.tool_step("huge.log", 40_000)
    view = world.view()
    result = await world.compact()
    assert result.outcome == "done"
    assert len({r.operation_id for r in result.records}) == 1
    assert world.usage().total <= (world.usage().limit or 0)
    sent = next(s for s in world.view() if s.message.id == result_message.id)
    assert "clipped" in message_text_for_count(sent.message)
    world.undo()
    assert world.view() == view


@pytest.mark.slow
async def test_two_hundred_turns_never_loop_and_keep_what_must_be_kept() -> None:
    world = World()
    compactions = 0
    world.user("Rule: never touch the vendor folder.")
    world.says("Understood.")
    for number in range(200):
        world.user(f"Turn {number}: look at file{number % 7}.py " + words(20, f"t{number}"))
        world.tool_step(f"file{number % 7}.py", 250)
        usage = world.usage()
        if usage.would_compact:
            result = await world.compact()
            assert result.outcome == "done", result.text
            compactions += 1
            assert world.usage().total == result.after
            assert not world.usage().would_compact
        assert_valid(world.view())
        world.says(f"Done with {number}. " + words(80, f"d{number}"))
    assert 3 <= compactions <= 40
    sent = sent_text(world.view())
    for number in range(7):
        assert f"file{number}.py" in sent
    assert "## Instructions and constraints" in sent
    assert "Turn 199: look" in sent
    while world.undo() is not None:
        assert_valid(world.view())
    assert [s.message for s in world.view()] == world.path


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.85, 1.0, 1.3])
async def test_measured_conversations_compact_and_come_back_to_the_exact_numbers(factor: float) -> None:
    world = World()
    stages = []
    world.user("Rule: be kind.")
    for number in range(120):
        call = ToolCallPart(f"c{number}", "read", json.dumps({"path": f"f{number % 5}.py"}))
        world.measured([ReasoningPart("thought"), call], factor, reasoning=30)
        world.results(words(200, f"f{number}"))
        usage = world.usage()
        messages = next(r for r in usage.rows if r.id == "messages")
        assert sum(message_tokens(usage).values()) == messages.tokens
        if usage.would_compact:
            stages.append((world.head, world.view(), usage))
            result = await world.compact()
            assert result.outcome == "done", result.text
            assert world.usage().total == result.after
            assert_valid(world.view())
        world.measured([TextPart(f"Answer {number}. " + words(60))], factor)
        world.user(f"Next {number}? " + words(20))
    assert len(stages) >= 2
    for head, view, before in reversed(stages):
        world.head = head
        assert world.undo() is not None
        now = world.usage()
        assert world.view() == view
        assert (now.total, now.calculation, now.anchor_step) == (before.total, before.calculation, before.anchor_step)
        assert now.rows == before.rows
