"""The one calculator: what the next request costs, of what it is made, and whether it would compact.

    next_input = anchor.input + anchor.output - dropped_reasoning - removed + fixed_delta + new_messages

The screen, the status line, the compactor, headless output and notices all read this function's answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent_tui.context.accounting.accuracy import RATIO_LOW, accuracy_of, clamp_ratio, coarse_ratio
from agent_tui.context.accounting.budget import (
    Budget,
    budget,
    compact_at_of,
    fits_to_send,
    max_output_for,
    reserve_problem,
    send_margin,
)
from agent_tui.context.accounting.coverage import PREAMBLE, Coverage, covered, total_read, unchanged, with_preamble
from agent_tui.context.accounting.fixed import FixedEstimate, estimate_fixed_parts, fixed_delta, fixed_rows
from agent_tui.context.accounting.growth import turns_left
from agent_tui.context.accounting.inputs import CompactPolicy, ContextInputs
from agent_tui.context.accounting.measure import Measurement
from agent_tui.context.accounting.reuse import ContextCache
from agent_tui.context.accounting.tally import Tally, Weighed, add_group, add_message
from agent_tui.context.accounting.totals import session_totals
from agent_tui.context.accounting.why import why_text
from agent_tui.context.sent.anchor import SentPrefixes
from agent_tui.context.sent.placeholders import PruneStates
from agent_tui.context.sent.thoughts import left_out
from agent_tui.context.sent.view import active_prune_ids
from agent_tui.context.tokens.families import family_of
from agent_tui.models.context import Basis, Calculation, ContextRow, ContextUsage
from agent_tui.models.requests import ReplayRule

__all__ = ["CompactPolicy", "ContextInputs", "calculate_context_usage", "max_output_for"]

OTHERS_SHARE = 0.1
"""Beside new text that is so much more, what else is estimated of an input does not keep it from being learned from:
providers that count no reasoning would teach next to nothing."""

SMALL_MISFIT = 0.1
GIVE_WAY = 1 - RATIO_LOW
"""Shares of the estimates that are within their error.

