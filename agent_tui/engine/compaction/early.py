"""Before the limit: when a compaction is offered or, where that is wanted, made, and when a summary is prepared beside
a turn, so that nobody waits for it at the limit. State machines without I/O.

It never asks twice of one moment, and never spends unasked but where ``compact_when`` is ``cheaper`` and the figures
say so plainly. A moment is what the conversation and its model are, and what is known of the cache then.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

from agent_tui.config import CompactWhen
from agent_tui.context.cache_forecast import Moment
from agent_tui.context.compaction.worth import Worth
from agent_tui.models.context import ContextUsage
from agent_tui.models.session import SessionState
from agent_tui.models.steps import Step
from agent_tui.records import dataclass

Decision: TypeAlias = Literal["nothing", "offer", "renew", "withdraw", "compact"]
"""What follows from a look: ``offer`` shows the line, ``renew`` corrects its figures, ``withdraw`` takes it away,
``compact`` begins by itself."""

GROWN = 2.0
"""While the cache is warm it is asked again only once as many times as much could be saved as when nobody answered."""


@dataclass(slots=True)
class Offers:
    """The offers of one session. ``asked`` and ``unanswered`` survive a restart.

    ``asked`` is the state of the conversation that was asked about last, and the moments of it; ``unanswered`` what
    could have been saved the last time that nobody took it up while the cache was warm.
    """

    when: CompactWhen = "limit"
    asked: tuple[str, ...] = ()
    unanswered: float = 0.0
    standing: Worth | None = None
    """The offer that can be taken up now."""

    @classmethod
    def from_state(cls, state: SessionState, when: CompactWhen) -> Offers:
        """The offers of a stored session."""
        return cls(when, state.compaction_asked, state.compaction_unanswered)

    def kept_in(self, state: SessionState) -> SessionState:
        """A session's state with what has to survive of this."""
        return replace(state, compaction_asked=self.asked, compaction_unanswered=self.unanswered)

    def open(self, at: str, moment: Moment) -> bool:
        """Returns whether there is anything to find out about a moment of the conversation ``at`` this point: it was
        not asked about before, or its offer stands."""
        if self.when == "limit":
            return False
        return self.standing is not None or at not in self.asked[:1] or moment not in self.asked[1:]

    def look(self, at: str, worth: Worth | None, *, held: bool = False) -> Decision:
        """Says what follows from ``worth``, the figures of now. ``held``: nothing may be compacted by itself."""
        standing, self.standing = self.standing, None
        if self.when == "limit" or worth is None or not worth.worthwhile:
            return "withdraw" if standing is not None else "nothing"
        if standing is not None and self.asked[:1] == (at,) and standing.moment == worth.moment:
            self.standing = worth
            return "nothing" if worth.line() == standing.line() else "renew"
        known = self.asked if self.asked[:1] == (at,) else (at,)
        seen = worth.moment in known[1:]
        small = worth.moment == "warm" and worth.saving < GROWN * self.unanswered
        if seen or small:
            return "withdraw" if standing is not None else "nothing"
        self.asked = (*known, worth.moment)
        if self.when == "cheaper" and worth.plainly and not held:
            return "compact"
        if worth.moment == "warm":
            self.unanswered = worth.saving
        self.standing = worth
        return "offer"

    def accept(self) -> Worth | None:
        """The user takes the offer up; None where it does not stand any more."""
        standing, self.standing = self.standing, None
        return standing

    def withdraw(self) -> bool:
        """Something else goes on now; False where no offer stood."""
        return self.accept() is not None

    def settle(self, at: str, *, done: bool) -> None:
        """A compaction was made, failed or was taken back at this point: nobody is asked about it again here."""
        self.standing = None
        self.asked = (at, *get_args(Moment))
        if done:
            self.unanswered = 0.0


NEAR_SHARE = 0.90
"""Of the limit: from here on a summary is prepared. What is left takes a turn several steps, and a summary half a
minute."""

GROWTHS = 10
"""The newest steps say by how much the next one grows; where that crosses the limit, it is prepared before, too."""


@dataclass(slots=True)
class Preparing:
    """Says when a summary is prepared: one at a time, never two for the same cut. ``cuts`` are those it was done for,
    each by the last message of what is summarised; the steps of a stored session know them."""

    cuts: set[str] = field(default_factory=set)
    running: bool = False

    @classmethod
    def from_steps(cls, steps: Iterable[Step]) -> Preparing:
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
