"""What one message of the view costs as far as it is not measured, its reasoning included."""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.context.accounting.given.ground import Ground
from agent_tui.context.accounting.given.reasoning import reasoning_tokens
from agent_tui.context.tokens.estimate import round_up
from agent_tui.models.messages import Message, ReasoningPart
from agent_tui.models.rows import MessageRowId


@dataclass(slots=True)
class Weighed:
    """One message with its estimated cost by kind. ``note`` says why its reasoning is or is not resent; ``exact`` is
    the whole estimate before it was rounded up, and ``given`` the part of it that is no estimate of text: images, and
    reasoning that the provider counted."""

    message: Message
    key: str
    weights: list[tuple[MessageRowId, int]]
    approximate: bool = False
    rough: bool = False
    note: str | None = None
    exact: float = 0.0
    given: float = 0.0

    @property
    def tokens(self) -> int:
        return sum(t for _, t in self.weights)

    def corrected(self, ratio: float) -> int:
        """The estimate with the model's calibration, which is about text only, applied; rounded up once."""
        return self.tokens if ratio == 1.0 else round_up(self.given + (self.exact - self.given) * ratio)


def weigh(ground: Ground, index: int, state: str | None = None) -> Weighed:
    """A message of the view with its estimated cost, reasoning included as far as it is counted now.

    ``state``: as it was sent under other prune records.
    """
    view = ground.view
    item = view[index]
    message, key = item.message, item.key
    if state is not None:
        message, key = ground.results.sent(item.stored or message, state)
    first = message.role != "tool" or index == 0 or view[index - 1].message.role != "tool"
    made = ground.estimate(message, key, first)
    weights, exact, given = list(made.shares), made.exact, made.media
    note = None
    if message.role == "assistant":
        tokens, _ = reasoning_of(ground, message)
        status = ground.reasoning.status(message.id)
        if status is not None and (tokens or any(isinstance(p, ReasoningPart) for p in message.parts)):
            weights.append(("reasoning", round(tokens * status.counted)))
            exact += tokens * status.counted
            given += tokens * status.counted
            note = status.reason
    return Weighed(message, key, weights, made.approximate, made.rough, note, exact, given)


def reasoning_of(ground: Ground, message: Message) -> tuple[int, bool]:
    """Reasoning tokens of an answer, and whether the provider said so."""

    def spoken(answer: Message) -> float:
        """Estimate of an answer's text and calls, which is its output without the reasoning."""
        return ground.estimate(answer, answer.id, True).exact * ground.coarse_ratio

    return reasoning_tokens(message, ground.answered.get(message.id), spoken)
