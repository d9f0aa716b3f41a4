"""Reasoning that a change of the conversation, the model or the settings takes out of the requests to come.

What goes back and what of it counts is the replay rule's answer, asked about the state before the change and the one
after it. Whether going back brings it again is asked of the same rule: at once, and once another answer was given,
which is when what the provider has in its cache is another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from agent_tui.context.accounting.inputs import ContextInputs, Ground, ground_of, reasoning_now, rule_of
from agent_tui.context.accounting.tally import reasoning_of
from agent_tui.context.anchor import ResultStates, prefixes_of, runs_of
from agent_tui.context.view import active_prune_ids
from agent_tui.models.messages import Message, Origin, TextPart, fingerprint
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import Step
from agent_tui.models.usage import NO_COST, Cost, Prices
from agent_tui.providers.catalog import retention
from agent_tui.providers.reasoning import plan_replay
from agent_tui.records import dataclass
from agent_tui.text.numbers import money, tokens

WORTH_SAYING = 1_000
"""Tokens; of less nothing is said. It is a page of thinking, and half a cent to two cents at the usual prices."""

WHOLE = 0.99
"""From this share of what was lost on, all of it is back: the rest is rounding."""


@dataclass(slots=True, frozen=True)
class WayBack:
    """The way in which the user would take the change back (``words``: ``/model opus``), and what the calculator would
    then be given. ``elsewhere``: what was left stays as it is, so that what is said meanwhile does not change it."""

    words: str
    inputs: ContextInputs
    elsewhere: bool = False


@dataclass(slots=True, frozen=True)
class LostReasoning:
    """``tokens`` of reasoning that the next request would have had and now has not, and what they cost when they were
    made. ``basis``: whether the provider counted them. ``way`` back brings ``back_now`` of them where it is taken at
    once, ``back_later`` after the next answer; it is empty where there is none."""

    tokens: int
    basis: Literal["reported", "estimated"]
    cost: Cost
    way: str = ""
    back_now: int = 0
    back_later: int = 0


def lost_reasoning(
    before: ContextInputs, after: ContextInputs, way: WayBack | None = None, *, turn_open: bool = False
) -> LostReasoning | None:
    """Returns the reasoning that a change from ``before`` to ``after`` loses; None where that is nothing, or too little
    to speak of.

    Only what counts in the next input is lost: a model that drops the reasoning of closed turns loses nothing of it.
    ``turn_open``: the change comes between two steps of a turn; else the next request begins with the user's message.
    """
    if not turn_open and retention(before.model.target)[1] == 0:
        return None
    then = before if turn_open else _spoken_to(before)
    ground = ground_of(then)
    now = _shares(after if turn_open else _spoken_to(after))
    lost: dict[str, float] = {}
    count, reported, cost = 0, True, NO_COST
    for item in ground.view:
        message = item.message
        share = ground.reasoning.counted(message.id) - now.get(message.id, 0.0)
        if message.role != "assistant" or share <= 0:
            continue
        of_answer, said = reasoning_of(ground, message)
        part = round(of_answer * share)
        if part:
            lost[message.id] = of_answer * share
            count, reported = count + part, reported and said
            cost += _cost(ground.answered.get(message.id), part, before.model.prices)
    if count < WORTH_SAYING:
        return None
    back_now = back_later = 0
    if way is not None:
        back_now = _back(ground, lost, now, way.inputs if turn_open else _spoken_to(way.inputs))
        back_later = back_now if way.elsewhere else _back(ground, lost, now, _after_an_answer(after, way.inputs))
    return LostReasoning(
        count, "reported" if reported else "estimated", cost, way.words if way else "", back_now, back_later
    )


def lost_words(lost: LostReasoning) -> str:
    """Returns in words what is lost, without what is done about it: ``19.4k reasoning tokens ($0.29 to make)``."""
    price = money(lost.cost)
    made = "price unknown" if lost.cost.unpriced and not lost.cost.known else f"{price} to make"
    return f"{tokens(lost.tokens, lost.basis == 'estimated')} reasoning tokens ({made})"


def lost_text(lost: LostReasoning | None, *, would: bool = False) -> str:
    """One sentence on it, and on what brings it back; empty where nothing is lost. ``would``: it has not happened."""
    if lost is None:
        return ""
    verb, bring = ("would no longer be", "would bring") if would else ("are no longer", "brings")
    return f"{lost_words(lost)} {verb} sent; {_way_words(lost, bring)}."


def _way_words(lost: LostReasoning, bring: str) -> str:
    whole = WHOLE * lost.tokens
    if lost.back_later >= whole:
        return f"{lost.way} {bring} them back"
    if lost.back_now >= whole:
        return f"{lost.way} {bring} them back until the next answer"
    if lost.back_later:
        return f"{lost.way} {bring} {tokens(lost.back_later, lost.basis == 'estimated')} of them back"
    return "nothing brings them back"


def _shares(inputs: ContextInputs) -> dict[str, float]:
    """Of each answer, which share of its reasoning counts in the next input."""
    view, target = inputs.view, inputs.model.target
    rule = rule_of(inputs, prefixes_of(view), ResultStates(inputs.records))
    now = reasoning_now(view, target, inputs.fixed_fingerprint, inputs.effort, rule)
    return {message_id: status.counted for message_id, status in now.statuses.items()}


def _back(ground: Ground, lost: dict[str, float], now: dict[str, float], inputs: ContextInputs) -> int:
    again = _shares(inputs)
    back = 0.0
    for message_id, missing in lost.items():
        gone = ground.reasoning.counted(message_id) - now.get(message_id, 0.0)
        returned = min(gone, again.get(message_id, 0.0) - now.get(message_id, 0.0))
        back += missing * max(0.0, returned) / gone
    return round(back)


def _spoken_to(inputs: ContextInputs) -> ContextInputs:
    return replace(inputs, view=[*inputs.view, _sent("user", "next")])


def _after_an_answer(after: ContextInputs, back: ContextInputs) -> ContextInputs:
    """The way back, taken once a message of the user's was answered in the state after the change."""
    asked = _sent("user", "asked")
    view = [*after.view, asked]
    target = after.model.target
    rule = rule_of(after, prefixes_of(view), ResultStates(after.records))
    plan = plan_replay(view, target, after.fixed_fingerprint, "off" if after.effort == "off" else None, rule)
    answered = _sent("assistant", "answered", Origin(target.provider, target.api, target.model))
    step = Step(
        "step-between",
        "turn",
        after.model.spec.key,
        target.provider,
        target.api,
        target.model,
        message_id=answered.message.id,
        status="complete",
        sent_count=len(view),
        sent_fingerprint=fingerprint(item.message.id for item in view),
        fixed_fingerprint=after.fixed_fingerprint,
        prune_ids=active_prune_ids(after.records),
        thinking=after.effort,
        sent_reasoning=runs_of(view, plan, target.family),
    )
    said: Sequence[SentMessage] = [*back.view, asked, answered]
    return _spoken_to(replace(back, view=said, steps=[*back.steps, step]))


def _sent(role: Literal["user", "assistant"], name: str, origin: Origin | None = None) -> SentMessage:
    message = Message(f"message-{name}", role, [TextPart(".")], origin=origin, raw_tokens=1)
    return SentMessage(message, message.id)


def _cost(step: Step | None, reasoning: int, prices: Prices) -> Cost:
    """Returns the cost of so many reasoning tokens of a step's output, as it was billed: their share of the step's
    price follows from the list prices."""
    usage = step.counted if step is not None else None
    if step is None or usage is None or step.cost_usd is None:
        return Cost(unpriced=1)
    if step.cost_usd == 0:
        return NO_COST
    said = None if usage.reasoning is None else max(0, usage.reasoning - reasoning)
    without = replace(usage, output=max(0, usage.output - reasoning), reasoning=said)
    listed, rest = prices.cost(usage), prices.cost(without)
    if not listed or rest is None:
        return Cost(unpriced=1)
    return Cost(step.cost_usd * (listed - rest) / listed)
