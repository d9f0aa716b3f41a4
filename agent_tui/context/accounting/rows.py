"""The breakdown that adds up: messages = total - ephemeral rows, and the rows are made to sum to the total."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_tui.context.accounting.given.accuracy import RATIO_LOW
from agent_tui.context.accounting.given.coverage import NOTHING_KNOWN, Reading, covered, total_read
from agent_tui.context.accounting.given.fixed import fixed_rows
from agent_tui.context.accounting.given.ground import Ground
from agent_tui.context.accounting.messages.tally import Tally
from agent_tui.context.accounting.messages.unmeasured import split_messages
from agent_tui.context.accounting.next_input import Sizes
from agent_tui.models.context import Basis, ContextRow
from agent_tui.models.rows import MESSAGES

SMALL_MISFIT = 0.1
GIVE_WAY = 1 - RATIO_LOW
"""Shares of the estimates that are within their error.

The first measured input is split between the ephemeral rows and the first messages. Where they are estimated at more
than was measured, and the ephemeral rows were never measured by themselves, the provider's tokens are larger than the
family's: both are scaled down in proportion, by as much as a calibration may. Where they were measured, the two give
way by no more than a tenth, and beyond that the messages alone by as much as a calibration may: that of a new model is
not learned yet when a summary has left none of its messages measured. A misfit of up to a tenth of the ephemeral rows
is theirs alone: taken from the first message, 2 % of a long prompt could be more than the message. Any larger misfit is
a warning, and the proof does not hold. None of it moves the total.
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
    """What the rows have to be so that they sum to the total: tokens of the ephemeral rows, of the messages before the
    first measured answer, and what the measured rows have to give. ``spread``: the messages share so many tokens
    instead. ``misfit`` is not 0 where it takes more than the errors of estimates."""

    fixed: int
    head: int = 0
    absorb: int = 0
    spread: int | None = None
    misfit: int = 0


def breakdown(ground: Ground, sizes: Sizes, total: int, split_head: SplitHead = split_messages) -> Breakdown:
    """The rows of the ephemeral parts in their order, then the messages."""
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
    tally, fixed, new, head = sizes.measured.tally, sizes.fixed.total, sizes.new.total, ground.head
    absorb = min(max(0, -tally.misfit), tally.total)
    rest = total - fixed - (tally.total - absorb) - new
    wanted = sizes.head
    if head and rest >= wanted:
        return _Fit(fixed, rest, absorb)
    missing = wanted - rest
    if 0 <= missing <= fixed * SMALL_MISFIT:
        # Both sides are estimates: a small misfit is taken from the larger one, not from the first message.
        return _Fit(fixed - missing, wanted, absorb)
    both, measured_both = fixed + wanted, fixed + rest
    way = SMALL_MISFIT if ground.measured_scale is not None else GIVE_WAY
    if head and (1 - way) * both <= measured_both:
        # The provider's tokens are larger than the family's: both sides are.
        scaled = round(fixed * measured_both / both)
        return _Fit(scaled, measured_both - scaled, absorb)
    if head and rest >= (1 - GIVE_WAY) * wanted:
        return _Fit(fixed, rest, absorb)
    if total > fixed and (fixed or head or tally.total or new):
        # What is wrong is in the messages' rows: the ephemeral ones do not pay for it.
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
