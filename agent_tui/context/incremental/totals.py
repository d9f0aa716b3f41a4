"""A session's sums, to which only the calls are added that ended since the last time."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.context.accounting.totals import Sums
from agent_tui.models.context import SessionTotals
from agent_tui.models.steps import CompactionRecord, Step


class FollowedTotals:
    """``session_totals``. Kept is the sum of the leading calls that have ended: those change no more."""

    def __init__(self) -> None:
        self._sums = Sums()
        self._count = 0
        self._last: Step | None = None

    def follow(self, steps: Sequence[Step], records: Sequence[CompactionRecord]) -> SessionTotals:
        """What ``session_totals`` gives for these steps and records."""
        if self._count and (len(steps) < self._count or steps[self._count - 1] is not self._last):
            self._sums, self._count, self._last = Sums(), 0, None
        while self._count < len(steps) and steps[self._count].status != "running":
            self._last = steps[self._count]
            self._sums.add(self._last)
            self._count += 1
        if self._count == len(steps):
            return self._sums.totals(records)
        sums = self._sums.copy()
        for step in steps[self._count :]:
            sums.add(step)
        return sums.totals(records)
