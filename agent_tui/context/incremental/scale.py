"""The measured scale of the ephemeral parts, followed from step to step."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from agent_tui.context.accounting.given.fixed_scale import FixedScale, best_scale, ended, fixed_scale_at, order
from agent_tui.context.tokens.families import Family
from agent_tui.models.requests import SentMessage, Target
from agent_tui.models.steps import CompactionRecord, Step


class FollowedScale:
    """``fixed_scale_of``, looking at each ended step once."""

    def __init__(self) -> None:
        self._measured: list[FixedScale] = []
        self._seen = 0
        self._last = ""
        self._target: Target | None = None

    def follow(
        self,
        steps: Sequence[Step],
        target: Target,
        family: Family,
        view: Sequence[SentMessage],
        records: Sequence[CompactionRecord],
    ) -> float | None:
        known = self._seen <= len(steps) and (self._seen == 0 or steps[self._seen - 1].id == self._last)
        if target != self._target or not known:
            self._measured, self._seen, self._target = [], 0, target
        for step in ended(steps[self._seen :]):
            made = fixed_scale_at(self._seen, step, target, family)
            if made is not None:
                bisect.insort(self._measured, made, key=order)
            self._seen += 1
            self._last = step.id
        return best_scale(self._measured, view, records)
