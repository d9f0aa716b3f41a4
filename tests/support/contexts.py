"""Builds conversations with their steps, as the engine would have stored them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agent_tui.context.accounting.believed import Verdict
from agent_tui.context.accounting.inputs import CompactionSettings, ContextInputs
from agent_tui.context.accounting.reports import before_step
from agent_tui.context.accounting.usage import Calculator, calculate_context_usage
from agent_tui.context.anchor import runs_of
from agent_tui.context.tokens import family_of
from agent_tui.context.view import active_prune_ids, build_view
from agent_tui.models.calibration import SCHEMAS, Calibration
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.messages import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec, SentMessage, Target
from agent_tui.models.steps import CompactionRecord, FixedPart, Step, StepKind
from agent_tui.models.usage import Limits, Prices, TokenUsage
from agent_tui.providers.reasoning import plan_replay, prefix_fingerprint

TARGET = Target("openai", "chat", "gpt-4o", "gpt")
CLAUDE = Target("anthropic", "chat", "claude-sonnet-4-6", "claude")
BOUND = Target("anthropic", "chat", "claude-fable-5-1", "claude")
"""Binds signatures to everything that was sent before them."""

WINDOW = Limits(200_000, None, 64_000, "config")


def model(target: Target = TARGET, limits: Limits = WINDOW, **spec: object) -> ModelInfo:
    return ModelInfo(
        replace(ModelSpec("test", f"{target.provider}/{target.model}"), **spec),  # type: ignore[arg-type]
        target,
        limits,
        Prices(),
    )


def fixed_part(row: str = "system", raw: int | None = 1_000, name: str = "prompt", group: str = "base") -> FixedPart:
    return FixedPart(row, group, name, 4 * (raw or 100), f"{row}:{name}:{raw}", raw)  # type: ignore[arg-type]


@dataclass
class Conversation:
    """A session in memory. ``say``, ``answer`` and ``result`` append what the engine would append."""

    target: Target = TARGET
    fixed: list[FixedPart] = field(default_factory=list)
    fixed_fingerprint: str = "fixed"
    path: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    records: list[CompactionRecord] = field(default_factory=list)
    summaries: dict[str, Message] = field(default_factory=dict)
    number: int = 0
    made: int = 0
    """Steps, those that a copy left behind included."""
    calculator: Calculator = field(default_factory=Calculator)
    """Keeps what steps sent, and settles their reports."""

    def view(self) -> list[SentMessage]:
        return build_view(self.path, self.records, self.summaries)

    def append(self, role: str, parts: list[Part], raw: int | None = None) -> Message:
        self.number += 1
        parent = self.path[-1].id if self.path else None
        message = Message(f"m{self.number}", role, parts, parent_id=parent, raw_tokens=raw)  # type: ignore[arg-type]
        self.path.append(message)
        return message

    def say(self, text: str = "hello", raw: int | None = 2) -> Message:
        return self.append("user", [TextPart(text)], raw)

    def result(self, call_id: str, text: str = "done", raw: int | None = 20) -> Message:
        return self.append("tool", [ToolResultPart(call_id, "read", text)], raw)

    def answer(
        self,
        usage: TokenUsage | None,
        *,
        text: str = "ok",
        calls: tuple[str, ...] = (),
        reasoning: Part | None = None,
        raw: int | None = 5,
        kind: StepKind = "turn",
        status: str = "complete",
        parts: list[Part] | None = None,
        before: ContextUsage | None = None,
        effort: Effort = "medium",
        settles: bool = True,
    ) -> Step:
        """``parts``, else what is made of the text, the calls and the reasoning. ``before``: what was expected of the
        request; ``settles`` False: its report is settled later, by ``settle``."""
        view = self.view()
        inputs = self.inputs(effort=effort)
        before = before or self.calculator.usage(inputs)
        rule = self.calculator.rule(inputs)
        plan = plan_replay(view, self.target, self.fixed_fingerprint, "off" if effort == "off" else None, rule)
        given, parts = parts, [reasoning] if reasoning else []
        if isinstance(reasoning, ReasoningPart) and reasoning.prefix == "now":
            parts = [replace(reasoning, prefix=prefix_fingerprint(view, self.fixed_fingerprint))]
        parts += [TextPart(text)] if text else []
        parts += [ToolCallPart(c, "read", '{"path": "app.py"}') for c in calls]
        step = Step(
            f"s{self.made}",
            kind,
            "test",
            self.target.provider,
            self.target.api,
            self.target.model,
            status=status,  # type: ignore[arg-type]
            usage=usage,
            sent_count=len(view),
            fixed=tuple(self.fixed),
            fixed_fingerprint=self.fixed_fingerprint,
            prune_ids=active_prune_ids(self.records),
            window=WINDOW.window,
            sent_reasoning=runs_of(view, plan, self.target.family),
        )
        if kind in ("turn", "count"):
            before_step(step, before)
            self.calculator.record(step, inputs)
        self.steps.append(step)
        self.made += 1
        if kind == "turn":
            message = self.append("assistant", given or parts, raw)
            message.status = status  # type: ignore[assignment]
            message.origin = Origin(self.target.provider, self.target.api, self.target.model)
            message.step_id = step.id
            step.message_id = message.id
        if status != "running" and settles:
            self.settle(step)
        return step

    def settle(self, step: Step, calibration: Calibration | None = None, verdict: Verdict | None = None) -> None:
        """The report of a step has come, and is believed like this."""
        step.finished = float(self.made) if step.finished is None else step.finished
        message = next((m for m in self.path if m.id == step.message_id), None)
        doubted = [other for other in self.steps if verdict is not None and other.id in verdict.truth]
        added = verdict.always if verdict is not None else None
        self.calculator.settle(step, message, self.inputs(calibration=calibration), doubted, added)

    def inputs(
        self,
        *,
        policy: CompactionSettings | None = None,
        limits: Limits = WINDOW,
        calibration: Calibration | None = None,
        effort: Effort = "medium",
    ) -> ContextInputs:
        view, known = self.view(), model(self.target, limits)
        return ContextInputs(
            known,
            view,
            self.steps,
            self.records,
            self.fixed,
            policy or CompactionSettings(),
            calibration,
            self.fixed_fingerprint,
            effort,
        )

    def usage(self, accounts: Calculator | None = None, **options: object) -> ContextUsage:
        """From nothing, or with what ``accounts`` keep."""
        inputs = self.inputs(**options)  # type: ignore[arg-type]
        return calculate_context_usage(inputs) if accounts is None else accounts.usage(inputs)


def calibrated(factor: float, target: Target = TARGET) -> Calibration:
    """A calibration that learned that all texts take so many times what is known of the family."""
    known = family_of(target).beginning
    return replace(known, factors=tuple(factor * f for f in known.factors))


def usual(target: Target) -> float:
    """What is known of the family's factor for most texts."""
    return family_of(target).beginning.factors[SCHEMAS]


