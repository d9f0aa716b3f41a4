"""What reports say of the estimates before them: how good those were, what they teach, and how fast a session grows;
and in words, why a report is not believed."""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar

from agent_tui.context.accounting.believed import Verdict
from agent_tui.context.view import EDIT_IDS
from agent_tui.models.calibration import Calibration, Content, usable
from agent_tui.models.context import Accuracy, ContextUsage
from agent_tui.models.messages import SummaryPart
from agent_tui.models.requests import SentMessage, Target
from agent_tui.models.steps import Doubt, Step
from agent_tui.models.usage import Limits
from agent_tui.text.numbers import percent, plural, tokens

if TYPE_CHECKING:
    from agent_tui.context.accounting.spending import Sums

RECENT = 50
"""Steps that accuracy is told of."""
DRIFT_TOKENS = 10
"""Difference between the tracked total and a recount that is worth a line in the log, in tokens."""


def before_step(step: Step, usage: ContextUsage) -> None:
    """Store with the step what was expected: the whole input and its spread, the new messages by what is known of the
    family alone, and what is learned from: what all that is estimated consists of, and the rest."""
    step.estimated_input, step.estimated_spread, step.anchor_step = usage.total, usage.spread, usage.anchor_step
    step.estimated_rows = usage.stack()
    terms = usage.calculation
    step.built_on = terms.last_input
    if changed := terms.spreads.fixed_delta:
        by = terms.spreads
        rest = math.hypot(by.last_output, by.dropped_reasoning, by.removed, by.new_messages)
        step.estimated_change = terms.fixed_delta, changed, math.ceil(rest)
    step.estimated_growth = terms.new_estimated
    step.known_input, step.growth = terms.known, terms.content
    if terms.settlement is not None and (step.settlement is None or not step.settlement.settled):
        step.settlement = replace(terms.settlement, costs={})


def after_step(step: Step) -> str | None:
    """Store what was measured and return the line for the log; None when the provider measured nothing."""
    usage, estimated = step.counted, step.estimated_input
    step.actual_input = step.actual_growth = None
    if usage is None or not usage.anchors or estimated is None:
        return None
    step.actual_input = usage.input
    if step.known_input is not None:
        step.actual_growth = usage.input - step.known_input
    return verification_line(estimated, usage.input)


def verification_line(estimated: int, actual: int) -> str:
    """The line that every verified step logs, in the words of the context document."""
    error = estimated - actual
    sign = "+" if error > 0 else ""
    value = 100 * error / actual if actual else 0.0
    percent_sign = "+" if value > 0 else ""
    return (
        f"Context estimate: estimated={estimated}, actual={actual}, "
        f"error={sign}{error} ({percent_sign}{percent(value, tight=True)})"
    )


def verified_growth(step: Step) -> tuple[Content, int] | None:
    """What was estimated of the input of a turn step or an exact count consists of, and what was measured of it; None
    where nothing can be learned."""
    if step.kind not in ("turn", "count") or step.status != "complete":
        return None
    if step.actual_growth is None or step.growth is None:
        return None
    return step.growth, step.actual_growth


def relearned(steps: Sequence[Step], since: str, known: Calibration) -> Calibration:
    """What the steps before the newest teach as their reports are believed now, where all since the step of the id
    ``since`` are to be learned from anew; ``known`` is what is known of the family."""
    first = next(number for number, step in enumerate(steps) if step.id == since)
    given, target = steps[first].given, (steps[first].model, steps[first].provider, steps[first].api)
    learned = (usable(given.calibration) if given is not None else None) or known
    for step in steps[first:-1]:
        if (step.model, step.provider, step.api) == target and (growth := verified_growth(step)) is not None:
            learned = usable(learned.learned(*growth)) or learned
    return learned


LAST_INTERVALS = 20


