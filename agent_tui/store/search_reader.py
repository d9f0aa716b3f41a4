"""Searching over the life of a program: the connection that is read, the thread that keeps the index up, its health."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from agent_tui.errors import StoreError, StoreUnwritableError
from agent_tui.models.session import IndexHealth, IndexState, SessionHit
from agent_tui.store.database import FAULTS, Database, explain
from agent_tui.store.search import STOPPED, Names, Search
from agent_tui.store.search_index import (
    SEARCHED,
    VERSION,
    NoIndex,
    SearchIndex,
    damage_in,
    index_file,
    is_damage,
    is_of,
    read_only,
    remove_damaged,
    remove_index,
    why_not,
)
from agent_tui.text.search import search_words

log = logging.getLogger(__name__)


class SearchReader:
    """Reads for searches, one after the other, over a connection of its own. For one thread at a time, which need not
    be the one it was made in; ``stop`` may be called from any."""

    def __init__(self, database: Path | None, damaged: Callable[[], None] = lambda: None) -> None:
        """``database`` is None where nothing is stored. ``damaged`` is told when the index could not be read and was
        removed, to be made anew."""
        self._path = database
        self._damaged = damaged
        self._connection: sqlite3.Connection | None = None
        self._names: Names | None = None
        self._why = ""

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

    def state(self) -> IndexState:
        """Returns the way a search gets at texts now. Raises ``StoreError``."""
        connection = self._opened()
        if connection is None or self._why:
            return IndexState("missing", why=self._why)
        try:
            low, high = connection.execute("SELECT low, high FROM search.reach").fetchone()
            newest = connection.execute("SELECT max(n) FROM message").fetchone()[0] or 0
        except FAULTS as error:
            return IndexState("missing", why=why_not(error, index_file(self._path or Path())))
        return IndexState("building" if low else "whole", max(0, high - max(low, 1) + 1), newest)

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
            search = Search(connection, words, project, self._names.read(project), stopped)
            try:
                yield from search.run(indexed=not self._why)
            except sqlite3.DatabaseError as error:
                if self._why or not is_damage(error):
                    raise
                self._why = why_not(error, index_file(self._path))
                yield from self._without(search, self._path)
        except FAULTS as error:
            raise StoreError(STOPPED) if stopped() else explain(error, self._path) from error

    def _without(self, search: Search, database: Path) -> Iterator[SessionHit]:
        """The rest of a search in which something was damaged: where all can be read without the index, it was that."""
        ours = True
        try:
            yield from search.run(indexed=False)
        except FAULTS:
            ours = False
            raise
        finally:
            if ours:
                self._remove_index(database)

    def _opened(self) -> sqlite3.Connection | None:
        if self._why:
            # It may be there by now.
            self.close()
        if self._path is not None and self._connection is None:
            try:
                connection = sqlite3.connect(
                    read_only(self._path), uri=True, isolation_level=None, check_same_thread=False
                )
            except FAULTS as error:
                raise explain(error, self._path) from error
            self._why = self._attach(connection, index_file(self._path))
            self._connection, self._names = connection, Names(connection)
        return self._connection

    def _attach(self, connection: sqlite3.Connection, index: Path) -> str:
        """Takes the index in; why there is none, else nothing."""
        if not index.exists():
            return "no index yet"
        try:
            connection.execute("ATTACH DATABASE ? AS search", (read_only(index),))
            (version,) = connection.execute("PRAGMA search.user_version").fetchone()
            if version != VERSION:
                raise NoIndex("the index has another version")
            connection.execute("SELECT rowid FROM search.grams WHERE grams MATCH '\"\"' LIMIT 1").fetchall()
            high, last = connection.execute("SELECT high, last FROM search.reach").fetchone()
            if high >= 0 and not is_of(connection, high, last):
                raise NoIndex("the index belongs to another database and will be rebuilt")
        except (StoreError, *FAULTS) as error:
            return why_not(error, index)
        return ""

    def _remove_index(self, database: Path) -> None:
        try:
            remove_damaged(database)
        except OSError as error:
            log.warning("The damaged index cannot be removed: %s", error)
        else:
            self._damaged()


_PAUSE = 0.25
"""Seconds between two slices of work, each as long: half of one core at most."""
_AGAIN = 60.0
"""Seconds until it is tried again where something was in the way."""


class Filler:
    """Adds to the index of a database what is missing, until it is closed. ``wake``: there is something new."""

    def __init__(self, database: Path, pause: float = _PAUSE) -> None:
        self._database = database
        self._pause = pause
        self._ended = threading.Event()
        self._news = threading.Event()
        self._thread: threading.Thread | None = None
        self.whole = threading.Event()
        """Set while nothing is missing."""

    def begin(self) -> None:
        self._news.set()
        self._thread = threading.Thread(target=self._run, name="search-index", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There are new messages, or old ones are finished."""
        self.whole.clear()
        self._news.set()

    def close(self) -> None:
        """Ends it; what it was adding is added once more the next time."""
        self._ended.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        if sys.platform == "linux":
            # The number of a thread is that of a process of its own here: the chat comes first.
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        anew = -_AGAIN
        while not self._ended.is_set():
            try:
                self._fill()
            except NoIndex as error:
                # Damaged again at once: it is the database.
                if error.damaged and time.monotonic() - anew > _AGAIN:
                    anew = time.monotonic()
                    with contextlib.suppress(OSError):
                        remove_damaged(self._database)
                        continue
                log.warning("The search goes without an index: %s", error)
                if "FTS5" in str(error):
                    return
                self._ended.wait(_AGAIN)

    def _fill(self) -> None:
        """Until it is closed, or the file is another."""
        with contextlib.closing(SearchIndex(self._database)) as index:
            index.check()
            while not self._ended.is_set():
                self._news.wait()
                if not index.is_there:
                    return
                self._news.clear()
                while not self._ended.is_set() and index.step(self._ended.is_set):
                    self._ended.wait(self._pause)
                if not self._news.is_set():
                    self.whole.set()


