"""Sessions: the rows that lists show, and everything that concerns a session as a whole."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_tui.errors import StoreError, StoreLockedError
from agent_tui.models.messages import Message, TextPart, new_id
from agent_tui.models.steps import SessionInfo, conversation_state
from agent_tui.store.base import Tables, no_session
from agent_tui.store.database import damaged
from agent_tui.store.rows import check_fields, decode, encode, load_json, require_time
from agent_tui.store.salvage import scan
from agent_tui.text.clean import printable_line

PREVIEW_LENGTH = 200

# As ``json.dumps`` writes it; in a text value its quotes would be escaped.
SUBAGENT = "instr(state, '\"subagent\":true') > 0"

_COLUMNS = "id, project, title, model, created, updated, head_id, messages, parent_session, preview, state"


class SessionTables(Tables):
    def has_session(self, session_id: str) -> bool:
        """Whether there is a session of exactly this id. Raises ``StoreError``."""
        return bool(self._db.all("SELECT 1 FROM session WHERE id = CAST(? AS TEXT)", (encode(session_id),)))

    def create_session(
        self, project: str | Path, model: str, parent: str | None = None, session_id: str | None = None
    ) -> SessionInfo:
        """A new, empty session of a project root; ``parent`` is the session it was made from. Raises ``StoreError``,
        also where ``session_id`` is taken."""
        now = time.time()
        info = SessionInfo(
            session_id or new_id("ses"),
            str(project),
            "",
            model,
            now,
            now,
            parent_session=parent,
            state=conversation_state(),
        )
        with self._db.writing():
            self._insert_session(info)
        return info

    def session(self, session_id: str) -> SessionInfo:
        """The session with this id, or the only one whose id begins with it. Raises ``StoreError``."""
        try:
            rows = self._db.all(f"SELECT {_COLUMNS} FROM session WHERE id = CAST(? AS TEXT)", (encode(session_id),))
            if not rows and session_id:
                rows = self._db.all(
                    f"SELECT {_COLUMNS} FROM session WHERE substr(CAST(id AS BLOB), 1, ?) = ? ORDER BY id LIMIT 4",
                    (len(encode(session_id)), encode(session_id)),
                )
        except StoreLockedError:
            raise
        except StoreError:
            rows = [row for row in self._readable_rows() if session_id and str(row[0]).startswith(session_id)]
            rows = [row for row in rows if row[0] == session_id] or rows
        if len(rows) == 1:
            return self._infos(rows)[0]
        if rows:
            some = ", ".join(row[0] for row in rows[:3])
            raise StoreError(f"{session_id!r} fits more than one session ({some}, …): give more of the id")
        raise no_session(session_id)

    def sessions(
        self,
        project: str | Path | None = None,
        search: str = "",
        limit: int | None = None,
        *,
        empty: bool = True,
        subagents: bool = False,
    ) -> list[SessionInfo]:
        """Sessions, newest first: of one project or of all, with every word of ``search`` in title, preview, id or
        project. ``empty`` includes sessions without a message, not even one that waits, ``subagents`` those that worked
        for a tool call."""
        where, values = ["1"], []
        if project is not None:
            where.append("project = ?")
            values.append(encode(str(project)))
        if not empty:
            where.append("(messages > 0 OR EXISTS (SELECT 1 FROM waiting WHERE waiting.session_id = session.id))")
        if not subagents:
            where.append(f"NOT {SUBAGENT}")
        for word in search.casefold().split():
            where.append("instr(search, ?)")
            values.append(encode(word))
        try:
            rows = self._db.all(
                f"SELECT {_COLUMNS} FROM session WHERE {' AND '.join(where)} ORDER BY updated DESC, id DESC LIMIT ?",
                (*values, -1 if limit is None else limit),
            )
        except StoreLockedError:
            raise
        except StoreError:
            return self._readable_sessions(project, search, empty, subagents)[:limit]
        return self._infos(rows)

    def _readable_rows(self) -> list[Any]:
        """The rows of a damaged table as far as they can be read. Raises ``StoreError`` when that is nothing."""
        before = self._db.connection.text_factory
        self._db.connection.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            rows, whole = scan(self._db.connection, "session", f"rowid, {_COLUMNS}", ("rowid",))
        finally:
            self._db.connection.text_factory = before
        if not rows and not whole:
            raise damaged(self._db.path, "no session can be read")
        return [row[1:] for row in rows if isinstance(row[1], str)]

    def _readable_sessions(
        self, project: str | Path | None, search: str, empty: bool, subagents: bool
    ) -> list[SessionInfo]:
        """What ``sessions`` gives, of a damaged table."""
        words = search.casefold().split()
        found = [
            info
            for info in self._infos(self._readable_rows())
            if (project is None or info.project == str(project))
            and (empty or info.messages > 0)
            and (subagents or not info.state.get("subagent"))
            and all(w in f"{info.title}\n{info.preview}\n{info.id}\n{info.project}".casefold() for w in words)
        ]
        return sorted(found, key=lambda info: (info.updated, info.id), reverse=True)

    def newest_session(self, project: str | Path) -> SessionInfo | None:
        """The session of a project last worked on that has a message in it."""
        found = self.sessions(project, limit=1, empty=False)
        return found[0] if found else None

    def save_session(self, info: SessionInfo) -> None:
        """Stores title, model, head, state and ``updated``. What the store itself keeps (message count, preview) is
        left alone. Raises ``StoreError`` when the session or its head does not exist."""
        with self._db.writing():
            row = self._db.one("SELECT preview FROM session WHERE id = ?", (info.id,))
            if row is None:
                self._require_session(info.id)
            if info.head_id is not None:
                self._require_message(info.id, info.head_id)
            self._db.run(
                "UPDATE session SET title = ?, model = ?, head_id = ?, state = ?, updated = ?, search = ? WHERE id = ?",
                (
                    encode(info.title),
                    encode(info.model),
                    info.head_id,
                    json.dumps(info.state, separators=(",", ":")),
                    info.updated,
                    _search_text(info.id, info.project, info.title, decode(row[0])),
                    info.id,
                ),
            )

    def _require_message(self, session_id: str, message_id: str) -> None:
        found = self._db.one(
            "SELECT 1 FROM message WHERE session_id = ? AND id = ? AND in_tree", (session_id, message_id)
        )
        if found is None:
            raise StoreError(f"session {session_id} has no message {message_id}")

    def _insert_session(self, info: SessionInfo) -> None:
        self._db.run(
            f"INSERT INTO session ({_COLUMNS}, search) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                info.id,
                encode(info.project),
                encode(info.title),
                encode(info.model),
                info.created,
                info.updated,
                info.head_id,
                info.messages,
                info.parent_session,
                encode(info.preview),
                json.dumps(info.state, separators=(",", ":")),
                _search_text(info.id, info.project, info.title, info.preview),
            ),
        )

    def _touch(self, session_id: str, message: Message, head: bool) -> None:
        """The session's row after a message joined its tree."""
        row = self._db.one("SELECT project, title, preview FROM session WHERE id = ?", (session_id,))
        project, title, preview = (decode(value) for value in row)
        if not preview and message.role == "user":
            preview = preview_of(message)
        self._db.run(
            "UPDATE session SET messages = messages + 1, updated = ?, preview = ?, search = ?, "
            "head_id = CASE WHEN ? THEN ? ELSE head_id END WHERE id = ?",
            (
                time.time(),
                encode(preview),
                _search_text(session_id, project, title, preview),
                head,
                message.id,
                session_id,
            ),
        )

    def _infos(self, rows: Sequence[Any]) -> list[SessionInfo]:
        """Sessions of rows. Facts that make no sense are replaced by what says nothing: a session whose row is damaged
        is listed and can be opened like any other."""
        try:
            states = load_json(row[10] for row in rows)
            return [_info(row, state) for row, state in zip(rows, states, strict=True)]
        except _SENSELESS:
            return [_what_is_left(row) for row in rows]


