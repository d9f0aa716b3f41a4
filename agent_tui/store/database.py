"""The file under the store: opening it privately, transactions, and every SQLite failure as one clear line."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_tui.errors import (
    StoreDamagedError,
    StoreError,
    StoreLockedError,
    StoreOlderError,
    StoreUnwritableError,
)
from agent_tui.paths import private_dir
from agent_tui.store.schema import APPLICATION_ID, VERSION, create_schema, version_of
from agent_tui.text.clean import one_line

_MEND = "close agent-tui and run `agent-tui sessions repair`"

FAULTS = (sqlite3.Error, UnicodeError)
"""What the ``sqlite3`` module raises for a file: UnicodeError where a damaged schema is named in SQLite's own words."""

UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, MemoryError)
"""What loading a row raises when the row makes no sense."""

AUTOCHECKPOINT_PAGES = 4000
"""Pages (16 MB) the write-ahead log may reach before a commit copies it back."""


class Database:
    """One connection to one file, for one thread. Writes are grouped by ``writing``, reads by ``reading``."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.path = path
        self._depth = 0

    @classmethod
    def open(cls, path: Path, busy_timeout: float) -> Database:
        """Opens or creates the file (mode 0600, its folder 0700 when created).

        ``busy_timeout`` is in seconds. Raises ``StoreError``; a file that is refused is not changed.
        """
        _make_private_file(path)
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None)
            _check_ours(connection, path)
            _use_wal(connection, busy_timeout)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA wal_autocheckpoint = {AUTOCHECKPOINT_PAGES}")
            if version_of(connection) == 0:
                create_schema(connection)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, FAULTS):
                raise explain(error, path) from error
            raise
        return cls(connection, path)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One write transaction; nested uses join the outermost, which commits or undoes everything."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads that see one state of the file."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        if self._depth:
            yield
            return
        try:
            self.connection.execute(begin)
            self._depth = 1
            yield
            self.connection.execute("COMMIT")
        except FAULTS as error:
            self._undo()
            raise explain(error, self.path) from error
        except BaseException:
            self._undo()
            raise
        finally:
            self._depth = 0

    def _undo(self) -> None:
        # A full disk has SQLite roll back by itself; and a failing ROLLBACK must not hide what went wrong first.
        if self.connection.in_transaction:
            self.run("ROLLBACK")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns SQLite's failures into ``StoreError``."""
        try:
            yield
        except FAULTS as error:
            raise explain(error, self.path) from error

    def run(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """One statement. Raises ``StoreError``."""
        with self._explained():
            return self.connection.execute(sql, values)

    def copy_tables(self, path: Path, tables: Sequence[str]) -> None:
        """Adds the rows of another database of the same schema. Raises ``StoreError``."""
        self.run("ATTACH DATABASE ? AS other", (str(path),))
        try:
            with self.writing():
                for table in tables:
                    self.run(f"INSERT INTO main.{table} SELECT * FROM other.{table}")
        finally:
            self.run("DETACH DATABASE other")

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._explained():
            self.connection.executemany(sql, rows)

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query. Raises ``StoreError``."""
        with self._explained():
            return self.connection.execute(sql, values).fetchall()

    def one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first row of a query, or None. Raises ``StoreError``."""
        with self._explained():
            return self.connection.execute(sql, values).fetchone()

    @classmethod
    def in_memory(cls, path: Path) -> Database:
        """An empty database that is nowhere stored, in the place of ``path``, which cannot be made."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        create_schema(connection)
        return cls(connection, path)

    def forbid_writing(self) -> None:
        """Makes every write from now on a ``StoreError``."""
        self.run("PRAGMA query_only = ON")

    @contextmanager
    def decoding(self, what: str) -> Iterator[None]:
        """Turns content that does not parse into a ``StoreError`` that says which."""
        try:
            yield
        except UNREADABLE as error:
            raise damaged(self.path, what) from error

    def wait_for_lock(self, seconds: float) -> None:
        """Sets how many seconds a statement waits for another program's write from now on."""
        self.run(f"PRAGMA busy_timeout = {round(seconds * 1000)}")

    def close(self) -> None:
        with self._explained():
            self.connection.close()


def copied_files(path: Path, folder: Path) -> Path:
    """A copy in ``folder`` of a database that cannot be written, with what its log holds. Raises OSError."""
    for suffix in ("", "-wal"):
        source = path.with_name(path.name + suffix)
        if source.exists():
            shutil.copyfile(source, folder / source.name)
    return folder / path.name


def explain(error: Exception, path: Path) -> StoreError:
    """A SQLite failure as what happened and what to do; the primary result code decides
    (https://www.sqlite.org/rescode.html)."""
    if isinstance(error, UnicodeError):
        return damaged(path, "some of its text is unreadable")
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    if primary == sqlite3.SQLITE_FULL:
        return StoreUnwritableError(f"the disk is full, this was not saved: free some space, then try again ({path})")
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLockedError(f"the session database is locked by another program: close it, then try again ({path})")
    if primary == sqlite3.SQLITE_NOTADB:
        return StoreDamagedError(
            f"{path} is not a session database: move it away to start with an empty one, "
            "or run `agent-tui sessions repair` if it used to be one"
        )
    if primary == sqlite3.SQLITE_CORRUPT:
        return StoreDamagedError(f"the session database {path} is damaged: {_MEND}")
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreUnwritableError(
            f"the session database {path} cannot be opened for writing: "
            "check the permissions of the file and its folder, or set AGENT_TUI_HOME to another folder"
        )
    if primary == sqlite3.SQLITE_IOERR:
        return StoreUnwritableError(
            f"the session database {path} cannot be read or written: check the disk and its free space"
        )
    text = f"the session database {path} failed: {one_line(str(error))}"
    return StoreError(text)


def damaged(path: Path, what: str) -> StoreError:
    """The line for content that SQLite delivers but that makes no sense."""
    return StoreDamagedError(f"the session database {path} is damaged ({what}): {_MEND}", what)


def newer(path: Path, version: int) -> StoreError:
    """The line for a file of a version that is not known here."""
    return StoreError(
        f"{path} was written by a newer agent-tui (schema {version}, this one reads {VERSION}): "
        "upgrade agent-tui, or set AGENT_TUI_HOME to another folder"
    )


def _make_private_file(path: Path) -> None:
    try:
        private_dir(path.parent)
        # SQLite gives the log files beside it the mode of the database itself.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(descriptor).st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreUnwritableError(
            f"cannot store sessions in {path}: {error.strerror or error}; "
            "check the permissions of the folder, or set AGENT_TUI_HOME to another one"
        ) from error


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN")
    version = version_of(connection)
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    connection.execute("COMMIT")
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreError(f"{path} is another program's database: move it away to start with an empty one")
    if version > VERSION:
        raise newer(path, version)
    if 0 < version < VERSION:
        raise StoreOlderError(f"{path} was written by an earlier development version: the next start keeps it aside")


def _use_wal(connection: sqlite3.Connection, busy_timeout: float) -> None:
    # Changing the mode does not wait for other connections by itself, so two first starts at once would collide.
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
