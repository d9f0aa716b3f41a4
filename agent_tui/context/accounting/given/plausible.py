"""Whether a provider's report can be the size of what was sent, and of what came back.

A report several times off our own estimate is a mistake of whoever counted (a gateway that adds up calls, a server that
counts only what was not in its cache): the estimate is nearer to the truth than the report.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent_tui.models.context import ContextUsage
from agent_tui.models.usage import ABSURD_WINDOWS, TokenUsage
from agent_tui.text.numbers import tokens

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
    """What is known of the surplus after another report of one."""
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
    """Whether a number of tokens that a provider states, here or in a refusal, is too far from our own."""
    low, high = sorted((estimate, reported))
    return high > TIMES_OFF * low and high - low > TOKENS_OFF
