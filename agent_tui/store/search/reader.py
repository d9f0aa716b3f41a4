"""Searches, one after the other: the connection they read over, the index beside it, and what stops them."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from agent_tui.errors import StoreError
from agent_tui.models.search import IndexState, SessionHit
from agent_tui.store.search.index import (
    VERSION,
    NoIndex,
    index_file,
    is_damage,
    is_of,
    read_only,
    remove_damaged,
    why_not,
)
from agent_tui.store.search.look import STOPPED, Search
from agent_tui.store.search.names import Names
from agent_tui.store.tables.database import FAULTS, explain
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
        """How a search gets at texts now. Raises ``StoreError``."""
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

    def _remove_index(self, database: Path) -> None:
        try:
            remove_damaged(database)
        except OSError as error:
            log.warning("The damaged index cannot be removed: %s", error)
        else:
            self._damaged()
