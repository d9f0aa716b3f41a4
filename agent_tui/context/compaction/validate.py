"""Whether a summary may replace a part of the conversation. If in doubt the history stays as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agent_tui.context.compaction.summary_text import MODEL_SECTIONS, parse_sections
from agent_tui.models.requests import FinishReason
from agent_tui.text.numbers import tokens

MIN_GAIN = 0.05
"""A compaction has to make the next input at least 5 % smaller."""

WHOLE_SECTIONS = 4
"""Of a summary that was cut off: so many sections mean that the first three are whole."""

ProblemCode = Literal["empty", "truncated", "refused", "headings", "too_large", "over_limit"]


@dataclass(slots=True, frozen=True)
class SummaryProblem:
    """Why a summary was rejected; ``text`` is half a sentence for the user."""

    code: ProblemCode
    text: str


def check_text(text: str, finish: FinishReason, *, needed: bool = False) -> SummaryProblem | None:
    """The checks of the model's answer alone: not empty, complete, something below one of the headings. Headings that
    are missing are filled in later.

    ``needed``: without a summary nothing can be sent any more. Then one that was cut off at the output limit is better
    than none, when what it begins with, the goal and the instructions, is whole.
    """
    if finish == "refused":
        return SummaryProblem("refused", "the model refused to summarise")
    if finish == "tool_calls":
        return SummaryProblem("empty", "the model called a tool instead of summarising")
    if not text.strip():
        return SummaryProblem("empty", "the summary was empty")
    sections = parse_sections(text)
    written = [name for name in MODEL_SECTIONS if name in sections]
    if finish == "length" and not (needed and len(written) >= WHOLE_SECTIONS):
        return SummaryProblem("truncated", "the summary was cut off at the output limit")
    if not written:
        return SummaryProblem("headings", f"the summary has none of the {len(MODEL_SECTIONS)} headings")
    if not any(sections[name].strip() for name in written):
        return SummaryProblem("empty", "the summary has headings but nothing below them")
    return None


def check_size(
    before: int, after: int, limit: int | None, *, fits: bool = False, before_estimated: bool = True
) -> SummaryProblem | None:
    """The checks of the whole next input, in tokens: at least 5 % smaller than before, and below the limit unless it
    ``fits`` the window with an answer."""
    sizes = f"{tokens(before, before_estimated)} → {tokens(after, True)}"
    if after > before * (1 - MIN_GAIN):
        return SummaryProblem("too_large", f"the summary is not at least 5 % smaller than what it replaces ({sizes})")
    if limit is not None and after > limit and not fits:
        over = f"the limit of {tokens(limit, False)}"
        return SummaryProblem("over_limit", f"it would still be over {over} ({sizes})")
    return None
