"""When a summary is prepared beside a turn, so that nobody waits for it at the limit. A state machine without I/O."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise

from agent_tui.models.context import ContextUsage
from agent_tui.models.steps import Step
from agent_tui.records import dataclass

NEAR_SHARE = 0.90
"""Of the limit: from here on a summary is prepared. What is left takes a turn several steps, and a summary half a
minute."""

GROWTHS = 10
"""The newest steps say by how much the next one grows; where that crosses the limit, it is prepared before, too."""


@dataclass(slots=True)
class SummaryPreparation:
    """Says when a summary is prepared: one at a time, never two for the same cut. ``cuts`` are those it was done for,
    each by the last message of what is summarised; the steps of a stored session know them."""

    cuts: set[str] = field(default_factory=set)
    running: bool = False

    @classmethod
    def from_steps(cls, steps: Iterable[Step]) -> SummaryPreparation:
        """The preparations of a stored session."""
        return cls({step.prepared for step in steps if step.prepared})

    def near(self, usage: ContextUsage, steps: Sequence[Step]) -> bool:
        """Returns whether a step that is sent now may be the last one below the limit, and nothing is prepared."""
        if self.running or not usage.limit or usage.pending or usage.would_compact:
            return False
        return usage.total >= min(NEAR_SHARE * usage.limit, usage.limit - growth(steps))

    def begins(self, cut: str) -> bool:
        """A summary up to this message is about to be prepared; False where that was done before."""
        if self.running or cut in self.cuts:
            return False
        self.cuts.add(cut)
        self.running = True
        return True

    def ended(self) -> None:
        self.running = False


def growth(steps: Sequence[Step]) -> int:
    """Tokens by which the input grows from a step to the next, by the newest of them."""
    inputs: list[int] = []
    for step in reversed(steps):
        if step.kind == "turn" and step.counted is not None:
            inputs.append(step.counted.input)
            if len(inputs) > GROWTHS:
                break
    grown = [later - earlier for later, earlier in pairwise(inputs) if later > earlier]
    return round(statistics.median(grown)) if grown else 0
