"""Messages that wait for their turn: in memory, in the store, and told of."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from agent_tui.engine.conversation import Conversation, patiently, store_failure
from agent_tui.engine.state import AgentState
from agent_tui.errors import StoreError
from agent_tui.models.events import (
    Event,
    MessagesWithdrawn,
    Notice,
    QueueChanged,
    SessionChanged,
    WaitingKind,
    WaitingMessage,
)
from agent_tui.models.messages import NEWS, TOLD, AttachmentPart, Message, new_id, own_output, written_in
from agent_tui.records import dataclass
from agent_tui.text.numbers import plural

AGAIN: Final = "again"
Next: TypeAlias = Message | Literal["again"]
"""What a turn begins with: a message, or the newest request, made again."""

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


class Waiting:
    """What the user typed and did not send, in the order in which it would go out, and before it what the newest turn
    left without an answer. It is stored with the session: it is not lost with the process.

    ``held`` and ``failed`` messages stand first and go nowhere until ``release``; then come the steering ones, then the
    queue.
    """

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._entries: list[_Entry] = []
        self._paused = False
        self._unanswered: list[Message] = []
        self._why = ""
        self._again = False
        state.events.subscribe(self._listen)

    @property
    def listed(self) -> list[WaitingMessage]:
        """All messages that wait, the next first."""
        unanswered = [WaitingMessage(m.id, m.text, "unanswered", self._why) for m in self._unanswered]
        return unanswered + [WaitingMessage(e.message.id, e.message.text, e.kind, e.why) for e in self._entries]

    @property
    def count(self) -> int:
        """The number of messages that go out by themselves."""
        return len(self.to_send())

    def to_send(self) -> list[Message]:
        """The messages that go out by themselves, the next first."""
        return [entry.message for entry in self._entries if entry.kind in GOES_BY_ITSELF]

    def add(self, message: Message, steering: bool = False, behind: str | None = None) -> None:
        """A message waits for the next turn, or (``steering``) for the next step: as the last of its kind, or right
        ``behind`` the message of that id, first where that does not wait any more."""
        at = len(self._entries) if behind is None else self._index(behind) + 1
        self._insert(at, [message], "steer" if steering else "queued")

    def _insert(self, at: int, messages: Sequence[Message], kind: WaitingKind, why: str = "") -> None:
        self._entries[at:at] = [_Entry(message, kind, why) for message in messages]
        self._sort()
        self._tell()

    def _sort(self) -> None:
        self._entries.sort(key=lambda entry: entry.rank)

    def _index(self, message_id: str) -> int:
        return next((i for i, entry in enumerate(self._entries) if entry.message.id == message_id), -1)

    def next(self) -> Next | None:
        """Takes what the next turn begins with: the request that is to be made again, else a message. Steering that
        came too late for its turn goes first."""
        if self._again:
            self._again, self._paused, self._unanswered = False, False, []
            self._tell()
            return AGAIN
        for index, entry in enumerate(self._entries):
            if entry.kind in GOES_BY_ITSELF:
                del self._entries[index]
                self._paused, self._unanswered = False, []
                self._tell()
                return entry.message
        return None

    def rest(self) -> None:
        """No turn follows: what is left waits for the user."""
        if not self._paused and self.count:
            self._paused = True
            self._tell()

    def take_steering(self) -> list[Message]:
        taken = [entry.message for entry in self._entries if entry.kind == "steer"]
        if taken:
            self._entries = [entry for entry in self._entries if entry.kind != "steer"]
            self._tell()
        return taken

    def take_back(self, message_id: str | None = None, *, idle: bool) -> Message | None:
        """The user wants the one of that id back, or the newest. ``idle``: nothing runs, so that what was not answered
        may leave the conversation."""
        unanswered = [m.id for m in self._unanswered]
        if message_id in unanswered or (message_id is None and unanswered and not self._entries):
            return self._take_from_conversation(unanswered.index(message_id) if message_id else -1) if idle else None
        at = len(self._entries) - 1 if message_id is None else self._index(message_id)
        message = self._entries.pop(at).message if at >= 0 else None
        self._tell()
        if message is not None and self._storable:
            self._state.conversation.forget_waiting(message)
            self._store()
        return message

    def move(self, message_id: str, by: int) -> bool:
        """Sends one earlier (``by`` < 0) or later by one among those of its kind; False where it cannot be."""
        at = self._index(message_id)
        to = at + by
        if at < 0 or not 0 <= to < len(self._entries) or self._entries[to].rank != self._entries[at].rank:
            return False
        self._entries.insert(to, self._entries.pop(at))
        self._tell()
        self.keep_order()
        return True

    def into_turn(self, message_id: str) -> bool:
        """One that is queued goes in at the next step; False when it waits no more."""
        at = self._index(message_id)
        if at < 0:
            return False
        self.add(self._entries.pop(at).message, steering=True)
        self.keep_order()
        return True

    def put_back(self, messages: Sequence[Message]) -> None:
        """Lets messages be the next again that were not sent, because the user was faster."""
        if messages:
            self._insert(0, [_bare(message) for message in messages], "queued")
            self.keep(messages)

    def fail(self, messages: Sequence[Message], why: str) -> None:
        """Messages that could not be sent wait for the user's word."""
        if not messages:
            return
        self._insert(0, [_bare(message) for message in messages], "failed", why)
        if self._storable:
            for message in messages:
                self._state.conversation.keep_waiting(message)
            # Why it could not be stored is being told already.
            self._state.conversation.save_if_possible()

    def leave_unanswered(self, why: str) -> None:
        """The request failed, and nothing of an answer came. What it was about is in the conversation, and so is what
        was not answered before it."""
        self._unanswered, self._why = unanswered(self._state.conversation.path), why
        self._tell()

    def release(self, message_id: str | None = None) -> bool:
        """All that waits may go, or one of them, first; False when nothing does. What was not answered stays where it
        is: its request is made again."""
        unanswered = [m.id for m in self._unanswered]
        if unanswered and (message_id is None or message_id in unanswered):
            self._again = True
            if message_id is not None:
                return True
        if self._again and not self._entries:
            return True
        if not self._entries or (message_id is not None and self._index(message_id) < 0):
            return False
        if message_id is None:
            kinds: tuple[WaitingKind, ...] = ("held", "failed")
        else:
            # What is left of the steering ones goes first otherwise; they were for a turn that is over.
            kinds = ("steer",)
            chosen = self._entries.pop(self._index(message_id))
            self._entries.insert(0, _Entry(chosen.message, "queued"))
        for entry in self._entries:
            entry.kind = "queued" if entry.kind in kinds else entry.kind
        self._sort()
        self._tell()
        self.keep()
        if message_id is not None:
            self.keep_order()
        return True

    def go_on(self) -> bool:
        """The newest request is made again, of a turn that ended before its model was done; False where the
        conversation does not end with what a model is to answer."""
        newest = next((m for m in reversed(self._state.conversation.path) if not wordless(m)), None)
        self._again = newest is not None and newest.role in ("user", "tool")
        return self._again

    def repeats(self, message: Message) -> str | None:
        """The id of the unanswered message that is written again; None where it is another one."""
        wanted = written_in(message)
        return next((m.id for m in self._unanswered[-1:] if written_in(_bare(replace(m), TOLD)) == wanted), None)

    def opened(self) -> None:
        """The first session is in force: what waits in it is held, before what was typed meanwhile."""
        self._entries += [_Entry(message, "held") for message in self._state.conversation.waiting]
        self._sort()
        self._find_unanswered()
        self.tell_held()

    def become(self) -> None:
        """Another session is in force: what waits there, and nothing else."""
        self._entries = [_Entry(message, "held") for message in self._state.conversation.waiting]
        self._paused = self._again = False
        self._find_unanswered()
        self._tell()

    def _listen(self, event: Event) -> None:
        """The conversation was cleared, forked or rewound: what was unanswered may be in it no longer."""
        if isinstance(event, SessionChanged) and event.reload and self._unanswered:
            self._find_unanswered()
            self._tell()

    def tell_held(self) -> None:
        """Tells the user what was typed and not sent when the session was last left."""
        count = sum(waits.kind == "held" for waits in self.listed)
        if count:
            waits = f"{plural(count, 'message')} {'waits' if count == 1 else 'wait'}"
            sends = "it" if count == 1 else "them"
            text = f"{waits} queued since you left this session: Enter on an empty prompt sends {sends}, ↑ edits."
            self._state.events.publish(Notice("info", text, "waiting"))
        if self.listed:
            self._tell()

    def keep(self, messages: Sequence[Message] | None = None) -> None:
        """Stores those of the messages (None: of all) that have to wait."""
        if not self._storable:
            return
        waiting = self.to_send()
        ids = {message.id for message in waiting}
        kept = [message for message in (waiting if messages is None else messages) if message.id in ids]
        for message in kept:
            self._state.conversation.keep_waiting(message)
        if kept:
            self._store()

    def keep_order(self) -> None:
        """Stores in which order they wait."""
        if self._storable:
            self._state.conversation.order_waiting([entry.message.id for entry in self._entries])
            self._store()

    @property
    def _storable(self) -> bool:
        return self._state.opened and not self._state.conversation.read_only

    def _withdraw(self, begin: int) -> list[Message]:
        """Takes what was not answered, from message ``begin`` of it on, out of the conversation and returns it; what
        waits for a word is a message of its own."""
        conversation, taken = self._state.conversation, self._unanswered[begin:]
        del self._unanswered[begin:]
        gone = conversation.path[conversation.path.index(taken[0]) :]
        try:
            conversation.go_to(taken[0].parent_id)
        except StoreError:
            self._state.events.spawn(self.save_rest(conversation), "store")
        self._state.events.publish(MessagesWithdrawn([message.id for message in gone]))
        self._tell()
        self._state.runtime.show_numbers(self._state.events.publish)
        # The news it brings of background commands count as told, and go with it again.
        again = [replace(message, id=new_id("msg"), parent_id=None, created=0.0) for message in taken]
        return [_bare(message, TOLD - {NEWS}) for message in again]

    def _take_from_conversation(self, index: int) -> Message:
        """One of what was not answered; those after it wait for the user's word."""
        again = self._withdraw(index)
        message = again.pop(0)
        self.fail(again, self._why)
        return message

    def _find_unanswered(self) -> None:
        """As a session is opened: its newest messages, where the request failed before a word of an answer."""
        conversation = self._state.conversation
        left, step = unanswered(conversation.path), next(iter(conversation.steps[-1:]), None)
        self._unanswered, self._why = [], ""
        if not left or step is None or conversation.read_only:
            return
        if step.failure is not None and step.created >= left[-1].created:
            self._unanswered, self._why = left, step.failure.message

    def _tell(self) -> None:
        self._state.events.publish(QueueChanged(self.listed, self._paused))

    def _store(self) -> None:
        conversation = self._state.conversation
        try:
            conversation.save()
        except StoreError:
            self._state.events.spawn(self.save_rest(conversation), "store")

    async def save_rest(self, conversation: Conversation) -> None:
        """Stores what could not be stored when it arose. The user is told when it cannot be now either."""
        try:
            await patiently(conversation.save)
        except StoreError as error:
            self._state.events.publish(Notice("error", store_failure(error).message, "store"))


def unanswered(path: Sequence[Message]) -> list[Message]:
    """The user's messages at the end of a conversation that no word of an answer followed. What a command of their own
    wrote is no question: it ends them."""
    left: list[Message] = []
    for message in reversed(path):
        if message.role == "user" and own_output(message) is None:
            left.insert(0, message)
        elif not wordless(message):
            break
    return left


def wordless(message: Message) -> bool:
    """Returns whether an answer failed before a word of it came."""
    return message.role == "assistant" and message.status == "failed" and not message.parts


def _bare(message: Message, told: AbstractSet[str] = TOLD) -> Message:
    """Without what was told with it of changes around the session: that is told when it goes out."""
    message.parts = [p for p in message.parts if not (isinstance(p, AttachmentPart) and p.name in told)]
    return message
