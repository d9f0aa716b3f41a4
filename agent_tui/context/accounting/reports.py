"""What reports say of the estimates before them: how good those were, and how fast a session grows."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from agent_tui.models.calibration import Calibration, Content
from agent_tui.models.context import Accuracy, ContextUsage
from agent_tui.models.requests import SentMessage, Target
from agent_tui.models.steps import Step
from agent_tui.text.numbers import percent

RECENT = 50
"""Steps that accuracy is told of."""
DRIFT_TOKENS = 10
"""Difference between the tracked total and a recount that is worth a line in the log, in tokens."""


def before_step(step: Step, usage: ContextUsage) -> None:
    """Store with the step what was expected: the whole input and its spread, the new messages by what is known of the
    family alone, and what is learned from: what all that is estimated consists of, and the rest."""
    step.estimated_input, step.estimated_spread, step.anchor_step = usage.total, usage.spread, usage.anchor_step
    terms = usage.calculation
    step.built_on = terms.last_input
    if changed := terms.spreads.fixed_delta:
        by = terms.spreads
        rest = math.hypot(by.last_output, by.dropped_reasoning, by.removed, by.new_messages)
        step.estimated_change = terms.fixed_delta, changed, math.ceil(rest)
    step.estimated_messages = terms.all_messages
    step.estimated_growth = terms.new_estimated
    step.known_input, step.growth = terms.known, terms.content


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


LAST_INTERVALS = 20


def accuracy_of(steps: Sequence[Step], target: Target, learned: Calibration, known: Calibration) -> Accuracy:
    """Errors of this model's verified turn steps, all of the session; the median is of absolute errors. ``ratio`` is by
    what the ``learned`` calibration corrects what is ``known`` of the family, of what the newest steps consist of."""
    result = Accuracy()
    errors: list[float] = []
    anchored: list[int] = []
    grown: list[Content] = []
    inside: list[bool] = []
    for step in steps:
        error = step_error(step, target)
        if error is not None:
            if step.growth is not None:
                grown.append(step.growth)
            result.last_error_tokens, result.last_error_percent = error
            errors.append(abs(error[1]))
            if step.anchor_step is not None:
                anchored.append(abs(error[0]))
            if step.estimated_spread is not None:
                inside.append(abs(error[0]) <= step.estimated_spread)
    result.calls = len(errors)
    result.intervals, result.inside = len(inside), sum(inside)
    result.last_intervals, result.last_inside = len(inside[-LAST_INTERVALS:]), sum(inside[-LAST_INTERVALS:])
    if errors:
        result.median_error_percent = statistics.median(errors)
    newest = Content()
    for growth in grown[-RECENT:]:
        newest.add(growth)
    if (expected := known.tokens(newest)) > 0:
        result.ratio = learned.tokens(newest) / expected
    if anchored:
        recent = sorted(anchored[-RECENT:])
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


TURNS = 10
MIN_TURNS = 3


def turns_left(
    view: Sequence[SentMessage], chain: Sequence[Step], total: int, limit: int | None, prune_ids: Sequence[str] = ()
) -> int | None:
    """``floor((limit - total) / median growth of the last 10 turns)``; None under 3 turns, without growth or limit.

    Only turns since the last compaction count. ``chain`` are the measured steps of the conversation as it is sent now,
    so turns before a summary are not in it; those sent with other prune records than ``prune_ids`` end the stretch.
    """
    if limit is None:
        return None
    sizes = _turn_sizes(view, chain, TURNS, set(prune_ids))
    if len(sizes) < MIN_TURNS:
        return None
    sizes.append(total)
    growth = statistics.median(b - a for a, b in itertools.pairwise(sizes))
    return max(0, int((limit - total) // growth)) if growth > 0 else None


def _turn_sizes(view: Sequence[SentMessage], chain: Sequence[Step], count: int, prune_ids: set[str]) -> list[int]:
    sizes: list[int] = []
    for number in range(len(chain) - 1, -1, -1):
        step = chain[number]
        if set(step.prune_ids) != prune_ids:
            break
        start = 0
        if number:
            before = chain[number - 1]
            start = before.sent_count + (1 if before.kind == "turn" else 0)
        opens = any(view[i].message.role == "user" for i in range(start, step.sent_count))
        if opens and step.counted is not None:
            sizes.append(step.counted.input)
            if len(sizes) == count:
                break
    return sizes[::-1]
