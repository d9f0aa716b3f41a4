"""What was typed and waits for its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from agent_tui.models.events import QueueChanged


class Queue:
    """Knows what waits, as the agent tells it, and what was sent at once and needs no repeating."""

    def __init__(self) -> None:
        self._queued: list[str] = []
        self._held: list[str] = []
        self._typed: list[str] = []

    def changed(self, event: QueueChanged) -> None:
        self._queued, self._held = [*event.steer, *event.queued], list(event.held)

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
        return len(self._queued) + len(self._held)

    def lines(self) -> list[str]:
        """What waits, the next first."""
        waiting = [(text, "waits for your word") for text in self._held]
        waiting += [(text, "queued") for text in self._queued]
        return [f"{number}. {one_line(text, 200)} ({why})" for number, (text, why) in enumerate(waiting, 1)]

    def queued_words(self, steered: bool) -> str:
        """What is said when something is typed while the agent works."""
        when = "goes in at the next step" if steered else "goes when the turn is over"
        return f"queued, {when}. {plural(self.count, 'message waits', 'messages wait')}; /queue lists, /queue drop."

    def waiting_words(self, text: str) -> str:
        """Of what waits from an earlier run; keys of the screen are commands here."""
        if not self._held:
            return text
        waits = plural(len(self._held), "message waits", "messages wait")
        return f"{waits} from when this session was left: an empty line sends, /queue lists, /queue drop takes back."
