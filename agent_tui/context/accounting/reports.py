"""Judges what reports are worth: whether one can be true, how good the estimates were, and how fast a session grows.

A report several times off our own estimate is a mistake of whoever counted (a gateway that adds up calls, a server that
counts only what was not in its cache): the estimate is nearer to the truth than the report.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from agent_tui.models.calibration import Calibration, Content
from agent_tui.models.context import Accuracy, ContextUsage
from agent_tui.models.requests import SentMessage, Target
from agent_tui.models.steps import Step
from agent_tui.models.usage import ABSURD_WINDOWS, TokenUsage
from agent_tui.records import dataclass
from agent_tui.text.numbers import percent, tokens

TIMES_OFF = 3
TOKENS_OFF = 2_000
"""A report is not believed when it is over so many times more or less than our estimate, and so many tokens away."""

MEDIA_SHARE = 0.5
"""Where more of the estimate than this is images and files, whose estimates are rough, it does not judge a report."""


LEAST_GROWTH = 200
SLOWEST, FASTEST = 0.5, 1.75
"""A server may add a prompt of its own to every request. Then its report is larger by about the same each time: it
grows as our estimate does, give or take a tokenizer, where one that adds up calls grows several times as fast. Growth
is compared from so many tokens on."""

SAME_SURPLUS = 0.25
"""What was added before may differ by this share the next time."""


@dataclass(slots=True, frozen=True)
class Surplus:
    """A report that was several times our estimate, and that estimate. ``known``: another has shown that the server
    adds a prompt of its own."""

    reported: int
    expected: int
    known: bool = False

    @property
    def tokens(self) -> int:
        return self.reported - self.expected


@dataclass(slots=True, frozen=True)
class Judged:
    """The usage to go on with; ``problem`` says, in words for people, what of the report was not believed. ``surplus``
    is to be brought along to the next judgement of this model."""

    usage: TokenUsage
    problem: str | None = None
    surplus: Surplus | None = None


def judge_usage(usage: TokenUsage, expected: ContextUsage, answer: int, surplus: Surplus | None = None) -> Judged:
    """The report of a step as far as it can be true.

    ``expected`` is the calculator's answer from before the step, ``answer`` our estimate of what came back. An
    impossible input makes the whole an estimate, which never anchors, until further reports show that the ``surplus``
    of the first is always there. An output of next to nothing beside a full answer is replaced by ours and says so;
    the input is then still the provider's.
    """
    if usage.source != "provider" or not usage.context:
        return Judged(usage, surplus=surplus)
    problem = _input_problem(usage, expected)
    if problem is not None and usage.input > expected.total and not _absurd(usage, expected):
        surplus = _followed(surplus, usage.input, expected.total)
        problem = None if surplus.known else problem
    judged = _judged(usage, expected, answer, problem)
    return replace(judged, surplus=surplus)


def _followed(before: Surplus | None, reported: int, expected: int) -> Surplus:
    now = Surplus(reported, expected)
    if before is None:
        return now
    if before.known:
        same = abs(now.tokens - before.tokens) <= SAME_SURPLUS * before.tokens
        return before if same else now
    grown = expected - before.expected
    if abs(grown) < LEAST_GROWTH:
        return before
    constant = SLOWEST <= (reported - before.reported) / grown <= FASTEST
    return replace(now, known=constant)


def _judged(usage: TokenUsage, expected: ContextUsage, answer: int, problem: str | None) -> Judged:
    if problem is not None:
        made = TokenUsage(
            expected.total, answer, source="estimated", reasoning_source="estimated", output_source="estimated"
        )
        return Judged(made, problem)
    if answer and (not usage.output or (far_off(answer, usage.output) and answer > usage.output)):
        reasoning = usage.reasoning or None
        made = replace(usage, output=max(answer, reasoning or 0), reasoning=reasoning, output_source="estimated")
        return Judged(made, f"it counts {usage.output:,} tokens for an answer of {tokens(answer, True, full=True)}")
    return Judged(usage)


def _input_problem(usage: TokenUsage, expected: ContextUsage) -> str | None:
    sent = f"it says {usage.input:,} tokens of input where {tokens(expected.total, True, full=True)} were sent"
    if _absurd(usage, expected):
        return f"{sent}, into a window of {expected.window:,}"
    if expected.calculation.new_given > MEDIA_SHARE * expected.total or expected.total <= 0:
        return None
    if usage.input < expected.total and expected.estimated_tokens > expected.total // 2:
        # A server may count less than we think for reasons of its own; only what it said before is held against it.
        return None
    return sent if far_off(expected.total, usage.input) else None


def _absurd(usage: TokenUsage, expected: ContextUsage) -> bool:
    return bool(expected.window) and usage.input + usage.output > ABSURD_WINDOWS * (expected.window or 0)


def far_off(estimate: int, reported: int) -> bool:
    """Returns whether a number of tokens that a provider states, here or in a refusal, is too far from our own."""
    low, high = sorted((estimate, reported))
    return high > TIMES_OFF * low and high - low > TOKENS_OFF


RECENT = 50
"""Steps that accuracy is told of."""
DRIFT_TOKENS = 10
"""Difference between the tracked total and a recount that is worth a line in the log, in tokens."""


def before_step(step: Step, usage: ContextUsage) -> None:
    """Store with the step what was expected: the whole input and its spread, the new messages by what is known of the
    family alone, and what is learned from: what they consist of, and what else is known of the input where that holds
    no estimate."""
    step.estimated_input, step.estimated_spread, step.anchor_step = usage.total, usage.spread, usage.anchor_step
    terms = usage.calculation
    step.estimated_messages = terms.all_messages
    step.estimated_growth = terms.new_estimated
    sure = terms.others_sure
    step.known_input = usage.total - terms.new_messages if sure else None
    step.growth = terms.new_content if sure else None


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


def verified_growth(step: Step) -> tuple[Content, int] | None:
    """What the new messages of a turn step consist of, and what was measured of them; None of a step that cannot be
    learned from: more than they was an estimate."""
    if step.kind != "turn" or step.status != "complete" or step.actual_growth is None or step.growth is None:
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
