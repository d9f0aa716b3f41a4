"""The one calculator: what the next request costs, of what it is made, and whether it would compact.

The screen, the status line, the compactor, headless output and notices all read this function's answer. Its stations:

    ground      what the inputs say of the past: which steps can be built on, what reasoning counts (ground.py)
    sizes       what is added up: measured by difference (measure.py), estimated (unmeasured.py, fixed.py), taken away
                (dropped.py)
    next input  the formula (next_input.py)
    breakdown   the rows, which sum to it (rows.py)
    decision    limit, reserve and whether to compact (budget.py)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_tui.context.accounting.budget import (
    Budget,
    budget,
    compact_at_of,
    fits_to_send,
    reserve_problem,
    send_margin,
)
from agent_tui.context.accounting.given.accuracy import accuracy_of
from agent_tui.context.accounting.given.coverage import PREAMBLE, unchanged, with_preamble
from agent_tui.context.accounting.given.ground import Ground, ground_of
from agent_tui.context.accounting.given.inputs import CompactionSettings, ContextInputs
from agent_tui.context.accounting.growth import turns_left
from agent_tui.context.accounting.messages.unmeasured import split_messages
from agent_tui.context.accounting.next_input import Sizes, next_input, sizes_of
from agent_tui.context.accounting.rows import SplitHead, breakdown
from agent_tui.context.accounting.totals import session_totals
from agent_tui.context.accounting.why import held_text, why_text
from agent_tui.context.sent.view import active_prune_ids
from agent_tui.models.context import ContextUsage, SessionTotals
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.text.numbers import tokens

Totals = Callable[[Sequence[Step], Sequence[CompactionRecord]], SessionTotals]


def calculate_context_usage(inputs: ContextInputs) -> ContextUsage:
    """What the next request will cost in input tokens, of what it is made, and whether it would compact.

    Pure: the answer depends on the inputs alone. The rows sum to the total, and ``total + free + reserve - over =
    window``. Raises ValueError for a negative stored count, which is a bug.
    """
    ground = ground_of(inputs)
    return usage_of(ground, sizes_of(ground))


def usage_of(
    ground: Ground, sizes: Sizes, split_head: SplitHead = split_messages, totals: Totals = session_totals
) -> ContextUsage:
    """The answer for a ground and its sizes."""
    inputs, anchor = ground.inputs, ground.anchor
    model, settings, records = inputs.model, inputs.settings, inputs.records
    limits = model.limits
    room = budget(limits, settings, compact_at_of(model, settings))
    size = next_input(ground, sizes)
    made_of = breakdown(ground, sizes, size.total, split_head)
    accuracy = accuracy_of(inputs.steps, ground.target, inputs.ratio)
    # The character rule, which stands in for counts, errs twice as far as they do.
    doubtful = 2 * size.estimated if size.pending else size.estimated
    usage = ContextUsage(
        model=ground.target.model,
        window=room.window,
        reserve=room.reserve,
        limit=room.limit,
        total=size.total,
        free=None if room.limit is None else max(0, room.limit - size.total),
        over=None if room.limit is None else max(0, size.total - room.limit),
        percent=100 * size.total / room.window if room.window else None,
        basis=size.basis,
        estimated_tokens=size.estimated,
        would_compact=_would_compact(room, size.total, settings),
        turns_left=turns_left(inputs.view, ground.chain, size.total, room.limit, active_prune_ids(records)),
        calculation=size.calculation,
        rows=made_of.rows,
        accuracy=accuracy,
        session=totals(inputs.steps[inputs.inherited :] if inputs.inherited else inputs.steps, records),
        pending=size.pending,
        anchor_step=anchor.id if anchor else None,
        expected_read=_expected_read(ground, sizes, size.total),
        margin=send_margin(room.window, size.total, doubtful, accuracy.p95_error_tokens or 0) if room.window else 0,
        max_input=limits.max_input,
        window_origin=limits.origin,
        misfit=made_of.misfit,
        held=held_text(settings),
    )
    if not fits_to_send(usage):
        # What holds a compaction back counts only while the request can be sent as it is.
        usage.would_compact = settings.auto_compact
    usage.warnings = _warnings(ground, usage)
    usage.why = why_text(usage, ground)
    return usage


def _would_compact(room: Budget, total: int, settings: CompactionSettings) -> bool:
    allowed = settings.auto_compact and not settings.paused and not settings.off
    return allowed and room.limit is not None and total > room.limit


def _warnings(ground: Ground, usage: ContextUsage) -> list[str]:
    warnings: list[str] = []
    problem = reserve_problem(ground.inputs.model.limits, ground.inputs.settings)
    if problem:
        warnings.append(problem)
    if usage.misfit:
        off = f"{abs(usage.misfit):,} tokens"
        warnings.append(f"The provider's counts and the rows disagree by {off}; the rows are scaled to fit the total.")
    if usage.window and usage.total > usage.window:
        total, window = tokens(usage.total, usage.approximate, full=True), tokens(usage.window, False, full=True)
        warnings.append(f"The next input of {total} tokens is over the window of {window}.")
    return warnings


def _expected_read(ground: Ground, sizes: Sizes, total: int) -> int | None:
    """Tokens of the next request that the provider will find in its cache; None where it does not say what it writes.

    A cache is good up to the first difference: a tool that went away leaves only what is sent before it.
    """
    step, tokens, fixed = ground.coverage.step, ground.coverage.expected(), sizes.fixed
    if step is None or tokens is None:
        return None
    order = unchanged(fixed.parts, with_preamble(step.fixed) if PREAMBLE in fixed.parts else step.fixed)
    if order is not None:
        tokens = min(tokens, sum(fixed.tokens[i] for i in order))
    elif set(step.prune_ids) != set(active_prune_ids(ground.inputs.records)):
        tokens = min(tokens, fixed.total)
    return min(tokens, total)
