"""Measuring by difference: what each message cost, from the inputs that the provider reported one after another.

    input(k) - input(k-1) - output(k-1) + dropped reasoning + removed - fixed delta

is the size of what was added between two steps; an answer costs its own output less the reasoning that is not counted
any more. One message added: that message is derived. Several: the group is, its split is estimated.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_tui.context.accounting.given.coverage import Reading
from agent_tui.context.accounting.given.fixed import fixed_delta
from agent_tui.context.accounting.given.ground import Ground, end_of
from agent_tui.context.accounting.messages.change import NO_CHANGE, Change
from agent_tui.context.accounting.messages.dropped import dropped_between
from agent_tui.context.accounting.messages.grouping import add_group, add_message
from agent_tui.context.accounting.messages.tally import Tally
from agent_tui.context.accounting.messages.weigh import Weighed, reasoning_of, weigh
from agent_tui.models.context import Basis
from agent_tui.models.rows import MessageRowId
from agent_tui.models.steps import Step


@dataclass(slots=True)
class Measured:
    """What the first ``steps`` of the chain measured. ``tally`` has every message from the first one's answer on,
    ``turn`` the answers of the turn that is open there, ``left`` what of the provider's cache is left for the rows that
    follow."""

    tally: Tally
    left: int
    turn: list[str] = field(default_factory=list)
    steps: int = 0

    def copy(self) -> Measured:
        return Measured(self.tally.copy(), self.left, list(self.turn), self.steps)


def measure(ground: Ground) -> Measured:
    """Every message from the first measured answer up to the anchor's."""
    measured = nothing_measured(ground)
    while measured.steps < len(ground.chain):
        measure_next(ground, measured)
    return measured


def nothing_measured(ground: Ground) -> Measured:
    head = ground.head
    return Measured(Tally(head, head), ground.coverage.between, _open_answers(ground, head))


def measure_next(ground: Ground, measured: Measured) -> None:
    """Add what the next step of the chain measured: what came in since the step before it, and its own answer."""
    chain, number = ground.chain, measured.steps
    step = chain[number]
    reading = Reading(ground.coverage, measured.left)
    if number > 0:
        _add_between(ground, measured, chain[number - 1], step, reading)
    if step.kind == "turn":
        _add_answer(ground, measured, step, reading)
    measured.left = reading.left
    measured.steps = number + 1


def removed(ground: Ground, measured: Measured) -> Change:
    """Known cost of what was cleared or clipped since the anchor, less what stands in its place."""
    anchor = ground.anchor
    if anchor is None:
        return NO_CHANGE
    return _removed_from(ground, measured, anchor.sent_count, anchor.prune_ids, None, ground.ratio)


def _add_answer(ground: Ground, measured: Measured, step: Step, reading: Reading) -> None:
    view, tally, index = ground.view, measured.tally, step.sent_count
    weighed = weigh(ground, index)
    usage = step.counted
    output = usage.output if usage is not None else 0
    tokens, reported = reasoning_of(ground, weighed.message)
    counted = round(tokens * ground.reasoning.counted(weighed.message.id))
    value = output - tokens + counted
    rest: list[tuple[MessageRowId, int]] = [(kind, weight) for kind, weight in weighed.weights if kind != "reasoning"]
    basis: Basis = "measured" if value == output else "derived" if reported else "estimated"
    if usage is not None and usage.output_source == "estimated":
        basis, reported = "estimated", False
    if any(kind == "reasoning" for kind, _ in weighed.weights):
        own: Basis = "derived" if reported else "estimated"
        thought = Weighed(weighed.message, weighed.key, [("reasoning", counted)], note=weighed.note)
        add_message(view, tally, thought, index, counted, own, reading)
    spoken = Weighed(weighed.message, weighed.key, rest, weighed.approximate, weighed.rough)
    basis = "estimated" if len(rest) > 1 else basis
    add_message(view, tally, spoken, index, value - counted, basis, reading)
    tally.end = index + 1
    measured.turn.append(weighed.message.id)


def _add_between(ground: Ground, measured: Measured, before: Step, step: Step, reading: Reading) -> None:
    view, tally, results = ground.view, measured.tally, ground.results
    start, end = end_of(before), step.sent_count
    user = any(view[i].message.role == "user" for i in range(start, end))
    value, derived = _difference(ground, measured, before, step, user)
    if user:
        measured.turn.clear()
    group: list[Weighed] = []
    today: dict[str, tuple[Weighed, int]] = {}
    for i in range(start, end):
        message_id = view[i].message.id
        if message_id in results.mentioned:
            then = results.state(step.prune_ids, message_id)
            group.append(weigh(ground, i, then))
            now = weigh(ground, i)
            if now.key != group[-1].key:
                today[message_id] = now, now.corrected(ground.coarse_ratio)
        else:
            group.append(weigh(ground, i))
    if group:
        fits = value >= len(group)
        cost = value if fits else None
        if not fits:
            tally.misfit += value - sum(w.tokens for w in group)
        sure, watched = derived and fits, results.mentioned
        add_group(view, tally, group, start, cost, reading, derived=sure, now=today, watched=watched)
    else:
        tally.misfit += value
    tally.end = max(tally.end, end)


def _difference(ground: Ground, measured: Measured, before: Step, step: Step, user: bool) -> tuple[int, bool]:
    """Measured size of what was added between two steps, and whether only provider numbers are in it."""
    first, second = before.counted, step.counted
    if first is None or second is None:
        return 0, False
    dropped = dropped_between(ground, before, step, measured.turn, user)
    end, ratio = measured.tally.end, ground.coarse_ratio
    gone = _removed_from(ground, measured, end, before.prune_ids, step.prune_ids, ratio)
    delta, _ = fixed_delta(step.fixed, before.fixed, ground.family, ground.fixed_scale)
    output = first.output if before.kind == "turn" else 0
    value = second.input - first.input - output + dropped.tokens + gone.tokens - delta
    return value, delta == 0 and not dropped.estimated and not gone.tokens


def _removed_from(
    ground: Ground, measured: Measured, end: int, then: list[str], now: list[str] | None, ratio: float
) -> Change:
    """What the prune records ``now`` (None: those in force) take away from the first ``end`` messages that those of
    ``then`` did not."""
    results = ground.results
    if results.same(then, now):
        return NO_CHANGE
    tokens, estimated = 0, False
    for index, item in enumerate(ground.view[:end]):
        message_id = item.message.id
        if message_id not in results.mentioned:
            continue
        old, new = results.state(then, message_id), results.state(now, message_id)
        if old != new:
            costs = [_cost(ground, measured.tally, index, state, ratio) for state in (old, new)]
            tokens += costs[0] - costs[1]
            estimated = True
    return Change(tokens, estimated)


def _cost(ground: Ground, tally: Tally, index: int, state: str, ratio: float) -> int:
    """Cost of a message in a state: as measured where it was measured so, else estimated at a calibration."""
    weighed = weigh(ground, index, state)
    known = tally.values.get(weighed.message.id)
    return known[0] if known is not None and known[1] == weighed.key else weighed.corrected(ratio)


def _open_answers(ground: Ground, end: int) -> list[str]:
    """Answers since the last user message before an index."""
    answers: list[str] = []
    for index in range(end - 1, -1, -1):
        message = ground.view[index].message
        if message.role == "user":
            break
        if message.role == "assistant":
            answers.insert(0, message.id)
    return answers
