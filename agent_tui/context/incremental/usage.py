"""Everything that is reused between two calculations, in one object.

The formula knows nothing of it. What is kept here are answers of its pure functions, and each is kept with what says
when it would be another: losing all of it costs time, never a different result.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.context.accounting.given.coverage import Reach, Reading
from agent_tui.context.accounting.given.ground import Ground, end_of
from agent_tui.context.accounting.given.inputs import ContextInputs
from agent_tui.context.accounting.messages.change import NO_CHANGE, Change
from agent_tui.context.accounting.messages.dropped import dropped_from_input, dropped_from_output, dropped_reasoning
from agent_tui.context.accounting.messages.measure import Measured, measure_next, nothing_measured, removed
from agent_tui.context.accounting.messages.tally import Tally
from agent_tui.context.accounting.messages.unmeasured import estimate_rest, estimated_head, split_messages
from agent_tui.context.accounting.next_input import Sizes, estimated_fixed
from agent_tui.context.accounting.usage import usage_of
from agent_tui.context.incremental.ground import Basis, FollowedGround
from agent_tui.context.incremental.totals import FollowedTotals
from agent_tui.models.context import ContextUsage
from agent_tui.models.requests import ReplayRule


@dataclass(slots=True, frozen=True)
class _KeptMeasured:
    """Rows that steps of the chain measured, up to the step ``last``; ``reach`` says how they were read from the
    provider's cache."""

    measured: Measured
    last: str
    reach: Reach


@dataclass(slots=True, frozen=True)
class _KeptNew:
    new: Tally
    ratio: float
    read: bool


@dataclass(slots=True, frozen=True)
class _KeptHead:
    """The estimate of the first ``messages`` at a calibration."""

    messages: int
    ratio: float
    tokens: int


@dataclass(slots=True, frozen=True)
class _KeptSplit:
    """The rows of the head, for a cost and what there was to be read of it."""

    tally: Tally
    key: tuple[int, int, Reach, int]


@dataclass(slots=True, frozen=True)
class _KeptDropped:
    """What the first ``messages`` of an anchor's input lost."""

    anchor: str
    messages: int
    dropped: Change


