"""Tells how a turn ended, in words and as an exit code."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from agent_tui.errors import (
    EXIT_BUDGET,
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_REFUSED,
    EXIT_STEP_LIMIT,
)
from agent_tui.models.context import SessionTotals
from agent_tui.models.events import StopReason, TurnEnded
from agent_tui.models.failure import INTERRUPTED, without_text_kept
from agent_tui.models.messages import Message
from agent_tui.models.steps import Step
from agent_tui.text.numbers import duration, money, plural, tokens

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


ASKED = ("budget", "context_full")
"""Codes of the notices that a question follows, which has the ways on."""

LONG_TURN = 10.0
"""Seconds after which the end of a turn is worth calling the user."""


def endings_without_words(messages: Sequence[Message], steps: Sequence[Step]) -> dict[str, tuple[str, str]]:
    """How requests ended that brought no word of an answer and were not made again since: level and text, by the id of
    the message that they answered. No message of the conversation says so."""
    there = {message.id for message in messages}
    newest = {step.given.head: step for step in steps if step.kind == "turn" and step.given is not None}
    found: dict[str, tuple[str, str]] = {}
    for head, step in newest.items():
        if head is None or head not in there or step.message_id in there:
            continue
        if step.failure is not None:
            found[head] = "error", without_text_kept(step.failure).message
        elif step.status == "stopped":
            found[head] = "warning", INTERRUPTED
    return found


REPAIRED = frozenset({"context_overflow", "too_large", "invalid_request", "not_found"})
"""Kinds of failures after which a step may be made again with less."""


def told_by_what_follows(message: Message, step: Step) -> bool:
    """Returns whether a step was refused before a word of an answer, or its answer filled the window, so that what
    follows tells of it: it is made again in another way, or the turn ends with the reason."""
    failure = step.failure
    if failure is None or failure.kind not in REPAIRED:
        return False
    return not message.parts or (failure.overflow is not None and failure.overflow.answering)


def turn_line(bill: SessionTotals, seconds: float | None, files: int = 0) -> str:
    """``6 s · 2.1k tokens · $0.01 · 2 files``: how long a turn took, what the model wrote, what that cost and how many
    files its calls changed. What is nothing or unknown is left out; empty where no model was called."""
    usage = bill.usage
    if usage is None and not bill.cost.known:
        return ""
    parts = [] if seconds is None else [duration(seconds)]
    if usage is not None and usage.output:
        parts.append(f"{tokens(usage.output, usage.source == 'estimated')} tokens")
    parts += [money(bill.cost)] if bill.cost.known else []
    parts += [plural(files, "file")] if files else []
    return " · ".join(parts)


class TurnTexts:
    """The texts that were told of a turn, so that its end does not repeat them, and the files that it changed."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._files: set[str] = set()

    def add(self, text: str) -> None:
        self._texts.add(text)

    def add_message(self, message: Message) -> None:
        """Takes note of the file that a call changed."""
        result = message.tool_result
        if result is not None and not result.is_error and (result.display or {}).get("kind") == "diff":
            self._files.add(str((result.display or {}).get("path")))

    def step_ended(self, step: Step, message: Message) -> str | None:
        """The failure of a step, which is told now; None where there is none, or what follows tells it."""
        if step.status == "stopped":
            self.add(INTERRUPTED)
        if step.failure is None or told_by_what_follows(message, step):
            return None
        self.add(step.failure.message)
        return step.failure.message

    def ending(self, ended: TurnEnded, seconds: float | None) -> tuple[list[tuple[str, str]], str]:
        """Returns what is said at the end of a turn that took so long, each line with its level, and its
        ``turn_line``; the next turn begins anew."""
        lines = list(_ending_lines(ended, self._texts))
        line = turn_line(ended.bill, seconds, len(self._files))
        self._texts.clear()
        self._files.clear()
        return lines, line


def _ending_lines(ended: TurnEnded, told: Collection[str]) -> Iterator[tuple[str, str]]:
    reason, failure = ended.stop_reason, ended.failure
    if reason in STOP_TEXT and failure is None:
        if STOP_TEXT[reason] not in told:
            yield "info" if reason == "interrupted" else "warning", STOP_TEXT[reason]
    elif reason == "error" and failure is None:
        yield "error", "The turn ended with an error."
    if failure is not None and failure.message not in told:
        yield "error", failure.message
