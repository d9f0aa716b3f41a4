"""A step of the past in words, the same on the screen and in the shell."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from agent_tui.commands.cache_words import miss_words
from agent_tui.context.past import PastMoment
from agent_tui.context.past_reasons import Difference, Reason, difference
from agent_tui.models.steps import Step
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import clock, grouped, money, percent, plural, signed, tokens

REASONS_SHOWN = 6


@dataclass(slots=True, frozen=True)
class PastView:
    """A moment with what it is compared with. ``count`` is how many steps the session has, ``on_path`` the ids of the
    messages of the conversation as it is now, ``between`` the other model calls since ``before``, ``earlier`` all
    that were made when the step was sent."""

    moment: PastMoment
    before: PastMoment | None
    count: int
    on_path: Container[str]
    between: Sequence[Step] = ()
    earlier: Sequence[Step] = ()

    @property
    def difference(self) -> Difference | None:
        return None if self.before is None else difference(self.before, self.moment)


def title(view: PastView, now: float | None = None) -> str:
    """``Step 12 of 40 · 14:03 · claude-sonnet-4-6 · the past``"""
    moment = view.moment
    step = moment.step
    parts = [f"Step {moment.number:,} of {view.count:,}", clock(step.created, now), one_line(step.model_key, 60)]
    parts.append("the past, as it was before this step was sent")
    if moment.left(view.on_path):
        parts.append("on another branch")
    return " · ".join(parts)


def outcome(moment: PastMoment) -> str:
    """What was expected of the step, and what was billed: ``Expected ~21,400, billed 21,380 (−0.1 %), 18,000 of it read
    from the cache.``"""
    step = moment.step
    expected = "" if step.estimated_input is None else f"Expected {tokens(step.estimated_input, True, full=True)}"
    if step.status == "running":
        return f"{expected or 'Sent'}; its answer is still coming."
    usage = step.usage
    if usage is None or usage.source == "estimated":
        how = {"stopped": "it was interrupted", "failed": "it failed"}.get(step.status, "it was answered")
        return f"{expected + '; ' if expected else ''}{how}, and the provider reported no usage.".capitalize()
    words = f"{expected + ', ' if expected else ''}billed {usage.input:,}".replace("billed", "Billed", not expected)
    error = error_of(step)
    if error is not None and usage.input:
        words += f" ({signed(error)}, {percent(100 * error / usage.input, signed=True)})"
    if usage.cache_read is not None:
        words += f", {usage.cache_read:,} of it read from the cache" if usage.cache_read else ", none of it cached"
    if step.believed is not None:
        words += ", which is not believed"
    if step.miss is not None:
        words += f"; {grouped(step.miss.tokens)} paid anew: {miss_words(step.miss)}"
    cost = f" It cost {money(step.cost)}." if step.cost.known else ""
    return f"{words}.{cost}"


def error_of(step: Step) -> int | None:
    """What was expected less what was billed, in tokens; None where one of both is not known."""
    usage = step.usage
    if usage is None or usage.source == "estimated" or step.estimated_input is None:
        return None
    return step.estimated_input - usage.input


def honesty(moment: PastMoment) -> str:
    """Why the numbers are not those that were shown then; empty where they are."""
    if moment.usage is None:
        shown = moment.step.estimated_input
        said = "" if shown is None else f" Shown then: {plural(shown, 'token')}."
        return f"This moment cannot be shown: {moment.problem}.{said}"
    differs = moment.differs
    if differs is None:
        return "What was shown then was not stored; these numbers are made again from what is."
    if not differs:
        return ""
    why = "not all of what they were made with was stored then"
    if moment.step.given is not None:
        why = "token counts that came only afterwards are in it"
    then = plural(moment.step.estimated_input or 0, "token")
    return f"Shown then: {then}. Made again it is {signed(differs)}: {why}."


def since(view: PastView) -> str:
    """What is different since the step it is compared with, and why, in one line."""
    found, before = view.difference, view.before
    if found is None or before is None:
        return ""
    change = total_change(view)
    said = [reason_text(reason) for reason in found.reasons[:REASONS_SHOWN]]
    if len(found.reasons) > REASONS_SHOWN:
        said.append(f"{len(found.reasons) - REASONS_SHOWN} more")
    said += others(view.between)
    total = "" if change is None else f" {signed(change)}"
    return f"Since step {before.number:,}{total}: {'; '.join(said) or 'nothing came or went'}."


def others(steps: Sequence[Step]) -> list[str]:
    """The model calls between two steps that were none of the conversation's own."""
    counts = {kind: sum(step.kind == kind for step in steps) for kind in ("compaction", "subagent")}
    names = {"compaction": "call for a summary", "subagent": "call of subagents"}
    several = {"compaction": "calls for summaries", "subagent": "calls of subagents"}
    return [plural(count, names[kind], several[kind]) for kind, count in counts.items() if count]


def total_change(view: PastView) -> int | None:
    """Tokens more than at the step it is compared with; None where one of both is not known."""
    now, before = view.moment.usage, view.before.usage if view.before is not None else None
    return None if now is None or before is None else now.total - before.total


def reason_text(reason: Reason) -> str:
    """A reason with its tokens."""
    return one_line(reason.text, 300) + ("" if reason.tokens is None else f" ({signed(reason.tokens)})")
