"""One session in memory, kept in step with the store, with patience where that is busy."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import TypeVar

from agent_tui.context.anchor import beside, made_on, on_branch
from agent_tui.context.cuts import CUT
from agent_tui.context.view import ViewBuilder, without_dropped
from agent_tui.errors import READ_ONLY, AgentError, StoreError, StoreLockedError
from agent_tui.models.calibration import raw_total
from agent_tui.models.failure import TEXT_KEPT, Failure, make_failure
from agent_tui.models.messages import INTERRUPTED_RESULT, Message, ToolCallPart, ToolResultPart, new_id
from agent_tui.models.requests import SentMessage
from agent_tui.models.session import SessionInfo, SessionState
from agent_tui.models.steps import CompactionRecord, FixedSets, Step, inherited
from agent_tui.store.content import SessionContent
from agent_tui.store.store import Store
from agent_tui.text.clean import printable_line
from agent_tui.text.secrets import beginning_without_keys, without_keys
from agent_tui.tools.base import Past

log = logging.getLogger(__name__)

TITLE_LENGTH = 60

DIED = f"{INTERRUPTED_RESULT} It was running, or next, when agent-tui was killed: its outcome is unknown."


class Conversation:
    """The messages, steps and compaction records of a session, in memory and in the store.

    What the user asks for (``append``, ``add_step``, compactions, titles) is stored before it returns, or nothing has
    changed. What a running turn produces (``keep``, ``finish``, ``save_step``) is in memory at once and written by
    ``save``; where that fails it is written ahead of whatever is stored next, so that the store never has a gap.

    One without an id is empty and not stored.
    """

    def __init__(self, store: Store, info: SessionInfo, read_only: bool = False) -> None:
        self.store = store
        self.info = info
        self.read_only = read_only
        """Changes are refused with an AgentError."""
        self.messages: dict[str, Message] = {}
        """All messages of the session by id, those of other branches too; ``path`` are those of the conversation."""
        self.steps: list[Step] = []
        self.every_record: list[CompactionRecord] = []
        """All compactions of the session."""
        self.summaries: dict[str, Message] = {}
        self.waiting: list[Message] = []
        """What was typed and not sent when the session was last left."""
        self.fixed_sets = FixedSets()
        if info.id:
            content = store.content(info.id)
            self.messages, self.summaries = content.messages, content.summaries
            self.steps, self.every_record = content.steps, content.records
            if not read_only:
                self.waiting = store.waiting.all(info.id)
        self.inherited = inherited(self.steps, info.created) if info.copied else 0
        """So many leading steps are a fork's, of the session it was forked from, which paid for them."""
        self.path = self._walk(info.head_id)
        """The messages of the conversation, from the first to the session's head; an answer that is still streaming is
        among them."""
        info.messages = len(self.path)
        self.records: list[CompactionRecord] = []
        """The compactions as they hold for the conversation."""
        self.own_records: list[CompactionRecord] = []
        """Those that were not made on another branch."""
        self._sort_records()
        self.revision = 0
        """Another number after each change of what the next request is made of and measured by."""
        self._builder = ViewBuilder()
        self._view: list[SentMessage] | None = None
        self._unsaved: dict[str, Callable[[], None]] = {}

    def _walk(self, head: str | None) -> list[Message]:
        path: list[Message] = []
        while head is not None:
            path.append(self.messages[head])
            head = path[-1].parent_id
        return path[::-1]

    def way_to(self, head: str | None) -> list[Message]:
        """The conversation that ends with ``head``. Raises AgentError for a message that is not there."""
        if head is not None and head not in self.messages:
            raise AgentError("No such message in this session.")
        return self._walk(head)

    def _sort_records(self) -> None:
        path = {message.id for message in self.path}
        self.records, self.own_records = on_branch(self.every_record, path), made_on(self.every_record, path)

    def require_writable(self) -> None:
        """Raises AgentError where the session is open elsewhere."""
        if self.read_only:
            raise AgentError(READ_ONLY)

    def open_calls(self) -> list[ToolCallPart]:
        """The tool calls of the newest answer that have no result."""
        answered: set[str] = set()
        for message in reversed(self.path):
            if message.tool_result is None:
                calls = message.tool_calls if message.role == "assistant" else []
                return [call for call in calls if call.call_id not in answered]
            answered.add(message.tool_result.call_id)
        return []

    def end_open_calls(self) -> None:
        """Gives the tool calls of an answer that was complete when the process died a result that says so: they were
        running, or next."""
        for call in self.open_calls():
            answer = next(message for message in reversed(self.path) if message.role == "assistant")
            if answer.status == "complete":
                result = ToolResultPart(call.call_id, call.name, DIED, is_error=True)
                self._add_later(Message(new_id("msg"), "tool", [result]))
        self.save_if_possible()

    def stop_unfinished(self) -> None:
        """Takes drafts and running steps as ended: nobody is at work on them any more."""
        SessionContent(self.messages, steps=self.steps).stop_unfinished()
        self.changed()

    def view(self) -> list[SentMessage]:
        """The conversation as it would be sent now."""
        if self._view is None:
            self._view = self._builder.build(self.path, self.records, self.summaries)
        return self._view

    def sent_message(self, message_id: str) -> SentMessage | None:
        """A message as the next request sends it; None where it does not."""
        return next((sent for sent in self.view() if sent.message.id == message_id), None)

    def past(self) -> Past:
        """The conversation without what the user dropped, and which of its messages are cleared, cut, or not sent at
        all."""
        whole = {sent.message.id for sent in self.view() if not sent.key.removeprefix(sent.message.id).startswith(CUT)}
        path = [m for m in without_dropped(self.path, self.records) if m.status != "streaming"]
        return Past(path, frozenset(message.id for message in path if message.id not in whole))

    def changed(self) -> None:
        """To be called after a message was changed in place."""
        self._view = None
        self.revision += 1

    @property
    def unsaved(self) -> bool:
        """True when something waits to be stored."""
        return bool(self._unsaved)

    def save(self) -> None:
        """Stores what waits, all or nothing. Raises StoreError; then it goes on waiting."""
        if not self._unsaved:
            return
        with self.store.transaction():
            # The session's head may be a message that is stored only now.
            for key in sorted(self._unsaved, key="info".__eq__):
                self._unsaved[key]()
        self._unsaved.clear()

    def save_if_possible(self) -> None:
        """Stores what waits where that works now; else it goes on waiting, and the log says why."""
        try:
            self.save()
        except StoreError as error:
            log.warning("Stored later: %s", error)

    def append(self, message: Message) -> None:
        """Adds a message at the head. Raises StoreError when it cannot be stored; then nothing has changed."""
        self.require_writable()
        self.save()
        self._place(message)
        try:
            self.store.messages.add(self.info.id, message)
        except StoreError:
            message.parent_id = None
            raise
        self._join(message)

    def keep(self, message: Message) -> None:
        """Adds a message (complete, or a draft that will stream) at the head; ``save`` stores it."""
        self.require_writable()
        self._add_later(message)

    def _add_later(self, message: Message) -> None:
        self._place(message)
        if not self.read_only:
            self._unsaved[message.id] = lambda: self.store.messages.add(self.info.id, message)
        self._join(message)

    def _place(self, message: Message) -> None:
        message.parent_id = self.info.head_id
        message.created = message.created or time.time()

    def _join(self, message: Message) -> None:
        self.messages[message.id] = message
        self.path.append(message)
        self.info.head_id = message.id
        self.info.messages += 1
        self.changed()
        if message.role == "user" and not self.info.title and message.text.strip():
            self.info.title = title_from(message.text)
            self._mark_info()
            self.save_if_possible()

    def flush(self, message: Message, dirty: Iterable[int]) -> None:
        """Writes the changed parts of a draft. Raises StoreError; then ``save`` writes it whole."""
        if message.id in self._unsaved:
            self.save()
            return
        try:
            self.store.messages.write(self.info.id, message, dirty)
        except StoreError:
            self.finish(message)
            raise

    def finish(self, message: Message) -> None:
        """A message changed, or a draft ended; ``save`` writes it whole."""
        self._unsaved.setdefault(message.id, lambda: self.store.messages.write(self.info.id, message))
        self.changed()

    def amend(self, message: Message) -> None:
        """Puts another form of the newest message in its place, which was not sent yet; ``save`` stores it."""
        self.messages[message.id] = self.path[-1] = message
        self._unsaved[f"amended {message.id}"] = lambda: self.store.messages.write(self.info.id, message)
        self.changed()

    def keep_waiting(self, message: Message) -> None:
        """Keeps a message that waits to be sent; ``save`` stores it. Appending it ends that."""
        self.require_writable()
        self._unsaved[f"waiting {message.id}"] = lambda: self.store.waiting.add(self.info.id, message)

    def forget_waiting(self, message: Message) -> None:
        """The user took a waiting message back; ``save`` removes it from the store."""
        self._unsaved[f"waiting {message.id}"] = lambda: self.store.waiting.remove(self.info.id, message.id)

    def order_waiting(self, ids: Sequence[str]) -> None:
        """Sets the order in which waiting messages go out; ``save`` stores it."""
        # Behind what is kept or forgotten before: those change what there is to order.
        self._unsaved.pop("waiting", None)
        self._unsaved["waiting"] = lambda: self.store.waiting.order(self.info.id, ids)

    def set_counts(self, counts: dict[str, tuple[int, ...]]) -> None:
        """Stores o200k_base counts of messages by id."""
        for message_id, count in counts.items():
            message = self.messages.get(message_id) or self.summaries.get(message_id)
            if message is not None:
                message.raw_tokens, message.counts = raw_total(count), count
        self.revision += 1
        if self.read_only:
            return
        try:
            self.store.messages.set_counts(self.info.id, counts)
        except StoreError as error:
            # They are counted again when the session is next opened.
            log.warning("Token counts were not stored: %s", error)

    def set_fixed_counts(self, counts: Mapping[str, tuple[int, ...]]) -> None:
        """Fills in counts of fixed parts, by content fingerprint, in the newest steps: they sent them before they were
        counted."""
        for step in reversed(self.steps):
            counted = [part.counted(counts) for part in step.fixed]
            if step.fixed and all(map(is_, counted, step.fixed)):
                break
            step.fixed = self.fixed_sets.one(counted)
            self.revision += 1

    def add_step(self, step: Step) -> None:
        """Adds a step that begins. Raises StoreError when it cannot be stored; then nothing has changed."""
        self.require_writable()
        self.save()
        self.store.steps.add(self.info.id, step)
        self.steps.append(step)
        self.revision += 1

    def keep_step(self, step: Step) -> None:
        """Adds a step whose cost has arisen already; ``save`` stores it."""
        self.require_writable()
        self._unsaved[step.id] = lambda: self.store.steps.add(self.info.id, step)
        self.steps.append(step)
        self.revision += 1

    def save_step(self, step: Step) -> None:
        """A step changed; ``save`` writes it."""
        self.revision += 1
        self._unsaved.setdefault(step.id, lambda: self.store.steps.write(self.info.id, step))

    def commit_compaction(
        self, records: Sequence[CompactionRecord], summary: Message | None, step: Step | None
    ) -> None:
        """Makes a compaction effective, in one transaction."""
        self.require_writable()
        self.save()
        others = beside(self.messages, self.path)
        for record in records:
            record.beside = others
        self.store.compactions.commit(self.info.id, list(records), summary, step)
        self.every_record.extend(records)
        self._sort_records()
        if summary is not None:
            self.summaries[summary.id] = summary
        if step is not None:
            self.steps.append(step)
        self.changed()

    def time_of_edit(self) -> float:
        """A time for an edit made now that sorts after all others even when the clock was set back."""
        state = self.info.state
        before = [record.created for record in self.every_record]
        before += [*state.drops_waiting.values(), *(asked.asked for asked in state.agent_asked)]
        return max(time.time(), max(before, default=0.0) + 0.001)

    def deactivate(self, operation_id: str) -> list[CompactionRecord]:
        """Takes a compaction out of force; returns its records."""
        self.require_writable()
        undone, now = [r for r in self.records if r.operation_id == operation_id], time.time()
        changed = [replace(r, active=False, switched=[*r.switched, now] if r.active else r.switched) for r in undone]
        self.store.compactions.write(self.info.id, changed)
        for record, after in zip(undone, changed, strict=True):
            record.active, record.switched = after.active, after.switched
        self.changed()
        return undone

    def go_to(self, head: str | None, state: SessionState | None = None) -> None:
        """Makes the conversation the one that ends with ``head``, wherever that is; what is not on it stays in the
        store. ``state`` is stored with it."""
        self.require_writable()
        self.path = self.way_to(head)
        self.info.head_id = head
        self.info.messages = len(self.path)
        if state is not None:
            self.info.state = state
        self._sort_records()
        self.changed()
        self.save_info()

    def set_model(self, key: str) -> None:
        """The model the session is continued with; stored with whatever is stored next."""
        if self.info.model != key and not self.read_only:
            self.info.model = key
            self._mark_info()

    def bind_model(self, key: str) -> None:
        """The user chose this model; stored at once where something has been said, else with that."""
        if self.info.model != key and not self.read_only:
            self.info.model = key
            if self.path:
                self.save_info()

    def rename(self, title: str) -> None:
        self.require_writable()
        self.info.title = without_keys(title)
        self.save_info()

    def set_state(self, state: SessionState) -> None:
        """Changes the facts of the session that survive a restart."""
        self.info.state = state
        if not self.read_only:
            self.save_info()

    def links(self) -> list[str]:
        """Returns a line for each session that this one goes on from with a brief, or that goes on from it so."""
        state, sessions = self.info.state, self.store.sessions
        ways = [("from", "goes back", state.handed_from or "")]
        ways += [("to", "continues there", session_id) for session_id in state.handed_to]
        lines = []
        for way, goes, session_id in ways:
            # One that was left before its brief was sent is gone.
            if sessions.exists(session_id):
                info = sessions.get(session_id)
                name = printable_line(info.title or info.preview, 80) or "a new session"
                lines.append(f"Handed off {way} “{name}”: /resume {session_id} {goes}.")
        return lines

    def keep_state(self, state: SessionState) -> None:
        """The same where that works now; else it is stored with what is stored next, and the log says why."""
        if state != self.info.state:
            try:
                self.set_state(state)
            except StoreError as error:
                log.warning("Stored later: %s", error)

    def save_info(self) -> None:
        """Stores the session's own facts, and what waits. Raises StoreError; then they wait too."""
        self._mark_info()
        self.save()

    def _mark_info(self) -> None:
        self.info.updated = time.time()
        self._unsaved.pop("info", None)
        self._unsaved["info"] = lambda: self.store.sessions.save(self.info)


def title_from(text: str) -> str:
    """A session's first title: the first line of the first message, at most 60 characters."""
    line = next((line for line in beginning_without_keys(text).splitlines() if line.strip()), "")
    return printable_line(line, TITLE_LENGTH)


T = TypeVar("T")

WAITS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, *(1.0,) * 13)
"""Seconds between the tries of a write while another program holds the database: fifteen in all. Most writes take
milliseconds, one of a message of 100 MB takes seconds."""


async def patiently(write: Callable[[], T]) -> T:
    """Does a write, again while the database is locked, without blocking in between. Raises StoreError."""
    for seconds in WAITS:
        try:
            return write()
        except StoreLockedError:
            await asyncio.sleep(seconds)
    return write()


def store_failure(error: StoreError, unsent: bool = False) -> Failure:
    """A turn that ended because it could not be stored. ``unsent``: the user's message goes back to the queue."""
    text = str(error)
    kept, way = "Unsaved data is kept in memory and stored with your next message.", ""
    if unsent:
        kept, way = TEXT_KEPT, "It waits until you send it again."
    return make_failure("store", f"{text[:1].upper()}{text[1:].rstrip('.')}.", way, kept=kept)
