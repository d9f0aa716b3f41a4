"""A step of the past as one value, and its words and JSON, the same on the screen and in the shell."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import Any

from agent_tui.commands.bookkeeping import report_text
from agent_tui.commands.report import ContextReport, miss_words
from agent_tui.commands.report_json import context_json
from agent_tui.context.accounting.reports import DOUBTS
from agent_tui.context.past import PastMoment, SessionPast
from agent_tui.context.row_pairs import pairs
from agent_tui.errors import ConfigError
from agent_tui.models.codec import to_dict
from agent_tui.models.steps import Step
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import clock, grouped, interval, money, percent, plural, signed


@dataclass(slots=True, frozen=True)
class PastView:
    """A moment with what it is compared with."""

    moment: PastMoment
    before: PastMoment | None
    count: int
    """Steps of the session."""
    on_path: Container[str]
    """Ids of the messages of the conversation as it is now."""
    between: Sequence[Step] = ()
    """The other model calls since ``before``."""
    earlier: Sequence[Step] = ()
    """All model calls that were made when the step was sent."""


def past_report(view: PastView, now: ContextReport) -> ContextReport:
    """The report of that moment; ``now`` is that of the session as it is."""
    moment, said = view.moment, honesty(view.moment)
    after = tuple(filter(None, (outcome(moment), since(view))))
    then = replace(
        now, title=title(view, now.now), before=None, in_flight=0, read_only="", dropped=(), records=moment.records
    )
    if moment.usage is None:
        nothing = replace(now.usage, rows=[], window=None)
        return replace(then, usage=nothing, records=(), told=after, problem=said)
    return replace(
        then,
        usage=moment.usage,
        before=view.before.usage if view.before is not None else None,
        told=(said, *after) if said else after,
        trigger=moment.step.estimated_input,
        steps=view.earlier,
    )


def title(view: PastView, now: float | None = None) -> str:
    """``Step 12 of 40 · 14:03 · claude-sonnet-4-6 · context before step 12``"""
    moment = view.moment
    step = moment.step
    parts = [f"Step {moment.number:,} of {view.count:,}", clock(step.created, now), one_line(step.model_key, 60)]
    parts.append(f"context before step {moment.number:,}")
    if moment.left(view.on_path):
        parts.append("on another branch")
    return " · ".join(parts)


def outcome(moment: PastMoment) -> str:
    """Returns the input that was expected of the step, and what was billed: ``Expected ~21,400, billed 21,380 (−0.1 %),
    18,000 cached.``"""
    step = moment.step
    expected = ""
    if step.estimated_input is not None:
        expected = f"Expected {interval(step.estimated_input, step.estimated_spread or 0, True, full=True)}"
    if step.status == "running":
        return f"{expected or 'Sent'}; the answer is still running."
    usage = step.usage
    if usage is None or usage.source == "estimated":
        how = {"stopped": "it was interrupted", "failed": "it failed"}.get(step.status, "it was answered")
        return f"{expected + '; ' if expected else ''}{how}, and the provider reported no usage.".capitalize()
    words = f"{expected + ', ' if expected else ''}billed {usage.input:,}".replace("billed", "Billed", not expected)
    error = error_of(step)
    if error is not None and usage.input:
        words += f" ({signed(error)}, {percent(100 * error / usage.input, signed=True)})"
        if step.estimated_spread is not None:
            words += f", {'within' if abs(error) <= step.estimated_spread else 'outside'} the ±"
    if usage.cache_read is not None:
        words += f", {usage.cache_read:,} cached" if usage.cache_read else ", none cached"
    if step.believed is not None:
        words += "; this report looks wrong" + (f": {DOUBTS[step.doubt]}" if step.doubt else "")
    if step.miss is not None:
        words += f"; {grouped(step.miss.tokens)} paid again: {miss_words(step.miss)}"
    cost = f" It cost {money(step.cost)}." if step.cost.known else ""
    return f"{words}.{cost}"


def error_of(step: Step) -> int | None:
    """Returns the expected input less the billed one, in tokens; None where one of both is not known."""
    usage = step.usage
    if usage is None or usage.source == "estimated" or step.estimated_input is None:
        return None
    return step.estimated_input - usage.input


def honesty(moment: PastMoment) -> str:
    """Why the numbers are not those that were shown then; empty where they are."""
    if moment.usage is None:
        shown = moment.step.estimated_input
        said = "" if shown is None else f" Shown then: {plural(shown, 'token')}."
        return f"Cannot show this step: {moment.problem}.{said}"
    differs = moment.differs
    if differs is None:
        return "The numbers shown then were not stored; these are recalculated."
    if not differs:
        return ""
    then = plural(moment.step.estimated_input or 0, "token")
    return f"Shown then: {then}. Recalculated: {signed(differs)}, as some token counts arrived later."


def since(view: PastView) -> str:
    """Returns in one line by how much it grew since the step it is compared with, and the calls made in between."""
    if view.before is None:
        return ""
    change = total_change(view)
    total = "" if change is None else f" {signed(change)}"
    made = others(view.between)
    return f"Since step {view.before.number:,}{total}{': ' if made else ''}{'; '.join(made)}."


def others(steps: Sequence[Step]) -> list[str]:
    """The model calls between two steps that were none of the conversation's own."""
    names = {
        "compaction": ("summary call", "summary calls"),
        "subagent": ("subagent call", "subagent calls"),
        "attempt": ("attempt that was made again", "attempts that were made again"),
    }
    counts = {kind: sum(step.kind == kind for step in steps) for kind in names}
    return [plural(count, *names[kind]) for kind, count in counts.items() if count]


