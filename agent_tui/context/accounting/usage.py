"""The one calculator: what the next request costs, of what it is made, and whether it would compact.

The screen, the status line, the compactor, headless output and notices all read this function's answer. Its stations:

    ground      what the inputs say of the past: which steps can be built on, what reasoning counts (inputs.py)
    sizes       what is added up: measured by difference, estimated, taken away (messages.py, tally.py, fixed.py)
    next input  the formula, limit and reserve, whether to compact and why (next_input.py)
    breakdown   the rows, which sum to it, and their shares of the window (here)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_tui.context.accounting.fixed import (
    ADDED,
    NOTHING_KNOWN,
    PREAMBLE,
    Reading,
    covered,
    fixed_rows,
    total_read,
    unchanged,
    with_preamble,
)
from agent_tui.context.accounting.inputs import ContextInputs, Ground, ground_of
from agent_tui.context.accounting.messages import cleared_room, split_messages
from agent_tui.context.accounting.next_input import (
    Sizes,
    budget,
    compact_at_of,
    fits_to_send,
    held_text,
    next_input,
    over_limit,
    reserve_problem,
    send_margin,
    sizes_of,
    why_text,
)
from agent_tui.context.accounting.reports import Errors, errors_of, turn_growth, turns_left
from agent_tui.context.accounting.spending import Sums, sums_of
from agent_tui.context.accounting.tally import Tally
from agent_tui.context.view import active_prune_ids
from agent_tui.models.context import Basis, ContextRow, ContextUsage
from agent_tui.models.requests import Target
from agent_tui.models.rows import MESSAGES
from agent_tui.models.steps import Step
from agent_tui.records import dataclass
from agent_tui.text.numbers import interval, largest_remainder, plural, tenths_of, tokens

SMALL_MISFIT = 0.1
GIVE_WAY = 0.3
"""Shares of the estimates that are within their error.

