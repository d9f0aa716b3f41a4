"""One search: which sessions have every word in them, and where.

What the index covers is asked of it, newest messages first, and each text it names is read before it counts; what it
does not cover (yet, or at all) is read. So a search finds the same with an index, without one, and while it grows.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agent_tui.errors import StoreError
from agent_tui.models.search import IndexState, SessionHit
from agent_tui.models.session import SessionInfo
from agent_tui.store.search.grams import match
from agent_tui.store.search.index import VERSION, NoIndex, index_file, is_of, read_only, why_not
from agent_tui.store.search.texts import SEARCHED, created_of, found_line, text_of
from agent_tui.store.tables.database import FAULTS, explain
from agent_tui.store.tables.rows import encode
from agent_tui.store.tables.session_rows import COLUMNS, infos_of
from agent_tui.text.search import contains, fold, search_words

_ROW = "m.n, m.id, m.session_id, m.role, m.data"
_INFO = ", ".join(f"s.{name}" for name in COLUMNS.split(", "))
_WAY = """WITH RECURSIVE way (n, parent_id) AS (
    SELECT m.n, m.parent_id FROM session AS s JOIN message AS m ON m.session_id = s.id AND m.id = s.head_id
    WHERE s.id = ?1
    UNION
    SELECT m.n, m.parent_id FROM way JOIN message AS m ON m.session_id = ?1 AND m.id = way.parent_id WHERE way.n > ?2
)"""
"""The rows of a conversation from its end back to row ``?2``; a parent's number is lower than its child's."""


class SearchReader:
    """Reads for searches over connections of its own. For one thread at a time, which need not be the one it was made
    in; ``stop`` may be called from any."""

    def __init__(self, database: Path | None) -> None:
        """``database`` is None where nothing is stored."""
        self._path = database
        self._connection: sqlite3.Connection | None = None
        self._why = ""
        self._stopped = False

    def stop(self) -> None:
        """Makes the search that runs raise ``StoreError`` soon, and every later one."""
        self._stopped = True
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def state(self) -> IndexState:
        """How a search gets at texts now. Raises ``StoreError``."""
        connection = self._opened()
        if connection is None or self._why:
            return IndexState("missing", why=self._why)
        low, high = connection.execute("SELECT low, high FROM search.reach").fetchone()
        if not low:
            return IndexState("whole")
        total = connection.execute("SELECT max(n) FROM message").fetchone()[0] or 0
        return IndexState("building", max(0, high - low + 1), total)

    def hits(self, query: str, project: str | None = None) -> Iterator[SessionHit]:
        """Sessions, each once, that have all ``search_words`` of a query in their title, project, id and texts: those
        that have them in what they are called, then those with a message that has all of them, then those that have
        them here and there; the newest first in each. Raises ``StoreError``."""
        words = search_words(query)
        connection = self._opened()
        if connection is None or not words:
            return
        try:
            yield from _Search(connection, words, project, indexed=not self._why).run()
        except FAULTS as error:
            assert self._path is not None
            raise StoreError("the search was stopped") if self._stopped else explain(error, self._path) from error

    def _opened(self) -> sqlite3.Connection | None:
        if self._stopped:
            raise StoreError("the search was stopped")
        if self._path is not None and self._connection is None:
            try:
                self._connection = sqlite3.connect(
                    read_only(self._path), uri=True, isolation_level=None, check_same_thread=False
                )
            except FAULTS as error:
                raise explain(error, self._path) from error
            self._why = self._attach(self._connection, index_file(self._path))
        return self._connection

    def _attach(self, connection: sqlite3.Connection, index: Path) -> str:
        """Takes the index in; why there is none, else nothing."""
        if not index.exists():
            return "there is no index yet"
        try:
            connection.execute("ATTACH DATABASE ? AS search", (read_only(index),))
            (version,) = connection.execute("PRAGMA search.user_version").fetchone()
            if version != VERSION:
                raise NoIndex("the index is of another version")
            connection.execute("SELECT rowid FROM search.grams WHERE grams MATCH '\"\"' LIMIT 1").fetchall()
            high, last = connection.execute("SELECT high, last FROM search.reach").fetchone()
            if high >= 0 and not is_of(connection, high, last):
                raise NoIndex("the index is of another database, and will be made anew")
        except (StoreError, *FAULTS) as error:
            return why_not(error, index)
        return ""


class _Search:
    """``found`` are sessions told already; ``had`` the words that were seen in each of the others, as a number with a
    bit for each word."""

    def __init__(
        self, connection: sqlite3.Connection, words: Sequence[str], project: str | None, indexed: bool
    ) -> None:
        self._connection = connection
        self._words = words
        self._indexed = indexed
        self._all = (1 << len(words)) - 1
        self._where = "s.kind <> 'subagent'" + ("" if project is None else " AND s.project = :project")
        self._values: dict[str, Any] = {} if project is None else {"project": encode(project)}
        self._found: set[str] = set()
        self._had: dict[str, int] = {}
        self._called: dict[str, int] = {}

    def run(self) -> Iterator[SessionHit]:
        yield from self._by_name()
        for row in self._candidates():
            if row[2] not in self._found:
                hit = self._looked(row)
                if hit is not None:
                    self._found.add(row[2])
                    yield hit
        if len(self._words) > 1 or self._called:
            yield from self._here_and_there()

    def _by_name(self) -> Iterator[SessionHit]:
        """Sessions that are called so. Of a project's name, which so many have, just the words are kept."""
        wanted = " OR ".join(f"instr(s.search, :w{number})" for number in range(len(self._words)))
        values = {f"w{number}": encode(word.split()[0]) for number, word in enumerate(self._words)}
        for session_id, *names in self._connection.execute(
            f"SELECT s.id, s.title, s.preview, s.project FROM session AS s WHERE {self._where} AND ({wanted}) "
            "ORDER BY s.updated DESC, s.id DESC",
            {**self._values, **values},
        ):
            title, preview, project = (bytes(name).decode("utf-8", "replace") for name in names)
            bits = self._in(f"{title or preview} {session_id}")
            if bits == self._all and (info := self._info(session_id)) is not None:
                self._found.add(session_id)
                yield self._named(info, title or preview)
                continue
            if not self._values:
                bits |= self._in(project)
            if bits:
                self._called[session_id] = bits

    def _in(self, name: str) -> int:
        folded = fold(name)
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
        left = [session for session, bits in may.items() if bits == self._all and session not in self._found]
        hits = [hit for session_id in left if (hit := self._read_whole(session_id)) is not None]
        yield from sorted(hits, key=lambda hit: hit.created, reverse=True)

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
        if best is None:
            info = self._info(session_id)
            return None if info is None else self._named(info, info.project)
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


def reader_of(database: Path) -> contextlib.closing[SearchReader]:
    """A reader to be closed at the end of a ``with``."""
    return contextlib.closing(SearchReader(database))
