"""The formula: what the next request costs in input tokens.

    next_input = anchor.input + anchor.output - dropped_reasoning - removed + fixed_delta + new_messages

Without an anchor it is a pure estimate: the ephemeral parts and all messages.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.context.accounting.given.fixed import FixedEstimate, estimate_fixed_parts, fixed_delta
from agent_tui.context.accounting.given.ground import Ground
from agent_tui.context.accounting.messages.change import Change
from agent_tui.context.accounting.messages.dropped import dropped_reasoning
from agent_tui.context.accounting.messages.measure import Measured, measure, removed
from agent_tui.context.accounting.messages.tally import Tally
from agent_tui.context.accounting.messages.unmeasured import estimated_head, new_messages
from agent_tui.models.context import Basis, Calculation
from agent_tui.models.usage import TokenUsage

OTHERS_SHARE = 0.1
"""Beside new text that is so much more, what else is estimated of an input does not keep it from being learned from:
providers that count no reasoning would teach next to nothing."""


@dataclass(slots=True, frozen=True)
class Sizes:
    """What the formula adds up, in the order of the conversation: the ephemeral parts; the ``head``, which are the
    messages before the first measured answer, as estimated; what was ``measured``, up to the anchor; what is ``new``
    since. ``dropped`` and ``removed`` are taken away."""

    fixed: FixedEstimate
    head: int
    measured: Measured
    new: Tally
    dropped: Change
    removed: Change


@dataclass(slots=True, frozen=True)
class NextInput:
    """The ``total``, the terms that it is the sum of, and how sure it is: ``estimated`` tokens of it are estimate;
    ``pending``: a count that matters is still missing."""

    total: int
    calculation: Calculation
    basis: Basis
    estimated: int
    pending: bool


def sizes_of(ground: Ground) -> Sizes:
    """All sizes, each from nothing."""
    measured = measure(ground)
    return Sizes(
        fixed=estimated_fixed(ground),
        head=estimated_head(ground)[0],
        measured=measured,
        new=new_messages(ground),
        dropped=dropped_reasoning(ground, measured.turn),
        removed=removed(ground, measured),
    )


def estimated_fixed(ground: Ground) -> FixedEstimate:
    """The ephemeral parts, at the scale that was measured of them; the calibration stands in where nothing was."""
    scale = ground.measured_scale or (1.0 if ground.anchor is not None else ground.ratio)
    return estimate_fixed_parts(ground.inputs.fixed, ground.family, scale)


def next_input(ground: Ground, sizes: Sizes) -> NextInput:
    """The size of the next request, and how it is known."""
    anchor = ground.anchor
    if anchor is None or anchor.counted is None:
        answer = _pure_estimate(sizes)
    else:
        output = anchor.counted.output if anchor.kind == "turn" else 0
        answer = _from_anchor(ground, sizes, anchor.counted, output)
    terms, new, measured = answer.calculation, sizes.new, sizes.measured.tally
    terms.new_text, terms.new_given = round(new.text), round(new.given)
    terms.new_text_corrected = max(0, new.total - terms.new_given)
    if not measured.total:
        # Nothing, or only the whole of a first request was measured.
        terms.all_messages = new.total + sizes.head
    return answer


def _pure_estimate(sizes: Sizes) -> NextInput:
    total = sizes.fixed.total + sizes.new.total
    pending = bool(sizes.new.approximate) or any(sizes.fixed.approximate)
    return NextInput(total, Calculation(None, None, 0, 0, 0, total), "estimated", total, pending)


def _from_anchor(ground: Ground, sizes: Sizes, anchor: TokenUsage, output: int) -> NextInput:
    dropped, removed, new = sizes.dropped, sizes.removed, sizes.new
    delta, delta_uncounted = _delta(ground)
    base = anchor.input + output - dropped.tokens
    # What is taken away cannot be more than what was there: estimates of it may be.
    gone = min(removed.tokens, base)
    delta = max(delta, gone - base)
    total = base - gone + delta + new.total
    guessed = anchor.output_source == "estimated" and output > 0
    others = abs(gone) + abs(delta) + (abs(dropped.tokens) if dropped.estimated else 0) + (output if guessed else 0)
    estimated = others + new.total
    calculation = Calculation(anchor.input, output, dropped.tokens, gone, delta, new.total, guessed)
    calculation.others_sure = others <= OTHERS_SHARE * new.text
    single = total == anchor.input and output == 0 and not estimated
    pending = bool(new.approximate) or delta_uncounted
    return NextInput(total, calculation, "measured" if single else "derived", min(estimated, total), pending)


def _delta(ground: Ground) -> tuple[int, bool]:
    """``fixed_delta``: the ephemeral parts now, less those of the anchor, and whether a count is still missing."""
    then = ground.chain[-1].fixed
    return fixed_delta(ground.inputs.fixed, then, ground.family, ground.fixed_scale)
