"""Messages that wait: queued ones for the next turn, steering ones for the next step, held ones for the user's word."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from agent_tui.models.messages import Message


class Inbox:
    """What the user typed while the model works, in order.

    ``held`` is what waited when the session was last left: it is shown, and goes nowhere until ``release``.
    """

    def __init__(self) -> None:
        self._held: deque[Message] = deque()
        self._queue: deque[Message] = deque()
        self._steering: deque[Message] = deque()

    def queue(self, message: Message) -> None:
        self._queue.append(message)

    def steer(self, message: Message) -> None:
        self._steering.append(message)

    def put_back(self, messages: Sequence[Message]) -> None:
        """Messages that were taken but could not be sent: they are the next again."""
        self._queue.extendleft(reversed(messages))

    def become(self, held: Sequence[Message]) -> None:
        """Another session is current: this waits in it, and nothing else."""
        self._queue.clear()
        self._steering.clear()
        self._held = deque(held)

    def hold(self, held: Sequence[Message]) -> None:
        """Waits for the user's word, ahead of what is typed from now on."""
        self._held.extend(held)

    def release(self) -> None:
        """The user wants what is held to be sent: it is the next."""
        self._queue.extendleft(reversed(self._held))
        self._held.clear()

    def next(self) -> Message | None:
        """The message the next turn begins with; steering that came too late for its turn goes first."""
        if self._steering:
            return self._steering.popleft()
        return self._queue.popleft() if self._queue else None

    def take_steering(self) -> list[Message]:
        taken = list(self._steering)
        self._steering.clear()
        return taken

    def take_back(self) -> Message | None:
        """Removes the newest waiting message and returns it."""
        waiting = self._queue or self._steering or self._held
        return waiting.pop() if waiting else None

    def to_send(self) -> list[Message]:
        """What goes out by itself, next first."""
        return [*self._steering, *self._queue]

    def queued_texts(self) -> list[str]:
        return [m.text for m in self._queue]

    def steer_texts(self) -> list[str]:
        return [m.text for m in self._steering]

    def held_texts(self) -> list[str]:
        return [m.text for m in self._held]
