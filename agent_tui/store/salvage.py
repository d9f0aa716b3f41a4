"""Reading a damaged session as far as it can be read, and saying what is missing. Nothing is written here."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, TypeVar

from agent_tui.models.messages import Message, Part
from agent_tui.models.steps import CompactionRecord, FixedPart, FixedSets, Step
from agent_tui.records import dataclass
from agent_tui.store.rows import load_counts, load_fixed, load_message, load_part, load_record, load_step

T = TypeVar("T")

UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, MemoryError)
"""What loading a row raises when the row makes no sense."""

_BOTH = ("ASC", "DESC")


@dataclass(slots=True)
class Content:
    """A session as it was read. ``missing`` says in plain words what could not be; ``head_id`` is where the
    conversation ends as far as it can be read."""

    messages: dict[str, Message] = field(default_factory=dict)
    summaries: dict[str, Message] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    records: list[CompactionRecord] = field(default_factory=list)
    head_id: str | None = None
    missing: list[str] = field(default_factory=list)

    def stop_unfinished(self) -> None:
        """Takes drafts and running steps as ended: nobody is at work on them any more."""
        for message in self.messages.values():
            if message.status == "streaming":
                message.status = "stopped"
        for step in self.steps:
            if step.status == "running":
                step.status = "stopped"


def scan(
    connection: sqlite3.Connection, table: str, columns: str, keys: Sequence[str], where: str = "1", *values: Any
) -> tuple[list[Any], bool]:
    """The rows of a table that can be read, ordered by its primary key ``keys`` (which ``columns`` begin with), and
    whether any could not. Where pages in the middle are damaged, it is read from both ends."""
    found: dict[Any, Any] = {}
    size = len(keys)
    # By an index where that helps, else past it, which may itself be what is damaged.
    for attempt, (source, direction) in enumerate(((table, "ASC"), *((f"{table} NOT INDEXED", d) for d in _BOTH))):
        order = ", ".join(f"{key} {direction}" for key in keys)
        try:
            for row in connection.execute(f"SELECT {columns} FROM {source} WHERE {where} ORDER BY {order}", values):
                found.setdefault(row[:size], row)
        except (sqlite3.Error, *UNREADABLE):
            continue
        if attempt == 0:
            return list(found.values()), True
        break
    return [found[key] for key in sorted(found, key=_sortable)], False


def salvage(connection: sqlite3.Connection, session_id: str, head_id: str | None) -> Content:
    """Returns the part that can be read of a session whose rows do not all make sense. Never raises for what is in the
    file."""
    before = connection.text_factory
    connection.text_factory = _text
    try:
        return _Reader(connection, session_id).read(head_id)
    finally:
        connection.text_factory = before


def lacks(missing: Sequence[str]) -> str:
    """Lists what is missing, in one line."""
    shown = missing[:4]
    more = len(missing) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


class _Reader:
    def __init__(self, connection: sqlite3.Connection, session_id: str) -> None:
        self._connection = connection
        self._session = session_id
        self.content = Content()

    def read(self, head_id: str | None) -> Content:
        content = self.content
        order = self._messages()
        self._link(order)
        content.head_id = head_id
        if head_id is not None and head_id not in content.messages:
            content.head_id = order[-1] if order else None
            content.missing.append("the end of the conversation")
        elif head_id is None and order and not self._ends_nowhere():
            content.head_id = order[-1]
        self._steps()
        self._records()
        return content

    def _ends_nowhere(self) -> bool:
        """A conversation that was rewound to before its first message has messages and no head."""
        return not self.content.missing

    def _rows(self, table: str, columns: str) -> list[Any]:
        rows, whole = scan(self._connection, table, f"n, {columns}", ("n",), "session_id = ?", self._session)
        if not whole:
            self.content.missing.append(f"part of its {table} table")
        return rows

    def _load(self, what: str, load: Callable[[dict[str, Any]], T], data: Any, **known: Any) -> T | None:
        """What the JSON in ``data`` and the fields that have columns make; where they make no sense, ``what`` is
        missing."""
        try:
            return load({**_object(data), **known})
        except UNREADABLE:
            self.content.missing.append(what)
            return None

    def _messages(self) -> list[str]:
        """Loads messages and summaries; returns the ids of the tree in the order they were added."""
        order: list[str] = []
        rows = self._rows("message", "id, role, status, parent_id, raw_tokens, data, in_tree, counts")
        for n, message_id, role, status, parent_id, raw_tokens, data, in_tree, counts in rows:
            parts = self._parts(n, message_id)
            facts = {"id": message_id, "role": role, "status": status, "parent_id": parent_id, "parts": parts}
            message = self._load(
                f"message {message_id}",
                load_message,
                data,
                raw_tokens=raw_tokens,
                counts=_quietly(load_counts, counts),
                **facts,
            )
            if message is None:
                # Its text is in its parts: what remains is shown under the fields every message has.
                facts["parent_id"] = parent_id if isinstance(parent_id, str) else None
                message = _quietly(load_message, facts) if parts else None
                if message is None:
                    continue
                self.content.missing[-1] = f"details of message {message_id}"
            if in_tree:
                self.content.messages[message.id] = message
                order.append(message.id)
            else:
                self.content.summaries[message.id] = message
        return order

    def _parts(self, n: int, message_id: object) -> list[Part]:
        rows, whole = scan(
            self._connection, "part", "message, position, data", ("message", "position"), "message = ?", n
        )
        if not whole:
            self.content.missing.append(f"parts of message {message_id}")
        loaded = (self._load(f"part {position} of message {message_id}", load_part, data) for _, position, data in rows)
        return [part for part in loaded if part is not None]

    def _link(self, order: Sequence[str]) -> None:
        """Messages whose parent is missing, or came later, follow the one that was added before them."""
        before: dict[str, str | None] = {}
        previous: str | None = None
        for message_id in order:
            message = self.content.messages[message_id]
            if message.parent_id is not None and message.parent_id not in before:
                self.content.missing.append(f"the messages before message {message_id}")
                message.parent_id = previous
            before[message_id] = previous
            previous = message_id

    def _steps(self) -> None:
        sets: dict[str, tuple[FixedPart, ...]] = {}
        shared = FixedSets()
        rows, whole = scan(self._connection, "fixed_set", "id, data", ("id",))
        if not whole:
            self.content.missing.append("some of the system prompts and tools that were sent")
        for key, data in rows:
            found = _quietly(load_fixed, data, shared)
            if found is not None:
                sets[key] = found
        for _, step_id, status, message_id, fixed_id, data in self._rows(
            "step", "id, status, message_id, fixed_id, data"
        ):
            if fixed_id is not None and fixed_id not in sets:
                self.content.missing.append(f"the system prompt and tools of step {step_id}")
            known = {"id": step_id, "status": status, "message_id": message_id, "fixed": sets.get(fixed_id, ())}
            step = self._load(f"step {step_id}", load_step, data, **known)
            if step is not None:
                self.content.steps.append(step)

    def _records(self) -> None:
        for _, record_id, operation_id, active, data in self._rows("compaction", "id, operation_id, active, data"):
            known = {"id": record_id, "operation_id": operation_id, "active": bool(active)}
            record = self._load(f"compaction {record_id}", load_record, data, **known)
            if record is None:
                continue
            if record.summary_id is not None and record.summary_id not in self.content.summaries:
                self.content.missing.append(
                    f"the summary of compaction {record_id} (its messages are sent in full again)"
                )
                continue
            self.content.records.append(record)


def _object(data: Any) -> dict[str, Any]:
    value = json.loads(data)
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} where an object belongs")
    return value


def _quietly(load: Callable[..., T], *data: Any) -> T | None:
    try:
        return load(*data)
    except UNREADABLE:
        return None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _sortable(key: Sequence[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((type(value).__name__ if not isinstance(value, (int, float)) else "", value) for value in key)
