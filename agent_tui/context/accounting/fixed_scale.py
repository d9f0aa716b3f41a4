"""How the provider's tokens of the ephemeral parts compare with their estimate: measured once, where little else was
sent, and taken from then on for every estimate of them."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_tui.context.accounting.fixed import estimate_fixed_parts
from agent_tui.context.tokens.families import Family
from agent_tui.models.requests import SentMessage, Target
from agent_tui.models.steps import CompactionRecord, Step

LOW, HIGH = 0.5, 2.0
"""Beyond these the measurement is of something else."""

MOST_MESSAGES = 1.0
"""Messages of a step that measures, as a share of the ephemeral parts: their error is taken for the parts'."""


@dataclass(slots=True)
class FixedScale:
    """Follows the steps of a session that had nothing to build on: what they were sent, less the estimate of their
    messages, measures the ephemeral parts. The one with the least beside the parts counts, of those whose answer is in
    the conversation: a copy of it has the same steps, and must show the same numbers."""

    _measured: list[tuple[float, int, float, Step]] = field(default_factory=list)
    _seen: int = 0
    _last: str = ""
    _target: Target | None = None

    def follow(
        self,
        steps: Sequence[Step],
        target: Target,
        family: Family,
        view: Sequence[SentMessage],
        records: Sequence[CompactionRecord],
    ) -> float | None:
        """Measured / estimated tokens of the ephemeral parts; None where nothing was measured."""
        known = self._seen <= len(steps) and (self._seen == 0 or steps[self._seen - 1].id == self._last)
        if target != self._target or not known:
            self._measured, self._seen, self._target = [], 0, target
        for step in steps[self._seen :]:
            if step.status == "running":
                break
            self._take(step, target, family)
            self._seen += 1
            self._last = step.id
        return next((scale for _, _, scale, step in self._measured if _in_conversation(step, view, records)), None)

    def _take(self, step: Step, target: Target, family: Family) -> None:
        usage, messages = step.usage, step.estimated_messages
        if messages is None or usage is None or not usage.anchors or step.status != "complete":
            return
        if (step.model, step.provider, step.api) != (target.model, target.provider, target.api):
            return
        parts = estimate_fixed_parts(step.fixed, family)
        if not parts.total or any(parts.approximate):
            return
        share, scale = messages / parts.total, (usage.input - messages) / parts.total
        if share <= MOST_MESSAGES and LOW <= scale <= HIGH:
            # The newer one first where two have as little beside the parts.
            bisect.insort(self._measured, (share, -self._seen, scale, step), key=lambda known: known[:2])


def _in_conversation(step: Step, view: Sequence[SentMessage], records: Sequence[CompactionRecord]) -> bool:
    """Whether the step's answer is sent, or stands behind a summary that is."""
    at, answer = step.sent_count, step.message_id
    if at < len(view) and view[at].message.id == answer:
        return True
    if any(r.active and r.kind == "summary" and answer in r.message_ids for r in records):
        return True
    return any(item.message.id == answer for item in view)
