"""The index of what was said: a file of its own beside the database, which can be made anew from it at any time.

Nothing is found by it alone (``search`` reads the texts it names), so it may lag behind, be deleted, or be written by
several processes in turn; and whoever writes to it holds up nobody who writes to the database. It holds runs of
characters with the numbers of the messages they are in, not the texts.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agent_tui.errors import StoreError
from agent_tui.store.database import FAULTS, explain
from agent_tui.text.clean import clean_line, one_line
from agent_tui.text.search import Span, contains, fold, spans

_SIZE = 3
_MOST = 8
"""Runs of one word that are asked for."""

PUNCTUATION = "".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum())
"""Characters that SQLite's ``ascii`` tokenizer would part tokens at."""


def grams(text: str) -> str:
    """Returns the runs of characters that stand for a text in the index."""
    flat = " ".join(fold(text).split())
    runs = {flat[at : at + _SIZE] for at in range(len(flat))}
    return " ".join({run.partition(" ")[0] for run in runs})


def match(words: Sequence[str]) -> str:
    """The query, in FTS5's language, for texts that may have all of the folded ``words`` in them."""
    wanted: dict[str, None] = {}
    for word in words:
        for part in word.split():
            wanted.update(dict.fromkeys(_runs(part)))
    return " ".join(wanted)


