"""Tells how a turn ended, in words and as an exit code."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from agent_tui.context.accounting.spending import turn_figure
from agent_tui.errors import (
    EXIT_BUDGET,
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_REFUSED,
    EXIT_STEP_LIMIT,
)
from agent_tui.models.events import StopReason, TurnEnded
from agent_tui.models.failure import INTERRUPTED
from agent_tui.models.messages import Message
from agent_tui.models.steps import Step

EXIT_BY_REASON: dict[StopReason, int] = {
    "end": EXIT_OK,
    "length": EXIT_OK,
    "refused": EXIT_REFUSED,
    "step_limit": EXIT_STEP_LIMIT,
    "budget": EXIT_BUDGET,
    "interrupted": EXIT_INTERRUPTED,
    "error": EXIT_ERROR,
}

STOP_TEXT = {"interrupted": INTERRUPTED, "refused": "The model refused to answer."}
"""Of the ends of a turn that nothing else tells: a limit that stopped it is told by a notice, a failure by itself."""


LONG_TURN = 10.0
"""Seconds after which the end of a turn is worth calling the user."""


def says_itself(messages: Sequence[Message]) -> bool:
    """Returns whether the newest answer says itself that it was interrupted."""
    newest = messages[-1] if messages else None
    return newest is not None and newest.role == "assistant" and newest.status == "stopped"


def told_by_what_follows(message: Message, step: Step) -> bool:
    """Returns whether a step was refused for its size before a word of an answer, so that what follows tells of it: it
    is made again in another way, or the turn ends with the reason."""
    return step.failure is not None and step.failure.kind == "context_overflow" and not message.parts


class Told:
    """The texts that were told of a turn, so that its end does not repeat them."""

    def __init__(self) -> None:
        self._texts: set[str] = set()

    def add(self, text: str) -> None:
        self._texts.add(text)

    def step_ended(self, step: Step, message: Message) -> str | None:
        """The failure of a step, which is told now; None where there is none, or what follows tells it."""
        if step.failure is None or told_by_what_follows(message, step):
            return None
        self.add(step.failure.message)
        return step.failure.message

    def ending(self, ended: TurnEnded, interruption_told: bool, cost: bool) -> Iterator[tuple[str, str]]:
        """Returns what is said at the end of a turn, each line with its level; the next turn begins anew. ``cost``:
        with what the turn cost."""
        lines = list(_ending_lines(ended, self._texts, interruption_told, cost))
        self._texts.clear()
        return iter(lines)


def _ending_lines(
    ended: TurnEnded, told: Collection[str], interruption_told: bool, cost: bool
) -> Iterator[tuple[str, str]]:
    reason, failure = ended.stop_reason, ended.failure
    if reason == "interrupted" and interruption_told:
        pass
    elif reason in STOP_TEXT and failure is None:
        yield "info" if reason == "interrupted" else "warning", STOP_TEXT[reason]
    elif reason == "error" and failure is None:
        yield "error", "The turn ended with an error."
    if failure is not None and failure.message not in told:
        yield "error", failure.message
    if cost and (figure := turn_figure(ended.bill)) is not None:
        yield "info", figure
