"""Messages that wait: queued for the next turn, steering for the next step, the others for the user's word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.models.events import WaitingKind, WaitingMessage
from agent_tui.models.messages import Message

GOES_BY_ITSELF = frozenset({"steer", "queued"})

_RANK = {"failed": 0, "held": 0, "steer": 1, "queued": 2}


@dataclass(slots=True)
class _Entry:
    message: Message
    kind: WaitingKind
    why: str = ""

    @property
    def rank(self) -> int:
        return _RANK[self.kind]


class Inbox:
    """What the user typed and did not send, in the order in which it would go out.

    ``held`` and ``failed`` ones stand first and go nowhere until ``release``; then come the steering ones, then the
    queue.
    """

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def add(self, message: Message, kind: WaitingKind, behind: str | None = None) -> None:
        """The last of its kind; or right ``behind`` the message of that id, first where that does not wait any more."""
        entry = _Entry(message, kind)
        if behind is None:
            self._entries.append(entry)
        else:
            self._entries.insert(self._index(behind) + 1, entry)
        self._sort()

    def put_back(self, messages: Sequence[Message]) -> None:
        """Messages that were taken but not sent: they are the next again."""
        self._entries[:0] = [_Entry(message, "queued") for message in messages]
        self._sort()

    def fail(self, messages: Sequence[Message], why: str) -> None:
        """Messages that could not be sent: they wait for the user's word."""
        self._entries[:0] = [_Entry(message, "failed", why) for message in messages]
        self._sort()

    def become(self, held: Sequence[Message]) -> None:
        """Another session is current: this waits in it, and nothing else."""
        self._entries = [_Entry(message, "held") for message in held]

    def hold(self, held: Sequence[Message]) -> None:
        """Waits for the user's word, ahead of what is typed from now on."""
        self._entries += [_Entry(message, "held") for message in held]
        self._sort()

    def release(self, message_id: str | None = None) -> bool:
        """The user wants all of it sent, or only this one of what does not go by itself: it is the next. False when
        there is nothing to send."""
        if message_id is None:
            for entry in self._entries:
                entry.kind = "steer" if entry.kind == "steer" else "queued"
        else:
            chosen = self._remove(message_id)
            if chosen is None:
                return False
            # What is left of the steering ones goes first otherwise; they were for a turn that is over.
            self._entries[:0] = [_Entry(chosen.message, "queued")]
            for other in self._entries:
                other.kind = "queued" if other.kind == "steer" else other.kind
        self._sort()
        return bool(self._entries)

    def into_turn(self, message_id: str) -> bool:
        """It goes in at the next step; False when it waits no more."""
        entry = self._remove(message_id)
        if entry is None:
            return False
        self.add(entry.message, "steer")
        return True

    def move(self, message_id: str, by: int) -> bool:
        """Earlier (``by`` < 0) or later by one among those of its kind; False when it is the first or last of them."""
        at = self._index(message_id)
        to = at + by
        if at < 0 or not 0 <= to < len(self._entries) or self._entries[to].rank != self._entries[at].rank:
            return False
        self._entries.insert(to, self._entries.pop(at))
        return True

    def next(self) -> Message | None:
        """The message the next turn begins with; steering that came too late for its turn goes first."""
        for index, entry in enumerate(self._entries):
            if entry.kind in GOES_BY_ITSELF:
                return self._entries.pop(index).message
        return None

    def take_steering(self) -> list[Message]:
        taken = [entry.message for entry in self._entries if entry.kind == "steer"]
        self._entries = [entry for entry in self._entries if entry.kind != "steer"]
        return taken

    def take_back(self, message_id: str | None = None) -> Message | None:
        """Removes the message of that id, or the newest, and returns it."""
        if message_id is None:
            return self._entries.pop().message if self._entries else None
        entry = self._remove(message_id)
        return None if entry is None else entry.message

    def to_send(self) -> list[Message]:
        """What goes out by itself, next first."""
        return [entry.message for entry in self._entries if entry.kind in GOES_BY_ITSELF]

    def messages(self) -> list[Message]:
        return [entry.message for entry in self._entries]

    def listed(self) -> list[WaitingMessage]:
        return [WaitingMessage(e.message.id, e.message.text, e.kind, e.why) for e in self._entries]

    def _sort(self) -> None:
        self._entries.sort(key=lambda entry: entry.rank)

    def _index(self, message_id: str) -> int:
        return next((i for i, entry in enumerate(self._entries) if entry.message.id == message_id), -1)

    def _remove(self, message_id: str) -> _Entry | None:
        at = self._index(message_id)
        return self._entries.pop(at) if at >= 0 else None
