"""Messages that wait for their turn: in memory, in the store, and told of."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.engine.running.inbox import Inbox
from agent_tui.engine.session.conversation import Conversation
from agent_tui.engine.session.storing import patiently, store_failure
from agent_tui.engine.state.binding import Bindings
from agent_tui.engine.state.hub import Hub
from agent_tui.errors import StoreError
from agent_tui.models.events import Notice, QueueChanged
from agent_tui.models.messages import TOLD, AttachmentPart, Message


class Waiting:
    """The inbox of the session in force. What waits is stored with it: it is not lost with the process."""

    def __init__(self, hub: Hub, bindings: Bindings) -> None:
        self._hub = hub
        self._bindings = bindings
        self._inbox = Inbox()

    @property
    def queue(self) -> list[str]:
        return self._inbox.queued_texts()

    @property
    def steering(self) -> list[str]:
        return self._inbox.steer_texts()

    @property
    def held(self) -> list[str]:
        """What waited when the session was last left; ``release`` lets it go."""
        return self._inbox.held_texts()

    @property
    def count(self) -> int:
        """How many go out by themselves."""
        return len(self._inbox.to_send())

    def add(self, message: Message, steering: bool = False) -> None:
        """A message waits for the next turn, or (``steering``) for the next step."""
        (self._inbox.steer if steering else self._inbox.queue)(message)
        self._tell()

    def next(self) -> Message | None:
        """Takes the message the next turn begins with."""
        message = self._inbox.next()
        if message is not None:
            self._tell()
        return message

    def take_steering(self) -> list[Message]:
        taken = self._inbox.take_steering()
        if taken:
            self._tell()
        return taken

    def take_back(self) -> Message | None:
        """The user wants the newest that waits back."""
        message = self._inbox.take_back()
        self._tell()
        if message is not None and self._storable:
            conversation = self._bindings.current.conversation
            conversation.forget_waiting(message)
            self._store(conversation)
        return message

    def put_back(self, messages: Sequence[Message]) -> None:
        """Lets messages wait again that could not be sent."""
        for message in messages:
            # What has changed around the session is told when it goes out.
            message.parts = [p for p in message.parts if not (isinstance(p, AttachmentPart) and p.name in TOLD)]
        if messages:
            self._inbox.put_back(messages)
            self._tell()
            self.keep(messages)

    def release(self) -> bool:
        """What is held may go too; False when nothing waits at all."""
        if not (self.held or self.count):
            return False
        self._inbox.release()
        self._tell()
        return True

    def opened(self) -> None:
        """The first session is in force: what waits in it is held, before what was typed meanwhile."""
        self._inbox.hold(self._bindings.current.conversation.waiting)
        self.tell_held()

    def become(self) -> None:
        """Another session is in force: what waits there, and nothing else."""
        self._inbox.become(self._bindings.current.conversation.waiting)
        self._tell()

    def tell_held(self) -> None:
        """What was typed and not sent when the session was last left."""
        count = len(self.held)
        if count:
            waits = "1 message waits" if count == 1 else f"{count} messages wait"
            sends = "it" if count == 1 else "them"
            text = f"{waits} from when this session was left: Enter on an empty prompt sends {sends}, ↑ takes back."
            self._hub.publish(Notice("info", text, "waiting"))
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

    @property
    def _storable(self) -> bool:
        return self._bindings.opened and not self._bindings.current.conversation.read_only

    def _tell(self) -> None:
        self._hub.publish(QueueChanged(self.queue, self.steering, self.held))

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