The first measured input is split between the ephemeral rows and the first messages. Where they are estimated at more
than was measured, and the ephemeral rows were never measured by themselves, the provider's tokens are larger than the
family's: both are scaled down in proportion, by as much as a calibration may. Where they were measured, the two give
way by no more than a tenth. A misfit of up to a tenth of the ephemeral rows is theirs alone: taken from the first
message, 2 % of a long prompt could be more than the message. Any larger misfit is a warning, and the proof does not
hold. None of it moves the total.
"""


def calculate_context_usage(inputs: ContextInputs) -> ContextUsage:
    """What the next request will cost in input tokens, of what it is made, and whether it would compact.

    Pure: the answer depends on the inputs alone (``inputs.cache`` only saves time). The rows sum to the total, and
    ``total + free + reserve - over = window``. Raises ValueError for a negative stored count, which is a bug.
    """
    cache = inputs.cache if inputs.cache is not None else ContextCache()
    model, target = inputs.model, inputs.model.target
    family, limits = family_of(target), inputs.model.limits
    scale = cache.fixed_scale.follow(inputs.steps, target, family, inputs.view, inputs.records)
    ratio = clamp_ratio(inputs.ratio)
    cache.follow(inputs.view, inputs.steps, inputs.records, target, limits.window, scale, coarse_ratio(ratio))
    prunes = PruneStates(inputs.records)
    rule = replay_rule(inputs, cache.prefixes, prunes)
    cache.ledger.update(inputs.view, target, inputs.fixed_fingerprint, inputs.effort, rule)
    measured = Measurement(inputs, cache, family, prunes, ratio, scale)
    anchor = measured.anchor
    fixed = estimate_fixed_parts(inputs.fixed, family, scale or (1.0 if anchor else ratio))
    new = _estimated(inputs, cache, measured, ratio)
    terms = _terms(inputs, measured, fixed, new)
    if not measured.tally.total:
        # Nothing, or only the whole of a first request was measured.
        terms.calculation.all_messages = new.total + (_head_estimate(cache, measured) if measured.head else 0)
    room = budget(limits, inputs.policy, compact_at_of(model, inputs.policy))
    warnings = [w for w in (reserve_problem(limits, inputs.policy),) if w]
    rows, misfit = _rows(inputs, cache, measured, fixed, new, terms.total, warnings)
    accuracy = accuracy_of(inputs.steps, target, inputs.ratio)
    # The character rule, which stands in for counts, errs twice as far as they do.
    doubtful = 2 * terms.estimated if terms.pending else terms.estimated
    usage = ContextUsage(
        model=target.model,
        window=room.window,
        reserve=room.reserve,
        limit=room.limit,
        total=terms.total,
        free=None if room.limit is None else max(0, room.limit - terms.total),
        over=None if room.limit is None else max(0, terms.total - room.limit),
        percent=100 * terms.total / room.window if room.window else None,
        basis=terms.basis,
        estimated_tokens=terms.estimated,
        would_compact=_would_compact(room, terms.total, inputs.policy),
        turns_left=turns_left(inputs.view, cache.chain, terms.total, room.limit, active_prune_ids(inputs.records)),
        calculation=terms.calculation,
        rows=rows,
        accuracy=accuracy,
        session=session_totals(inputs.steps, inputs.records),
        pending=terms.pending,
        anchor_step=anchor.id if anchor else None,
        warnings=warnings,
        expected_read=_expected_read(inputs, measured, fixed, terms.total),
        margin=send_margin(room.window, terms.total, doubtful, accuracy.p95_error_tokens or 0) if room.window else 0,
        max_input=limits.max_input,
        window_origin=limits.origin,
        misfit=misfit,
    )
    if usage.window and usage.total > usage.window:
        warnings.append(f"The next input of {usage.total:,} tokens is over the window of {usage.window:,}.")
    if not fits_to_send(usage):
        # What holds a compaction back counts only while the request can be sent as it is.
        usage.would_compact = inputs.policy.auto_compact
    usage.why = why_text(usage, inputs, cache)
    return usage


def replay_rule(inputs: ContextInputs, prefixes: SentPrefixes, prunes: PruneStates) -> ReplayRule:
    """The rule the next request is sent with: what was learned of the server, and what stays out of the prefix.
    ``prefixes`` follow the view."""
    out = left_out(inputs.view, inputs.steps, prefixes, prunes, inputs.model.target)
    return replace(inputs.replay, left_out=out) if out else inputs.replay


@dataclass(slots=True)
class _Terms:
    total: int
    calculation: Calculation
    basis: Basis
    estimated: int
    pending: bool


def _terms(inputs: ContextInputs, measured: Measurement, fixed: FixedEstimate, new: Tally) -> _Terms:
    anchor = measured.anchor
    uncounted = bool(new.approximate)
    if anchor is None or anchor.usage is None:
        total = fixed.total + new.total
        pending = uncounted or any(fixed.approximate)
        return _Terms(total, _calculated(Calculation(None, None, 0, 0, 0, total), new), "estimated", total, pending)
    family = family_of(inputs.model.target)
    delta, delta_uncounted = fixed_delta(inputs.fixed, anchor.fixed, family, measured.fixed_scale)
    dropped, removed = measured.dropped(), measured.removed()
    output = anchor.usage.output if anchor.kind == "turn" else 0
    base = anchor.usage.input + output - dropped.tokens
    # What is taken away cannot be more than what was there: estimates of it may be.
    gone = min(removed.tokens, base)
    delta = max(delta, gone - base)
    total = base - gone + delta + new.total
    guessed = anchor.usage.output_source == "estimated" and output > 0
    others = abs(gone) + abs(delta) + (abs(dropped.tokens) if dropped.estimated else 0) + (output if guessed else 0)
    estimated = others + new.total
    single = total == anchor.usage.input and output == 0 and not estimated
    calculation = Calculation(anchor.usage.input, output, dropped.tokens, gone, delta, new.total, guessed)
    calculation.others_sure = others <= OTHERS_SHARE * new.text
    _calculated(calculation, new)
    basis: Basis = "measured" if single else "derived"
    return _Terms(total, calculation, basis, min(estimated, total), uncounted or delta_uncounted)


def _calculated(calculation: Calculation, new: Tally) -> Calculation:
    calculation.new_text, calculation.new_given = round(new.text), round(new.given)
    calculation.new_text_corrected = max(0, new.total - calculation.new_given)
    return calculation


def _estimated(inputs: ContextInputs, cache: ContextCache, measured: Measurement, ratio: float) -> Tally:
    """Everything after the anchor (without one: everything), at its estimates."""
    start = measured.tally.end
    coverage = measured.coverage
    key = (start, ratio, coverage.read is None)
    tally = Tally(start, start)
    if cache.estimated is not None and cache.estimated[0] == key:
        known = cache.estimated[1]
        if known.end <= min(cache.kept, cache.ledger.changed_from):
            tally = known.copy()
    for index in range(tally.end, len(inputs.view)):
        weighed = measured.weigh(index)
        tokens = weighed.corrected(ratio)
        add_message(tally, weighed, index, tokens, "estimated", coverage, cache.labels, sure=False)
        tally.text += weighed.exact - weighed.given
        tally.given += weighed.given
        tally.end = index + 1
    cache.estimated = None if tally.approximate else (key, tally.copy())
    return tally


@dataclass(slots=True)
class _Fit:
    """What the rows have to be so that they sum to the total: tokens of the ephemeral rows, of the messages before the
    first measured answer, and what the measured rows have to give. ``spread``: the messages share so many tokens
    instead. ``misfit`` is not 0 where it takes more than the errors of estimates."""

    fixed: int
    head: int = 0
    absorb: int = 0
    spread: int | None = None
    misfit: int = 0


def _fit(cache: ContextCache, measured: Measurement, fixed: int, total: int, new: int) -> _Fit:
    tally = measured.tally
    absorb = min(max(0, -tally.misfit), tally.total)
    rest = total - fixed - (tally.total - absorb) - new
    wanted = _head_estimate(cache, measured) if measured.head else 0
    if measured.head and rest >= wanted:
        return _Fit(fixed, rest, absorb)
    missing = wanted - rest
    if 0 <= missing <= fixed * SMALL_MISFIT:
        # Both sides are estimates: a small misfit is taken from the larger one, not from the first message.
        return _Fit(fixed - missing, wanted, absorb)
    both, measured_both = fixed + wanted, fixed + rest
    way = SMALL_MISFIT if measured.fixed_measured else GIVE_WAY
    if measured.head and (1 - way) * both <= measured_both:
        # The provider's tokens are larger than the family's: both sides are.
        scaled = round(fixed * measured_both / both)
        return _Fit(scaled, measured_both - scaled, absorb)
    if total > fixed and (fixed or measured.head or tally.total or new):
        # What is wrong is in the messages' rows: the ephemeral ones do not pay for it.
        return _Fit(fixed, spread=total - fixed, misfit=missing)
    return _Fit(total - tally.total - new, misfit=missing)


def _rows(
    inputs: ContextInputs,
    cache: ContextCache,
    measured: Measurement,
    fixed: FixedEstimate,
    new: Tally,
    total: int,
    warnings: list[str],
) -> tuple[list[ContextRow], int]:
    """The rows, and by how many tokens they had to be scaled beyond the errors of estimates."""
    if not measured.head:
        cache.head_estimate = None
    fitted = _fit(cache, measured, fixed.total, total, new.total)
    misfit = fitted.misfit
    if fitted.fixed < 0 or (fitted.fixed > 0 and not fixed.parts):
        # Nothing but the messages can take it: spread the whole over them.
        misfit = misfit or total
        cache.head = None
        rows, messages = fixed_rows(fixed, 0), _spread_all(inputs, cache, measured, total)
    else:
        # In the order in which they are sent: what was read from the cache is shared out as they come.
        rows = fixed_rows(fixed, None if fitted.fixed == fixed.total else fitted.fixed, measured.coverage)
        if fitted.spread is not None:
            cache.head = None
            messages = _spread_all(inputs, cache, measured, fitted.spread)
        else:
            messages = _head(cache, measured, fitted.head)
            messages.join(measured.tally)
            messages.join(new)
            messages.absorb(fitted.absorb)
    if misfit:
        warnings.append(f"Back-calculated messages are off by {misfit:,} tokens; the rows are scaled to fit the total.")
    children = messages.kind_rows()
    unattributed = total - sum(r.tokens for r in rows) - messages.total
    if unattributed:
        # There is nothing to attribute it to: no messages, and no parts with tokens.
        rows[0].tokens = rows[0].estimated_tokens = unattributed
        rows[0].children, rows[0].cached, rows[0].cached_tokens = [], None, None
    estimated = min(messages.total, sum(c.estimated_tokens for c in children))
    read = total_read([c.cached_tokens for c in children])
    basis: Basis = "derived" if measured.anchor else "estimated"
    rows.append(
        ContextRow(
            id="messages",
            label="Messages",
            tokens=messages.total,
            basis=basis,
            estimated_tokens=estimated,
            children=children,
            cached=covered(messages.total, read),
            cached_tokens=read,
            approximate=any(c.approximate for c in children),
        )
    )
    return rows, misfit


def _head_estimate(cache: ContextCache, measured: Measurement) -> int:
    """What the messages before the first measured answer are estimated at."""
    known = cache.head_estimate
    sure = measured.head <= min(cache.kept, cache.ledger.changed_from)
    if known is not None and known[:2] == (measured.head, measured.ratio) and sure:
        return known[2]
    cache.head_estimate = None
    weighed = [measured.weigh(i) for i in range(measured.head)]
    tokens = sum(w.corrected(measured.ratio) for w in weighed)
    if not any(w.approximate for w in weighed):
        cache.head_estimate = (measured.head, measured.ratio, tokens)
    return tokens


def _head(cache: ContextCache, measured: Measurement, cost: int) -> Tally:
    """The messages before the first measured answer: what is left of the total, split by their estimates."""
    coverage = measured.coverage
    key = (measured.head, cost, coverage.reach(0, measured.head), coverage.left)
    if cache.head is not None and cache.head[0] == key and measured.head <= min(cache.kept, cache.ledger.changed_from):
        return cache.head[1].copy()
    tally = Tally()
    group = [measured.weigh(i) for i in range(measured.head)]
    _add_split(tally, group, cost, cache, coverage)
    tally.end = measured.head
    cache.head = None if tally.approximate else (key, tally.copy())
    return tally


def _spread_all(inputs: ContextInputs, cache: ContextCache, measured: Measurement, total: int) -> Tally:
    tally = Tally()
    _add_split(tally, [measured.weigh(i) for i in range(len(inputs.view))], total, cache, Coverage(()))
    tally.end = len(inputs.view)
    return tally


def _add_split(tally: Tally, group: list[Weighed], cost: int, cache: ContextCache, coverage: Coverage) -> None:
    if group:
        add_group(tally, group, 0, cost, False, coverage, cache.labels, {}, ())


def _expected_read(inputs: ContextInputs, measured: Measurement, fixed: FixedEstimate, total: int) -> int | None:
    """Tokens of the next request that the provider will find in its cache; None where it does not say what it writes.

    A cache is good up to the first difference: a tool that went away leaves only what is sent before it.
    """
    step, tokens = measured.coverage.step, measured.coverage.expected()
    if step is None or tokens is None:
        return None
    order = unchanged(fixed.parts, with_preamble(step.fixed) if PREAMBLE in fixed.parts else step.fixed)
    if order is not None:
        tokens = min(tokens, sum(fixed.tokens[i] for i in order))
    elif set(step.prune_ids) != set(active_prune_ids(inputs.records)):
        tokens = min(tokens, fixed.total)
    return min(tokens, total)


def _would_compact(room: Budget, total: int, policy: CompactPolicy) -> bool:
    allowed = policy.auto_compact and not policy.paused and not policy.off
    return allowed and room.limit is not None and total > room.limit
