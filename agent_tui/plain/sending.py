"""Hands what is typed to the agent, or lets it wait for its turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_tui.errors import EXIT_ERROR, EXIT_OK, READ_ONLY
from agent_tui.plain.line_writer import LEVELS
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.events import QueueChanged, WaitingKind, WaitingMessage
    from agent_tui.plain.line_writer import LineWriter
    from agent_tui.plain.questions import Asking
    from agent_tui.plain.reading import Reads

STATES: dict[WaitingKind, str] = {
    "queued": "queued",
    "steer": "queued for the next step",
    "held": "not sent yet",
    "failed": "could not be sent",
    "unanswered": "not answered, sent with your next message",
}


class QueueView:
    """Knows what waits, as the agent tells it, and what was sent at once and needs no repeating."""

    def __init__(self) -> None:
        self._waiting: list[WaitingMessage] = []
        self._paused = False
        self._typed: list[str] = []

    def changed(self, event: QueueChanged) -> None:
        self._waiting, self._paused = list(event.waiting), event.paused

    def sent(self, text: str) -> None:
        """It goes out at once: the user has just seen it."""
        self._typed.append(text)

    def was_just_typed(self, text: str) -> bool:
        """Returns whether a message that joins the conversation was sent at once."""
        if text in self._typed:
            self._typed.remove(text)
            return True
        return False

    def named(self, number: str) -> WaitingMessage | None:
        """Returns the waiting message that stands in the list under a number."""
        at = int(number) if number.isdecimal() else 0
        return self._waiting[at - 1] if 0 < at <= len(self._waiting) else None

    def lines(self) -> list[str]:
        """Returns a line for each message that waits, the next first."""
        found = []
        for number, message in enumerate(self._waiting, 1):
            why = f": {one_line(message.why, 200)}" if message.why else ""
            found.append(f"{number}. {one_line(message.text, 200)} ({STATES[message.kind]}{why})")
        return found

    def queued_words(self, steered: bool) -> str:
        """Returns the words that are said when something is typed while the agent works."""
        when = "for the next step" if steered else "until the turn ends"
        return f"queued {when}; /queue lists {plural(len(self._waiting), 'message')}, /queue drop removes the newest."

    def waiting_words(self, text: str) -> str:
        """Of what waits from an earlier run; keys of the screen are commands here."""
        held = sum(message.kind == "held" for message in self._waiting)
        if not held:
            return text
        return f"{_queued(held)} from last time: an empty line sends, /queue lists, /queue drop removes."

    def paused_words(self) -> str:
        """After a turn that did not end well: nothing of what waits goes out by itself. Empty where nothing waits."""
        waiting = sum(message.kind != "held" for message in self._waiting)
        if not self._paused or not waiting:
            return ""
        return f"{_queued(waiting)}: an empty line sends the first, /queue lists, /queue drop removes."


def _queued(count: int) -> str:
    return plural(count, "queued message")


@dataclass(eq=False)
class PlainSender:
    """Sends messages, and says why one cannot be sent."""

    agent: Agent
    writer: LineWriter
    reads: Reads
    queue: QueueView
    asking: Asking
    live: bool
    code: int = EXIT_OK
    """The exit code of the program: of a script (not ``live``) the first thing that went wrong makes it."""

    def failed(self, code: int) -> None:
        """Something went wrong that makes this exit code."""
        if not self.live:
            self.code = self.code or code

    def problem(self, text: str) -> None:
        """Says that what was asked cannot be done."""
        self.writer.quote(text.replace("Esc interrupts it", "Ctrl+C interrupts it"), "Error")
        self.failed(EXIT_ERROR)

    async def message(
        self,
        text: str,
        named: str | None = None,
        steer: bool = False,
        typed: Sequence[list[int]] | None = None,
    ) -> None:
        """Sends a message; ``named`` is the text whose ``@`` words name files, where that is another one, and ``typed``
        what of it the user typed, where that is not all."""
        from agent_tui.commands.mentions import collect

        agent = self.agent

        def say(level: str, words: str) -> None:
            self.writer.quote(words, LEVELS[level])

        attachments = await collect(agent, text if named is None else named, [], say, self.asking.may_attach)
        if agent.conversation.read_only:
            self.problem(READ_ONLY)
            self.give_back(text)
        elif agent.turns.busy:
            (agent.turns.steer if steer else agent.turns.submit)(text, attachments, typed=typed)
            self.writer.remark(self.queue.queued_words(steer), "Note")
        else:
            self.queue.sent(text)
            agent.turns.submit(text, attachments, typed=typed)

    def give_back(self, text: str) -> None:
        """Lets a text stand in the next line, to be changed and sent."""
        if self.reads.drawn:
            self.reads.keep(text)
        elif text:
            self.writer.quote(text, "Your message was")
