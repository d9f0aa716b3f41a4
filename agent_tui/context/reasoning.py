"""Reasoning tokens of old answers: how many there are, and how many of them the next input contains.

Whether reasoning is resent and counted is the replay rule's answer (``providers.replay``); here it is only multiplied
out, and asked again only for what is new since the last calculation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_tui.context.anchor import common_prefix
from agent_tui.context.estimate import char_tokens
from agent_tui.models.messages import Message, ReasoningPart
from agent_tui.models.requests import Effort, SentMessage, Target
from agent_tui.models.steps import Step
from agent_tui.providers.replay import FIXED_CHANGED, ReplayStatus, plan_replay, prefix_fingerprint, retention

Setting = tuple[Target, str, Effort]


class ReasoningLedger:
    """The replay status of each answer in a view. Closed turns are asked about once."""

    def __init__(self) -> None:
        self._setting: Setting | None = None
        self._keys: list[str] = []
        self._closed = 0
        self._closed_prefix = ""
        self._statuses: dict[str, ReplayStatus] = {}
        self.changed_before = 0
        """Messages from here on may have another status than at the last update; those before have the same."""

    def update(self, view: Sequence[SentMessage], target: Target, fixed_fingerprint: str, effort: Effort) -> None:
        """Follow the view: statuses as if it were sent now."""
        setting = (target, fixed_fingerprint, effort)
        keys = [item.key for item in view]
        kept = common_prefix(self._keys, keys)
        self._keys = keys
        if setting != self._setting or kept < self._closed:
            self._setting, self._closed, self._closed_prefix = setting, 0, fixed_fingerprint
            self._statuses.clear()
        start = self._closed
        self.changed_before = start
        tail = view[start:]
        mode = None if effort != "off" else effort
        plan = plan_replay(tail, target, self._closed_prefix, mode)
        for item in tail:
            if item.message.role == "assistant":
                status = plan.message_status(item.message.id)
                if status is not None:
                    self._statuses[item.message.id] = status
        last_user = max((i for i in range(start, len(view)) if view[i].message.role == "user"), default=start)
        if last_user > start:
            self._closed_prefix = prefix_fingerprint(view[start:last_user], self._closed_prefix)
            self._closed = last_user

    @property
    def closed(self) -> int:
        """Messages before this index belong to turns that a later user message has ended."""
        return self._closed

    def status(self, message_id: str) -> ReplayStatus | None:
        return self._statuses.get(message_id)

    def counted(self, message_id: str) -> float:
        """Share of that answer's reasoning tokens that the next input contains."""
        status = self._statuses.get(message_id)
        return status.counted if status else 0.0

    def counted_then(self, message_id: str, target: Target, *, turn_open: bool) -> float:
        """The same share at an earlier request of this conversation, made with the prompt and tools of that time."""
        status = self._statuses.get(message_id)
        if status is None or not (status.resent or status.reason == FIXED_CHANGED):
            return 0.0
        inside, after = retention(target)
        return inside if turn_open else after


class ReasoningTokens:
    """Reasoning tokens of answers: the provider's number where there is one, else estimated from the text."""

    def __init__(self, steps: Mapping[str, Step]) -> None:
        self._steps = steps

    def of(self, message: Message) -> tuple[int, bool]:
        """Tokens, and whether the provider said so."""
        step = self._steps.get(message.id)
        usage = step.usage if step is not None else None
        if usage is not None and usage.reasoning is not None:
            return min(usage.reasoning, usage.output), usage.reasoning_source == "provider"
        text = [p.text for p in message.parts if isinstance(p, ReasoningPart)]
        if not text:
            return 0, True
        tokens = round(sum(map(char_tokens, text)))
        return (tokens if usage is None else min(tokens, usage.output)), False


def counted_at(
    view: Sequence[SentMessage], target: Target, fixed_fingerprint: str, effort: Effort
) -> dict[str, float]:
    """Shares of all answers of a request as it was sent then. Goes through the whole view: only for when the prompt,
    the tools or the cleared results changed since."""
    plan = plan_replay(view, target, fixed_fingerprint, None if effort != "off" else effort)
    return {i.message.id: plan.counted(i.message.id) for i in view if i.message.role == "assistant"}
