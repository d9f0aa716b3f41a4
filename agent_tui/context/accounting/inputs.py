"""The inputs of the calculator, and what they say of the past: steps to build on, reasoning, the measured scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from agent_tui.context.tokens import char_tokens
from agent_tui.models.calibration import Calibration
from agent_tui.models.messages import RECALL_TOOL, Message, ReasoningPart
from agent_tui.models.requests import Effort, ModelInfo, ReplayRule, SentMessage, Target
from agent_tui.models.steps import CompactionRecord, FixedPart, Step
from agent_tui.providers.dialects.shared import ReplayStatus
from agent_tui.providers.reasoning import ANY_RULE, plan_replay, turn_is_closed
from agent_tui.records import dataclass

DEFAULT_RESERVE = 32_000


@dataclass(slots=True, frozen=True)
class CompactionSettings:
    """When to compact. ``compact_at`` up to 1.0 is a fraction of the window, above it a number of tokens; a model's
    own ``compact_at`` wins over it. ``paused`` (after an undo) holds back the automatic compaction of this session
    only; ``off`` (after three failures) has it go on without summaries."""

    auto_compact: bool = True
    compact_at: float | None = None
    max_output_reserve: int = DEFAULT_RESERVE
    paused: bool = False
    off: bool = False


@dataclass(slots=True, frozen=True)
class ContextInputs:
    """The calculator's only arguments."""

    model: ModelInfo
    view: Sequence[SentMessage]
    """What would be sent now (``context.view.build_view``)."""
    steps: Sequence[Step] = ()
    """All steps of the session, oldest first."""
    records: Sequence[CompactionRecord] = ()
    fixed: Sequence[FixedPart] = ()
    """The prefix parts of the next request."""
    settings: CompactionSettings = field(default_factory=CompactionSettings)
    calibration: Calibration | None = None
    """What was learned of how the model's server counts; None: nothing but what is known of its family."""
    fixed_fingerprint: str = ""
    effort: Effort = "off"
    replay: ReplayRule = field(default_factory=ReplayRule)
    """What was learned of the model's server; what stays out of the prefix is found in the steps."""
    inherited: int = 0
    """Leading steps of the session that this one was forked from: they measure, and cost nothing here."""
    pinned: Sequence[str] = ()
    """Messages whose words a compaction carries: of matter for its plan alone."""

    @property
    def recall(self) -> bool:
        """True where the next request offers the model the tool that brings back what is no longer sent."""
        return any(part.row == "tools" and (part.group, part.label) == ("builtin", RECALL_TOOL) for part in self.fixed)

    def as_now(self) -> ContextInputs:
        """The same, which stays as it is when the session's own lists go on."""
        return replace(self, steps=list(self.steps), records=[replace(record) for record in self.records])


@dataclass(slots=True, frozen=True)
class ReasoningNow:
    """The replay status of each answer if the view were sent now. ``turn_start`` is the index of the last user message:
    messages before it belong to closed turns. ``turn_closed``: the model has finished its turn, so that the next
    request begins with a new user message."""

    statuses: Mapping[str, ReplayStatus]
    turn_start: int
    turn_closed: bool

    def status(self, message_id: str) -> ReplayStatus | None:
        return self.statuses.get(message_id)

    def counted(self, message_id: str) -> float:
        """Share of that answer's reasoning tokens that the next input contains."""
        status = self.statuses.get(message_id)
        return status.counted if status else 0.0


def reasoning_now(
    view: Sequence[SentMessage], target: Target, fixed_fingerprint: str, effort: Effort, rule: ReplayRule = ANY_RULE
) -> ReasoningNow:
    """The statuses of a view. Where the open tool loop makes the step run without thinking, so do the accounts."""
    plan = plan_replay(view, target, fixed_fingerprint, _asked(effort), rule)
    if plan.thinking_off is not None:
        plan = plan_replay(view, target, fixed_fingerprint, "off", rule)
    statuses = {
        item.message.id: status
        for item in view
        if item.message.role == "assistant" and (status := plan.message_status(item.message.id)) is not None
    }
    users = (i for i in range(len(view) - 1, -1, -1) if view[i].message.role == "user")
    return ReasoningNow(statuses, next(users, 0), turn_is_closed(view))


def reasoning_tokens(message: Message, step: Step | None, spoken: Callable[[Message], float]) -> tuple[int, bool]:
    """Reasoning tokens of an answer, and whether the provider said so: its number where there is one, else what is left
    of the output of its ``step``.

    ``spoken`` estimates an answer's text and calls. A text of reasoning is often only a summary of what was thought,
    so it says little about its size: output less everything else does. Where a model thought, that is never 0.
    """
    usage = step.counted if step is not None else None
    parts = [p for p in message.parts if isinstance(p, ReasoningPart)]
    shown = any(p.text for p in parts)
    said = usage.reasoning if usage is not None and usage.reasoning_source == "provider" else None
    if usage is not None and said is not None and (said or not shown):
        return min(said, usage.output), True
    if not parts:
        made_up = usage.reasoning if usage is not None else None
        return (min(made_up, usage.output), False) if usage is not None and made_up else (0, True)
    written = round(sum(char_tokens(p.text) for p in parts))
    if usage is None:
        return written, False
    left = round(usage.output - spoken(message))
    return max(min(1, usage.output), left if left > 0 else min(written, usage.output)), False


def _asked(effort: Effort) -> Effort | None:
    """Returns the effort that the replay rule is asked with: whether a step thinks matters to it, not how long."""
    return effort if effort == "off" else None
