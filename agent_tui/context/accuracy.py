"""How good the estimates were: recorded with every step, shown, and learned from within bounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from agent_tui.models.context import Accuracy, ContextUsage
from agent_tui.models.requests import Target
from agent_tui.models.steps import Step

RATIO_STEPS = 50
RATIO_LOW, RATIO_HIGH = 0.7, 1.5
DRIFT_TOKENS = 10
"""Difference between the tracked total and a recount that is worth a line in the log, in tokens."""


def before_step(step: Step, usage: ContextUsage) -> None:
    """Store with the step what was expected: the whole input, and the part of it that is estimate.

    Without an anchor the calibration that was applied is taken out again, else it would be learned twice.
    """
    step.estimated_input, step.anchor_step = usage.total, usage.anchor_step
    growth = usage.calculation.new_messages
    step.estimated_growth = growth if usage.anchor_step else round(growth / usage.accuracy.ratio)


def after_step(step: Step) -> str | None:
    """Store what was measured and return the line for the log; None when the provider measured nothing."""
    usage, estimated = step.usage, step.estimated_input
    if usage is None or not usage.anchors or estimated is None:
        return None
    step.actual_input = usage.input
    if step.estimated_growth is not None:
        known = estimated - step.estimated_growth if step.anchor_step else 0
        step.actual_growth = max(0, usage.input - known)
    return verification_line(estimated, usage.input)


def verification_line(estimated: int, actual: int) -> str:
    """The line that every verified step logs, in the words of the context document."""
    error = estimated - actual
    sign = "+" if error > 0 else ""
    percent = 100 * error / actual if actual else 0.0
    percent_sign = "+" if percent > 0 else ""
    return (
        f"Context estimate: estimated={estimated}, actual={actual}, error={sign}{error} ({percent_sign}{percent:.1f}%)"
    )


def verified_growth(step: Step) -> tuple[int, int] | None:
    """(measured, estimated) growth of a turn step that can be learned from; None of any other."""
    if step.kind != "turn" or step.status != "complete" or step.actual_growth is None or not step.estimated_growth:
        return None
    return step.actual_growth, step.estimated_growth


def growth_ratio(growths: Sequence[tuple[int, int]]) -> float | None:
    """Σ measured growth / Σ estimated growth over the newest 50 of a model's verified turn steps, clamped to 0.7–1.5.

    None when nothing was verified yet.
    """
    newest = growths[-RATIO_STEPS:]
    estimated = sum(e for _, e in newest)
    return clamp_ratio(sum(a for a, _ in newest) / estimated) if estimated > 0 else None


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