The first measured input is split between the prefix rows and the first messages. Where they are estimated at more
than was measured, and the prefix rows were never measured by themselves, the provider's tokens are larger than the
family's: both are scaled down in proportion, by that much. Where they were measured, the two give
way by no more than a tenth, and beyond that the messages alone by as much: that of a new model is
not learned yet when a summary has left none of its messages measured. A misfit of up to a tenth of the prefix rows
is theirs alone: taken from the first message, 2 % of a long prompt could be more than the message. Where a long result
was cleared out of the first messages, they are what is left of a measured number less its estimate, and may be as far
off as that is. Any larger misfit is a warning, and the proof does not hold. None of it moves the total.
"""

SplitHead = Callable[[Ground, int, int, Reading], Tally]
"""``split_messages``, or what gives the same."""


@dataclass(slots=True, frozen=True)
class Breakdown:
    """The rows; ``misfit`` is by how many tokens they had to be scaled beyond the errors of estimates."""

    rows: list[ContextRow]
    misfit: int


@dataclass(slots=True, frozen=True)
class _Fit:
    """The sizes that the rows have to have so that they sum to the total: tokens of the prefix rows, of the messages
    before the first measured answer, and what the measured rows have to give. ``spread``: the messages share so many
    tokens instead. ``misfit`` is not 0 where it takes more than the errors of estimates."""

    fixed: int
    head: int = 0
    absorb: int = 0
    spread: int | None = None
    misfit: int = 0


def breakdown(ground: Ground, sizes: Sizes, total: int, split_head: SplitHead = split_messages) -> Breakdown:
    """The rows of the prefix parts in their order, then the messages."""
    fit, reading = _fit(ground, sizes, total), Reading(ground.coverage)
    fixed, misfit = sizes.fixed, fit.misfit
    if fit.fixed < 0 or (fit.fixed > 0 and not fixed.parts):
        # Nothing but the messages can take it: spread the whole over them.
        misfit = misfit or total
        rows, messages = fixed_rows(fixed, Reading(NOTHING_KNOWN), 0), _spread_all(ground, total)
    else:
        # In the order in which they are sent: what was read from the cache is shared out as they come.
        rows = fixed_rows(fixed, reading, None if fit.fixed == fixed.total else fit.fixed)
        if fit.spread is not None:
            messages = _spread_all(ground, fit.spread)
        else:
            messages = split_head(ground, ground.head, fit.head, reading)
            messages.join(sizes.measured.tally)
            messages.join(sizes.new)
            messages.absorb(fit.absorb)
    children = messages.kind_rows()
    unattributed = total - sum(r.tokens for r in rows) - messages.total
    if unattributed:
        # There is nothing to attribute it to: no messages, and no parts with tokens.
        rows[0].tokens = rows[0].estimated_tokens = unattributed
        rows[0].children, rows[0].cached, rows[0].cached_tokens = [], None, None
    rows.append(_messages_row(messages, children, "derived" if ground.anchor is not None else "estimated"))
    return Breakdown(rows, misfit)


def _fit(ground: Ground, sizes: Sizes, total: int) -> _Fit:
    tally, fixed, new, head = sizes.measured.tally, sizes.fixed.total, sizes.new.total, ground.heads
    absorb = min(max(0, -tally.misfit), tally.total)
    rest = total - fixed - (tally.total - absorb) - new
    wanted = sizes.head
    if ground.chain and not head and fixed + rest >= 0:
        # The prefix was counted by itself: its rows are what was measured of it.
        return _Fit(fixed + rest, 0, absorb)
    if head and rest >= wanted:
        return _Fit(fixed, rest, absorb)
    missing = wanted - rest
    if 0 <= missing <= fixed * SMALL_MISFIT:
        # Both sides are estimates: a small misfit is taken from the larger one, not from the first message.
        return _Fit(fixed - missing, wanted, absorb)
    both, measured_both = fixed + wanted, fixed + rest
    way = SMALL_MISFIT if ground.measured_scale is not None else GIVE_WAY
    cleared = bool(head) and missing <= cleared_room(ground)
    if head and ((1 - way) * both <= measured_both or (cleared and rest < head < measured_both)):
        # The provider's tokens are larger than the family's: both sides are.
        scaled = round(fixed * measured_both / both)
        return _Fit(scaled, measured_both - scaled, absorb)
    if head and (rest >= (1 - GIVE_WAY) * wanted or (cleared and rest >= head)):
        return _Fit(fixed, rest, absorb)
    if total > fixed and (fixed or head or tally.total or new):
        # What is wrong is in the messages' rows: those of the prefix do not pay for it.
        return _Fit(fixed, spread=total - fixed, misfit=missing)
    return _Fit(total - tally.total - new, misfit=missing)


def _spread_all(ground: Ground, tokens: int) -> Tally:
    return split_messages(ground, len(ground.view), tokens, Reading(NOTHING_KNOWN))


def _messages_row(messages: Tally, children: list[ContextRow], basis: Basis) -> ContextRow:
    read = total_read([c.cached_tokens for c in children])
    return ContextRow(
        id=MESSAGES.id,
        label=MESSAGES.label,
        tokens=messages.total,
        basis=basis,
        estimated_tokens=min(messages.total, sum(c.estimated_tokens for c in children)),
        children=children,
        cached=covered(messages.total, read),
        cached_tokens=read,
        approximate=any(c.approximate for c in children),
    )


SumsOf = Callable[[Sequence[Step]], Sums]
ErrorsOf = Callable[[Sequence[Step], Target], Errors]
"""``sums_of`` and ``errors_of``, or what gives the same."""


def calculate_context_usage(inputs: ContextInputs) -> ContextUsage:
    """Returns what the next request will cost in input tokens, of what it is made, and whether it would compact.

    Pure: the answer depends on the inputs alone. The rows sum to the total, and ``total + free + reserve - over =
    window``. Raises ValueError for a negative stored count, which is a bug.
    """
    ground = ground_of(inputs)
    return usage_of(ground, sizes_of(ground))


def usage_of(
    ground: Ground,
    sizes: Sizes,
    split_head: SplitHead = split_messages,
    sums: SumsOf = sums_of,
    errors: ErrorsOf = errors_of,
) -> ContextUsage:
    """The answer for a ground and its sizes."""
    inputs, anchor = ground.inputs, ground.anchor
    model, settings, records = inputs.model, inputs.settings, inputs.records
    limits = model.limits
    room = budget(limits, settings, compact_at_of(model, settings))
    size = next_input(ground, sizes)
    made_of = breakdown(ground, sizes, size.total, split_head)
    growth = turn_growth(inputs.view, ground.answered, ground.target, size.total, active_prune_ids(records))
    accuracy = errors(inputs.steps, ground.target).accuracy(ground.calibration, ground.family.beginning)
    usage = ContextUsage(
        model=ground.target.model,
        window=room.window,
        reserve=room.reserve,
        limit=room.limit,
        total=size.total,
        free=None if room.limit is None else max(0, room.limit - size.total),
        over=None if room.limit is None else max(0, size.total - room.limit),
        basis=size.basis,
        estimated_tokens=size.estimated,
        would_compact=False,
        turns_left=turns_left(size.total, room.limit, growth),
        calculation=size.calculation,
        rows=made_of.rows,
        accuracy=accuracy,
        session=sums(inputs.steps[inputs.inherited :] if inputs.inherited else inputs.steps).totals(records),
        pending=size.pending,
        anchor_step=anchor.id if anchor else None,
        expected_read=_expected_read(ground, sizes, size.total),
        spread=size.spread,
        margin=send_margin(room.window, size.total, size.spread) if room.window else 0,
        max_input=limits.max_input,
        window_origin=limits.origin,
        misfit=made_of.misfit,
        held=held_text(settings),
        growth=growth,
    )
    # What holds a compaction back counts only while the request can be sent as it is.
    held = settings.paused and fits_to_send(usage)
    usage.would_compact = settings.auto_compact and not held and over_limit(usage)
    usage.held = "" if usage.would_compact else usage.held
    usage.warnings = _warnings(ground, usage)
    usage.why = why_text(usage, ground)
    return usage


def _warnings(ground: Ground, usage: ContextUsage) -> list[str]:
    warnings: list[str] = []
    problem = reserve_problem(ground.inputs.model.limits, ground.inputs.settings)
    if problem:
        warnings.append(problem)
    if usage.misfit:
        off = plural(abs(usage.misfit), "token")
        warnings.append(f"The provider's counts and the rows disagree by {off}; the rows are scaled to fit the total.")
    if usage.window and usage.total > usage.window:
        total = interval(usage.total, usage.spread, usage.approximate, full=True)
        window = tokens(usage.window, False, full=True)
        warnings.append(f"The next input of {total} tokens is over the window of {window}.")
    return warnings


def _expected_read(ground: Ground, sizes: Sizes, total: int) -> int | None:
    """Tokens of the next request that the provider will find in its cache; None where it does not say what it writes.

    A cache is good up to the first difference: a tool that went away leaves only what is sent before it.
    """
    step, tokens, fixed = ground.coverage.step, ground.coverage.expected(), sizes.fixed
    if step is None or tokens is None:
        return None
    then = with_preamble(step.fixed) if PREAMBLE in fixed.parts else step.fixed
    order = unchanged(fixed.parts, [ADDED, *then] if ADDED in fixed.parts else then)
    if order is not None:
        tokens = min(tokens, sum(fixed.tokens[i] for i in order))
    elif set(step.prune_ids) != set(active_prune_ids(ground.inputs.records)):
        tokens = min(tokens, fixed.total)
    return min(tokens, total)


WHOLE = 1_000


@dataclass(slots=True, frozen=True)
class Shares:
    """Tenths of a percent of the window. ``total + free + reserve - over = 1000``; ``rows``, in the order of the
    usage's, add up to ``total``, which is rounded as everywhere else; what is left goes to free and reserve."""

    total: int
    free: int
    reserve: int
    over: int
    rows: tuple[int, ...]


def window_shares(usage: ContextUsage) -> Shares | None:
    """The shares of all rows; None for an unknown window."""
    window, free, reserve, over = usage.window, usage.free, usage.reserve, usage.over
    if not window or free is None or reserve is None:
        return None
    total = tenths_of(usage.total, window)
    if over:
        free_part, reserve_part = 0, tenths_of(reserve, window)
    else:
        free_part, reserve_part = largest_remainder(WHOLE - total, [free, reserve])
    over_part = total + free_part + reserve_part - WHOLE
    return Shares(total, free_part, reserve_part, over_part, tuple(row_shares(total, usage.rows)))


def row_shares(parent: int, rows: Sequence[ContextRow]) -> list[int]:
    """``parent`` tenths split over its rows by their tokens."""
    return largest_remainder(parent, [row.tokens for row in rows])
