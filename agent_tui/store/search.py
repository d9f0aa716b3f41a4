"""One search: which sessions have every word in them, and where.

SQLite looks for the words in the stored parts, newest messages first, and each text that may have them is read before
it counts.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent_tui.errors import StoreError
from agent_tui.models.session import SessionHit, SessionInfo
from agent_tui.store.database import FAULTS, explain
from agent_tui.store.rows import COLUMNS, encode, infos_of
from agent_tui.text.clean import clean_line
from agent_tui.text.search import Span, contains, fold, search_words, spans

_SEARCHED = "m.in_tree AND m.role IN ('user', 'assistant')"
"""Which rows of ``message AS m`` are."""

_LEAD = 40
"""Characters of a line that are kept ahead of what was found in it."""

_TEXT_PART = '"type":"text"'


def text_of(connection: sqlite3.Connection, n: int) -> str:
    """The text of the message in row ``n``; of a damaged one, what can be read."""
    texts: list[str] = []
    rows = connection.execute("SELECT data FROM part WHERE message = ? ORDER BY position", (n,))
    for (data,) in rows:
        if isinstance(data, str) and _TEXT_PART in data:
            part = _object(data)
            if part.get("type") == "text" and isinstance(part.get("text"), str):
                texts.append(part["text"])
    return "\n".join(texts)


def created_of(data: str) -> float:
    """Returns when a message was said, from the fields that have no column."""
    created = _object(data).get("created")
    return float(created) if isinstance(created, (int, float)) else 0.0


def found_line(text: str, words: Sequence[str], width: int = 240) -> tuple[str, list[Span]]:
    """The line of a text that has most of ``search_words``, without control characters and cut around the first of
    them, with their places in it."""
    best, most = "", -1
    for line in text.splitlines():
        if line.strip():
            folded = fold(line)
            count = sum(contains(folded, word) for word in words)
            if count > most:
                best, most = line, count
            if count == len(words):
                break
    shown = clean_line(best).strip()
    first = next(iter(spans(shown, words)), (0, 0))[0]
    if first > _LEAD and len(shown) > width:
        shown = "…" + shown[first - _LEAD :]
    if len(shown) > width:
        shown = shown[: width - 1] + "…"
    return shown, spans(shown, words)


def _object(data: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


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


def _may(words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Returns the condition for messages that may have all of the folded words, and its values. Parts are stored as
    JSON in ASCII: one without an escaped character has an ASCII word as it was typed, but for its case."""
    parts = dict.fromkeys(part for word in words for part in word.split())
    needles = {f"part{k}": json.dumps(part)[1:-1] if part.isascii() else "\\u" for k, part in enumerate(parts)}
    has = "(instr(lower(p.data), :{}) OR instr(p.data, '\\u'))"
    exists = "EXISTS (SELECT 1 FROM part AS p WHERE p.message = m.n AND {})"
    return " AND ".join(exists.format(has.format(name)) for name in needles), needles


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
        self._all = (1 << len(words)) - 1
        self._where = "s.kind <> 'subagent'" + ("" if project is None else " AND s.project = :project")
        self._values: dict[str, Any] = {} if project is None else {"project": encode(project)}
        self._found: set[str] = set()
        self._had: dict[str, int] = {}
        self._called: dict[str, int] = {}

    def run(self) -> Iterator[SessionHit]:
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
        may, values = _may(self._words)
        return self._connection.execute(
            f"SELECT {_ROW} FROM message AS m CROSS JOIN session AS s ON s.id = m.session_id "
            f"WHERE {_SEARCHED} AND {self._where} AND {may} ORDER BY m.n DESC",
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
            f"{_WAY} SELECT {_ROW} FROM way JOIN message AS m ON m.n = way.n WHERE {_SEARCHED} ORDER BY m.n DESC",
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
        for k, word in enumerate(self._words if len(self._words) > 1 else ()):
            has, values = _may([word])
            rows = self._connection.execute(
                "SELECT DISTINCT m.session_id FROM message AS m CROSS JOIN session AS s ON s.id = m.session_id "
                f"WHERE {_SEARCHED} AND {self._where} AND {has}",
                {**self._values, **values},
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
            f"SELECT {_ROW} FROM message AS m WHERE m.session_id = ? AND {_SEARCHED} ORDER BY m.n DESC", (session_id,)
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


class SearchReader:
    """Reads for searches, one after the other, over a connection of its own. For one thread at a time, which need not
    be the one it was made in; ``stop`` may be called from any."""

    def __init__(self, database: Path | None) -> None:
        """``database`` is None where nothing is stored."""
        self._path = database
        self._connection: sqlite3.Connection | None = None
        self._names: Names | None = None

    def stop(self) -> None:
        """Ends what runs at the moment, of a search whose ``stopped`` says so by now."""
        connection = self._connection  # its own thread may close it meanwhile
        if connection is not None:
            with contextlib.suppress(sqlite3.ProgrammingError):
                connection.interrupt()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def hits(
        self, query: str, project: str | None = None, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[SessionHit]:
        """Sessions, each once, that have all ``search_words`` of a query in their title, project, id and texts: those
        that have them in what they are called, then those with a message that has all of them, then those that have
        them here and there; the newest first in each. Raises ``StoreError``, soon when ``stopped`` becomes true."""
        words = search_words(query)
        connection = self._opened()
        if connection is None or not words:
            return
        assert self._path is not None and self._names is not None
        try:
            yield from Search(connection, words, project, self._names.read(project), stopped).run()
        except FAULTS as error:
            raise StoreError(STOPPED) if stopped() else explain(error, self._path) from error

    def _opened(self) -> sqlite3.Connection | None:
        if self._path is not None and self._connection is None:
            uri = f"{self._path.absolute().as_uri()}?mode=ro"
            try:
                connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            except FAULTS as error:
                raise explain(error, self._path) from error
            self._connection, self._names = connection, Names(connection)
        return self._connection
