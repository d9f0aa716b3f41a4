"""What sessions are called, folded, and kept between searches: a letter typed does not read ten thousand rows anew."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from agent_tui.store.tables.rows import encode
from agent_tui.text.search import fold


class Called(NamedTuple):
    """A session's title (or how it begins) and id, and its project: folded, with single blanks."""

    session_id: str
    name: str
    project: str


class Names:
    """For one connection that only reads."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._version: int | None = None
        self._known: dict[str | None, list[Called]] = {}

    def read(self, project: str | None) -> list[Called]:
        """The sessions of a project or of all, those last worked on first; as they are in the database now."""
        # Another connection's commit makes it another number.
        (version,) = self._connection.execute("PRAGMA main.data_version").fetchone()
        if version != self._version:
            self._version = version
            self._known.clear()
        if project not in self._known:
            self._known[project] = self._read(project)
        return self._known[project]

    def _read(self, project: str | None) -> list[Called]:
        where, values = ("", ()) if project is None else (" AND s.project = ?", (encode(project),))
        rows = self._connection.execute(
            "SELECT s.id, CASE WHEN s.title = x'' THEN s.preview ELSE s.title END, s.project FROM session AS s "
            f"WHERE s.kind <> 'subagent'{where} ORDER BY s.updated DESC, s.id DESC",
            values,
        ).fetchall()
        places = {row[2]: _flat(_text(row[2])) for row in rows}
        return [Called(row[0], _flat(f"{_text(row[1])} {row[0]}"), places[row[2]]) for row in rows]


def _text(value: bytes | str) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _flat(text: str) -> str:
    return " ".join(fold(text).split())