_SENSELESS = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


def _info(row: Any, state: Any) -> SessionInfo:
    info = SessionInfo(
        row[0],
        decode(row[1]),
        decode(row[2]),
        decode(row[3]),
        row[4],
        row[5],
        row[6],
        row[7],
        row[8],
        decode(row[9]),
        state,
    )
    check_fields(info)
    for seconds in (info.created, info.updated):
        require_time(seconds)
    return info


def _what_is_left(row: Any) -> SessionInfo:
    def text(value: Any) -> str:
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")

    def number(value: Any) -> float:
        return value if isinstance(value, (int, float)) and 0 <= value < 1e11 else 0.0

    try:
        state = json.loads(row[10])
    except _SENSELESS:
        state = None
    return SessionInfo(
        text(row[0]),
        text(row[1]),
        text(row[2]),
        text(row[3]),
        number(row[4]),
        number(row[5]),
        None if row[6] is None else text(row[6]),
        int(number(row[7])),
        None if row[8] is None else text(row[8]),
        text(row[9]),
        state if isinstance(state, dict) else conversation_state(),
    )


def preview_of(message: Message) -> str:
    """The first 200 characters of a message's text on one line, without control and formatting characters."""
    for part in message.parts:
        if isinstance(part, TextPart) and part.text.strip():
            return printable_line(part.text, PREVIEW_LENGTH)
    return ""


def _search_text(session_id: str, project: str, title: str, preview: str) -> bytes:
    return encode(f"{title}\n{preview}\n{session_id}\n{project}".casefold())
