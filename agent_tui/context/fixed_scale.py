"""How the provider's tokens of the ephemeral parts compare with their estimate: measured once, where little else was
sent, and taken from then on for every estimate of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.context.families import Family
from agent_tui.context.fixed import estimate_fixed_parts
from agent_tui.models.requests import Target
from agent_tui.models.steps import Step

LOW, HIGH = 0.5, 2.0
"""Beyond these the measurement is of something else."""

MOST_MESSAGES = 1.0
"""Messages of a step that measures, as a share of the ephemeral parts: their error is taken for the parts'."""


@dataclass(slots=True)
class FixedScale:
    """Follows the steps of a session. ``value`` is measured / estimated tokens of the ephemeral parts; None while no
    step without an anchor has measured them. Of several the one with the least beside them counts."""

    value: float | None = None
    _share: float = MOST_MESSAGES
    _seen: int = 0
    _last: str = ""
    _target: Target | None = None

    def follow(self, steps: Sequence[Step], target: Target, family: Family) -> float | None:
        """Takes note of the steps that have ended since. Returns ``value``."""
        known = self._seen <= len(steps) and (self._seen == 0 or steps[self._seen - 1].id == self._last)
        if target != self._target or not known:
            self.value, self._share, self._seen, self._target = None, MOST_MESSAGES, 0, target
        for step in steps[self._seen :]:
            if step.status == "running":
                break
            self._take(step, target, family)
            self._seen += 1
            self._last = step.id
        return self.value

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
        if share <= self._share and LOW <= scale <= HIGH:
            self.value, self._share = scale, share