def leaves(rows: list[ContextRow]) -> list[ContextRow]:
    return [leaf for row in rows for leaf in (leaves(row.children) if row.children else [row])]


def row(usage: ContextUsage, *path: str) -> ContextRow:
    rows, found = usage.rows, None
    for name in path:
        found = next(r for r in rows if r.id == name)
        rows = found.children
    assert found is not None
    return found


def assert_identities(usage: ContextUsage) -> None:
    """Rows sum to the total, children to their parent, and the window is used up exactly."""
    assert sum(r.tokens for r in usage.rows) == usage.total
    for parent in usage.rows:
        _assert_children(parent)
    if usage.window is None:
        assert usage.limit is usage.reserve is usage.free is usage.over is usage.percent is None
    else:
        assert usage.free is not None and usage.reserve is not None and usage.over is not None
        assert usage.total + usage.free + usage.reserve - usage.over == usage.window
        assert usage.limit is not None and usage.limit + usage.reserve == usage.window
    terms = usage.calculation
    assert usage.total == (
        (terms.last_input or 0)
        + (terms.last_output or 0)
        - terms.dropped_reasoning
        - terms.removed
        + terms.fixed_delta
        + terms.new_messages
    )
    assert 0 <= usage.estimated_tokens <= usage.total


def _assert_children(parent: ContextRow) -> None:
    assert parent.tokens >= 0
    assert 0 <= parent.estimated_tokens <= parent.tokens
    if parent.children:
        assert sum(c.tokens for c in parent.children) == parent.tokens
        for child in parent.children:
            _assert_children(child)


def weather() -> Conversation:
    """The worked example of the context document: 5 000 in, 100 out, a tool result of 20."""
    conversation = Conversation(fixed=[fixed_part(raw=3_000)])
    conversation.say("What's the weather in NYC?", raw=8)
    conversation.answer(TokenUsage(5_000, 100), calls=("c1",))
    conversation.result("c1", "NYC: 72°F, sunny", raw=13)
    return conversation
