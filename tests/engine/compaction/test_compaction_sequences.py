"""Any sequence of turns, compactions, undos, rewinds, forks and restarts, on the real store."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.plan import undo_target
from agent_tui.context.compaction.planning import plan_compaction, plan_fold
from agent_tui.context.compaction.situation import CompactionReason, Situation
from agent_tui.context.compaction.summary_plan import facts_of
from agent_tui.context.tokens import message_text_for_count
from agent_tui.context.view import active_prune_ids
from agent_tui.engine.compaction.compactor import Compactor
from agent_tui.engine.conversation import Conversation
from agent_tui.errors import AgentError
from agent_tui.models.codec import dumps
from agent_tui.models.context import ContextUsage
from agent_tui.models.costs import SentKeys
from agent_tui.models.messages import (
    Message,
    Origin,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    new_id,
)
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import FixedPart, Step
from agent_tui.models.usage import TokenUsage
from agent_tui.store.store import Store
from tests.support.compaction_world import (
    TARGET,
    CharCounter,
    FakeModel,
    answer,
    assert_valid,
    calls_of,
    failure,
    model_info,
    raw,
    sections,
    words,
)
from tests.support.forms import examples

FIXED = [FixedPart("system", "system", "system", 2_000, "f", 500)]


class Sequence:
    """A session on a store, what was ever stored in it, and what every compaction began from."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "sessions.db"
        self.store = Store.open(self.file)
        self.conversation = Conversation(self.store, self.store.sessions.create("/project", "test"))
        self.seen: dict[str, str] = {}
        self.known_records: set[str] = set()
        self.began: list[tuple[str, str | None, list[SentMessage], ContextUsage]] = []
        self.info = model_info(8_192, 2_048)

    def inputs(self) -> ContextInputs:
        conversation = self.conversation
        return ContextInputs(
            self.info, conversation.view(), conversation.steps, conversation.records, FIXED, fixed_fingerprint="f"
        )

    def usage(self) -> ContextUsage:
        return calculate_context_usage(self.inputs())

    def add(self, role: Role, parts: list[Part]) -> Message:
        message = Message(new_id("msg"), role, parts)
        message.raw_tokens = raw(message_text_for_count(message))
        self.conversation.append(message)
        return message

    def answer(self, parts: list[Part]) -> Message:
        """An answer with its step, measured by a provider that counts a tenth more than we do."""
        conversation, view = self.conversation, list(self.conversation.view())
        plain = 500 + sum(raw(message_text_for_count(s.message)) + 4 for s in view)
        step = Step(new_id("step"), "turn", "test", TARGET.provider, TARGET.api, TARGET.model, status="complete")
        step.created, step.window = time.time(), self.info.limits.window
        step.sent_count, step.sent_keys = len(view), SentKeys(keys=[s.key for s in view])
        step.fixed, step.fixed_fingerprint = tuple(FIXED), "f"
        step.prune_ids = active_prune_ids(conversation.records)
        message = Message(new_id("msg"), "assistant", parts, step_id=step.id)
        message.origin = Origin(TARGET.provider, TARGET.api, TARGET.model)
        message.raw_tokens = raw(message_text_for_count(message))
        step.message_id = message.id
        step.usage = TokenUsage(plain * 11 // 10, message.raw_tokens * 11 // 10 + 4)
        conversation.append(message)
        conversation.add_step(step)
        return message

    def turn(self, size: int) -> None:
        self.add("user", [TextPart(f"question {len(self.seen)} " + words(size // 4))])
        self.answer([TextPart(words(size))])

    def tools(self, size: int, calls: int, answered: int) -> None:
        self.add("user", [TextPart("use tools")])
        parts: list[Part] = [
            ToolCallPart(new_id("call"), "read", json.dumps({"path": f"f{i}.py"})) for i in range(calls)
        ]
        message = self.answer(parts)
        for call in message.tool_calls[:answered]:
            self.add("tool", [ToolResultPart(call.call_id, "read", words(size))])

    def grow(self, times: int, size: int) -> None:
        for _ in range(times):
            self.turn(size)
            self.tools(size, 2, 2)

    def compact(self, reason: CompactionReason, fails: bool) -> None:
        model = FakeModel([failure("overloaded") if fails else answer(sections(f"summary {len(self.began)}"))])
        view, usage, conversation = list(self.conversation.view()), self.usage(), self.conversation
        plan = plan_compaction(self.inputs(), usage, conversation.path, conversation.summaries, reason=reason)
        result = asyncio.run(Compactor(calls_of(model, model_info()), CharCounter()).run(plan))
        if not result.done:
            assert self.conversation.view() == view
            return
        step = result.steps[-1] if result.steps else None
        conversation.commit_compaction(result.records, result.summary, step)
        after = self.usage()
        assert after.total == result.after
        assert after.total < usage.total
        self.began.append((result.records[0].operation_id, conversation.info.head_id, view, usage))

    def fold(self, place: int, length: int) -> None:
        view, usage, conversation = list(self.conversation.view()), self.usage(), self.conversation
        if not view:
            return
        first, last = (view[min(len(view) - 1, n)].message.id for n in (place % len(view), place % len(view) + length))
        model = FakeModel([answer(sections(f"fold {len(self.began)}"))])
        situation = Situation(self.inputs(), usage, conversation.path, conversation.summaries, "edit", facts_of)
        try:
            plan = plan_fold(situation, first, last)
        except AgentError:
            return
        result = asyncio.run(Compactor(calls_of(model, model_info()), CharCounter()).run(plan))
        if result.done:
            conversation.commit_compaction(result.records, result.summary, result.steps[-1])
            assert self.usage().total == result.after
            self.began.append((result.records[0].operation_id, conversation.info.head_id, view, usage))

    def undo(self) -> None:
        operation = undo_target(self.conversation.records, self.conversation.path)
        if operation is None:
            return
        self.conversation.deactivate(operation)
        if not self.began or self.began[-1][0] != operation:
            self.began.clear()
            return
        _, head, view, usage = self.began.pop()
        if head == self.conversation.info.head_id:
            assert self.conversation.view() == view
            now = self.usage()
            assert (now.total, now.rows, now.calculation) == (usage.total, usage.rows, usage.calculation)

    def undo_at_its_beginning(self) -> None:
        if self.began:
            self.conversation.go_to(self.began[-1][1])
            self.undo()

    def rewind(self, share: float) -> None:
        path = self.conversation.path
        if path:
            self.conversation.go_to(path[int(share * (len(path) - 1))].id)

    def fork(self, share: float) -> None:
        path = self.conversation.path
        if not path:
            return
        head = path[int(share * (len(path) - 1))].id
        self.conversation.go_to(head)
        view = list(self.conversation.view())
        total = self.usage().total
        info = self.store.fork(self.conversation.info.id, head)
        self.conversation = Conversation(self.store, info)
        assert self.conversation.view() == view
        assert self.usage().total == total
        self.seen = {m.id: dumps(m) for m in self.conversation.messages.values()}
        self.known_records = {r.id for r in self.conversation.records}
        self.began.clear()

    def restart(self) -> None:
        view, usage, session = list(self.conversation.view()), self.usage(), self.conversation.info.id
        self.store.close()
        self.store = Store.open(self.file)
        self.conversation = Conversation(self.store, self.store.sessions.get(session))
        assert self.conversation.view() == view
        assert self.usage().rows == usage.rows

    def check(self) -> None:
        conversation = self.conversation
        assert_valid(conversation.view())
        stored = {m.id: dumps(m) for m in self.store.messages.all(conversation.info.id).values()}
        for message_id, text in self.seen.items():
            assert stored[message_id] == text, "a stored message was lost or changed"
        self.seen = stored
        records = {r.id for r in self.store.compactions.all(conversation.info.id)}
        assert self.known_records <= records
        self.known_records = records
        summaries = set(self.store.messages.summaries(conversation.info.id))
        assert {r.summary_id for r in conversation.records if r.summary_id} <= summaries
        plan = plan_compaction(self.inputs(), self.usage(), conversation.path, conversation.summaries)
        assert plan.before == self.usage().total


@contextmanager
def sequence() -> Iterator[Sequence]:
    with tempfile.TemporaryDirectory() as folder:
        made = Sequence(Path(folder))
        try:
            yield made
        finally:
            made.store.close()


SHARE = st.sampled_from([1.0, 0.97, 0.9, 0.75, 0.5, 0.1, 0.0])
COMPACT = st.tuples(
    st.just("compact"), st.sampled_from(["auto", "manual", "overflow"]), st.sampled_from([False, False, False, True])
)
GROW = st.tuples(st.just("grow"), st.integers(1, 6), st.sampled_from([60, 300, 900]))
OPERATION = st.one_of(
    GROW,
    GROW,
    COMPACT,
    COMPACT,
    st.tuples(st.just("turn"), st.integers(10, 1_500)),
    st.tuples(st.just("tools"), st.integers(10, 2_500), st.integers(1, 3), st.integers(0, 3)),
    st.tuples(st.just("fold"), st.integers(0, 80), st.integers(0, 20)),
    st.tuples(st.just("undo")),
    st.tuples(st.just("undo_at_its_beginning")),
    st.tuples(st.just("rewind"), SHARE),
    st.tuples(st.just("fork"), SHARE),
    st.tuples(st.just("restart")),
)


@pytest.mark.slow
@settings(
    max_examples=examples(10, 150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)
@given(st.lists(OPERATION, min_size=10, max_size=30))
def test_any_sequence_keeps_the_conversation_valid_and_everything_stored(operations: list[tuple[object, ...]]) -> None:
    with sequence() as made:
        made.grow(8, 300)
        for name, *arguments in operations:
            getattr(made, str(name))(*arguments)
            made.check()


@pytest.mark.slow
def test_a_long_life() -> None:
    with sequence() as made:
        for round_ in range(6):
            made.grow(6, 700)
            made.compact("auto", fails=False)
            made.check()
            if round_ == 3:
                made.restart()
        assert len(made.began) >= 5
        while made.began:
            made.undo_at_its_beginning()
            made.check()
        assert undo_target(made.conversation.records, made.conversation.path) is None