class Errors:
    """Errors of a model's verified turn steps, added up one after another."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._last: tuple[int, float] | None = None
        self._percents: list[float] = []
        self._anchored: deque[int] = deque(maxlen=RECENT)
        self._grown: deque[Content] = deque(maxlen=RECENT)
        self._newest: deque[bool] = deque(maxlen=LAST_INTERVALS)
        self._intervals = self._inside = 0

    def add(self, step: Step) -> None:
        error = step_error(step, self.target)
        if error is None:
            return
        self._last = error
        bisect.insort(self._percents, abs(error[1]))
        if step.growth is not None:
            self._grown.append(step.growth)
        if step.anchor_step is not None:
            self._anchored.append(abs(error[0]))
        if step.estimated_spread is not None:
            self._newest.append(abs(error[0]) <= step.estimated_spread)
            self._intervals += 1
            self._inside += self._newest[-1]

    def copy(self) -> Errors:
        other = copy(self)
        other._percents = list(self._percents)
        other._anchored, other._grown = self._anchored.copy(), self._grown.copy()
        other._newest = self._newest.copy()
        return other

    def accuracy(self, learned: Calibration, known: Calibration) -> Accuracy:
        """The median is of absolute errors, over all of the session. ``ratio`` is by what the ``learned`` calibration
        corrects what is ``known`` of the family, of what the newest steps consist of."""
        result = Accuracy(calls=len(self._percents), intervals=self._intervals, inside=self._inside)
        result.last_intervals, result.last_inside = len(self._newest), sum(self._newest)
        if self._last is not None:
            result.last_error_tokens, result.last_error_percent = self._last
            result.median_error_percent = statistics.median(self._percents)
        newest = Content()
        for growth in self._grown:
            newest.add(growth)
        if (expected := known.tokens(newest)) > 0:
            result.ratio = learned.tokens(newest) / expected
        if self._anchored:
            recent = sorted(self._anchored)
            result.p95_error_tokens = recent[math.ceil(0.95 * len(recent)) - 1]
        return result


def step_error(step: Step, target: Target) -> tuple[int, float] | None:
    """Estimate minus actual of one verified step of this model, in tokens and percent."""
    if step.kind != "turn" or step.estimated_input is None or not step.actual_input:
        return None
    if (step.model, step.provider, step.api) != (target.model, target.provider, target.api):
        return None
    error = step.estimated_input - step.actual_input
    return error, 100 * error / step.actual_input


def drift(tracked: int, recount: int) -> str | None:
    """A line for the log in development mode when the tracked total is not what a recount gives."""
    if abs(tracked - recount) <= DRIFT_TOKENS:
        return None
    return f"Token drift detected: tracked={tracked}, calculated={recount}, drift={recount - tracked:+d}"


S = TypeVar("S", "Sums", Errors)


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


TURNS = 10
MIN_TURNS = 3


def turn_growth(
    view: Sequence[SentMessage],
    answered: Mapping[str, Step],
    target: Target,
    total: int,
    prune_ids: Sequence[str] = (),
) -> float | None:
    """The median growth of the last 10 turns, in tokens; None under 3 turns, and without growth.

    Only turns since the last compaction count. ``answered`` are the steps by their answers, ``prune_ids`` the records
    in force. What the user dropped or restored between two turns is no growth: the turns before that still tell.
    """
    now = frozenset(prune_ids)
    sizes = [(total, now)]
    for step in _openers(view, answered):
        held, usage = frozenset(step.prune_ids), step.counted
        other = (step.model, step.provider, step.api) != (target.model, target.provider, target.api)
        if other or any(not i.startswith(EDIT_IDS) for i in held ^ now):
            break
        if usage is not None and usage.anchors:
            sizes.append((usage.input, held))
        if len(sizes) > TURNS:
            break
    grown = [after - before for (after, then), (before, held) in itertools.pairwise(sizes) if then == held]
    # Right after an edit one of the differences is left out.
    enough = len(sizes) > MIN_TURNS and len(grown) >= MIN_TURNS - 1
    growth = statistics.median(grown) if enough else 0
    return growth if growth > 0 else None


def _openers(view: Sequence[SentMessage], answered: Mapping[str, Step]) -> Iterator[Step]:
    """The first step of each turn since the last compaction, the newest first."""
    first: Step | None = None
    for message in (item.message for item in reversed(view)):
        if message.role == "assistant":
            first = answered.get(message.id)
        elif message.role == "user":
            folded = any(isinstance(part, SummaryPart) for part in message.parts)
            if first is not None and not (folded and first.created < message.created):
                yield first
            if folded:
                return
            first = None


def turns_left(total: int, limit: int | None, growth: float | None) -> int | None:
    """``floor((limit - total) / growth)``; None without growth or limit."""
    return None if limit is None or growth is None else max(0, int((limit - total) // growth))


DOUBTS: Mapping[Doubt, str] = {
    "truncated": "the server leaves out the oldest text",
    "cached twice": "it counts cached tokens twice",
    "cached left out": "it leaves cached tokens out",
    "summed": "it adds up several calls",
    "another model": "another model answered",
    "unsteady": "it does not change with what was sent",
    "doubted": "it does not fit what was sent",
    "absurd": "that much was not sent",
    "none": "there is none",
}
"""Why a report is not believed, in words for people."""


def outgrown_text(step: Step, before: Limits, now: Limits) -> str | None:
    """What a user is told where a report shows that limits are larger than was thought; None where it shows nothing."""
    usage = step.usage
    if usage is None or (before.window, before.max_input, before.max_output) == (
        now.window,
        now.max_input,
        now.max_output,
    ):
        return None
    read, wrote = (tokens(count, False, full=True) for count in (usage.input, usage.output))
    known, window = (tokens(limits.window or 0, False, full=True) for limits in (before, now))
    if before.window != now.window and "window" in before.learned:
        using = "Forgot that window." if now.source != "accepted" else f"Assuming {window} now."
        return f"The server read {read} tokens, more than the window learned from it ({known}). {using}"
    if before.window != now.window:
        return (
            f"The server took {read} + {wrote} tokens, more than the window of {known} ({before.origin}). Assuming "
            f"{window} now; context_window of the model sets it, /doctor --forget forgets it."
        )
    if before.max_input != now.max_input:
        least = tokens(before.max_input or 0, False, full=True)
        return f"The server read {read} tokens, more than the input limit of {least}. That limit no longer holds."
    longest = tokens(before.max_output or 0, False, full=True)
    return f"The answer had {wrote} tokens, more than the longest known ({longest}). Asking for as much from now on."


def told_text(step: Step, verdict: Verdict, problem: str | None = None) -> str:
    """What a user is told of a doubt, with what to do about it. ``problem``: what shows from the report itself."""
    said = step.usage.input if step.usage is not None else 0
    match verdict.doubt:
        case "truncated":
            return (
                f"This server reads only about {plural(verdict.keeps or said, 'token')} of a request and silently "
                "drops the oldest text: its reports stay the same while the conversation grows. Using that as its "
                "window. Set context_window for this model, or start the server with a larger context and run "
                "/doctor --forget."
            )
        case "cached twice":
            return "This provider counts cached tokens twice; they are subtracted once."
        case "cached left out":
            return "This provider does not count cached tokens; they are added."
        case "summed":
            return "This provider reports several calls as one. Using estimates instead."
        case "another model":
            return f"{step.answered_by} answered instead and counts differently. Using an estimate instead."
        case "unsteady":
            return "This provider's reports do not change with what is sent. Using estimates instead."
        case "none":
            return "This provider reports no usage. All numbers are estimates."
    expected = tokens(step.estimated_input or 0, True, full=True)
    problem = problem or f"it reports {plural(said, 'token')} of input where {expected} were sent"
    until = " until the next report" if verdict.doubt == "doubted" else ""
    return f"The provider's usage report of this call looks wrong: {problem}. Using estimates instead{until}."
