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


class SessionTitle(NamedTuple):
    """A session's title (or how it begins) and id, and its project: folded, with single blanks."""

    session_id: str
    name: str
    project: str


def called(connection: sqlite3.Connection, project: str | None) -> list[SessionTitle]:
    """The sessions of a project or of all, those last worked on first."""
    where, values = ("", ()) if project is None else (" AND s.project = ?", (encode(project),))
    rows = connection.execute(
        "SELECT s.id, CASE WHEN s.title = x'' THEN s.preview ELSE s.title END, s.project FROM session AS s "
        f"WHERE s.kind <> 'subagent'{where} ORDER BY s.updated DESC, s.id DESC",
        values,
    ).fetchall()
    places = {row[2]: _flat(_text(row[2])) for row in rows}
    return [SessionTitle(row[0], _flat(f"{_text(row[1])} {row[0]}"), places[row[2]]) for row in rows]


def _text(value: bytes | str) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _flat(text: str) -> str:
    return " ".join(fold(text).split())


STOPPED = "the search was stopped"

_INFO = ", ".join(f"s.{name}" for name in COLUMNS.split(", "))
_WAY = f"""WITH RECURSIVE way (n, parent_id) AS (
    SELECT m.n, m.parent_id FROM session AS s JOIN message AS m ON m.session_id = s.id AND m.id = s.head_id
    WHERE s.id = ?1
    UNION
    SELECT m.n, m.parent_id FROM way JOIN message AS m ON m.session_id = ?1 AND m.id = way.parent_id
)
SELECT m.n FROM way JOIN message AS m ON m.n = way.n WHERE {_SEARCHED} ORDER BY m.n DESC"""
"""The rows of what is searched of a conversation, from its end back."""


def _may(word: str) -> tuple[str, list[str]]:
    """Returns the condition for messages that may have a folded word, and its values. Parts are stored as JSON in
    ASCII: one without an escaped character has an ASCII word as it was typed, but for its case."""
    needles = [json.dumps(part)[1:-1] if part.isascii() else "\\u" for part in word.split()]
    has = "(instr(lower(p.data), ?) OR instr(p.data, '\\u'))"
    exists = f"EXISTS (SELECT 1 FROM part AS p WHERE p.message = m.n AND {has})"
    return f"({' AND '.join([exists] * len(needles))})", needles


class Search:
    """Of one query, in one project or all. ``found`` are sessions told already; ``may`` the words that each of the
    others may have, as a number with a bit for each word, ``called`` those in what they are called."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        words: Sequence[str],
        project: str | None,
        names: Sequence[SessionTitle],
        stopped: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._words = words
        self._names = names
        self._stopped = stopped
        self._all = (1 << len(words)) - 1
        self._project = project
        self._found: set[str] = set()
        self._called: dict[str, int] = {}
        self._may: dict[str, int] = {}

    def run(self) -> Iterator[SessionHit]:
        yield from self._by_name()
        self._may = dict(self._called)
        for n, session_id, had in self._messages():
            self._go_on()
            if had and session_id not in self._found:
                self._may[session_id] = self._may.get(session_id, 0) | had
                if had == self._all and (hit := self._looked(n, session_id)) is not None:
                    self._found.add(session_id)
                    yield hit
        if len(self._words) > 1 or self._called:
            yield from self._here_and_there()

    def _go_on(self) -> None:
        if self._stopped():
            raise StoreError(STOPPED)

    def _by_name(self) -> Iterator[SessionHit]:
        """Sessions that are called so. Of a project's name, which so many have, just the words are kept."""
        bits = [(1 << k, word) for k, word in enumerate(self._words)]
        everywhere = self._project is None
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

    def _messages(self) -> Iterator[Any]:
        """All messages, the newest first, each with the words that it may have."""
        conditions = [_may(word) for word in self._words]
        had = " | ".join(f"({condition} << {k})" for k, (condition, _) in enumerate(conditions))
        where = "" if self._project is None else " AND s.project = ?"
        values: list[str | bytes] = [needle for _, needles in conditions for needle in needles]
        return self._connection.execute(
            f"SELECT m.n, m.session_id, {had} FROM message AS m CROSS JOIN session AS s ON s.id = m.session_id "
            f"WHERE {_SEARCHED} AND s.kind <> 'subagent'{where} ORDER BY m.n DESC",
            [*values, *([] if self._project is None else [encode(self._project)])],
        )

    def _looked(self, n: int, session_id: str) -> SessionHit | None:
        """The hit, if the text has all words: the newest on the conversation's way, else the message itself."""
        text = text_of(self._connection, n)
        if self._in(text) != self._all:
            return None
        way = [row for (row,) in self._connection.execute(_WAY, (session_id,))]
        for other in () if n in way else way:
            said = text_of(self._connection, other)
            if self._in(said) == self._all:
                return self._hit(session_id, other, said, left_behind=False)
        return self._hit(session_id, n, text, left_behind=n not in way)

    def _here_and_there(self) -> Iterator[SessionHit]:
        """Sessions that have the words, but in no one place."""
        for session_id, *_ in self._names:
            if self._may.get(session_id) != self._all or session_id in self._found:
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
        way = {row for (row,) in self._connection.execute(_WAY, (session_id,))}
        rows = self._connection.execute(
            f"SELECT m.n FROM message AS m WHERE m.session_id = ? AND {_SEARCHED} ORDER BY m.n DESC", (session_id,)
        ).fetchall()
        had, best, most = self._called.get(session_id, 0), (0, ""), (0, False)
        for (n,) in rows:
            text = text_of(self._connection, n)
            bits = self._in(text)
            had |= bits
            if bits and (worth := (bits.bit_count(), n in way)) > most:
                best, most = (n, text), worth
        return self._hit(session_id, *best, left_behind=not most[1]) if had == self._all else None

    def _info(self, session_id: str) -> SessionInfo | None:
        row = self._connection.execute(f"SELECT {_INFO} FROM session AS s WHERE s.id = ?", (session_id,)).fetchone()
        return None if row is None else infos_of([row])[0]

    def _hit(self, session_id: str, n: int, text: str, *, left_behind: bool) -> SessionHit | None:
        info = self._info(session_id)
        row = self._connection.execute("SELECT id, role, data FROM message WHERE n = ?", (n,)).fetchone()
        if info is None or row is None:
            return None
        message_id, role, data = row
        line, marks = found_line(text, self._words)
        return SessionHit(info, message_id, role, created_of(data), line, tuple(marks), left_behind)


class SearchReader:
    """Reads for searches, one after the other, over a connection of its own. For one thread at a time, which need not
    be the one it was made in; ``stop`` may be called from any."""

    def __init__(self, database: Path | None) -> None:
        """``database`` is None where nothing is stored."""
        self._path = database
        self._connection: sqlite3.Connection | None = None

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
        assert self._path is not None
        try:
            yield from Search(connection, words, project, called(connection, project), stopped).run()
        except FAULTS as error:
            raise StoreError(STOPPED) if stopped() else explain(error, self._path) from error

    def _opened(self) -> sqlite3.Connection | None:
        if self._path is not None and self._connection is None:
            uri = f"{self._path.absolute().as_uri()}?mode=ro"
            try:
                connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            except FAULTS as error:
                raise explain(error, self._path) from error
            self._connection = connection
        return self._connection
