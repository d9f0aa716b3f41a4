"""Reasoning tokens of old answers: how many there are, and how many of them the next input contains.

Whether reasoning is resent and counted is the replay rule's answer (``providers.replay``); here it is only multiplied
out, and asked again only for what is new since the last calculation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent_tui.context.sent.anchor import common_prefix
from agent_tui.context.tokens.estimate import char_tokens
from agent_tui.models.messages import Message, ReasoningPart
from agent_tui.models.requests import Effort, ReplayRule, SentMessage, Target
from agent_tui.models.steps import Step
from agent_tui.providers.catalog.families import retention
from agent_tui.providers.wire.replay import (
    ANY_RULE,
    COMPACTED,
    FIXED_CHANGED,
    ReplayStatus,
    is_compacted,
    loops_whole,
    plan_replay,
    prefix_fingerprint,
    turn_is_closed,
)

Setting = tuple[Target, str, Effort, bool, frozenset[str]]


@dataclass(slots=True, frozen=True)
class _Mark:
    """A place in the view, with what the replay rule needs to go on from there."""

    index: int = 0
    prefix: str = ""
    compacted: bool = False

    def moved(self, view: Sequence[SentMessage], index: int) -> _Mark:
        between = view[self.index : index]
        compacted = self.compacted or any(map(is_compacted, between))
        return _Mark(index, prefix_fingerprint(between, self.prefix), compacted)


class ReasoningLedger:
    """The replay status of each answer in a view. Only what is new is asked about; when a user message closes a turn,
    that turn is asked about again."""

    def __init__(self) -> None:
        self._setting: Setting | None = None
        self._keys: list[str] = []
        self._statuses: dict[str, ReplayStatus] = {}
        self._turn = _Mark()
        self._seen = _Mark()
        self._closed = False
        self.changed_from = 0
        """Messages before this index have the status that they had at the last update."""

    def update(
        self,
        view: Sequence[SentMessage],
        target: Target,
        fixed_fingerprint: str,
        effort: Effort,
        rule: ReplayRule = ANY_RULE,
    ) -> None:
        """Follow the view: statuses as if it were sent now. Where the open tool loop makes the step run without
        thinking, so do the accounts."""
        if self._follow(view, target, fixed_fingerprint, effort, rule) and effort != "off":
            self._follow(view, target, fixed_fingerprint, "off", rule)

    def _follow(
        self, view: Sequence[SentMessage], target: Target, fixed_fingerprint: str, effort: Effort, rule: ReplayRule
    ) -> bool:
        """Whether the step has to run without thinking."""
        setting = (target, fixed_fingerprint, effort, rule.bound, frozenset(rule.left_out))
        keys = [item.key for item in view]
        kept = common_prefix(self._keys, keys)
        self._keys = keys
        if setting != self._setting or kept < self._seen.index:
            if setting != self._setting or kept <= self._turn.index:
                self._statuses.clear()
                self._turn = _Mark(0, fixed_fingerprint)
            self._setting, self._seen = setting, self._turn
        new = view[self._seen.index :]
        last_user = max((i for i, item in enumerate(new) if item.message.role == "user"), default=None)
        start = self._seen
        closed = turn_is_closed(view)
        if last_user is not None or closed or self._closed or loops_whole(target):
            start = self._turn
        self._closed = closed
        if last_user is not None:
            self._turn = self._seen.moved(view, self._seen.index + last_user)
        self.changed_from = start.index
        off = self._ask(view[start.index :], target, start, effort, rule)
        self._seen = self._seen.moved(view, len(view))
        return off

    def _ask(self, tail: Sequence[SentMessage], target: Target, start: _Mark, effort: Effort, rule: ReplayRule) -> bool:
        plan = plan_replay(tail, target, start.prefix, effort if effort == "off" else None, rule)
        for item in tail:
            if item.message.role != "assistant":
                continue
            status = plan.message_status(item.message.id)
            if status is not None:
                if start.compacted and status.reason == FIXED_CHANGED:
                    status = replace(status, reason=COMPACTED)
                self._statuses[item.message.id] = status
        return plan.thinking_off is not None

    @property
    def turn_closed(self) -> bool:
        """Whether the model has finished its turn, so that the next request begins with a new user message."""
        return self._closed

    @property
    def turn_start(self) -> int:
        """Index of the last user message: messages before it belong to closed turns."""
        return self._turn.index

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
    """Reasoning tokens of answers: the provider's number where there is one, else what is left of the output.

    ``spoken`` estimates an answer's text and calls. A text of reasoning is often only a summary of what was thought,
    so it says little about its size: output less everything else does. Where a model thought, that is never 0.
    """

    def __init__(self, steps: Mapping[str, Step], spoken: Callable[[Message], float]) -> None:
        self._steps = steps
        self._spoken = spoken

    def of(self, message: Message) -> tuple[int, bool]:
        """Tokens, and whether the provider said so."""
        step = self._steps.get(message.id)
        usage = step.usage if step is not None else None
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
        left = round(usage.output - self._spoken(message))
        return max(min(1, usage.output), left if left > 0 else min(written, usage.output)), False


def counted_at(view: Sequence[SentMessage], target: Target, fixed_fingerprint: str, effort: Effort) -> dict[str, float]:
    """Shares of all answers of a request as it was sent then. Goes through the whole view: only for when the prompt,
    the tools or the cleared results changed since."""
    plan = plan_replay(view, target, fixed_fingerprint, None if effort != "off" else effort)
    return {i.message.id: plan.counted(i.message.id) for i in view if i.message.role == "assistant"}
