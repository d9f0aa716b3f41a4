"""Messages that wait for their turn: in memory, in the store, and told of."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from agent_tui.engine.conversation import Conversation, patiently, store_failure
from agent_tui.engine.state import Bindings, Hub
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
from agent_tui.models.messages import NEWS, TOLD, AttachmentPart, Message, new_id, own_output
from agent_tui.records import dataclass
from agent_tui.text.numbers import plural

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
    """The messages that the user typed and did not send, in the order in which they would go out.

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
        """Returns the messages that go out by themselves, next first."""
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


class Waiting:
    """The inbox of the session in force, and before it what its newest turn left without an answer. What waits is
    stored with the session: it is not lost with the process."""

    def __init__(self, hub: Hub, bindings: Bindings) -> None:
        self._hub = hub
        self._bindings = bindings
        self._inbox = Inbox()
        self._paused = False
        self._unanswered: list[Message] = []
        self._why = ""
        hub.subscribe(self._listen)

    @property
    def listed(self) -> list[WaitingMessage]:
        """All messages that wait, the next first."""
        unanswered = [WaitingMessage(m.id, m.text, "unanswered", self._why) for m in self._unanswered]
        return [*unanswered, *self._inbox.listed()]

    @property
    def count(self) -> int:
        """The number of messages that go out by themselves."""
        return len(self._inbox.to_send())

    def add(self, message: Message, steering: bool = False, behind: str | None = None) -> None:
        """A message waits for the next turn, or (``steering``) for the next step; ``behind`` another that waits."""
        self._inbox.add(message, "steer" if steering else "queued", behind)
        self._tell()

    def next(self) -> Message | None:
        """Takes the message the next turn begins with."""
        message = self._inbox.next()
        if message is not None:
            self._paused, self._unanswered = False, []
            self._tell()
        return message

    def rest(self) -> None:
        """No turn follows: what is left waits for the user."""
        if not self._paused and self.count:
            self._paused = True
            self._tell()

    def take_steering(self) -> list[Message]:
        taken = self._inbox.take_steering()
        if taken:
            self._tell()
        return taken

    def take_back(self, message_id: str | None = None, *, idle: bool) -> Message | None:
        """The user wants the one of that id back, or the newest. ``idle``: nothing runs, so that what was not answered
        may leave the conversation."""
        unanswered = [m.id for m in self._unanswered]
        if message_id in unanswered or (message_id is None and unanswered and not self._inbox.messages()):
            return self._take_from_conversation(unanswered.index(message_id) if message_id else -1) if idle else None
        message = self._inbox.take_back(message_id)
        self._tell()
        if message is not None and self._storable:
            conversation = self._bindings.current.conversation
            conversation.forget_waiting(message)
            self._store(conversation)
        return message

    def move(self, message_id: str, by: int) -> bool:
        """Sends one earlier (``by`` < 0) or later than it would go; False where it cannot be."""
        if not self._inbox.move(message_id, by):
            return False
        self._tell()
        self.keep_order()
        return True

    def into_turn(self, message_id: str) -> bool:
        """One that is queued goes in at the next step; False when it waits no more."""
        if not self._inbox.into_turn(message_id):
            return False
        self._tell()
        self.keep_order()
        return True

    def put_back(self, messages: Sequence[Message]) -> None:
        """Lets messages wait again that were not sent, because the user was faster."""
        if messages:
            self._inbox.put_back([_bare(message) for message in messages])
            self._tell()
            self.keep(messages)

    def fail(self, messages: Sequence[Message], why: str) -> None:
        """Messages that could not be sent wait for the user's word."""
        if messages:
            self._inbox.fail([_bare(message) for message in messages], why)
            self._tell()
            if self._storable:
                for message in messages:
                    self._bindings.current.conversation.keep_waiting(message)
                # Why it could not be stored is being told already.
                self._bindings.current.conversation.save_if_possible()

    def leave_unanswered(self, why: str) -> None:
        """The request failed, and nothing of an answer came. What it was about is in the conversation, and so is what
        was not answered before it."""
        self._unanswered, self._why = unanswered(self._bindings.current.conversation.path), why
        self._tell()

    def release(self, message_id: str | None = None) -> bool:
        """All that waits may go, or one of them; False when nothing does. What was not answered leaves the
        conversation, to be sent anew."""
        unanswered = [m.id for m in self._unanswered]
        if unanswered and (message_id is None or message_id in unanswered):
            again = self._withdraw()
            if message_id is not None:
                message_id = again[unanswered.index(message_id)].id
            self._inbox.fail(again, self._why)
        if not self._inbox.release(message_id):
            return False
        self._tell()
        self.keep()
        if message_id is not None:
            self.keep_order()
        return True

    def opened(self) -> None:
        """The first session is in force: what waits in it is held, before what was typed meanwhile."""
        self._inbox.hold(self._bindings.current.conversation.waiting)
        self._find_unanswered()
        self.tell_held()

    def become(self) -> None:
        """Another session is in force: what waits there, and nothing else."""
        self._inbox.become(self._bindings.current.conversation.waiting)
        self._paused = False
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
            text = f"{waits} from when this session was left: Enter on an empty prompt sends {sends}, ↑ takes back."
            self._hub.publish(Notice("info", text, "waiting"))
        if self.listed:
            self._tell()

    def keep(self, messages: Sequence[Message] | None = None) -> None:
        """Stores those of the messages (None: of all) that have to wait."""
        if not self._storable:
            return
        conversation, waiting = self._bindings.current.conversation, self._inbox.to_send()
        ids = {message.id for message in waiting}
        kept = [message for message in (waiting if messages is None else messages) if message.id in ids]
        for message in kept:
            conversation.keep_waiting(message)
        if kept:
            self._store(conversation)

    def keep_order(self) -> None:
        """Stores in which order they wait."""
        if self._storable:
            conversation = self._bindings.current.conversation
            conversation.order_waiting([message.id for message in self._inbox.messages()])
            self._store(conversation)

    @property
    def _storable(self) -> bool:
        return self._bindings.opened and not self._bindings.current.conversation.read_only

    def _withdraw(self) -> list[Message]:
        """Takes what was not answered out of the conversation and returns it; what waits for a word is a message of its
        own."""
        conversation, taken = self._bindings.current.conversation, self._unanswered
        self._unanswered = []
        gone = conversation.path[conversation.path.index(taken[0]) :]
        try:
            conversation.go_to(taken[0].parent_id)
        except StoreError:
            self._hub.spawn(self.save_rest(conversation), "store")
        self._hub.publish(MessagesWithdrawn([message.id for message in gone]))
        self._tell()
        self._hub.publish(self._bindings.current.runtime.changed())
        # The news it brings of background commands count as told, and go with it again.
        again = [replace(message, id=new_id("msg"), parent_id=None, created=0.0) for message in taken]
        return [_bare(message, TOLD - {NEWS}) for message in again]

    def _take_from_conversation(self, index: int) -> Message:
        """One of what was not answered; the others wait for the user's word."""
        again = self._withdraw()
        message = again.pop(index)
        self.fail(again, self._why)
        return message

    def _find_unanswered(self) -> None:
        """As a session is opened: its newest messages, where the request failed before a word of an answer."""
        conversation = self._bindings.current.conversation
        left, step = unanswered(conversation.path), next(iter(conversation.steps[-1:]), None)
        self._unanswered, self._why = [], ""
        if not left or step is None or conversation.read_only:
            return
        if step.failure is not None and step.created >= left[-1].created:
            self._unanswered, self._why = left, step.failure.message

    def _tell(self) -> None:
        self._hub.publish(QueueChanged(self.listed, self._paused))

    def _store(self, conversation: Conversation) -> None:
        try:
            conversation.save()
        except StoreError:
            self._hub.spawn(self.save_rest(conversation), "store")

    async def save_rest(self, conversation: Conversation) -> None:
        """Stores what could not be stored when it arose. The user is told when it cannot be now either."""
        try:
            await patiently(conversation.save)
        except StoreError as error:
            self._hub.publish(Notice("error", store_failure(error).message, "store"))


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
