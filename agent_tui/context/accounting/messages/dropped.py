"""``dropped_reasoning``: reasoning that was in a step's input or output and is not in what is sent later.

Between the anchor and the next request it is a term of the formula, between two steps one of the measured difference.
What a step sent is stored with it; of a step of which it was not stored, the replay rule of today tells it as far as it
can.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.context.accounting.given.ground import Ground
from agent_tui.context.accounting.given.reasoning import counted_at
from agent_tui.context.accounting.messages.change import NO_CHANGE, Change
from agent_tui.context.accounting.messages.weigh import reasoning_of
from agent_tui.context.sent.reasoning_runs import differences, share_at
from agent_tui.models.messages import Message
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import SentRun, Step
from agent_tui.providers.reasoning import carries_reasoning, turn_is_closed


def dropped_reasoning(ground: Ground, turn: Sequence[str]) -> Change:
    """Reasoning in the anchor's input and output that the next input will not have. ``turn`` are the answers of the
    anchor's turn, itself included."""
    anchor = ground.anchor
    if anchor is None:
        return NO_CHANGE
    if anchor.sent_reasoning is None:
        return _dropped_by_rule(ground, anchor, turn)
    dropped = dropped_from_input(ground, anchor.sent_reasoning, 0, anchor.sent_count)
    return dropped + dropped_from_output(ground, anchor)


def dropped_from_input(ground: Ground, runs: Sequence[SentRun], start: int, stop: int) -> Change:
    """The part of it that belongs to the messages ``[start, stop)`` of the input: their share of then, which ``runs``
    tell, less their share of now."""
    view, family, now = ground.view, ground.target.family, ground.reasoning
    dropped = NO_CHANGE
    for index in range(start, stop):
        message = view[index].message
        if message.role == "assistant" and carries_reasoning(message, family):
            dropped += _share(ground, message, share_at(runs, index) - now.counted(message.id))
    return dropped


def dropped_from_output(ground: Ground, anchor: Step) -> Change:
    """The part of it that belongs to the anchor's own answer."""
    if anchor.kind != "turn":
        return NO_CHANGE
    own = ground.view[anchor.sent_count].message
    return _share(ground, own, 1.0 - ground.reasoning.counted(own.id))


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
        dropped += _share_of(ground, message_id, share - later)
    return dropped


def _difference_of_runs(ground: Ground, before: Step, then: Sequence[SentRun], after: Sequence[SentRun]) -> Change:
    view, family = ground.view, ground.target.family
    dropped = NO_CHANGE
    for start, stop, less in differences(then, after, before.sent_count):
        for index in range(start, stop):
            message = view[index].message
            if message.role == "assistant" and carries_reasoning(message, family):
                dropped += _share(ground, message, less)
    if before.kind == "turn":
        own = view[before.sent_count].message
        kept = share_at(after, before.sent_count) if carries_reasoning(own, family) else 0.0
        dropped += _share(ground, own, 1.0 - kept)
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
            dropped += _share_of(ground, message_id, before - now.counted(message_id))
        return dropped
    if anchor.message_id is not None and anchor.kind == "turn":
        then[anchor.message_id] = 1.0
    for message_id, share in then.items():
        dropped += _share_of(ground, message_id, share - now.counted(message_id))
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
            then.append(SentMessage(*results.sent(item.stored or item.message, state)))
        else:
            then.append(item)
    fixed = anchor.fixed_fingerprint or inputs.fixed_fingerprint
    return counted_at(then, ground.target, fixed, "medium" if turned_off else inputs.effort)


def _closed_at(ground: Ground, step: Step) -> bool:
    """Whether it is a count of a conversation whose turn had ended: what the turn's end drops was not in it."""
    return step.kind == "count" and turn_is_closed(ground.view[step.sent_count - 1 : step.sent_count])


def _share_of(ground: Ground, message_id: str, share: float) -> Change:
    message = _message(ground, message_id) if share else None
    return NO_CHANGE if message is None else _share(ground, message, share)


def _share(ground: Ground, message: Message, share: float) -> Change:
    """A share of an answer's reasoning."""
    if share == 0.0:
        return NO_CHANGE
    tokens, reported = reasoning_of(ground, message)
    return Change(round(tokens * share), tokens > 0 and not reported)


def _message(ground: Ground, message_id: str) -> Message | None:
    """An answer of the view; its step says where it is."""
    view, step = ground.view, ground.answered.get(message_id)
    at = step.sent_count if step is not None else len(view)
    if at < len(view) and view[at].message.id == message_id:
        return view[at].message
    return next((item.message for item in view if item.message.id == message_id), None)
