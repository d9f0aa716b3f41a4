"""What was typed and waits for its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from agent_tui.models.events import QueueChanged, WaitingKind, WaitingMessage

STATES: dict[WaitingKind, str] = {
    "queued": "queued",
    "steer": "queued for the next step",
    "held": "waits for your word",
    "failed": "could not be sent",
    "unanswered": "was not answered, goes along with your next message",
}


class Queue:
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
        """Whether a message that joins the conversation was sent at once."""
        if text in self._typed:
            self._typed.remove(text)
            return True
        return False

    @property
    def count(self) -> int:
        return len(self._waiting)

    def named(self, number: str) -> WaitingMessage | None:
        """What stands in the list under a number."""
        at = int(number) if number.isdecimal() else 0
        return self._waiting[at - 1] if 0 < at <= len(self._waiting) else None

    def lines(self) -> list[str]:
        """What waits, the next first."""
        found = []
        for number, message in enumerate(self._waiting, 1):
            why = f": {one_line(message.why, 200)}" if message.why else ""
            found.append(f"{number}. {one_line(message.text, 200)} ({STATES[message.kind]}{why})")
        return found

    def queued_words(self, steered: bool) -> str:
        """What is said when something is typed while the agent works."""
        when = "goes in at the next step" if steered else "goes when the turn is over"
        return f"queued, {when}. {plural(self.count, 'message waits', 'messages wait')}; /queue lists, /queue drop."

    def waiting_words(self, text: str) -> str:
        """Of what waits from an earlier run; keys of the screen are commands here."""
        held = sum(message.kind == "held" for message in self._waiting)
        if not held:
            return text
        waits = plural(held, "message waits", "messages wait")
        return f"{waits} from when this session was left: an empty line sends, /queue lists, /queue drop takes back."

    def paused_words(self) -> str:
        """After a turn that did not end well: nothing of what waits goes out by itself. Empty where nothing waits."""
        waiting = sum(message.kind != "held" for message in self._waiting)
        if not self._paused or not waiting:
            return ""
        waits = plural(waiting, "message waits", "messages wait")
        return f"{waits}: an empty line sends the first, /queue lists, /queue drop takes back."
