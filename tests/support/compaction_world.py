"""A conversation in memory with everything compaction needs: a tree of messages, records, steps, and a fake model."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_tui.config import Settings
from agent_tui.context.accounting.inputs import CompactionSettings, ContextInputs
from agent_tui.context.accounting.usage import Calculator
from agent_tui.context.compaction.plan import CompactionPlan, undo_target
from agent_tui.context.compaction.planning import plan_compaction, plan_fold
from agent_tui.context.compaction.situation import CompactionReason, Situation
from agent_tui.context.compaction.summary import MODEL_SECTIONS
from agent_tui.context.compaction.summary_plan import facts_of
from agent_tui.context.tokens import message_text_for_count
from agent_tui.engine.compaction.compactor import CompactionResult, Compactor
from agent_tui.engine.compaction.summary_call import OpenCall
from agent_tui.engine.model_call import open_call
from agent_tui.engine.runtime import Runtime
from agent_tui.models.context import ContextUsage
from agent_tui.models.failure import Failure, FailureKind
from agent_tui.models.messages import Message, Part, TextPart, ToolCallPart, ToolResultPart
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    FinishReason,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    SentMessage,
    Started,
    StreamItem,
    Target,
    UsageReport,
)
from agent_tui.models.steps import FixedPart, Step
from agent_tui.models.usage import Limits, Prices, TokenUsage
from tests.support.agents import words_only
from tests.support.contexts import Conversation

TARGET = Target("test", "chat", "test-model", "unknown")


def model_info(window: int | None = 16_384, max_output: int | None = 4_096, max_input: int | None = None) -> ModelInfo:
    spec = ModelSpec("test", "test/test-model")
    return ModelInfo(spec, TARGET, Limits(window, max_input, max_output, "config"), Prices(1e-6, 2e-6))


def guessed_info(window: int, max_output: int | None = 4_096) -> ModelInfo:
    """A model of whose window nothing is known for sure."""
    info = model_info(window, max_output)
    return replace(info, limits=replace(info.limits, source="assumed"))


_DETAILS = (
    "The ledger service should book refunds without help.",
    "Small commits, and tabs wherever Go is written.",
    "Amounts are whole cents because rounding was wrong before.",
    "Parser and lexer stand; both have their tests.",
    "The nightly report is being split by region.",
    "Replay the October orders, then compare both versions.",
    "Who owns the cache of the exchange rates is unclear.",
)


def sections(text: str = "Something about it.") -> str:
    """A summary that says the text under each heading, and something else."""
    return "\n\n".join(f"## {name}\n{text}\n{more}" for name, more in zip(MODEL_SECTIONS, _DETAILS, strict=True))


def long_sections(tokens: int) -> str:
    """A summary of so many tokens below each heading, nothing of it twice."""
    return "\n\n".join(f"## {name}\n{prose(tokens, name)}" for name in MODEL_SECTIONS)


def raw(text: str) -> int:
    """A count that needs no tokenizer: four characters a token."""
    return -(-len(text) // 4)


def words(tokens: int, seed: str = "word") -> str:
    """Text of about this many tokens by ``raw``."""
    unit = f"{seed} "
    return (unit * (tokens * 4 // len(unit) + 1))[: tokens * 4]


def prose(tokens: int, seed: str = "prose") -> str:
    """The same of words that do not repeat."""
    rng, known = random.Random(seed), ("ledger", "entry", "parser", "refund", "region", "table", "order", "branch")
    found = ""
    while len(found) < tokens * 4:
        found += f"{rng.choice(known)} {rng.randint(10, 99_999)} "
    return found[: tokens * 4]


Script = Callable[[ModelRequest], Sequence[StreamItem]]


def answer(text: str, finish: FinishReason = "stop", usage: TokenUsage | None = None) -> Script:
    def script(request: ModelRequest) -> Sequence[StreamItem]:
        report = usage or TokenUsage(raw(str(request.messages[0].message.text)), raw(text))
        half = len(text) // 2
        return [
            Started(TARGET),
            Delta(0, "reasoning", "hm"),
            Delta(1, "text", text[:half]),
            Delta(1, "text", text[half:]),
            UsageReport(report),
            Finished(finish),
        ]

    return script


def failure(kind: FailureKind, message: str = "It did not work.") -> Script:
    return lambda request: [Started(TARGET), Failed(Failure(kind, message))]


@dataclass
class FakeModel:
    """Answers each summary call with the next script (the last one again and again) and remembers the requests."""

    scripts: list[Script] = field(default_factory=lambda: [answer(sections())])
    requests: list[ModelRequest] = field(default_factory=list)
    closed: int = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        script = self.scripts[min(len(self.requests), len(self.scripts) - 1)]
        self.requests.append(request)
        try:
            for item in script(request):
                yield item
        finally:
            self.closed += 1


class Unstored:
    """A conversation whose steps are written down nowhere but in what they end as."""

    def add_step(self, step: Step) -> None:
        pass

    save_step = add_step

    def save_if_possible(self) -> None:
        pass


def calls_of(model: object, info: ModelInfo) -> OpenCall:
    """Begins calls of a model that are made once, and paid by nobody."""
    settings = Settings()
    settings.agent.retries = 1
    known: Any = Unstored(), model, None, settings, info, "off", None
    runtime = Runtime(*known)
    return lambda planned: open_call(runtime, planned, lambda event: None)


class CharCounter:
    running = True

    async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        return [words_only(raw(t)) for t in texts]


class World(Conversation):
    """One session. ``head`` moves over a tree of messages; nothing is ever removed from it."""

    def __init__(
        self,
        info: ModelInfo | None = None,
        *,
        policy: CompactionSettings | None = None,
        model: FakeModel | None = None,
        accounts: Calculator | None = None,
    ) -> None:
        super().__init__(TARGET, [FixedPart("system", "system", "system", 2_000, "f", 500)])
        self.info, self.policy = info or model_info(), policy or CompactionSettings()
        self.model, self.accounts = model or FakeModel(), accounts
        self.messages: dict[str, Message] = {}
        self.now = 1_000.0
        self.pinned: tuple[str, ...] = ()

    def clock(self) -> float:
        self.now += 1
        return self.now

    @property
    def head(self) -> str | None:
        return self.path[-1].id if self.path else None

    @head.setter
    def head(self, head: str | None) -> None:
        path: list[Message] = []
        while head is not None:
            path.append(self.messages[head])
            head = self.messages[head].parent_id
        self.path = path[::-1]

    def append(self, role: str, parts: list[Part], tokens: int | None = None) -> Message:
        self.path = [*self.path]  # who was given it keeps what it was
        message = super().append(role, parts)
        message.created, message.raw_tokens = self.clock(), raw(message_text_for_count(message))
        self.messages[message.id] = message
        return message

    def user(self, text: str) -> Message:
        return self.append("user", [TextPart(text)])

    def says(self, text: str) -> Message:
        return self.append("assistant", [TextPart(text)])

    def calls(self, *paths: str, name: str = "read") -> Message:
        number = len(self.messages)
        parts: list[Part] = [
            ToolCallPart(f"c{number}-{i}", name, json.dumps({"path": path})) for i, path in enumerate(paths)
        ]
        return self.append("assistant", parts)

    def results(self, *texts: str, error: bool = False) -> list[Message]:
        """Results for the newest calls, in order."""
        call_message = next(m for m in reversed(self.path) if m.tool_calls)
        return [
            self.append("tool", [ToolResultPart(call.call_id, call.name, text, error)])
            for call, text in zip(call_message.tool_calls, texts, strict=False)
        ]

    def tool_step(self, path: str, tokens: int, name: str = "read") -> Message:
        self.calls(path, name=name)
        return self.results(words(tokens, path))[0]

    def measured(self, parts: list[Part], factor: float = 1.0, reasoning: int = 0) -> Message:
        """An answer with its step: the provider counts ``factor`` times what a plain recount says."""
        expected = self.usage().total
        plain = 500 + sum(raw(message_text_for_count(s.message)) + 4 for s in self.view())
        step = self.answer(None, parts=parts)
        message = self.path[-1]
        step.created, step.window, step.estimated_input = message.created - 0.5, self.info.limits.window, expected
        output = int((message.raw_tokens or 0) * factor) + reasoning + 4
        step.usage = TokenUsage(int(plain * factor), output, reasoning)
        return message

    def inputs(self, **_: object) -> ContextInputs:
        known = self.info, self.view(), self.steps, self.records, self.fixed, self.policy
        return ContextInputs(*known, fixed_fingerprint=self.fixed_fingerprint, pinned=self.pinned)

    def usage(self, accounts: Calculator | None = None, **options: object) -> ContextUsage:
        return super().usage(accounts or self.accounts, **options)

    def plan(self, reason: CompactionReason = "auto", focus: str = "") -> CompactionPlan:
        return plan_compaction(self.inputs(), self.usage(), self.path, self.summaries, reason=reason, focus=focus)

    def plan_without_model(self, reason: CompactionReason = "auto") -> CompactionPlan:
        return plan_compaction(
            self.inputs(), self.usage(), self.path, self.summaries, reason=reason, without_model=True
        )

    def compactor(self) -> Compactor:
        return Compactor(calls_of(self.model, self.info), CharCounter(), self.clock)

    async def compact(self, reason: CompactionReason = "auto", focus: str = "") -> CompactionResult:
        result = await self.compactor().run(self.plan(reason, focus))
        self.commit(result)
        return result

    def plan_fold(self, first: str, last: str, focus: str = "") -> CompactionPlan:
        situation = Situation(self.inputs(), self.usage(), self.path, self.summaries, "edit", facts_of)
        return plan_fold(situation, first, last, focus)

    async def fold(self, first: str, last: str) -> CompactionResult:
        result = await self.compactor().run(self.plan_fold(first, last))
        self.commit(result)
        return result

    def commit(self, result: CompactionResult) -> None:
        self.steps.extend(result.steps)
        if result.done:
            self.records.extend(result.records)
            if result.summary is not None:
                self.summaries[result.summary.id] = result.summary

    def undo(self) -> str | None:
        operation = undo_target(self.records, self.path)
        for record in self.records:
            if record.operation_id == operation:
                record.active = False
        return operation


def sent_text(view: Sequence[SentMessage]) -> str:
    return "\n".join(message_text_for_count(s.message) for s in view)


def assert_valid(view: Sequence[SentMessage]) -> None:
    """What any provider requires: results directly after their calls, one for each, nothing empty or unfinished."""
    open_calls: list[str] = []
    for sent in view:
        message = sent.message
        assert message.status != "streaming"
        if message.role == "tool":
            assert message.tool_result is not None
            assert message.tool_result.call_id in open_calls
            open_calls.remove(message.tool_result.call_id)
            continue
        assert not open_calls, f"calls without results before {message.id}"
        assert message.parts
        open_calls = [c.call_id for c in message.tool_calls]
    assert not open_calls
    keys = [s.key for s in view]
    assert len(keys) == len(set(keys))