def total_change(view: PastView) -> int | None:
    """Tokens more than at the step it is compared with; None where one of both is not known."""
    now, before = view.moment.usage, view.before.usage if view.before is not None else None
    return None if now is None or before is None else now.total - before.total


FIRST = "First step: nothing to compare with."


def past_view(history: SessionPast, number: int, compared: int | None, on_path: set[str]) -> PastView:
    """Step ``number`` compared with step ``compared`` (None: the one before). Raises ConfigError for a step that there
    is not."""
    count = history.count
    if not count:
        raise ConfigError("No steps yet: nothing was sent to a model.")
    for wanted in (number, compared):
        if wanted is not None and not 1 <= wanted <= count:
            raise ConfigError(f"No such step: {wanted}. This session has steps 1 to {count:,}.")
    other = compared if compared is not None else number - 1
    if not 1 <= other <= count:
        return PastView(history.moment(number), None, count, on_path, (), history.earlier(number))
    first, last = min(other, number), max(other, number)
    between = history.between(first, last)
    return PastView(history.moment(number), history.moment(other), count, on_path, between, history.earlier(number))


def past_text(view: PastView) -> str:
    """All of it for reading."""
    moment = view.moment
    lines = [title(view), outcome(moment), *([said] if (said := honesty(moment)) else []), ""]
    if moment.usage is not None:
        lines += [report_text(ContextReport(moment.usage, title=title(view), records=moment.records)), ""]
    if view.before is None:
        return "\n".join([*lines, FIRST])
    return "\n".join([*lines, changes_text(view)])


def changes_text(view: PastView) -> str:
    """Returns the differences since the step it is compared with, in signed tokens by row."""
    return FIRST if view.before is None else "\n".join(_changes(view))


def _changes(view: PastView) -> Iterator[str]:
    before, now = view.before, view.moment
    assert before is not None
    change = total_change(view)
    yield f"Since step {before.number:,}{'' if change is None else f' {signed(change)} tokens'}:"
    if before.usage is None:
        yield f"  {honesty(before)}"
    for text in others(view.between):
        yield f"  {text}"
    if before.usage is not None and now.usage is not None:
        for pair in pairs(now.usage.rows, before.usage.rows):
            row = pair.now or pair.before
            if row is not None and pair.change:
                yield f"  {signed(pair.change):>10}  {one_line(row.label, 40)}"


def past_json(view: PastView) -> dict[str, Any]:
    """``context_json`` of that moment, each row with its ``delta``, with the ``step`` and what it is ``compared_with``.
    Without a moment that can be shown ``context`` is null."""
    moment, before = view.moment, view.before
    step, usage = moment.step, moment.step.usage
    then = before.usage if before is not None else None
    context = None if moment.usage is None else context_json(ContextReport(moment.usage, then, steps=view.earlier))
    reported = usage is not None and usage.source == "provider"
    return {
        "step": {
            "number": moment.number,
            "of": view.count,
            "id": step.id,
            "created": step.created,
            "model": step.model_key,
            "status": step.status,
            "on_path": not moment.left(view.on_path),
            "estimated_input_tokens": step.estimated_input,
            "estimated_spread_tokens": step.estimated_spread,
            "billed_input_tokens": usage.input if usage is not None and reported else None,
            "cache_read_tokens": usage.cache_read if usage is not None and reported else None,
            "error_tokens": error_of(step),
            "miss": None if step.miss is None else to_dict(step.miss),
            "differs_tokens": moment.differs,
            "note": honesty(moment) or None,
        },
        "context": context,
        "compared_with": None if before is None else before.number,
        "delta": total_change(view),
        "between": [{"id": s.id, "kind": s.kind, "model": s.model_key} for s in view.between],
    }
