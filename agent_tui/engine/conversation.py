"""One session in memory, kept in step with the store."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from agent_tui.context.view import ViewBuilder
from agent_tui.errors import AgentError
from agent_tui.models.messages import Message, Metadata
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import CompactionRecord, SessionInfo, Step
from agent_tui.store.store import Store

TITLE_LENGTH = 60


class Conversation:
    """The messages, steps and compaction records of a session. Every change is stored before it returns.

    ``path`` runs from the first message to the session's head and includes an answer that is still streaming.
    ``read_only`` conversations refuse changes with an AgentError; one without an id is empty and not stored.
    """

    def __init__(self, store: Store, info: SessionInfo, read_only: bool = False) -> None:
        self.store = store
        self.info = info
        self.read_only = read_only
        self.messages: dict[str, Message] = {}
        self.steps: list[Step] = []
        self.records: list[CompactionRecord] = []
        self.summaries: dict[str, Message] = {}
        if info.id:
            self.messages = store.messages(info.id)
            self.steps = store.steps(info.id)
            self.records = store.records(info.id)
            self.summaries = store.summaries(info.id)
        self.path: list[Message] = self._walk(info.head_id)
        self._builder = ViewBuilder()
        self._view: list[SentMessage] | None = None

    def _walk(self, head: str | None) -> list[Message]:
        path: list[Message] = []
        while head is not None:
            message = self.messages[head]
            path.append(message)
            head = message.parent_id
        path.reverse()
        return path

    def _writable(self) -> None:
        if self.read_only:
            raise AgentError("This session is open in another window; it is read-only here. /fork continues a copy.")

    def view(self) -> list[SentMessage]:
        """The conversation as it would be sent now."""
        if self._view is None:
            self._view = self._builder.build(self.path, self.records, self.summaries)
        return self._view

    def changed(self) -> None:
        """To be called after a message was changed in place."""
        self._view = None

    def append(self, message: Message) -> None:
        """Adds a message (complete, or a draft that will stream) at the head."""
        self._writable()
        message.parent_id = self.info.head_id
        message.created = message.created or time.time()
        self.store.add_message(self.info.id, message)
        self.messages[message.id] = message
        self.path.append(message)
        self.info.head_id = message.id
        self.info.messages += 1
        self.changed()
        if message.role == "user" and not self.info.title and message.text.strip():
            self.rename(title_from(message.text))

    def flush(self, message: Message, dirty: Iterable[int]) -> None:
        """Writes the changed parts of a draft."""
        self.store.write_message(self.info.id, message, dirty)

    def finish(self, message: Message) -> None:
        """Writes a message whole; a draft ends here."""
        self.store.write_message(self.info.id, message)
        self.changed()

    def set_raw_tokens(self, counts: dict[str, int]) -> None:
        """Stores o200k_base counts of messages by id."""
        for message_id, count in counts.items():
            message = self.messages.get(message_id) or self.summaries.get(message_id)
            if message is not None:
                message.raw_tokens = count
        if not self.read_only:
            self.store.set_raw_tokens(self.info.id, counts)

    def add_step(self, step: Step) -> None:
        self._writable()
        self.store.add_step(self.info.id, step)
        self.steps.append(step)

    def save_step(self, step: Step) -> None:
        self.store.write_step(self.info.id, step)

    def commit_compaction(
        self, records: Sequence[CompactionRecord], summary: Message | None, step: Step | None
    ) -> None:
        """Makes a compaction effective, in one transaction."""
        self._writable()
        self.store.commit_compaction(self.info.id, list(records), summary, step)
        self.records.extend(records)
        if summary is not None:
            self.summaries[summary.id] = summary
        if step is not None:
            self.steps.append(step)
        self.changed()

    def deactivate(self, operation_id: str) -> list[CompactionRecord]:
        """Takes a compaction out of force; returns its records."""
        self._writable()
        self.store.set_operation_active(self.info.id, operation_id, False)
        undone = [r for r in self.records if r.operation_id == operation_id]
        for record in undone:
            record.active = False
        self.changed()
        return undone

    def rewind_to(self, head: str | None) -> None:
        """Moves the head; what comes after stays in the store."""
        self._writable()
        self.info.head_id = head
        self.path = self._walk(head)
        self.info.messages = len(self.path)
        self.save_info()
        self.changed()

    def rename(self, title: str) -> None:
        self._writable()
        self.info.title = title
        self.save_info()

    def set_state(self, **values: Metadata | list[str] | str | int | bool | None) -> None:
        """Changes facts of the session that survive a restart."""
        self.info.state = {**self.info.state, **values}
        if not self.read_only:
            self.save_info()

    def save_info(self) -> None:
        self.info.updated = time.time()
        self.store.save_session(self.info)


def title_from(text: str) -> str:
    """A session's first title: the first line of the first message, at most 60 characters."""
    line = next((" ".join(s.split()) for s in text.splitlines() if s.strip()), "")
    line = "".join(c for c in line if c.isprintable())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
