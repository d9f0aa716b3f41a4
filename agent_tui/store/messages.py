"""Messages: the tree of a session, the summaries that are kept outside it, and those that wait to be sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_tui.errors import StoreError
from agent_tui.models.calibration import raw_total
from agent_tui.models.codec import dumps
from agent_tui.models.messages import Message
from agent_tui.models.session import SessionInfo
from agent_tui.store.database import Database, damaged
from agent_tui.store.rows import (
    dump_counts,
    dump_message,
    load_counts,
    load_json,
    load_message,
    load_part,
    load_waiting,
)
from agent_tui.store.sessions import SessionRows


class Messages:
    """Messages and their parts: the tree of a session, and the summaries that are kept outside it."""

    def __init__(self, database: Database, sessions: SessionRows) -> None:
        self._db = database
        self._sessions = sessions

    def add(self, session_id: str, message: Message, head: bool = True) -> None:
        """Adds a message to the session's tree; with ``head`` it becomes the end of the conversation.

        A draft is added the same way, with status ``streaming``. A message that waited no longer does. A caller that
        keeps a ``SessionInfo`` sets its ``head_id`` too, or a later ``SessionRows.save`` moves the head back. Raises
        ``StoreError`` when the session or the parent message does not exist, or the id is taken.
        """
        with self._db.writing():
            self._sessions.require(session_id)
            if message.parent_id is not None:
                self._sessions.require_message(session_id, message.parent_id)
            self.insert(session_id, message, in_tree=True)
            self._db.run("DELETE FROM waiting WHERE session_id = ? AND id = ?", (session_id, message.id))
            self._sessions.touch(session_id, message, head)

    def write(self, session_id: str, message: Message, parts: Iterable[int] | None = None) -> None:
        """Stores the present state of a message: its own fields, and of its parts those at the indexes ``parts``
        (None: all). The cost of a flush is that of the parts that changed."""
        with self._db.writing():
            row = self._db.one("SELECT n FROM message WHERE session_id = ? AND id = ?", (session_id, message.id))
            if row is None:
                raise StoreError(f"session {session_id} has no message {message.id}")
            self._db.run(
                "UPDATE message SET role = ?, status = ?, parent_id = ?, raw_tokens = ?, counts = ?, data = ? "
                "WHERE n = ?",
                (*_columns(message), row[0]),
            )
            self._put_parts(row[0], message, range(len(message.parts)) if parts is None else parts)
            self._db.run("DELETE FROM part WHERE message = ? AND position >= ?", (row[0], len(message.parts)))

    def set_counts(self, session_id: str, counts: Mapping[str, tuple[int, ...]]) -> None:
        """Stores the o200k_base counts of messages (of the tree, or summaries) by id; unknown ids are ignored."""
        with self._db.writing():
            self._db.run_many(
                "UPDATE message SET raw_tokens = ?, counts = ? WHERE session_id = ? AND id = ?",
                [(raw_total(count), dump_counts(count), session_id, name) for name, count in counts.items()],
            )

    def all(self, session_id: str) -> dict[str, Message]:
        """All messages of the tree by id, in the order they were added, those a rewind left behind included."""
        return self._load(session_id, in_tree=True)

    def summaries(self, session_id: str) -> dict[str, Message]:
        """The summary messages of the session's compactions by id; they are not part of the tree."""
        return self._load(session_id, in_tree=False)

    def tree_size(self, session_id: str) -> tuple[int, int]:
        """Returns the number of messages a session has on all its branches, and the number of branches beside the
        conversation."""
        with self._db.reading():
            self._sessions.require(session_id)
            row = self._db.one(
                "SELECT COUNT(*), COUNT(*) - COUNT(DISTINCT parent_id), "
                "COALESCE(MAX(parent_id = (SELECT head_id FROM session WHERE id = ?1)), 0) "
                "FROM message WHERE session_id = ?1 AND in_tree",
                (session_id,),
            )
            ends = self._db.one("SELECT head_id IS NOT NULL FROM session WHERE id = ?", (session_id,))
        here = 1 if ends[0] and not row[2] else 0
        return int(row[0]), max(0, int(row[1]) - here)

    def said(self, info: SessionInfo) -> int:
        """Returns how many messages of the user and answers a conversation has: results of tools are none of them."""
        row = self._db.one(
            "WITH RECURSIVE way (parent_id, role) AS ("
            "SELECT parent_id, role FROM message WHERE session_id = ?1 AND id = ?2 AND in_tree UNION ALL "
            "SELECT m.parent_id, m.role FROM way JOIN message AS m "
            "ON m.session_id = ?1 AND m.id = way.parent_id AND m.in_tree LIMIT ?3) "
            "SELECT COUNT(*) FROM way WHERE role <> 'tool'",
            (info.id, info.head_id, info.messages),
        )
        return int(row[0])

    def path(self, session_id: str, head_id: str | None) -> list[Message]:
        """The conversation that ends with ``head_id``, first message first; empty for None."""
        if head_id is None:
            return []
        messages = self.all(session_id)
        if head_id not in messages:
            raise StoreError(f"session {session_id} has no message {head_id}")
        try:
            return walk(messages, head_id)
        except KeyError as error:
            raise damaged(self._db.path, f"message {error.args[0]} is missing") from error

    def _load(self, session_id: str, in_tree: bool) -> dict[str, Message]:
        with self._db.reading():
            self._sessions.require(session_id)
            rows = self._db.all(
                "SELECT n, id, role, status, parent_id, raw_tokens, data, counts FROM message "
                "WHERE session_id = ? AND in_tree = ? ORDER BY n",
                (session_id, in_tree),
            )
            part_rows = self._db.all(
                "SELECT p.message, p.data FROM message AS m CROSS JOIN part AS p ON p.message = m.n "
                "WHERE m.session_id = ? AND m.in_tree = ? ORDER BY m.n, p.position",
                (session_id, in_tree),
            )
        with self._db.decoding("a message"):
            parts: dict[int, list[Any]] = {row[0]: [] for row in rows}
            for row, data in zip(part_rows, load_json(row[1] for row in part_rows), strict=True):
                parts[row[0]].append(load_part(data))
            messages: dict[str, Message] = {}
            for row, data in zip(rows, load_json(row[6] for row in rows), strict=True):
                n, message_id, role, status, parent_id, raw_tokens, _, counts = row
                data.update(id=message_id, role=role, status=status, parent_id=parent_id)
                data.update(raw_tokens=raw_tokens, counts=load_counts(counts), parts=parts[n])
                messages[message_id] = load_message(data)
            return messages

    def insert(self, session_id: str, message: Message, in_tree: bool) -> None:
        """Adds a message as it is, wherever it belongs, in a transaction of the caller's."""
        taken = self._db.one("SELECT 1 FROM message WHERE session_id = ? AND id = ?", (session_id, message.id))
        if taken is not None:
            raise StoreError(f"session {session_id} already has a message {message.id}")
        cursor = self._db.run(
            "INSERT INTO message (session_id, id, in_tree, role, status, parent_id, raw_tokens, counts, data) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (session_id, message.id, in_tree, *_columns(message)),
        )
        self._put_parts(cursor.lastrowid, message, range(len(message.parts)))

    def _put_parts(self, row: int | None, message: Message, indexes: Iterable[int]) -> None:
        self._db.run_many(
            "INSERT INTO part (message, position, data) VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET data = excluded.data",
            [(row, index, dumps(message.parts[index])) for index in indexes],
        )


def walk(messages: Mapping[str, Message], head_id: str | None) -> list[Message]:
    """The path from the root to ``head_id``. Raises ``KeyError`` for a message that is missing (or a parent of
    itself)."""
    path: list[Message] = []
    seen: set[str] = set()
    while head_id is not None:
        if head_id in seen:
            raise KeyError(head_id)
        seen.add(head_id)
        message = messages[head_id]
        path.append(message)
        head_id = message.parent_id
    path.reverse()
    return path


class WaitingTable:
    """A message leaves this table in the transaction that adds it to the conversation (``Messages.add``): a crash
    finds it in one of the two, never in both or none."""

    def __init__(self, database: Database, sessions: SessionRows) -> None:
        self._db = database
        self._sessions = sessions

    def add(self, session_id: str, message: Message) -> None:
        """Keeps a message that waits, behind those that wait already; once."""
        with self._db.writing():
            self._sessions.require(session_id)
            self._db.run(
                "INSERT OR IGNORE INTO waiting (session_id, id, data) VALUES (?, ?, ?)",
                (session_id, message.id, dumps(message)),
            )

    def remove(self, session_id: str, message_id: str) -> None:
        """A message was taken back; nothing happens where it does not wait."""
        with self._db.writing():
            self._db.run("DELETE FROM waiting WHERE session_id = ? AND id = ?", (session_id, message_id))

    def order(self, session_id: str, ids: Sequence[str]) -> None:
        """Puts the waiting messages into the order in which they are to go out; what is not among ``ids`` stays in
        front of it, as it was."""
        place = {message_id: n for n, message_id in enumerate(ids)}
        with self._db.writing():
            rows = self._db.all("SELECT id, data FROM waiting WHERE session_id = ? ORDER BY n", (session_id,))
            self._db.run("DELETE FROM waiting WHERE session_id = ?", (session_id,))
            for message_id, data in sorted(rows, key=lambda row: place.get(row[0], -1)):
                self._db.run(
                    "INSERT INTO waiting (session_id, id, data) VALUES (?, ?, ?)", (session_id, message_id, data)
                )

    def move(self, source: str, target: str) -> None:
        """Moves the messages that wait in one session to another."""
        with self._db.writing():
            self._db.run("UPDATE OR REPLACE waiting SET session_id = ? WHERE session_id = ?", (target, source))

    def all(self, session_id: str) -> list[Message]:
        """The messages that wait in a session, in the order they were typed."""
        rows = self._db.all("SELECT data FROM waiting WHERE session_id = ? ORDER BY n", (session_id,))
        with self._db.decoding("a message that waits"):
            return [load_waiting(data) for (data,) in rows]


def _columns(message: Message) -> tuple[object, ...]:
    counts = dump_counts(message.counts)
    return message.role, message.status, message.parent_id, message.raw_tokens, counts, dump_message(message)