_TALKED = f"FROM message AS m JOIN session AS s ON s.id = m.session_id WHERE s.kind <> 'subagent' AND {SEARCHED}"
_LEFT = "(m.n < ?1 OR m.n > ?2 OR m.n IN (SELECT n FROM search.waits))"


def index_health(database: Path) -> IndexHealth:
    """Returns the health of the index of a database. Raises ``StoreError`` where the database cannot be read."""
    path = index_file(database)
    try:
        with closing(sqlite3.connect(read_only(database), uri=True)) as connection:
            (total,) = connection.execute(f"SELECT count(DISTINCT m.session_id) {_TALKED}").fetchone()
            if not path.exists():
                return IndexHealth(total=total, possible=_has_fts5(connection))
            try:
                return _health(connection, path, total)
            except (OSError, StoreError, *FAULTS) as error:
                return IndexHealth(total=total, problem=why_not(error, path), possible=_has_fts5(connection))
    except FAULTS as error:
        raise explain(error, database) from error


def _health(connection: sqlite3.Connection, path: Path, total: int) -> IndexHealth:
    size = path.stat().st_size
    connection.execute("ATTACH DATABASE ? AS search", (read_only(path),))
    if damage_in(connection, "search"):
        return IndexHealth(0, total, size, f"{path} is damaged")
    (version,) = connection.execute("PRAGMA search.user_version").fetchone()
    if version != VERSION:
        return IndexHealth(0, total, size)
    low, high, last = connection.execute("SELECT low, high, last FROM search.reach").fetchone()
    if high < 0 or not is_of(connection, high, last):
        return IndexHealth(0, total, size)
    connection.execute("SELECT rowid FROM search.grams WHERE grams MATCH '\"\"' LIMIT 1").fetchall()
    (left,) = connection.execute(f"SELECT count(DISTINCT m.session_id) {_TALKED} AND {_LEFT}", (low, high)).fetchone()
    return IndexHealth(total - left, total, size)


def _has_fts5(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None


class SessionSearch:
    """Searching the sessions of a database: what reads for it, what keeps its index up, and what a deletion takes out
    of the index."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._filler: Filler | None = None

    def reader(self) -> SearchReader:
        """Searches all sessions, in a thread of its own; to be closed."""
        self._fill()
        return SearchReader(self._file, self._fill)

    def health(self) -> IndexHealth:
        """Returns the health of the index of texts; reads all of it. Raises ``StoreError``."""
        return index_health(self._db.path)

    def filler(self) -> Filler:
        """Keeps the index of texts up, in a thread of its own; to be begun and closed."""
        self._filler = Filler(self._db.path)
        return self._filler

    def forget(self, session_id: str) -> SearchIndex | None:
        """Takes the texts of a session out of the index, ahead of its deletion; the index, to be given to
        ``overwrite`` there and closed."""
        rows = self._db.all("SELECT n FROM message WHERE session_id = ?", (session_id,))
        path = self._file
        if not rows or path is None or not index_file(path).exists():
            return None
        index: SearchIndex | None = None
        try:
            index = SearchIndex(path)
            index.forget([n for (n,) in rows])
        except NoIndex as error:
            if index is not None:
                index.close()
            _without_index(path, error)
            return None
        return index

    def overwrite(self, index: SearchIndex) -> None:
        """Overwrites what the file of an index still holds of what was forgotten."""
        try:
            index.overwrite()
        except NoIndex as error:
            index.close()
            _without_index(index.database, error)

    @property
    def _file(self) -> Path | None:
        """The file that is read and written; None where there is none."""
        name = self._db.one("SELECT file FROM pragma_database_list WHERE name = 'main'")[0]
        return Path(name) if name else None

    def _fill(self) -> None:
        """Has the index brought up to date: others add messages too, and may remove it."""
        if self._filler is not None:
            self._filler.wake()


def _without_index(database: Path, error: NoIndex) -> None:
    log.warning("The index is made anew: %s", error)
    try:
        remove_index(database)
    except OSError as why:
        raise StoreUnwritableError(f"cannot remove {index_file(database)}: {why.strerror or why}") from why
