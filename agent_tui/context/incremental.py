"""Reuse between two calculations of one session, owned by one object: the formula's answers, sooner.

The formula knows nothing of it. Kept are answers of its pure functions, each with what says that it still holds.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from agent_tui.context.accounting.fixed import Reach, Reading
from agent_tui.context.accounting.inputs import (
    ContextInputs,
    FixedScale,
    Ground,
    ReasoningNow,
    best_scale,
    end_of,
    ended,
    fixed_scale_at,
    ground_of,
    order,
    rule_of,
    surest,
)
from agent_tui.context.accounting.messages import (
    Measured,
    dropped_reasoning,
    estimate_rest,
    estimated_head,
    measure_next,
    nothing_measured,
    removed,
    split_messages,
)
from agent_tui.context.accounting.next_input import Sizes, estimated_fixed
from agent_tui.context.accounting.reports import Errors
from agent_tui.context.accounting.spending import Sums
from agent_tui.context.accounting.tally import Tally
from agent_tui.context.accounting.usage import calculate_context_usage, usage_of
from agent_tui.context.anchor import ResultStates, SentPrefixes, common_prefix, extend_chain
from agent_tui.context.tokens import Family, MessageEstimate, estimate_message, family_seen
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message
from agent_tui.models.requests import Effort, Media, ReplayRule, SentMessage, Target
from agent_tui.models.steps import CompactionRecord, FixedPart, Step
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

T = TypeVar("T")


S = TypeVar("S", Sums, Errors)


class Followed(Generic[S]):
    """What is added up over steps. Kept is that of the leading calls that have ended: those change no more."""

    def __init__(self, empty: S) -> None:
        self._empty: S = empty
        self._kept: S = empty.copy()
        self._count = 0
        self._last: Step | None = None

    def follow(self, steps: Sequence[Step]) -> S:
        """Returns what adding up all these steps gives; not to be changed."""
        if self._count and (len(steps) < self._count or steps[self._count - 1] is not self._last):
            self._kept, self._count, self._last = self._empty.copy(), 0, None
        while self._count < len(steps) and steps[self._count].status != "running":
            self._last = steps[self._count]
            self._kept.add(self._last)
            self._count += 1
        if self._count == len(steps):
            return self._kept
        whole = self._kept.copy()
        for step in steps[self._count :]:
            whole.add(step)
        return whole


class FollowedScale:
    """``fixed_scale_of``, looking at each ended step once; at all of them again where counts came in for what the
    newest sent, without which none before it got any."""

    def __init__(self) -> None:
        self._measured: list[FixedScale] = []
        self._seen = 0
        self._last = ""
        self._sent: tuple[int, Sequence[FixedPart]] | None = None
        self._target: tuple[Target, float] | None = None

    def follow(
        self,
        steps: Sequence[Step],
        target: Target,
        family: Family,
        view: Sequence[SentMessage],
        records: Sequence[CompactionRecord],
        fixed: Sequence[FixedPart],
        added: float,
    ) -> float | None:
        known = self._seen <= len(steps) and (self._seen == 0 or steps[self._seen - 1].id == self._last)
        counted = known and self._sent is not None and steps[self._sent[0]].fixed is not self._sent[1]
        if (target, added) != self._target or not known or counted:
            self._measured, self._seen, self._sent, self._target = [], 0, None, (target, added)
        for step in ended(steps[self._seen :]):
            made = fixed_scale_at(self._seen, step, target, family, added)
            if made is not None:
                bisect.insort(self._measured, made, key=order)
            if step.fixed:
                self._sent = self._seen, step.fixed
            self._seen += 1
            self._last = step.id
        return best_scale(self._measured, view, records, fixed)


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


Setting = tuple[Target, int | None, Media, bool]
_Counted = tuple[int | None, tuple[int, ...] | None]
Basis = tuple[Setting, float | None, tuple[float, ...], float, tuple[str, ...]]


class FollowedGround:
    """``ground_of``, where only what is new since the last calculation is looked at.

    After ``follow``: ``settled`` leading messages weigh what they did then, provided that the ``basis`` is the same.
    """

    def __init__(self) -> None:
        self.settled = 0
        self.basis: Basis | None = None
        self._setting: Setting | None = None
        self._prefixes = SentPrefixes()
        self._keys: list[str] = []
        self._scale = FollowedScale()
        self._reasoning = FollowedReasoning()
        self._chain: list[Step] = []
        self._answered: dict[str, Step] = {}
        self._seen: list[str] = []
        self._passed = False
        self._reach = 0
        self._estimates: dict[str, tuple[_Counted, bool, MessageEstimate]] = {}

    def follow(self, inputs: ContextInputs) -> Ground:
        """Returns what ``ground_of`` gives for these inputs. It holds until the next call."""
        view, target, window = inputs.view, inputs.model.target, inputs.model.limits.window
        family = family_seen(inputs.model, inputs.fixed)
        setting = target, window, family.media, family.target is not None
        if setting != self._setting:
            self._setting = setting
            self._estimates.clear()
            self._keys, self._chain, self._seen, self._reach = [], [], [], 0
        calibration = inputs.calibration or family.beginning
        added, coarse = calibration.added, calibration.coarse(family.beginning)
        scale = self._scale.follow(inputs.steps, target, family, view, inputs.records, inputs.fixed, added)
        self.basis = setting, scale, coarse.factors, coarse.noise, tuple(r.id for r in inputs.records)
        known, same = len(self._prefixes.ids), self._prefixes.same(view)
        self._prefixes, kept = self._prefixes.moved_to(view)
        self._follow_steps(inputs.steps, target, window, known, kept)
        results = ResultStates(inputs.records, view)
        chain = results.measuring(self._chain, self._prefixes.ids)
        rule = rule_of(inputs, self._prefixes, results)
        keys = self._keys[:same] + [item.key for item in view[same:]]
        reasoning = self._reasoning.follow(view, keys, target, inputs.fixed_fingerprint, inputs.effort, rule)
        self.settled = min(common_prefix(self._keys, keys), self._reasoning.changed_from)
        self._keys = keys
        return Ground(
            inputs=inputs,
            family=family,
            prefixes=self._prefixes,
            chain=surest(inputs, chain, family, partial(self._estimate, family)),
            answered=self._answered,
            measured_scale=scale,
            results=results,
            rule=rule,
            reasoning=reasoning,
            estimate=partial(self._estimate, family),
        )

    def _estimate(self, family: Family, message: Message, key: str, first: bool) -> MessageEstimate:
        known, counted = self._estimates.get(key), (message.raw_tokens, message.counts)
        if known is not None and known[0] == counted and known[1] == first:
            return known[2]
        made = estimate_message(message, family, first)
        self._estimates[key] = (counted, first, made)
        return made

    def _follow_steps(self, steps: Sequence[Step], target: Target, window: int | None, known: int, kept: int) -> None:
        """Bring the chain up to date with the steps; the view had ``known`` messages, and has ``kept`` of them."""
        finished = self._finished(steps)
        grown = len(self._prefixes.ids) > known
        if self._seen != finished[: len(self._seen)] or kept != known or (grown and self._reach > known):
            # Steps that did not fit may fit now: after an undo, or when messages came back.
            self._chain, self._seen, self._reach = [], [], 0
            self._answered = {}
        for step in steps[len(self._seen) :]:
            if step.message_id is not None:
                self._answered[step.message_id] = step
        if self._passed:
            chosen = set(finished[len(self._seen) :])
            new = [s for s in steps if s.id in chosen]
        else:
            new = list(steps[len(self._seen) : len(finished)])
        self._reach = max(self._reach, *(end_of(s) for s in new), 0)
        extend_chain(self._chain, new, self._prefixes, target, window)
        self._seen = finished

    def _finished(self, steps: Sequence[Step]) -> list[str]:
        """Ids of the steps that will not change any more. One that still runs is passed over (``_passed``): an exact
        count may come in meanwhile. When it ends, the list is another and the chain is made anew."""
        start = 0 if self._passed else len(self._seen)
        if start and (start > len(steps) or steps[start - 1].id != self._seen[-1]):
            start = 0
        ids = self._seen[:start] + [s.id for s in steps[start:]]
        self._passed = False
        for i, step in enumerate(steps[start:], start):
            if step.status == "running":
                self._passed = any(s.status != "running" for s in steps[i + 1 :])
                return [s.id for s in steps if s.status != "running"] if self._passed else ids[:i]
        return ids


@dataclass(slots=True, frozen=True)
class _KeptMeasured:
    """Rows that steps of the chain measured, up to the step ``last``; ``reach`` says how they were read from the
    provider's cache."""

    measured: Measured
    last: str
    reach: Reach


