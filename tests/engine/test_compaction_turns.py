"""Compaction as a turn meets it: the executor, the service, the conversation and the store together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agent_tui.config import Settings
from agent_tui.context.tokens.metrics import TokenCounterMetrics
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.project.permissions import Verdict
from agent_tui.engine.project.prelude import Prelude
from agent_tui.engine.runtime.counting import CountService
from agent_tui.engine.runtime.runtime import Runtime
from agent_tui.engine.session.conversation import Conversation
from agent_tui.engine.turns.executor import TurnExecutor
from agent_tui.engine.turns.toolrunner import ToolRunner
from agent_tui.models.events import CompactionEnded, CompactionStarted, Event, Notice, StepStarted, TurnEnded
from agent_tui.models.failure import Failure
from agent_tui.models.messages import Message, Metadata, TextPart, new_id, user_message
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    SentMessage,
    Started,
    StreamItem,
    ToolSchema,
    UsageReport,
)
from agent_tui.models.usage import TokenUsage
from agent_tui.store.store import Store
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.registry import ToolRegistry
from tests.support.compaction_world import (
    TARGET,
    CharCounter,
    assert_valid,
    model_info,
    raw,
    sections,
    sent_text,
    words,
)
from tests.support.tool_context import make_context

OVERFLOW = Failed(Failure("context_overflow", "The prompt is too long."))


class ReadTool:
    """Answers every call with text of ``tokens`` tokens."""

    group = "builtin"
    schema = ToolSchema("read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        return Intent("read", "read")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        return ToolOutcome(words(self.tokens, str(arguments.get("path"))))


@dataclass
class Model:
    """Reads ``reads`` files one after another, then answers. Above ``window``, the one it really has, it overflows."""

    reads: int = 0
    window: int = 10**9
    summary: Callable[[], list[StreamItem]] = lambda: [Delta(0, "text", sections()), Finished("stop")]
    requests: list[ModelRequest] = field(default_factory=list)
    gate: asyncio.Event | None = None
    at_gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        self.requests.append(request)
        yield Started(TARGET)
        size = sum(raw(sent_text([s])) + 4 for s in request.messages)
        if request.kind == "compaction":
            if self.gate is not None:
                self.at_gate.set()
                await self.gate.wait()
            for item in self.summary():
                yield item
            return
        assert_valid(request.messages)
        if size > self.window:
            yield OVERFLOW
            return
        if self.reads > 0:
            self.reads -= 1
            yield Delta(0, "tool_call", json.dumps({"path": f"f{self.reads}"}), call_id=f"c{self.reads}", name="read")
            yield UsageReport(TokenUsage(size, 20))
            yield Finished("tool_calls")
            return
        yield Delta(0, "text", "Done.")
        yield UsageReport(TokenUsage(size, 2))
        yield Finished("stop")

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        return model_info()

    async def count_exact(self, request: ModelRequest) -> int | None:
        return None

    @property
    def kinds(self) -> list[str]:
        return [r.kind for r in self.requests]


class Bench:
    """A session in a temporary store with a scripted model."""

    def __init__(self, folder: Path, model: Model, info: ModelInfo, settings: Settings, tokens: int) -> None:
        self.model, self.settings, self.info, self.folder, self.tokens = model, settings, info, folder, tokens
        self.events: list[Event] = []
        self.file = folder / "sessions.db"
        self.store = Store.open(self.file)
        self.attach(Conversation(self.store, self.store.create_session("/project", "test")))

    def attach(self, conversation: Conversation) -> None:
        self.conversation = conversation
        counts = CountService(CharCounter(), TokenCounterMetrics())
        self.runtime = Runtime(conversation, self.model, counts, self.settings, self.info, "off", Prelude())
        self.service = CompactionService(self.runtime, CharCounter())
        registry = ToolRegistry([ReadTool(self.tokens)])

        async def allow(*_: object) -> Verdict:
            return Verdict(True)

        runner = ToolRunner(registry, lambda: make_context(self.folder / "project"), allow)
        self.executor = TurnExecutor(self.runtime, runner, self.service, self.prepare)

    async def prepare(self) -> None:
        await self.runtime.counts.ensure(self.conversation, self.runtime.prelude)

    def fill(self, messages: int, tokens: int) -> None:
        """An earlier conversation of this many messages, which no step has measured."""
        for number in range(messages // 2):
            self.conversation.append(user_message(f"old {number} " + words(tokens)))
            answer = Message(new_id("msg"), "assistant", [TextPart(words(tokens))])
            self.conversation.append(answer)

    async def turn(self, text: str) -> TurnEnded:
        async for event in self.executor.run(user_message(text)):
            self.events.append(event)
        ended = self.events[-1]
        assert isinstance(ended, TurnEnded)
        return ended

    def of(self, kind: type[Event]) -> list[Event]:
        return [e for e in self.events if isinstance(e, kind)]

    def notices(self, code: str) -> list[Notice]:
        return [e for e in self.events if isinstance(e, Notice) and e.code == code]

    def restart(self) -> None:
        session = self.conversation.info.id
        self.store.close()
        self.store = Store.open(self.file)
        self.attach(Conversation(self.store, self.store.session(session)))


Make = Callable[..., Bench]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Make]:
    made: list[Bench] = []

    def make(
        model: Model, info: ModelInfo | None = None, *, auto: bool = True, tokens: int = 900, **context: object
    ) -> Bench:
        settings = Settings()
        settings.context.auto_compact = auto
        for name, value in context.items():
            setattr(settings.context, name, value)
        made.append(Bench(tmp_path, model, info or model_info(), settings, tokens))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


async def test_one_long_turn_is_compacted_inside_and_ends(bench: Make) -> None:
    world = bench(Model(reads=40))
    ended = await world.turn("Read forty files. " + "Rule: be brief.")
    assert ended.stop_reason == "end"
    done = [e for e in world.events if isinstance(e, CompactionEnded)]
    assert len(done) >= 2
    assert {e.outcome for e in done} == {"done"}
    assert len(world.of(CompactionStarted)) == len(done)
    assert "Rule: be brief." in sent_text(world.model.requests[-1].messages)
    for request in world.model.requests:
        assert request.max_output is not None
        assert request.max_output >= 1_024


async def test_the_trigger_and_the_screen_see_the_same_integer(bench: Make) -> None:
    world = bench(Model(reads=30))
    await world.turn("Read thirty files.")
    compactions = [r for r in world.conversation.records if r.before_tokens is not None]
    assert compactions
    for record in compactions:
        assert (record.before_tokens or 0) > 12_288 >= (record.after_tokens or 0)
    for step in world.conversation.steps:
        if step.kind == "turn":
            assert step.estimated_input is not None
            assert step.estimated_input <= 12_288


async def test_a_provider_overflow_is_recovered_once_and_retried_once(bench: Make) -> None:
    world = bench(Model(reads=14, window=6_000), model_info(200_000, 8_192))
    ended = await world.turn("Read fourteen files.")
    assert ended.stop_reason == "end"
    recovered = [e for e in world.events if isinstance(e, CompactionEnded)]
    assert recovered
    assert all(r.reason == "overflow" for r in world.conversation.records)


async def test_an_overflow_that_does_not_go_away_stops_the_turn(bench: Make) -> None:
    world = bench(Model(reads=0, window=0), model_info(200_000, 8_192))
    world.fill(40, 150)
    ended = await world.turn("Hello?")
    assert ended.stop_reason == "error"
    # Once for a shorter answer, once after a compaction.
    assert world.model.kinds.count("turn") <= 3
    assert world.model.kinds.count("compaction") <= 1


async def test_auto_compact_false_is_honoured_everywhere(bench: Make) -> None:
    world = bench(Model(reads=40, window=15_000), auto=False)
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
    world = bench(Model(reads=20))
    await world.turn("Read twenty files.")
    warning = next(i for i, e in enumerate(world.events) if isinstance(e, Notice) and e.code == "context_80")
    start = next(i for i, e in enumerate(world.events) if isinstance(e, CompactionStarted))
    assert warning < start


async def test_three_failing_summaries_switch_it_off_and_survive_a_restart(bench: Make) -> None:
    world = bench(Model(reads=3, summary=lambda: [Delta(0, "text", "no headings"), Finished("stop")]), tokens=100)
    world.fill(62, 200)
    await world.turn("Go on.")
    outcomes = [e.outcome for e in world.events if isinstance(e, CompactionEnded)]
    assert outcomes == ["failed", "failed", "failed"]
    assert len(world.notices("compaction_off")) == 1
    assert world.conversation.records == []
    world.restart()
    assert world.service.auto.off
    before = len(world.model.requests)
    await world.turn("And now?")
    assert world.model.kinds[before:] == ["turn"]


async def test_esc_during_the_summary_cancels_it_and_the_turn_goes_on(bench: Make) -> None:
    world = bench(Model(gate=asyncio.Event()), tokens=100)
    world.fill(62, 200)
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
    world = bench(Model(gate=asyncio.Event()), tokens=100)
    world.fill(62, 200)
    task = asyncio.create_task(world.turn("Go on."))
    await asyncio.wait_for(world.model.at_gate.wait(), 30)
    assert world.executor.cancel()
    ended = await task
    assert ended.stop_reason == "interrupted"
    assert [e.outcome for e in world.events if isinstance(e, CompactionEnded)] == ["cancelled"]
    assert world.conversation.records == []
    assert world.of(StepStarted) == []


async def test_undo_after_a_restart_restores_view_and_numbers_and_pauses(bench: Make) -> None:
    world = bench(Model(), tokens=100)
    world.fill(62, 200)
    await world.prepare()
    view: list[SentMessage] = list(world.conversation.view())
    usage = world.runtime.usage()
    result = await world.service.compact("manual", world.events.append, world.prepare)
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
    world = bench(Model(), model_info(200_000, 8_192), tokens=100)
    world.fill(62, 200)
    await world.prepare()
    small = model_info(8_192, 2_048)
    await world.service.before_switch(small, world.events.append, world.prepare)
    assert world.notices("compact_before_switch")
    assert world.model.kinds == ["compaction"]
    (record,) = world.conversation.records
    assert record.reason == "switch"
    world.runtime.info = small
    usage = world.runtime.usage()
    assert usage.limit is not None
    assert usage.total <= usage.limit


async def test_a_summary_call_is_waited_for_as_a_step_is(bench: Make) -> None:
    world = bench(Model(), tokens=100)
    world.settings.agent.timeout, world.settings.agent.content_timeout = 33.0, 1_234.0
    world.fill(62, 200)
    await world.service.compact("manual", world.events.append, world.prepare)
    (request,) = world.model.requests
    assert (request.kind, request.timeout, request.content_timeout) == ("compaction", 33.0, 1_234.0)


async def test_where_one_model_compacts_says_nothing_of_the_model_switched_to(bench: Make) -> None:
    early = model_info(200_000, 8_192)
    early = replace(early, spec=replace(early.spec, compact_at=0.02))
    world = bench(Model(), early, tokens=100)
    world.fill(40, 200)
    await world.prepare()
    assert world.runtime.usage().limit == 4_000
    await world.service.before_switch(model_info(100_000, 8_192), world.events.append, world.prepare)
    assert world.events == []


@dataclass
class Gateway(Model):
    """Adds a prompt of its own to every request."""

    added: int = 30_000

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        async for item in super().stream(request):
            if isinstance(item, UsageReport):
                yield UsageReport(replace(item.usage, input=item.usage.input + self.added))
            else:
                yield item


async def test_what_a_gateway_adds_is_part_of_the_numbers_after_some_turns(bench: Make) -> None:
    world = bench(Gateway(), model_info(200_000, 8_192))
    await world.turn(words(500))
    assert world.runtime.usage().total < 1_000
    assert "not believed" in world.notices("usage")[0].text
    for _ in range(2):
        await world.turn(words(500))
    usage = world.runtime.usage()
    assert usage.anchor_step == world.conversation.steps[-1].id
    assert 31_000 < usage.total < 33_000
    assert len(world.notices("usage")) == 1
