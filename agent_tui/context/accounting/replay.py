"""Which reasoning the next request brings back, asked again and again: only what is new since is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_tui.context.accounting.inputs import ReasoningNow
from agent_tui.context.anchor import common_prefix
from agent_tui.context.sent_lists import SentLists
from agent_tui.context.view import active_prune_ids
from agent_tui.models.requests import Effort, ReplayRule, SentMessage, Target
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.providers.dialects.shared import ReplayStatus
from agent_tui.providers.reasoning import (
    COMPACTED,
    FIXED_CHANGED,
    is_compacted,
    loops_whole,
    plan_replay,
    prefix_fingerprint,
    turn_is_closed,
)
from agent_tui.records import dataclass


def left_out(
    view: Sequence[SentMessage],
    steps: Sequence[Step],
    lists: SentLists,
    keys: Sequence[str],
    records: Sequence[CompactionRecord],
    target: Target,
) -> list[str]:
    """Answers whose reasoning the newest request to this model left out, if its messages are how the next one begins.
    ``keys`` are those of the messages in ``view``.

    They stay out when more results are cleared, although the cache is rewritten then: what came back would take the
    room that was just made. A summary, a rewind or the undo of a compaction goes back to what was sent before.
    """
    active = frozenset(active_prune_ids(records))
    for step in reversed(steps):
        if step.kind != "turn" or step.status not in ("complete", "stopped") or step.sent_reasoning is None:
            continue
        if (step.model, step.provider, step.api) != (target.model, target.provider, target.api):
            continue
        if not active.issuperset(step.prune_ids) or not lists.begins(step, steps, keys):
            continue
        runs, count = step.sent_reasoning, step.sent_count
        if all(run[2] for run in runs):
            return []
        return [
            item.message.id
            for number, (start, _, sent) in enumerate(runs)
            if not sent
            for item in view[start : runs[number + 1][0] if number + 1 < len(runs) else count]
            if item.message.role == "assistant"
        ]
    return []


_ReplaySetting = tuple[Target, str, Effort, bool, frozenset[str], frozenset[str]]


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


class FollowedReasoning:
    """``reasoning_now``, where only what is new is asked about; when a user message closes a turn, that turn is asked
    about again."""

    def __init__(self) -> None:
        self._setting: _ReplaySetting | None = None
        self._keys: list[str] = []
        self._statuses: dict[str, ReplayStatus] = {}
        self._turn = _Mark()
        self._seen = _Mark()
        self._closed = False
        self.changed_from = 0
        """Messages before this index have the status that they had at the last update."""

    def follow(
        self,
        view: Sequence[SentMessage],
        keys: list[str],
        target: Target,
        fixed_fingerprint: str,
        effort: Effort,
        rule: ReplayRule,
    ) -> ReasoningNow:
        kept = common_prefix(self._keys, keys)
        self._keys = keys
        if self._follow(view, kept, target, fixed_fingerprint, effort, rule) and effort != "off":
            self._follow(view, len(keys), target, fixed_fingerprint, "off", rule)
        return ReasoningNow(self._statuses, self._turn.index, self._closed)

    def _follow(
        self,
        view: Sequence[SentMessage],
        kept: int,
        target: Target,
        fixed_fingerprint: str,
        effort: Effort,
        rule: ReplayRule,
    ) -> bool:
        """Takes in a request's messages, of which the first ``kept`` are as they were, and settings; returns whether
        the step has to run without thinking."""
        refused = frozenset((*rule.adaptations, *rule.until, *rule.text_until))
        setting = (target, fixed_fingerprint, effort, rule.bound, frozenset(rule.left_out), refused)
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
