"""The cost of messages: measured by difference between two reports, estimated where no number covers them, and what of
them is no longer sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from agent_tui.context.accounting.fixed import Reading, fixed_delta, measured_change
from agent_tui.context.accounting.inputs import Ground, counted_at, end_of
from agent_tui.context.accounting.tally import (
    Tally,
    Weighed,
    add_group,
    add_message,
    reasoning_content,
    reasoning_of,
    weigh,
)
from agent_tui.context.anchor import differences, share_at
from agent_tui.context.tokens import round_up
from agent_tui.context.view import is_gone
from agent_tui.models.calibration import KINDS, Calibration, Content
from agent_tui.models.context import Basis
from agent_tui.models.messages import Message
from agent_tui.models.requests import SentMessage
from agent_tui.models.rows import MessageRowId
from agent_tui.models.steps import SentRun, Step
from agent_tui.providers.reasoning import carries_reasoning, turn_is_closed
from agent_tui.records import dataclass

SAME_TERM, SAME_TOKENS = 0.01, 2
"""What is stored of a step is rounded; up to this difference terms, and tokens, are the same."""


def new_messages(ground: Ground) -> Tally:
    """Everything after the anchor, its own tool results included (without an anchor: everything), at its estimates."""
    new = Tally(ground.measured, ground.measured)
    estimate_rest(ground, new)
    return new


def estimate_rest(ground: Ground, new: Tally) -> None:
    """Add the messages from where the tally ends to the end of the view: what a report has measured of them, as it was
    before a compaction, is not estimated again."""
    view, calibration, reading = ground.view, ground.calibration, Reading(ground.coverage)
    group: list[Weighed] = []
    for index in range(new.end, len(view)):
        weighed = weigh(ground, index)
        if weighed.message.role != "assistant":
            group.append(weighed)
            continue
        _add_estimates(ground, new, group, index, reading)
        group = []
        add_message(view, new, weighed, index, weighed.corrected(calibration), "estimated", reading)
        new.content.add(weighed.content)
        new.given += weighed.given
    _add_estimates(ground, new, group, len(view), reading)
    new.end = len(view)


def _add_estimates(ground: Ground, new: Tally, group: Sequence[Weighed], end: int, reading: Reading) -> None:
    """Add the messages before the answer at ``end``, or before the end of the view."""
    start = end - len(group)
    if group and (value := _measured_then(ground, group, end)) is not None:
        add_group(ground.view, new, group, start, value, reading)
        new.content.add(Content(plain=value))
        new.given += value
        return
    for index, weighed in enumerate(group, start):
        add_message(ground.view, new, weighed, index, weighed.corrected(ground.calibration), "estimated", reading)
        new.content.add(weighed.content)
        new.given += weighed.given


def _measured_then(ground: Ground, group: Sequence[Weighed], end: int) -> int | None:
    """What these messages cost by the report of the step that first sent them, which is that of the answer after them;
    None unless they, as they are now, are all that was estimated of it."""
    view, target, start = ground.view, ground.target, end - len(group)
    if not start or end == len(view):
        return None
    before, step = (ground.answered.get(view[index].message.id) for index in (start - 1, end))
    if before is None or step is None or step.anchor_step != before.id or step.doubt or step.growth is None:
        return None
    first, usage, known = before.counted, step.counted, step.known_input
    if first is None or usage is None or known is None or not usage.anchors or first.output_source == "estimated":
        return None
    if (step.model, step.provider, step.api) != (target.model, target.provider, target.api):
        return None
    content = Content()
    for weighed in group:
        content.add(weighed.content)
    told = zip(content.terms, step.growth.terms, strict=True)
    if not any(content.terms[: len(KINDS)]) or any(abs(now - then) > SAME_TERM for now, then in told):
        return None
    value = usage.input - first.input - first.output
    # What else was in the report is known exactly: nothing was left out since, and the answer came back as it was.
    given = known + step.growth.plain - content.plain - first.input - first.output
    return value if value >= len(group) and abs(given) <= SAME_TOKENS else None


def estimated_head(ground: Ground) -> tuple[int, bool]:
    """Returns the estimate for the messages before the first measured answer, and whether a count is still missing."""
    weighed = [weigh(ground, i) for i in range(ground.head)]
    return sum(w.corrected(ground.calibration) for w in weighed), any(w.approximate for w in weighed)


def cleared_room(ground: Ground) -> int:
    """Tokens by which the messages before the first measured answer may be off, because of what was cleared or clipped
    of them since."""
    cleared = _removed_from(
        ground, nothing_measured(ground), ground.head, ground.chain[0].prune_ids, None, ground.calibration
    )
    return 2 * ground.calibration.spread(cleared.content)


def split_messages(ground: Ground, end: int, cost: int, reading: Reading) -> Tally:
    """The messages before ``end``, which together cost so much, split by their estimates."""
    tally = Tally()
    group = [weigh(ground, i) for i in range(end)]
    if group:
        add_group(ground.view, tally, group, 0, cost, reading)
    tally.end = end
    return tally


@dataclass(slots=True, frozen=True)
class Change:
    """Tokens by which something is smaller than it was; ``estimated``: not only provider numbers are in it; ``content``
    is what the error of those that are estimated consists of. None of it is changed."""

    tokens: int = 0
    estimated: bool = False
    content: Content = field(default_factory=Content)

    def __add__(self, other: Change) -> Change:
        if not other.tokens and not other.estimated:
            return self
        content = self.content.copy()
        content.add(other.content)
        return Change(self.tokens + other.tokens, self.estimated or other.estimated, content)


NO_CHANGE = Change()


def dropped_reasoning(ground: Ground, turn: Sequence[str]) -> Change:
    """Reasoning in the anchor's input and output that the next input will not have. ``turn`` are the answers of the
    anchor's turn, itself included."""
    anchor = ground.anchor
    if anchor is None:
        return NO_CHANGE
    if anchor.sent_reasoning is None:
        return _dropped_by_rule(ground, anchor, turn)
    view, family, now, runs = ground.view, ground.target.family, ground.reasoning, anchor.sent_reasoning
    dropped = NO_CHANGE
    for index in range(anchor.sent_count):
        message = view[index].message
        if message.role == "assistant" and carries_reasoning(message, family):
            dropped += _share(ground, message, share_at(runs, index) - now.counted(message.id), ground.calibration)
    if anchor.kind != "turn":
        return dropped
    own = view[anchor.sent_count].message
    return dropped + _share(ground, own, 1.0 - now.counted(own.id), ground.calibration)


def dropped_between(ground: Ground, before: Step, step: Step, turn: Sequence[str], user: bool) -> Change:
    """Reasoning that was in the first step's input or output and not in the second's input. ``user``: a message of the
    user's came in between."""
    if before.sent_reasoning is not None and step.sent_reasoning is not None:
        return _difference_of_runs(ground, before, before.sent_reasoning, step.sent_reasoning)
    now, target = ground.reasoning, ground.target
    open_before, open_after = not _closed_at(ground, before), not user and not _closed_at(ground, step)
    dropped = NO_CHANGE
    for message_id in turn[-1:] if open_after else turn:
        own_answer = message_id == before.message_id
        share = 1.0 if own_answer else now.counted_then(message_id, target, turn_open=open_before)
        later = now.counted_then(message_id, target, turn_open=open_after)
        dropped += _share_of(ground, message_id, share - later, ground.coarse)
    return dropped


def _difference_of_runs(ground: Ground, before: Step, then: Sequence[SentRun], after: Sequence[SentRun]) -> Change:
    view, family = ground.view, ground.target.family
    dropped = NO_CHANGE
    for start, stop, less in differences(then, after, before.sent_count):
        for index in range(start, stop):
            message = view[index].message
            if message.role == "assistant" and carries_reasoning(message, family):
                dropped += _share(ground, message, less, ground.coarse)
    if before.kind == "turn":
        own = view[before.sent_count].message
        kept = share_at(after, before.sent_count) if carries_reasoning(own, family) else 0.0
        dropped += _share(ground, own, 1.0 - kept, ground.coarse)
    return dropped


def _dropped_by_rule(ground: Ground, anchor: Step, turn: Sequence[str]) -> Change:
    now, then = ground.reasoning, _shares_at(ground, anchor)
    dropped = NO_CHANGE
    if then is None:
        if _closed_at(ground, anchor):
            return dropped
        closed = now.turn_closed or now.turn_start > anchor.sent_count
        for message_id in turn if closed else turn[-1:]:
            own = message_id == anchor.message_id
            before = 1.0 if own else now.counted_then(message_id, ground.target, turn_open=True)
            dropped += _share_of(ground, message_id, before - now.counted(message_id), ground.calibration)
        return dropped
    if anchor.message_id is not None and anchor.kind == "turn":
        then[anchor.message_id] = 1.0
    for message_id, share in then.items():
        dropped += _share_of(ground, message_id, share - now.counted(message_id), ground.calibration)
    return dropped


def _shares_at(ground: Ground, anchor: Step) -> dict[str, float] | None:
    """Shares of reasoning counted in the anchor's input; None when prompt, tools and cleared results are as they were,
    so that only turns closed since make a difference."""
    inputs, results = ground.inputs, ground.results
    fixed_same = not anchor.fixed_fingerprint or anchor.fixed_fingerprint == inputs.fixed_fingerprint
    turned_off = inputs.effort == "off" and anchor.thinking not in (None, "off")
    if fixed_same and results.same(anchor.prune_ids) and not turned_off:
        return None
    then: list[SentMessage] = []
    for item in ground.view[: anchor.sent_count]:
        if item.message.id in results.mentioned:
            state = results.state(anchor.prune_ids, item.message.id)
            made = SentMessage(*results.sent(item.stored or item.message, state))
            then += [] if is_gone(made.key) else [made]
        else:
            then.append(item)
    fixed = anchor.fixed_fingerprint or inputs.fixed_fingerprint
    return counted_at(then, ground.target, fixed, "medium" if turned_off else inputs.effort)


def _closed_at(ground: Ground, step: Step) -> bool:
    """Returns whether the step is a count of a conversation whose turn had ended: what the turn's end drops was not in
    it."""
    return step.kind == "count" and turn_is_closed(ground.view[step.sent_count - 1 : step.sent_count])


def _share_of(ground: Ground, message_id: str, share: float, known: Calibration) -> Change:
    message = _message(ground, message_id) if share else None
    return NO_CHANGE if message is None else _share(ground, message, share, known)


def _share(ground: Ground, message: Message, share: float, known: Calibration) -> Change:
    if share == 0.0:
        return NO_CHANGE
    content = reasoning_content(ground, message, share)
    return Change(round(known.tokens(content)), known.variance(content) > 0, content)


def _message(ground: Ground, message_id: str) -> Message | None:
    view, step = ground.view, ground.answered.get(message_id)
    at = step.sent_count if step is not None else len(view)
    if at < len(view) and view[at].message.id == message_id:
        return view[at].message
    return next((item.message for item in view if item.message.id == message_id), None)


@dataclass(slots=True)
class Measured:
    """The costs that the first ``steps`` of the chain measured. ``tally`` has every message from the first one's answer
    on, ``turn`` the answers of the turn that is open there, ``left`` what of the provider's cache is left for the rows
    that follow."""

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
    """Known cost of what was cleared, clipped or dropped since the anchor, less what stands in its place."""
    anchor = ground.anchor
    if anchor is None:
        return NO_CHANGE
    return _removed_from(ground, measured, end_of(anchor), anchor.prune_ids, None, ground.calibration)


