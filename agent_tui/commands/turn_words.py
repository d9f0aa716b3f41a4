"""How a turn ended, in words and as an exit code."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from agent_tui.context.accounting.totals import turn_figure
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


def says_itself(messages: Sequence[Message]) -> bool:
    """Whether the newest answer says itself that it was interrupted."""
    newest = messages[-1] if messages else None
    return newest is not None and newest.role == "assistant" and newest.status == "stopped"


def ending_lines(
    ended: TurnEnded, told: Collection[str], interruption_told: bool, cost: bool
) -> Iterator[tuple[str, str]]:
    """What is said at the end of a turn, with its level. ``told`` was said in it already; ``cost``: with what the turn
    cost."""
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
