"""One search: which sessions have every word in them, and where.

What the index covers is asked of it, newest messages first, and each text it names is read before it counts; what it
does not cover (yet, or at all) is read. So a search finds the same with an index, without one, and while it grows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from agent_tui.errors import StoreError
from agent_tui.models.session import SessionHit, SessionInfo
from agent_tui.store.rows import COLUMNS, encode, infos_of
from agent_tui.store.search_index import SEARCHED, created_of, found_line, match, text_of
from agent_tui.text.search import contains, fold


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


STOPPED = "the search was stopped"

_ROW = "m.n, m.id, m.session_id, m.role, m.data"
_INFO = ", ".join(f"s.{name}" for name in COLUMNS.split(", "))
_WAY = """WITH RECURSIVE way (n, parent_id) AS (
    SELECT m.n, m.parent_id FROM session AS s JOIN message AS m ON m.session_id = s.id AND m.id = s.head_id
    WHERE s.id = ?1
    UNION
    SELECT m.n, m.parent_id FROM way JOIN message AS m ON m.session_id = ?1 AND m.id = way.parent_id WHERE way.n > ?2
)"""
"""The rows of a conversation from its end back to row ``?2``; a parent's number is lower than its child's."""


class Search:
    """Of one query, in one project or all. ``found`` are sessions told already; ``had`` the words that were seen in
    each of the others, as a number with a bit for each word, ``called`` those in what they are called."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        words: Sequence[str],
        project: str | None,
        names: Sequence[Called],
        stopped: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._words = words
        self._names = names
        self._stopped = stopped
        self._indexed = False
        self._all = (1 << len(words)) - 1
        self._where = "s.kind <> 'subagent'" + ("" if project is None else " AND s.project = :project")
        self._values: dict[str, Any] = {} if project is None else {"project": encode(project)}
        self._found: set[str] = set()
        self._had: dict[str, int] = {}
        self._called: dict[str, int] = {}

    def run(self, indexed: bool) -> Iterator[SessionHit]:
        self._indexed = indexed
        yield from self._by_name()
        for row in self._candidates():
            self._go_on()
            if row[2] not in self._found:
                hit = self._looked(row)
                if hit is not None:
                    self._found.add(row[2])
                    yield hit
        if len(self._words) > 1 or self._called:
            yield from self._here_and_there()

    def _go_on(self) -> None:
        if self._stopped():
            raise StoreError(STOPPED)

    def _by_name(self) -> Iterator[SessionHit]:
        """Sessions that are called so. Of a project's name, which so many have, just the words are kept."""
        bits = [(1 << k, word) for k, word in enumerate(self._words)]
        everywhere = not self._values
        for session_id, name, project in self._names:
            if session_id in self._found:
                continue
            had = sum([bit for bit, word in bits if word in name])
            if had == self._all:
                self._go_on()
                if (info := self._info(session_id)) is not None:
                    self._found.add(session_id)
                    yield self._named(info, info.title or info.preview)
                continue
            if everywhere:
                had |= sum([bit for bit, word in bits if word in project])
            if had:
                self._called[session_id] = had

    def _in(self, text: str) -> int:
        folded = fold(text)
        return sum(1 << k for k, word in enumerate(self._words) if contains(folded, word))

    def _named(self, info: SessionInfo, name: str) -> SessionHit:
        line, marks = found_line(name, self._words)
        return SessionHit(info, line=line, spans=tuple(marks))

    def _candidates(self) -> Iterator[Any]:
        """Messages that may have all words in them, the newest first."""
        low, high = self._reach()
        yield from self._read("m.n > :high", high=high)
        if low <= high:
            if self._waiting():
                yield from self._read("m.n IN (SELECT n FROM search.waits)")
            yield from self._connection.execute(
                f"SELECT {_ROW} FROM search.grams AS g CROSS JOIN message AS m ON m.n = g.rowid "
                f"CROSS JOIN session AS s ON s.id = m.session_id "
                f"WHERE g.grams MATCH :match AND {SEARCHED} AND {self._where} ORDER BY g.rowid DESC",
                {**self._values, "match": match(self._words)},
            )
        if low > 0:
            yield from self._read("m.n < :low AND m.n <= :high", low=low, high=high)

    def _reach(self) -> tuple[int, int]:
        if not self._indexed:
            return 0, -1
        low, high = self._connection.execute("SELECT low, high FROM search.reach").fetchone()
        return low, high

    def _waiting(self) -> bool:
        return self._connection.execute("SELECT 1 FROM search.waits LIMIT 1").fetchone() is not None

    def _read(self, which: str, **values: int) -> Iterator[Any]:
        """Messages of which nothing is known but their text."""
        return self._connection.execute(
            f"SELECT {_ROW} FROM message AS m CROSS JOIN session AS s ON s.id = m.session_id "
            f"WHERE {which} AND {SEARCHED} AND {self._where} ORDER BY m.n DESC",
            {**self._values, **values},
        )

    def _looked(self, row: Any) -> SessionHit | None:
        """The hit, if the text has all words; remembers those it has."""
        n, message_id, session_id, role, data = row
        text = text_of(self._connection, n)
        if self._bits(session_id, text) != self._all:
            return None
        if self._is_on_way(session_id, n):
            return self._hit(session_id, message_id, role, data, text, left_behind=False)
        for other in self._connection.execute(
            f"{_WAY} SELECT {_ROW} FROM way JOIN message AS m ON m.n = way.n WHERE {SEARCHED} ORDER BY m.n DESC",
            (session_id, 0),
        ).fetchall():
            said = text_of(self._connection, other[0])
            if self._bits(session_id, said) == self._all:
                return self._hit(session_id, other[1], other[3], other[4], said, left_behind=False)
        return self._hit(session_id, message_id, role, data, text, left_behind=True)

    def _bits(self, session_id: str, text: str) -> int:
        bits = self._in(text)
        if bits:
            self._had[session_id] = self._had.get(session_id, 0) | bits
        return bits

    def _is_on_way(self, session_id: str, n: int) -> bool:
        query = f"{_WAY} SELECT 1 FROM way WHERE n = ?2"
        return self._connection.execute(query, (session_id, n)).fetchone() is not None

    def _here_and_there(self) -> Iterator[SessionHit]:
        """Sessions that have the words, but in no one place."""
        may: dict[str, int] = dict(self._called)
        for session_id, bits in self._had.items():
            may[session_id] = may.get(session_id, 0) | bits
        low, high = self._reach()
        if low <= high and len(self._words) > 1:
            for k, word in enumerate(self._words):
                rows = self._connection.execute(
                    "SELECT DISTINCT m.session_id FROM search.grams AS g CROSS JOIN message AS m ON m.n = g.rowid "
                    f"CROSS JOIN session AS s ON s.id = m.session_id WHERE g.grams MATCH :match AND {self._where}",
                    {**self._values, "match": match([word])},
                )
                for (session_id,) in rows:
                    may[session_id] = may.get(session_id, 0) | 1 << k
        for session_id, *_ in self._names:
            if may.get(session_id) != self._all or session_id in self._found:
                continue
            self._go_on()
            if self._called.get(session_id) == self._all:
                info = self._info(session_id)
                hit = None if info is None else self._named(info, info.project)
            else:
                hit = self._read_whole(session_id)
            if hit is not None:
                self._found.add(session_id)
                yield hit

    def _read_whole(self, session_id: str) -> SessionHit | None:
        """A session that may have all words in it, read; shown is the newest message with most of them."""
        way = {n for (n,) in self._connection.execute(f"{_WAY} SELECT n FROM way", (session_id, 0))}
        rows = self._connection.execute(
            f"SELECT {_ROW} FROM message AS m WHERE m.session_id = ? AND {SEARCHED} ORDER BY m.n DESC", (session_id,)
        ).fetchall()
        had, best, most = self._called.get(session_id, 0), None, (-1, False)
        for row in rows:
            text = text_of(self._connection, row[0])
            bits = self._bits(session_id, text)
            had |= bits
            worth = (bits.bit_count(), row[0] in way)
            if bits and worth > most:
                best, most = (row, text), worth
        if had != self._all:
            return None
        assert best is not None
        (_, message_id, _, role, data), text = best
        return self._hit(session_id, message_id, role, data, text, left_behind=not most[1])

    def _info(self, session_id: str) -> SessionInfo | None:
        row = self._connection.execute(f"SELECT {_INFO} FROM session AS s WHERE s.id = ?", (session_id,)).fetchone()
        return None if row is None else infos_of([row])[0]

    def _hit(
        self, session_id: str, message_id: str, role: Any, data: str, text: str, *, left_behind: bool
    ) -> SessionHit | None:
        info = self._info(session_id)
        if info is None:
            return None
        line, marks = found_line(text, self._words)
        return SessionHit(info, message_id, role, created_of(data), line, tuple(marks), left_behind)
