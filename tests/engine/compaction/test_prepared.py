"""Summaries that are prepared beside a turn: what is made, when it is used, and that nothing is left half."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncGenerator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from agent_tui.context.accounting.spending import session_totals
from agent_tui.context.compaction.facts import read_facts
from agent_tui.context.compaction.keep import missing_facts
from agent_tui.context.tokens import TokenCounterMetrics
from agent_tui.engine.compaction.preparing import NEAR_SHARE, SummaryPreparation
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.request_prefix import RequestPrefix
from agent_tui.engine.runtime import CountService, Runtime
from agent_tui.errors import AgentError, SessionBusyError
from agent_tui.models.events import CompactionEnded, CompactionStarted, Event
from agent_tui.models.messages import Message, SummaryPart, TextPart, ToolCallPart, ToolResultPart, new_id, pinned_text
from agent_tui.models.requests import Delta, Finished, ModelInfo, ModelRequest, StreamItem, Target
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.models.usage import TokenUsage
from agent_tui.store.store import Store
from tests.engine.compaction.test_compaction_policy import usage
from tests.support.compaction_bench import Bench, Make, ReadingModel, benches
from tests.support.compaction_world import CharCounter, assert_valid, model_info, sent_text
from tests.support.forms import examples


def turn(number: int, tokens: int, prepared: str = "") -> Step:
    kind = "compaction" if prepared else "turn"
    used = TokenUsage(tokens, 10)
    return Step(f"s{number}", kind, "m", "p", "a", "m", status="complete", usage=used, cost_usd=0.1, prepared=prepared)  # type: ignore[arg-type]


def test_it_begins_near_the_limit_or_where_the_next_step_may_cross_it() -> None:
    preparing, limit = SummaryPreparation(), 168_000
    assert not preparing.near(usage(int(NEAR_SHARE * limit) - 1), [])
    assert preparing.near(usage(int(NEAR_SHARE * limit) + 1), [])
    wide = [turn(number, number * 30_000) for number in range(1, 5)]
    assert preparing.near(usage(140_000), wide), "a step takes 30k here"
    assert not preparing.near(replace(usage(167_000), would_compact=True), []), "it compacts now"
    assert not preparing.near(usage(167_000, None, None), [])


@given(st.lists(st.sampled_from(["a", "b", "c", "end", "restart"]), max_size=30))
def test_never_two_at_once_and_never_two_for_one_cut(acts: list[str]) -> None:
    preparing, steps, made = SummaryPreparation(), list[Step](), list[str]()
    for act in acts:
        if act == "end":
            preparing.ended()
        elif act == "restart":
            preparing = SummaryPreparation.from_steps(steps)
        else:
            running = preparing.running
            if preparing.begins(act):
                assert not running and act not in made
                made.append(act)
                steps.append(turn(len(steps), 9, act))
            assert preparing.running or act in made
            assert not preparing.near(usage(167_000), []) or not preparing.running


def test_what_was_prepared_and_not_used_is_counted_as_such() -> None:
    steps = [turn(1, 9), turn(2, 9, "m1"), turn(3, 9, "m1"), turn(4, 9, "m2")]
    used = CompactionRecord("r", "o", "summary", ["m1"], step_id="s3")
    totals = session_totals(steps, [used])
    assert totals.unused == 1 and totals.unused_cost.known == pytest.approx(0.1)
    assert session_totals(steps, []).unused == 2
    assert totals.by_kind["compaction"].calls == 3


@dataclass
class SlowWriter(ReadingModel):
    """Reads on while the summary is being written; the summary comes when ``open`` says so."""

    def __post_init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.beside = asyncio.Event()
        self.target: Target | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        if request.kind == "compaction":
            self.requests.append(request)
            self.beside.set()
            await self.open.wait()
            for item in self.summary():
                yield item
            return
        async for item in super().stream(request):
            yield item
        # A step takes longer than nothing: what runs beside it goes on meanwhile.
        for _ in range(20):
            await asyncio.sleep(0)


def talked(bench: Make, reads: int, info: ModelInfo | None = None, auto: bool = True) -> Bench[SlowWriter]:
    """A session with a long talk in it, most of which only a summary makes shorter; three steps below the limit it is
    near."""
    world = bench(SlowWriter(reads=reads), info, auto=auto, tokens=300)
    world.fill(30, 300)
    return world


async def waits(world: Bench[SlowWriter]) -> None:
    """Until the turn waits for the summary."""
    async with asyncio.timeout(20):
        for _ in range(100_000):
            if world.of(CompactionStarted):
                return
            await asyncio.sleep(0)


def summaries(world: Bench[SlowWriter]) -> list[Step]:
    """The calls that wrote them; of one that was prepared and asked for once more, the last."""
    made = [step for step in world.conversation.steps if step.kind == "compaction"]
    return list({step.prepared or step.id: step for step in made}.values())


@pytest.mark.slow
async def test_the_summary_is_there_when_the_limit_is_reached(bench: Make) -> None:
    world = talked(bench, 14)
    ended = await world.turn("Read fourteen files. Rule: be brief.")
    assert ended.stop_reason == "end"
    (done,) = [event for event in world.of(CompactionEnded) if isinstance(event, CompactionEnded)]
    assert done.outcome == "done" and len(world.of(CompactionStarted)) == 1
    (step,) = summaries(world)
    assert step.prepared and done.records[-1].step_id == step.id
    kinds = world.model.kinds
    assert "turn" in kinds[kinds.index("compaction") + 1 :], "the turn went on meanwhile"
    record = done.records[-1]
    assert record.message_ids[-1] == step.prepared
    assert (record.before_tokens or 0) > 12_288 >= (record.after_tokens or 0)
    newest = [m for m in world.conversation.path if m.created < record.created][-1]
    assert newest.id not in record.message_ids, "what came meanwhile stays word for word"
    assert record.created > step.created
    assert "Rule: be brief." in sent_text(world.model.requests[-1].messages)
    totals = world.runtime.usage().session
    assert totals.unused == 0 and totals.by_kind["compaction"].calls == world.model.kinds.count("compaction")


@pytest.mark.slow
async def test_rubbish_that_was_prepared_is_not_put_in_force(bench: Make) -> None:
    world = talked(bench, 14)
    world.model.summary = lambda: [Delta(0, "text", "I would rather go on with the work."), Finished("stop")]
    await world.turn("Read fourteen files. Rule: be brief.")
    ended = [event for event in world.events if isinstance(event, CompactionEnded)]
    assert [event.outcome for event in ended] == ["done"] and "summarised without the model" in ended[0].text
    assert ended[0].records[-1].left_out and "rather go on" not in sent_text(world.conversation.view())


@pytest.mark.slow
async def test_one_that_is_on_its_way_is_waited_for_and_not_made_again(bench: Make) -> None:
    world = talked(bench, 14)
    world.model.open.clear()
    running = asyncio.create_task(world.turn("Read fourteen files."))
    await waits(world)
    assert not world.of(CompactionEnded)
    world.model.open.set()
    await running
    assert len(summaries(world)) == 1
    assert [event.outcome for event in world.events if isinstance(event, CompactionEnded)] == ["done"]


async def test_what_is_waited_for_is_cancelled_by_the_user_and_nothing_follows(bench: Make) -> None:
    world = talked(bench, 14)
    world.model.open.clear()
    running = asyncio.create_task(world.turn("Read fourteen files."))
    await waits(world)
    assert world.service.cancel()
    ended = await running
    assert ended.stop_reason == "end"
    assert next(event.outcome for event in world.events if isinstance(event, CompactionEnded)) == "cancelled"
    assert next(step.status for step in summaries(world)) == "stopped"


async def test_an_interrupted_turn_ends_what_runs_beside_it(bench: Make) -> None:
    world = talked(bench, 14)
    world.model.open.clear()
    running = asyncio.create_task(world.turn("Read fourteen files."))
    async with asyncio.timeout(20):
        await world.model.beside.wait()
    world.executor.cancel()
    await running
    await world.service.close()
    (step,) = summaries(world)
    assert step.status == "stopped" and world.conversation.records == []
    assert world.runtime.usage().session.unused == 1
    world.model.open.set()
    world.model.reads = 0
    await world.turn("Go on.")
    assert len([s for s in summaries(world) if s.prepared == step.prepared]) == 1, "never two for the same cut"


@pytest.mark.slow
async def test_a_kill_leaves_a_session_that_is_whole(bench: Make) -> None:
    """Killed while it is written, and when it is there and not used: nothing is in force, and it is paid for."""
    for opened in (False, True):
        world = talked(bench, 14)
        if not opened:
            world.model.open.clear()
        running = asyncio.create_task(world.turn("Read files."))
        async with asyncio.timeout(20):
            await world.model.beside.wait()
        for _ in range(5 if opened else 0):
            await asyncio.sleep(0)
        before = [m.id for m in world.conversation.path]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await world.service.close()
        made = len(world.conversation.records)
        world.restart()
        assert [m.id for m in world.conversation.path][: len(before)] == before
        assert len(world.conversation.records) == made == 0
        assert world.service.preparing.cuts == {step.prepared for step in summaries(world)}
        world.store.close()
        world.file.unlink()


@pytest.mark.slow
async def test_a_conversation_that_was_changed_meanwhile_gets_a_summary_of_its_own(bench: Make) -> None:
    world = talked(bench, 7)
    await world.turn("Read eleven files.")
    (step,) = summaries(world)
    assert step.prepared and not world.conversation.records
    # Back to before the last answers, and on another way from there.
    world.conversation.go_to(world.conversation.path[6].id)
    world.fill(24, 300)
    world.model.reads = 14
    await world.turn("Read others.")
    records = [record for record in world.conversation.records if record.kind == "summary"]
    assert records and all(record.step_id != step.id for record in records)
    assert world.runtime.usage().session.unused >= 1


@pytest.mark.slow
async def test_nothing_is_prepared_beside_a_server_that_answers_one_at_a_time(bench: Make) -> None:
    local = replace(model_info(), parallel=False)
    world = talked(bench, 14, local)
    await world.turn("Read fourteen files.")
    assert summaries(world) and not any(step.prepared for step in summaries(world))


@pytest.mark.slow
async def test_nothing_is_prepared_where_nothing_compacts_by_itself(bench: Make) -> None:
    world = talked(bench, 7, auto=False)
    await world.turn("Read eleven files.")
    assert not summaries(world)


def pin(world: Bench[SlowWriter], *ids: str) -> None:
    conversation = world.conversation
    conversation.set_state(replace(conversation.info.state, pinned_messages=ids))


def plans(world: Bench[SlowWriter], *items: str) -> None:
    """The model writes down what is left to do."""
    listed = ", ".join(f'{{"text": "{item}", "status": "pending"}}' for item in items)
    call = ToolCallPart(new_id("call"), "todo", f'{{"items": [{listed}]}}')
    world.conversation.append(Message(new_id("msg"), "assistant", [call]))
    world.conversation.append(Message(new_id("msg"), "tool", [ToolResultPart(call.call_id, "todo", "noted")]))


async def near(bench: Make, *done_before: str) -> tuple[Bench[SlowWriter], Step]:
    """A session for which a summary lies ready. Its model once wrote down what was to do."""
    world = bench(SlowWriter(reads=7), tokens=300)
    world.conversation.append(Message(new_id("msg"), "user", [TextPart("Rule: never touch vendor.")]))
    plans(world, *done_before)
    world.fill(30, 300)
    await world.turn("Read eleven files.")
    (step,) = summaries(world)
    assert step.prepared and not world.conversation.records
    return world, step


@pytest.mark.slow
async def test_what_is_pinned_or_taken_back_meanwhile_is_as_it_is_now(bench: Make) -> None:
    world, step = await near(bench, "sweep the floor")
    rule, later = world.conversation.path[0], world.conversation.path[6]
    pin(world, rule.id)
    pin(world, later.id)
    plans(world, "paint the wall")
    world.model.reads = 14
    await world.turn("Read others.")
    record = next(r for r in world.conversation.records if r.kind == "summary")
    assert record.step_id == step.id, "only the program's part of it is made anew"
    parts = world.conversation.summaries[record.summary_id or ""].parts
    carried = [part.text for part in parts if isinstance(part, SummaryPart) and part.pinned]
    assert carried == [pinned_text([later])]
    assert "[ ] sweep the floor" not in str(parts[0]), "a newer list stands in what is kept"


@pytest.mark.slow
@pytest.mark.parametrize("focus", ["", "the rules"])
async def test_a_compaction_by_hand_takes_what_is_there_unless_it_asks_for_another(bench: Make, focus: str) -> None:
    world, step = await near(bench)
    result = await world.service.compact("manual", world.events.append, focus)
    assert result.done and (result.records[-1].step_id == step.id) == (not focus)
    assert len(summaries(world)) == 1 + bool(focus)
    assert world.runtime.usage().session.unused == bool(focus)


@pytest.mark.slow
async def test_another_model_writes_a_summary_of_its_own(bench: Make) -> None:
    world, step = await near(bench)
    world.settings.context.summary_model = "other"
    world.model.reads = 14
    await world.turn("Read others.")
    record = next(r for r in world.conversation.records if r.kind == "summary")
    assert record.step_id != step.id and record.model == "other"
    assert world.runtime.usage().session.unused == 1


ACTS = st.tuples(
    st.sampled_from(["pin", "unpin", "rewind", "fill", "todo", "compact", "focus", "undo", "writer", "turn"]),
    st.integers(0, 40),
)


@pytest.mark.slow
@settings(max_examples=examples(5, 80), deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.lists(ACTS, min_size=1, max_size=5))
@example([("turn", 22), ("turn", 22), ("pin", 10)])
@example([("turn", 15), ("turn", 15)])
def test_whatever_happens_meanwhile_a_prepared_summary_in_force_is_one_of_now(acts: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, benches(Path(folder)) as bench:
        asyncio.run(_whatever(bench, acts))


async def _whatever(bench: Make, acts: list[tuple[str, int]]) -> None:
    world, step = await near(bench, "sweep the floor")
    conversation, checked = world.conversation, set[str]()

    async def check_new() -> None:
        """What is in force since the last look, against the conversation that it was made of: after all that may
        compact, before a pin or a way back changes what it is held against."""
        for record in conversation.records:
            if record.kind == "summary" and record.active and not record.left_out and record.id not in checked:
                await check_in_force(world, record, step)
                checked.add(record.id)

    for name, size in acts:
        path, state = conversation.path, conversation.info.state
        match name:
            case "pin":
                pin(world, *{*state.pinned_messages, path[size % len(path)].id})
            case "unpin":
                pin(world, *state.pinned_messages[:-1])
            case "rewind":
                answers = [m for m in path if m.role == "assistant" and not m.tool_calls]
                conversation.go_to(answers[size % len(answers)].id)
            case "fill":
                world.fill(2, 100)
            case "todo":
                plans(world, f"item {size}")
            case "compact" | "focus":
                await world.service.compact("manual", world.events.append, "the rules" if name == "focus" else "")
                await check_new()
            case "undo":
                world.service.undo(world.events.append)
            case "writer":
                world.settings.context.summary_model = "other"
            case _:
                world.model.reads = 2
                await world.turn("A little more.")
                await check_new()
    world.fill(size % 12 * 2, 200)
    world.model.reads = 14
    await world.turn("Read others.")
    assert_valid(conversation.view())
    await check_new()


async def check_in_force(world: Bench[SlowWriter], record: CompactionRecord, prepared: Step) -> None:
    """A summary says of the conversation of now what one says that is written now: of these messages, with these pins,
    this list, these rules."""
    conversation, parts = world.conversation, world.conversation.summaries[record.summary_id or ""].parts
    path = [m for m in conversation.path if m.created < record.created]
    gone = [m for m in path if m.id in record.message_ids]
    if record.step_id != prepared.id:
        return
    assert [m.id for m in gone] == record.message_ids, "all of them are on this branch"
    text = "".join(part.text for part in parts if isinstance(part, SummaryPart) and not part.pinned)
    carried = "".join(part.text for part in parts if isinstance(part, SummaryPart) and part.pinned)
    assert carried == pinned_text([m for m in gone if m.id in conversation.info.state.pinned_messages])
    assert "never touch vendor" in text + carried
    listed = [call.arguments for m in path for call in m.tool_calls if call.name == "todo"]
    for item in ("sweep the floor", *(f"item {n}" for n in range(41))):
        assert f"[ ] {item}\n" not in f"{text}\n" or f'"{item}"' in listed[-1]
    assert record.model == (world.settings.context.summary_model or "test")
    facts = [fact for fact in read_facts(gone) if fact.kind == "rule"]
    assert missing_facts(facts, text, [Message("", "user", [TextPart(carried)])]) == ()
    request = next(r for r in world.model.requests if r.kind == "compaction")
    old = re.compile(r"old \d+ ")
    assert {*old.findall(sent_text(request.messages))} >= {found for m in gone for found in old.findall(m.text)}


@pytest.mark.slow
async def test_a_second_window_sees_none_of_it_until_it_is_in_force_and_changes_nothing(bench: Make) -> None:
    world = talked(bench, 14)
    session = world.conversation.info.id
    world.store.locks.take(session)
    world.model.open.clear()
    running = asyncio.create_task(world.turn("Read fourteen files. Rule: be brief."))
    async with asyncio.timeout(20):
        await world.model.beside.wait()
    with closing(Store.open(world.file)) as store:
        with pytest.raises(SessionBusyError):
            store.locks.take(session)
        second = Conversation(store, store.sessions.get(session), read_only=True)
        assert_valid(second.view())
        counts = CountService(CharCounter(), TokenCounterMetrics())
        runtime = Runtime(second, world.model, counts, world.settings, world.info, "off", RequestPrefix())
        asked, told = len(world.model.requests), list[Event]()
        with pytest.raises(AgentError, match="read-only"):
            await CompactionService(runtime, CharCounter(), world.prepare).compact("manual", told.append)
        assert not told and second.records == []
        assert len([r for r in world.model.requests[asked:] if r.kind == "compaction"]) == 0
    world.model.open.set()
    assert (await running).stop_reason == "end"
    (step,) = summaries(world)
    assert step.status == "complete", "nobody took it for one that a crash had cut"
    with closing(Store.open(world.file)) as store:
        third = Conversation(store, store.sessions.get(session), read_only=True)
        assert [sent.key for sent in third.view()] == [sent.key for sent in world.conversation.view()]
        assert [record.step_id for record in third.records] == [step.id]
