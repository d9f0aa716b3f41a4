"""Reasoning that a change of the conversation, the model or the settings takes out of the requests to come.

What goes back and what of it counts is the replay rule's answer, asked about the state before the change and the one
after it.
"""

from __future__ import annotations

from dataclasses import replace

from agent_tui.context.accounting.inputs import ContextInputs, reasoning_now, reasoning_tokens
from agent_tui.context.accounting.items import Estimator
from agent_tui.context.accounting.usage import Calculator
from agent_tui.context.tokens import family_seen
from agent_tui.models.messages import Message, TextPart
from agent_tui.models.requests import SentMessage
from agent_tui.providers.catalog import retention
from agent_tui.records import dataclass
from agent_tui.text.numbers import tokens

WORTH_SAYING = 1_000
"""Tokens; of less nothing is said: it is a page of thinking."""


@dataclass(slots=True, frozen=True)
class LostReasoning:
    """``tokens`` of reasoning that the next request would have had and now has not; ``estimated`` where the provider
    did not count them."""

    tokens: int
    estimated: bool = False


def lost_reasoning(before: ContextInputs, after: ContextInputs, *, turn_open: bool = False) -> LostReasoning | None:
    """Returns the reasoning that a change from ``before`` to ``after`` loses; None where that is nothing, or too little
    to speak of.

    Only what counts in the next input is lost: a model that drops the reasoning of closed turns loses nothing of it.
    ``turn_open``: the change comes between two steps of a turn; else the next request begins with the user's message.
    """
    if not turn_open and retention(before.model.target)[1] == 0:
        return None
    then = before if turn_open else _spoken_to(before)
    shares, now = _shares(then), _shares(after if turn_open else _spoken_to(after))
    answered = {step.message_id: step for step in then.steps if step.message_id is not None}
    estimator = Estimator(family_seen(then.model, then.fixed))
    known = then.calibration or estimator.family.beginning
    count, reported = 0, True
    for item in then.view:
        message = item.message
        share = shares.get(message.id, 0.0) - now.get(message.id, 0.0)
        if message.role != "assistant" or share <= 0:
            continue
        step = answered.get(message.id)
        of_answer, said = reasoning_tokens(message, step, lambda each: estimator.spoken_tokens(each, known))
        if part := round(of_answer * share):
            count, reported = count + part, reported and said
    return LostReasoning(count, not reported) if count >= WORTH_SAYING else None


def lost_words(lost: LostReasoning) -> str:
    """``19.4k reasoning tokens``"""
    return f"{tokens(lost.tokens, lost.estimated)} reasoning tokens"


def lost_text(lost: LostReasoning | None, *, would: bool = False) -> str:
    """One sentence on it; empty where nothing is lost. ``would``: it has not happened."""
    if lost is None:
        return ""
    return f"{lost_words(lost)} {'would no longer be' if would else 'are no longer'} sent."


def _shares(inputs: ContextInputs) -> dict[str, float]:
    """Of each answer, which share of its reasoning counts in the next input."""
    view, target = inputs.view, inputs.model.target
    rule = Calculator().rule(inputs)
    now = reasoning_now(view, target, inputs.fixed_fingerprint, inputs.effort, rule)
    return {message_id: status.counted for message_id, status in now.statuses.items()}


def _spoken_to(inputs: ContextInputs) -> ContextInputs:
    message = Message("message-next", "user", [TextPart(".")], raw_tokens=1)
    return replace(inputs, view=[*inputs.view, SentMessage(message, message.id)])