def _add_answer(ground: Ground, measured: Measured, step: Step, reading: Reading) -> None:
    view, tally, index = ground.view, measured.tally, step.sent_count
    weighed = weigh(ground, index)
    usage = step.counted
    output = usage.output if usage is not None else 0
    tokens, reported = reasoning_of(ground, weighed.message)
    if weighed.message.id in ground.results.mentioned:
        error = Content()
        error.add(reasoning_content(ground, weighed.message, 1.0), -1)
        tally.values[weighed.message.id] = (output - tokens, weighed.message.id, error)
    if is_gone(weighed.key):
        tally.end = index + 1
        measured.turn.append(weighed.message.id)
        return
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
                today[message_id] = now, now.corrected(ground.coarse)
        else:
            group.append(_unmeasured(ground, weigh(ground, i)))
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


def _unmeasured(ground: Ground, weighed: Weighed) -> Weighed:
    """The same with its reasoning as unsure as it is long: between two reports stands only an answer whose own was not
    believed, and what the next one had of its reasoning is not known."""
    message = weighed.message
    tokens = reasoning_of(ground, message)[0] if message.role == "assistant" else 0
    if not tokens:
        return weighed
    content = weighed.content.copy()
    content.rough += tokens**2
    return replace(weighed, content=content)


def _difference(ground: Ground, measured: Measured, before: Step, step: Step, user: bool) -> tuple[int, bool]:
    """Measured size of what was added between two steps, and whether only provider numbers are in it."""
    first, second = before.counted, step.counted
    if first is None or second is None:
        return 0, False
    dropped = dropped_between(ground, before, step, measured.turn, user)
    end, known = measured.tally.end, ground.coarse
    gone = _removed_from(ground, measured, end, before.prune_ids, step.prune_ids, known)
    change = measured_change(step, before)
    shown = () if change is None else (change,)
    delta, _, _ = fixed_delta(step.fixed, before.fixed, ground.family, known, ground.measured_scale, shown)
    output = first.output if before.kind == "turn" else 0
    value = second.input - first.input - output + dropped.tokens + gone.tokens - delta
    return value, delta == 0 and not dropped.estimated and not gone.tokens


def _removed_from(
    ground: Ground, measured: Measured, end: int, then: list[str], now: list[str] | None, known: Calibration
) -> Change:
    """Returns what the prune records ``now`` (None: those in force) take away from the first ``end`` messages that
    those of ``then`` did not."""
    results = ground.results
    if results.same(then, now):
        return NO_CHANGE
    tokens, estimated, content = 0, False, Content()
    for index, item in enumerate(ground.view[:end]):
        message_id = item.message.id
        if message_id not in results.mentioned:
            continue
        old, new = results.state(then, message_id), results.state(now, message_id)
        if old != new:
            for state, sign in ((old, 1), (new, -1)):
                cost, of = _cost(ground, measured.tally, index, state, known)
                tokens += sign * cost
                content.add(of, sign)
            estimated = True
    return Change(tokens, estimated, content)


def _cost(ground: Ground, tally: Tally, index: int, state: str, calibration: Calibration) -> tuple[int, Content]:
    """Cost of a message in a state, and what its error consists of: as measured where it was measured so, else
    estimated at a calibration. The reasoning of answers is none of it: ``dropped_reasoning`` has that."""
    weighed = weigh(ground, index, state)
    known = tally.values.get(weighed.message.id)
    if known is not None and known[1] == weighed.key:
        return known[0], known[2]
    if weighed.message.role == "assistant" and not is_gone(weighed.key):
        content = ground.estimate(weighed.message, weighed.key, True).content
        return round_up(max(0.0, calibration.tokens(content))), content
    return weighed.corrected(calibration), weighed.content


def _open_answers(ground: Ground, end: int) -> list[str]:
    answers: list[str] = []
    for index in range(end - 1, -1, -1):
        message = ground.view[index].message
        if message.role == "user":
            break
        if message.role == "assistant":
            answers.insert(0, message.id)
    return answers