@dataclass(slots=True, frozen=True)
class _Kept(Generic[T]):
    """An answer about the first ``messages``; it holds while they weigh what they did, for an equal ``key``."""

    messages: int
    key: Hashable
    value: T


class Incremental:
    """One a session, kept by whoever asks again and again: a call costs what is new since the last."""

    def __init__(self) -> None:
        self._followed = FollowedGround()
        self._sums = Followed(Sums())
        self._errors: Followed[Errors] | None = None
        self._target: Target | None = None
        self._basis: Basis | None = None
        self._measured: list[_KeptMeasured] = []
        self._new: _Kept[Tally] | None = None
        self._head: _Kept[int] | None = None
        self._split: _Kept[Tally] | None = None

    def usage(self, inputs: ContextInputs) -> ContextUsage:
        """Returns what ``calculate_context_usage`` gives for these inputs. From an edit to the next answer, which
        measures it, nothing is reused."""
        if inputs.compared is not inputs.view:
            return calculate_context_usage(inputs)
        ground = self._ground(inputs)
        return usage_of(ground, self._sizes(ground), self._split_head, self._sums.follow, self._errors_of)

    def _errors_of(self, steps: Sequence[Step], target: Target) -> Errors:
        if self._errors is None or self._target != target:
            self._errors, self._target = Followed(Errors(target)), target
        return self._errors.follow(steps)

    def rule(self, inputs: ContextInputs) -> ReplayRule:
        """The rule the next request is sent with, as the calculator sees it."""
        if inputs.compared is not inputs.view:
            return ground_of(inputs).rule
        return self._ground(inputs).rule

    def _ground(self, inputs: ContextInputs) -> Ground:
        """The ground, and an end to all that does not hold on it."""
        ground = self._followed.follow(inputs)
        settled = self._followed.settled if self._followed.basis == self._basis else 0
        self._basis = self._followed.basis
        self._measured = [k for k in self._measured if k.measured.tally.end <= settled]
        self._new, self._head = _settled(self._new, settled), _settled(self._head, settled)
        self._split = _settled(self._split, settled)
        return ground

    def _sizes(self, ground: Ground) -> Sizes:
        measured = self._measure(ground)
        return Sizes(
            fixed=estimated_fixed(ground),
            head=self._estimated_head(ground),
            measured=measured,
            new=self._new_messages(ground),
            dropped=dropped_reasoning(ground, measured.turn),
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
        newest = list(ground.answered.values())[-1:]
        told = [step.id for step in newest if step.counted is not None and step.counted.anchors]
        key = ground.measured, ground.calibration.factors, ground.coverage.read is not None, *told
        kept = self._new
        new = kept.value.copy() if kept is not None and kept.key == key else Tally(ground.measured, ground.measured)
        estimate_rest(ground, new)
        self._new = None if new.approximate else _Kept(new.end, key, new.copy())
        return new

    def _estimated_head(self, ground: Ground) -> int:
        key = ground.head, ground.calibration.factors
        if self._head is not None and self._head.key == key:
            return self._head.value
        tokens, approximate = estimated_head(ground)
        self._head = None if approximate else _Kept(ground.head, key, tokens)
        return tokens

    def _split_head(self, ground: Ground, end: int, cost: int, reading: Reading) -> Tally:
        key = (end, cost, ground.coverage.reach(0, end), reading.left)
        if self._split is not None and self._split.key == key:
            return self._split.value.copy()
        tally = split_messages(ground, end, cost, reading)
        self._split = None if tally.approximate else _Kept(end, key, tally.copy())
        return tally


def _settled(kept: _Kept[T] | None, settled: int) -> _Kept[T] | None:
    return kept if kept is not None and kept.messages <= settled else None


def _holds(kept: _KeptMeasured, ground: Ground) -> bool:
    """Returns whether these rows are the beginning of what the chain measures."""
    chain, tally, steps = ground.chain, kept.measured.tally, kept.measured.steps
    return (
        steps <= len(chain)
        and kept.last == chain[steps - 1].id
        and tally.start == ground.head
        and tally.end == end_of(chain[steps - 1])
        and kept.reach == ground.coverage.reach(tally.start, tally.end)
    )