class Incremental:
    """One a session, kept by whoever asks again and again: a call costs what is new since the last."""

    def __init__(self) -> None:
        self._followed = FollowedGround()
        self._totals = FollowedTotals()
        self._basis: Basis | None = None
        self._measured: list[_KeptMeasured] = []
        self._new: _KeptNew | None = None
        self._head: _KeptHead | None = None
        self._split: _KeptSplit | None = None
        self._dropped: _KeptDropped | None = None

    def usage(self, inputs: ContextInputs) -> ContextUsage:
        """What ``calculate_context_usage`` gives for these inputs."""
        ground = self._ground(inputs)
        return usage_of(ground, self._sizes(ground), self._split_head, self._totals.follow)

    def rule(self, inputs: ContextInputs) -> ReplayRule:
        """The rule the next request is sent with, as the calculator sees it."""
        return self._ground(inputs).rule

    def _ground(self, inputs: ContextInputs) -> Ground:
        """The ground, and an end to all that does not hold on it."""
        ground = self._followed.follow(inputs)
        settled = self._followed.settled if self._followed.basis == self._basis else 0
        self._basis = self._followed.basis
        self._measured = [k for k in self._measured if k.measured.tally.end <= settled]
        if self._new is not None and self._new.new.end > settled:
            self._new = None
        if self._head is not None and self._head.messages > settled:
            self._head = None
        if self._split is not None and self._split.tally.end > settled:
            self._split = None
        if self._dropped is not None and self._dropped.messages > settled:
            self._dropped = None
        return ground

    def _sizes(self, ground: Ground) -> Sizes:
        measured = self._measure(ground)
        return Sizes(
            fixed=estimated_fixed(ground),
            head=self._estimated_head(ground),
            measured=measured,
            new=self._new_messages(ground),
            dropped=self._dropped_reasoning(ground, measured),
            removed=removed(ground, measured),
        )

    def _measure(self, ground: Ground) -> Measured:
        """``measure``, going on from the longest stretch of rows that still holds."""
        chain = ground.chain
        self._measured = [k for k in self._measured if _holds(k, ground)]
        measured = nothing_measured(ground)
        if self._measured:
            best = max(self._measured, key=lambda k: k.measured.steps)
            left = best.measured.left if isinstance(best.reach, tuple) else measured.left
            measured = best.measured.copy()
            measured.left = left
        # What can be built on next time: rows to the end of the last closed turn, to where the cache's reading ended,
        # and to the newest step.
        places = (ground.reasoning.turn_start, ground.coverage.until, ground.measured)
        while measured.steps < len(chain):
            measure_next(ground, measured)
            end = end_of(chain[measured.steps - 1])
            following = end_of(chain[measured.steps]) if measured.steps < len(chain) else None
            closing = any(end <= at and (following is None or following > at) for at in places)
            if closing and not measured.tally.approximate:
                reach = ground.coverage.reach(ground.head, measured.tally.end)
                self._measured.append(_KeptMeasured(measured.copy(), chain[measured.steps - 1].id, reach))
        steps = [(k.measured.steps, k.measured.tally.end) for k in self._measured]
        needed = {max((n for n, end in steps if end <= at), default=0) for at in places}
        self._measured = [k for k in self._measured if k.measured.steps in needed]
        return measured

    def _new_messages(self, ground: Ground) -> Tally:
        """``new_messages``, going on from those of the last time."""
        start, ratio, read = ground.measured, ground.ratio, ground.coverage.read is not None
        kept, self._new = self._new, None
        new = Tally(start, start)
        if kept is not None and (kept.new.start, kept.ratio, kept.read) == (start, ratio, read):
            new = kept.new.copy()
        estimate_rest(ground, new)
        if not new.approximate:
            self._new = _KeptNew(new.copy(), ratio, read)
        return new

    def _estimated_head(self, ground: Ground) -> int:
        kept = self._head
        if kept is not None and (kept.messages, kept.ratio) == (ground.head, ground.ratio):
            return kept.tokens
        tokens, approximate = estimated_head(ground)
        self._head = None if approximate else _KeptHead(ground.head, ground.ratio, tokens)
        return tokens

    def _split_head(self, ground: Ground, end: int, cost: int, reading: Reading) -> Tally:
        key = (end, cost, ground.coverage.reach(0, end), reading.left)
        if self._split is not None and self._split.key == key:
            return self._split.tally.copy()
        tally = split_messages(ground, end, cost, reading)
        self._split = None if tally.approximate else _KeptSplit(tally.copy(), key)
        return tally

    def _dropped_reasoning(self, ground: Ground, measured: Measured) -> Change:
        """``dropped_reasoning``, where the closed turns of an input were gone through before."""
        anchor = ground.anchor
        if anchor is None or anchor.sent_reasoning is None:
            return dropped_reasoning(ground, measured.turn)
        runs, start, dropped = anchor.sent_reasoning, 0, NO_CHANGE
        if self._dropped is not None and self._dropped.anchor == anchor.id:
            start, dropped = self._dropped.messages, self._dropped.dropped
        until = max(start, min(ground.reasoning.turn_start, anchor.sent_count))
        dropped += dropped_from_input(ground, runs, start, until)
        self._dropped = _KeptDropped(anchor.id, until, dropped)
        return (
            dropped + dropped_from_input(ground, runs, until, anchor.sent_count) + dropped_from_output(ground, anchor)
        )


def _holds(kept: _KeptMeasured, ground: Ground) -> bool:
    """Whether these rows are the beginning of what the chain measures."""
    chain, tally, steps = ground.chain, kept.measured.tally, kept.measured.steps
    return (
        steps <= len(chain)
        and kept.last == chain[steps - 1].id
        and tally.start == ground.head
        and tally.end == end_of(chain[steps - 1])
        and kept.reach == ground.coverage.reach(tally.start, tally.end)
    )