def _runs(word: str) -> list[str]:
    if len(word) < _SIZE:
        return [f"{_quoted(word)}*"]
    last = len(word) - _SIZE
    step = max(1, -(-last // (_MOST - 1)))
    return [_quoted(word[at : at + _SIZE]) for at in {*range(0, last, step), last}]


def _quoted(run: str) -> str:
    return '"' + run.replace('"', '""') + '"'


SEARCHED = "m.in_tree AND m.role IN ('user', 'assistant')"
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


log = logging.getLogger(__name__)

VERSION = 1
"""``PRAGMA user_version`` of the file; one of another is made anew."""

_APPLICATION = 0x41475449
_SLICE = 0.25
"""Seconds of one transaction while much is added: short enough to lose nothing, long enough for few merges."""
_ROWS = 500
"""Messages that are read at a time."""
_WAIT = 10.0
"""Seconds that a writer waits for another process's transaction."""

_TABLES = (
    # Messages from ``low`` to ``high`` are in the index, but for those that wait; ``last`` is the id of ``high``.
    "CREATE TABLE reach (low INTEGER NOT NULL, high INTEGER NOT NULL, last TEXT NOT NULL)",
    "INSERT INTO reach VALUES (0, -1, '')",
    # Messages that were still streaming when they were passed, or that are being deleted.
    "CREATE TABLE waits (n INTEGER PRIMARY KEY)",
    "CREATE VIRTUAL TABLE grams USING fts5 (runs, content = '', columnsize = 0, detail = none, "
    "tokenize = \"ascii tokenchars '{}'\")".format(PUNCTUATION.replace("'", "''").replace('"', '""')),
)


def index_file(database: Path) -> Path:
    """Returns the path of the index of a database."""
    return database.with_name(f"{database.stem}-search.db")


def remove_index(database: Path) -> None:
    """Removes the index of a database whose rows are no longer those it was made of. Raises OSError."""
    for suffix in ("", "-wal", "-shm"):
        path = index_file(database)
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def remove_damaged(database: Path) -> None:
    """Removes an index that cannot be read: whoever fills it makes it anew. Raises OSError."""
    remove_index(database)
    log.warning("The search index %s was damaged, and is made anew.", index_file(database))


def is_damage(error: BaseException | None) -> bool:
    """Returns whether an error says that a file holds nonsense, and not that it cannot be reached."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def damage_in(connection: sqlite3.Connection, schema: str) -> str:
    """The first thing that is wrong with the pages of an index; nothing where all is well."""
    (found,) = connection.execute(f"PRAGMA {schema}.quick_check(1)").fetchone()
    return "" if found == "ok" else str(found)


class NoIndex(StoreError):
    """There can be no index here; says why. ``damaged``: not this one, but another."""

    def __init__(self, why: str, damaged: bool = False) -> None:
        super().__init__(why)
        self.damaged = damaged


class SearchIndex:
    """Writes the index of one database. For one thread; several processes may have one each."""

    def __init__(self, database: Path) -> None:
        """Opens or creates it. Raises ``NoIndex``."""
        self.database = database
        self._path = index_file(database)
        self._main: sqlite3.Connection | None = None
        self._index: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        try:
            self._main = sqlite3.connect(read_only(database), uri=True, isolation_level=None, timeout=_WAIT)
            self._index = _opened(database)
            self._file = _identity(self._path)
        except (OSError, *FAULTS) as error:
            self.close()
            raise NoIndex(why_not(error, self._path), is_damage(error)) from error

    def close(self) -> None:
        for connection in (self._index, self._main):
            if connection is not None:
                connection.close()

    @property
    def is_there(self) -> bool:
        """True when the file is still the one that was opened: it may be removed at any time."""
        return self._file is not None and _identity(self._path) == self._file

    def check(self) -> None:
        """Looks at every page: damage would be met by a search else. Raises ``NoIndex``."""
        assert self._index is not None
        try:
            problem = damage_in(self._index, "main")
        except FAULTS as error:
            raise NoIndex(why_not(error, self._path), is_damage(error)) from error
        if problem:
            raise NoIndex(f"{self._path} is damaged ({one_line(problem, 100)})", damaged=True)

    def step(self, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Adds some of what is missing, the newest first, in one transaction of about a quarter of a second. False when
        nothing is missing any more. Raises ``NoIndex``."""
        with self._writing() as (main, index):
            return self._add(main, index, time.monotonic() + _SLICE, stopped)

    def _add(
        self, main: sqlite3.Connection, index: sqlite3.Connection, until: float, stopped: Callable[[], bool]
    ) -> bool:
        low, high, last = index.execute("SELECT low, high, last FROM reach").fetchone()
        if high >= 0 and not is_of(main, high, last):
            for statement in ("INSERT INTO grams (grams) VALUES ('delete-all')", "DELETE FROM waits"):
                index.execute(statement)
            low, high, last = 0, -1, ""
        if high < 0:
            # Begun at the newest; from here it grows both ways.
            row = main.execute("SELECT n, id FROM message ORDER BY n DESC LIMIT 1").fetchone()
            if row is None:
                return False
            low, high, last = row[0] + 1, row[0], row[1]

        def over() -> bool:
            return stopped() or time.monotonic() > until

        for (n,) in index.execute("SELECT n FROM waits ORDER BY n DESC").fetchall():
            if over():
                break
            row = main.execute(f"SELECT n, id, status, {SEARCHED} FROM message AS m WHERE n = ?", (n,)).fetchone()
            if row is None:
                index.execute("DELETE FROM waits WHERE n = ?", (n,))
            elif row[2] != "streaming":
                index.execute("DELETE FROM waits WHERE n = ?", (n,))
                _put(main, index, row)
        ended = False
        columns = f"n, id, status, {SEARCHED}"
        while not ended and not over():
            rows = main.execute(f"SELECT {columns} FROM message AS m WHERE n > ? ORDER BY n LIMIT {_ROWS}", (high,))
            ended = True
            for row in rows.fetchall():
                ended = False
                _put(main, index, row)
                high, last = row[0], row[1]
                if over():
                    break
        while low and not over():
            rows = main.execute(f"SELECT {columns} FROM message AS m WHERE n < ? ORDER BY n DESC LIMIT {_ROWS}", (low,))
            found = rows.fetchall()
            if not found:
                low = 0
            for row in found:
                _put(main, index, row)
                low = row[0]
                if over():
                    break
        index.execute("UPDATE reach SET low = ?, high = ?, last = ?", (low, high, last))
        return bool(low) or not ended

    def forget(self, numbers: list[int]) -> None:
        """Takes messages out ahead of their deletion; they wait meanwhile, so that one which is not deleted after all
        is found, and comes in again. Raises ``NoIndex``."""
        with self._writing() as (main, index):
            low, high = index.execute("SELECT low, high FROM reach").fetchone()
            waits = {n for (n,) in index.execute("SELECT n FROM waits")}
            for n in numbers:
                if low <= n <= high and n not in waits:
                    runs = grams(text_of(main, n))
                    index.execute("INSERT INTO grams (grams, rowid, runs) VALUES ('delete', ?, ?)", (n, runs))
                    index.execute("INSERT INTO waits VALUES (?)", (n,))

    def overwrite(self) -> None:
        """After a deletion: what the file still held of it is overwritten. Takes a second for each ten megabytes.
        Raises ``NoIndex``."""
        assert self._index is not None
        try:
            self._index.execute("PRAGMA secure_delete = ON")
            with self._writing() as (main, index):
                index.execute("INSERT INTO grams (grams) VALUES ('optimize')")
                for (n,) in index.execute("SELECT n FROM waits").fetchall():
                    if main.execute("SELECT 1 FROM message WHERE n = ?", (n,)).fetchone() is None:
                        index.execute("DELETE FROM waits WHERE n = ?", (n,))
            self._index.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except FAULTS as error:
            raise NoIndex(why_not(error, self._path), is_damage(error)) from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
        """One transaction of the index, and one state of the database that is read. Raises ``NoIndex``."""
        main, index = self._main, self._index
        assert main is not None and index is not None
        try:
            index.execute("BEGIN IMMEDIATE")
            try:
                main.execute("BEGIN")
                yield main, index
                index.execute("COMMIT")
            finally:
                for connection in (main, index):
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except FAULTS as error:
            raise NoIndex(why_not(error, self._path), is_damage(error)) from error


def read_only(path: Path) -> str:
    """The URI to read a database that others write."""
    return f"{path.absolute().as_uri()}?mode=ro"


def why_not(error: Exception, path: Path) -> str:
    """Returns why there is no index, as part of a line."""
    if isinstance(error, sqlite3.OperationalError) and "fts5" in str(error):
        return "the SQLite of this Python has no full-text search (FTS5)"
    if is_damage(error):
        return f"{path} is damaged"
    if isinstance(error, OSError):
        return f"cannot write {path}: {error.strerror or error}"
    return str(error) if isinstance(error, StoreError) else str(explain(error, path))


def _put(main: sqlite3.Connection, index: sqlite3.Connection, row: tuple[int, str, str, int]) -> None:
    n, _, status, searched = row
    if not searched:
        return
    if status == "streaming":
        index.execute("INSERT OR IGNORE INTO waits VALUES (?)", (n,))
    elif runs := grams(text_of(main, n)):
        index.execute("INSERT INTO grams (rowid, runs) VALUES (?, ?)", (n, runs))


def is_of(main: sqlite3.Connection, high: int, last: str) -> bool:
    """Returns whether the index was made of this database: it may be an older copy that was put back."""
    row = main.execute("SELECT id FROM message WHERE n = ?", (high,)).fetchone()
    if row is not None:
        return bool(row[0] == last)
    # Deleted since; a number is never given twice.
    given = main.execute("SELECT seq FROM sqlite_sequence WHERE name = 'message'").fetchone()
    return given is not None and given[0] >= high


def _identity(path: Path) -> tuple[int, int] | None:
    """Returns the device and inode, which tell a file from another of the same name; None where there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _opened(database: Path) -> sqlite3.Connection:
    """The index of a database, made anew where it is of another version or cannot be read."""
    path = index_file(database)
    try:
        return _connected(path)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    remove_damaged(database)
    return _connected(path)


def _connected(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, timeout=_WAIT)
    try:
        with contextlib.suppress(sqlite3.OperationalError):
            # Another process may be at it; either way of writing will do.
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            names = "SELECT name FROM sqlite_master WHERE name IN ('reach', 'waits', 'grams')"
            for (name,) in connection.execute(names).fetchall():
                connection.execute(f"DROP TABLE {name}")
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection
