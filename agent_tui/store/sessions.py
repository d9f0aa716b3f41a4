"""Sessions: the rows that lists show."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from agent_tui.errors import NoSessionError, StoreError
from agent_tui.models.codec import dumps
from agent_tui.models.messages import Message, TextPart, new_id
from agent_tui.models.session import SessionInfo, SessionKind
from agent_tui.store.database import Database
from agent_tui.store.rows import COLUMNS, decode, encode, infos_of, row_of, session_of
from agent_tui.text.clean import printable_line
from agent_tui.text.secrets import beginning_without_keys

PREVIEW_LENGTH = 200


class SessionRows:
    """The rows of the table of sessions."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def exists(self, session_id: str) -> bool:
        """Returns whether there is a session of exactly this id. Raises ``StoreError``."""
        return bool(self._db.all("SELECT 1 FROM session WHERE id = CAST(? AS TEXT)", (encode(session_id),)))

    def create(
        self,
        project: str | Path,
        model: str,
        parent: str | None = None,
        kind: SessionKind = "user",
        session_id: str | None = None,
    ) -> SessionInfo:
        """A new, empty session of a project root; ``parent`` is the session it was made from. Raises ``StoreError``,
        also where ``session_id`` is taken."""
        now = time.time()
        new = session_id or new_id("ses")
        info = SessionInfo(new, str(project), "", model, now, now, parent_session=parent, kind=kind)
        with self._db.writing():
            self.insert(info)
        return info

    def get(self, session_id: str) -> SessionInfo:
        """The session with this id, or the only one whose id begins with it. Raises ``StoreError``."""
        row = self._row(session_id)
        with self._db.decoding(f"the facts of session {row[0]}"):
            return session_of(row)

    def listed(self, session_id: str) -> SessionInfo:
        """The same as lists show it, where its row makes no sense, too. Raises ``StoreError``."""
        return infos_of([self._row(session_id)])[0]

    def _row(self, session_id: str) -> Any:
        rows = self._db.all(f"SELECT {COLUMNS} FROM session WHERE id = CAST(? AS TEXT)", (encode(session_id),))
        if not rows and session_id:
            rows = self._db.all(
                f"SELECT {COLUMNS} FROM session WHERE substr(CAST(id AS BLOB), 1, ?) = ? ORDER BY id LIMIT 4",
                (len(encode(session_id)), encode(session_id)),
            )
        if len(rows) == 1:
            return rows[0]
        if rows:
            some = ", ".join(row[0] for row in rows[:3])
            raise StoreError(f"{session_id!r} matches more than one session ({some}, …): give more of the id")
        raise _no_session(session_id)

    def require(self, session_id: str) -> None:
        """Raises ``NoSessionError`` where there is no session of exactly this id."""
        if not self.exists(session_id):
            raise _no_session(session_id)

    def all(
        self,
        project: str | Path | None = None,
        limit: int | None = None,
        *,
        empty: bool = True,
        subagents: bool = False,
        runs: bool = True,
    ) -> list[SessionInfo]:
        """Sessions, newest first: of one project or of all. ``empty`` includes sessions without a message, not even one
        that waits, ``subagents`` those that worked for a tool call, ``runs`` those of ``-p``."""
        where, values = ["1"], []
        if project is not None:
            where.append("project = ?")
            values.append(encode(str(project)))
        if not empty:
            # A conversation that was gone back from to before its first message has no message, and all of them.
            where.append(
                "(messages > 0 OR EXISTS (SELECT 1 FROM message WHERE message.session_id = session.id AND in_tree) "
                "OR EXISTS (SELECT 1 FROM waiting WHERE waiting.session_id = session.id))"
            )
        if not subagents:
            where.append("kind <> 'subagent'")
        if not runs:
            where.append("kind <> 'run'")
        rows = self._db.all(
            f"SELECT {COLUMNS} FROM session WHERE {' AND '.join(where)} ORDER BY updated DESC, id DESC LIMIT ?",
            (*values, -1 if limit is None else limit),
        )
        return infos_of(rows)

    def newest(self, project: str | Path, *, runs: bool = True) -> SessionInfo | None:
        """The session of a project last worked on that has a message in it; without ``runs`` none of ``-p``."""
        found = self.all(project, limit=1, empty=False, runs=runs)
        return found[0] if found else None

    def save(self, info: SessionInfo) -> None:
        """Stores title, model, head, state and ``updated``. What the store itself keeps (message count, preview) is
        not taken from ``info``. Raises ``StoreError`` when the session or its head does not exist."""
        with self._db.writing():
            row = self._db.one("SELECT head_id, messages FROM session WHERE id = ?", (info.id,))
            if row is None:
                self.require(info.id)
            if info.head_id is not None:
                self.require_message(info.id, info.head_id)
            count = row[1] if info.head_id == row[0] else self._length(info.id, info.head_id)
            self._db.run(
                "UPDATE session SET title = ?, model = ?, head_id = ?, messages = ?, state = ?, updated = ?, kind = ? "
                "WHERE id = ?",
                (
                    encode(info.title),
                    encode(info.model),
                    info.head_id,
                    count,
                    dumps(info.state),
                    info.updated,
                    info.kind,
                    info.id,
                ),
            )

    def stop_unfinished(self, session_id: str) -> int:
        """Marks drafts and running steps as stopped; returns how many there were."""
        drafts = self._db.run(
            "UPDATE message SET status = 'stopped' WHERE session_id = ? AND status = 'streaming'", (session_id,)
        )
        steps = self._db.run(
            "UPDATE step SET status = 'stopped' WHERE session_id = ? AND status = 'running'", (session_id,)
        )
        return drafts.rowcount + steps.rowcount

    def require_message(self, session_id: str, message_id: str) -> None:
        found = self._db.one(
            "SELECT 1 FROM message WHERE session_id = ? AND id = ? AND in_tree", (session_id, message_id)
        )
        if found is None:
            raise StoreError(f"session {session_id} has no message {message_id}")

    def insert(self, info: SessionInfo) -> None:
        """Adds a session with all its facts, in a transaction of the caller's."""
        self._db.run(
            f"INSERT INTO session ({COLUMNS}) VALUES ({','.join('?' * 12)})",
            row_of(info),
        )

    def _length(self, session_id: str, head_id: str | None) -> int:
        """Returns the number of messages of the conversation that ends with ``head_id``."""
        row = self._db.one(
            "WITH RECURSIVE way (id, parent_id) AS ("
            "SELECT id, parent_id FROM message WHERE session_id = ?1 AND id = ?2 AND in_tree UNION "
            "SELECT m.id, m.parent_id FROM way JOIN message AS m "
            "ON m.session_id = ?1 AND m.id = way.parent_id AND m.in_tree) SELECT COUNT(*) FROM way",
            (session_id, head_id),
        )
        return int(row[0])

    def touch(self, session_id: str, message: Message, head: bool) -> None:
        """The session's row after a message joined its tree. ``messages`` counts the conversation, not the tree."""
        preview, head_id, count = self._db.one(
            "SELECT preview, head_id, messages FROM session WHERE id = ?", (session_id,)
        )
        preview = decode(preview)
        if head:
            count = count + 1 if message.parent_id == head_id else self._length(session_id, message.id)
        if not preview and message.role == "user":
            preview = preview_of(message)
        self._db.run(
            "UPDATE session SET messages = ?, updated = ?, preview = ?, "
            "head_id = CASE WHEN ? THEN ? ELSE head_id END WHERE id = ?",
            (count, time.time(), encode(preview), head, message.id, session_id),
        )


def preview_of(message: Message) -> str:
    """The first 200 characters of a message's text on one line, without control and formatting characters."""
    for part in message.parts:
        if isinstance(part, TextPart) and part.text.strip():
            return printable_line(beginning_without_keys(part.text), PREVIEW_LENGTH)
    return ""


def _no_session(session_id: str) -> NoSessionError:
    return NoSessionError(f"no such session: {session_id!r}. Run `agent-tui sessions --all` to list them")
