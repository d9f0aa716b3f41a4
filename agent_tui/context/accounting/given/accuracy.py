"""How good the estimates were: recorded with every step, shown, and learned from within bounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from agent_tui.models.context import Accuracy, ContextUsage
from agent_tui.models.requests import Target
from agent_tui.models.steps import Step
from agent_tui.text.numbers import percent

RATIO_STEPS = 50
RATIO_LOW, RATIO_HIGH = 0.7, 1.5
RATIO_TOKENS = 100
"""New text that a step must have brought to be learned from, in tokens."""
RATIO_SAMPLES = 3
RATIO_WEIGHT = 2_000
"""Tokens up to which a step counts for more the more it brought."""
RATIO_GRAIN = 0.05
DRIFT_TOKENS = 10
"""Difference between the tracked total and a recount that is worth a line in the log, in tokens."""


def before_step(step: Step, usage: ContextUsage) -> None:
    """Store with the step what was expected: the whole input, the new text as it was estimated before any calibration
    (else that would be learned twice), and what else is known of the input where that holds no estimate."""
    step.estimated_input, step.anchor_step = usage.total, usage.anchor_step
    terms = usage.calculation
    step.estimated_messages = terms.all_messages
    step.estimated_growth = terms.new_text
    step.known_input = usage.total - terms.new_text_corrected if terms.others_sure else None


def after_step(step: Step) -> str | None:
    """Store what was measured and return the line for the log; None when the provider measured nothing."""
    usage, estimated = step.counted, step.estimated_input
    if usage is None or not usage.anchors or estimated is None:
        return None
    step.actual_input = usage.input
    if step.known_input is not None:
        step.actual_growth = max(0, usage.input - step.known_input)
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


def verified_growth(step: Step) -> tuple[int, int] | None:
    """(measured, estimated) new text of a turn step that can be learned from; None of any other: there was too little
    of it, or more than the new text was an estimate."""
    if step.kind != "turn" or step.status != "complete" or step.actual_growth is None or step.estimated_growth is None:
        return None
    return (step.actual_growth, step.estimated_growth) if step.estimated_growth >= RATIO_TOKENS else None


def growth_ratio(growths: Sequence[tuple[int, int]]) -> float | None:
    """The median of measured / estimated new text over the newest 50 steps, clamped to 0.7–1.5.

    A step counts by its tokens, up to ``RATIO_WEIGHT``: in a small one what wraps a message is more than what the
    tokenizers differ by, and a huge one must not decide alone. None below ``RATIO_SAMPLES`` steps of ``RATIO_TOKENS``.
    """
    usable = sorted((a / e, min(e, RATIO_WEIGHT)) for a, e in growths[-RATIO_STEPS:] if e >= RATIO_TOKENS)
    if len(usable) < RATIO_SAMPLES:
        return None
    half, passed = sum(weight for _, weight in usable) / 2, 0
    for number, (ratio, weight) in enumerate(usable):
        passed += weight
        if passed > half:
            return clamp_ratio(ratio)
        if passed == half:
            return clamp_ratio((ratio + usable[number + 1][0]) / 2)
    raise AssertionError("unreachable: half of the weights is passed within them")


def coarse_ratio(ratio: float) -> float:
    """The ratio in steps of ``RATIO_GRAIN``, for what is kept between calculations and must not move with each."""
    return round(clamp_ratio(ratio) / RATIO_GRAIN) * RATIO_GRAIN


def clamp_ratio(ratio: float) -> float:
    """A stored ratio as it may be used: within its bounds, 1.0 when it is not a number."""
    return min(RATIO_HIGH, max(RATIO_LOW, ratio)) if ratio == ratio else 1.0


def accuracy_of(steps: Sequence[Step], target: Target, ratio: float) -> Accuracy:
    """Errors of this model's verified turn steps, all of the session; the median is of absolute errors."""
    result = Accuracy(ratio=ratio)
    errors: list[float] = []
    anchored: list[int] = []
    for step in steps:
        error = step_error(step, target)
        if error is not None:
            result.last_error_tokens, result.last_error_percent = error
            errors.append(abs(error[1]))
            if step.anchor_step is not None:
                anchored.append(abs(error[0]))
    result.calls = len(errors)
    if errors:
        result.median_error_percent = statistics.median(errors)
    if anchored:
        recent = sorted(anchored[-RATIO_STEPS:])
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
