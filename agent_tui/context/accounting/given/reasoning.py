"""Reasoning of old answers in the next request: how many tokens it has, and which share of them is counted.

Whether reasoning is resent and counted is the replay rule's answer (``providers.reasoning``); here it is only
multiplied out. What earlier requests sent of it is another thing: that is stored with each step, and read by
``context.sent.reasoning_runs``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agent_tui.context.tokens.estimate import char_tokens
from agent_tui.models.messages import Message, ReasoningPart
from agent_tui.models.requests import Effort, ReplayRule, SentMessage, Target
from agent_tui.models.steps import Step
from agent_tui.providers.catalog import retention
from agent_tui.providers.dialects.encoding import ReplayStatus
from agent_tui.providers.reasoning import ANY_RULE, FIXED_CHANGED, plan_replay, turn_is_closed


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

    def counted_then(self, message_id: str, target: Target, *, turn_open: bool) -> float:
        """The same share at an earlier request of this conversation, made with the prompt and tools of that time."""
        status = self.statuses.get(message_id)
        if status is None or not (status.resent or status.reason == FIXED_CHANGED):
            return 0.0
        inside, after = retention(target)
        return inside if turn_open else after


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


def counted_at(view: Sequence[SentMessage], target: Target, fixed_fingerprint: str, effort: Effort) -> dict[str, float]:
    """Shares of all answers of a request as it was sent then. Goes through the whole view: only for when the prompt,
    the tools or the cleared results changed since."""
    plan = plan_replay(view, target, fixed_fingerprint, _asked(effort))
    return {i.message.id: plan.counted(i.message.id) for i in view if i.message.role == "assistant"}


def _asked(effort: Effort) -> Effort | None:
    """What the replay rule is asked with: whether a step thinks matters to it, not how long."""
    return effort if effort == "off" else None
