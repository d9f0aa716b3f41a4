"""Opening to look: where a database cannot be opened as it is, a copy of what can be read of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from agent_tui.errors import StoreDamagedError, StoreError, StoreUnwritableError
from agent_tui.store.passing import PassingFolder
from agent_tui.store.store import BUSY_TIMEOUT, Store
from agent_tui.store.tables.database import Database, copied_files


def open_for_reading(path: Path, busy_timeout: float = BUSY_TIMEOUT) -> Store:
    """As ``Store.open``; where the file or its folder cannot be written, the disk is full, or the file is so damaged
    that SQLite refuses it, a private copy of what can be read is opened, which refuses writes and says so in
    ``problem``. Without a file, that is an empty database. Raises ``StoreError`` as ``open`` does for all else, and
    where something that is no folder is in the way."""
    try:
        return Store.open(path, busy_timeout)
    except (StoreUnwritableError, StoreDamagedError) as error:
        if _no_folder(path):
            raise
        folder = PassingFolder()
        damaged = isinstance(error, StoreDamagedError)
        try:
            make = _salvaged if damaged else _copied
            database = make(path, folder.path, busy_timeout)
        except (OSError, sqlite3.Error, StoreError):
            folder.cleanup()
            raise error from None
        problem = str(error)
    database.forbid_writing()
    database.path = path
    return Store(database, folder, problem, damaged)


def _no_folder(path: Path) -> bool:
    """Whether a file stands where one of the path's folders should be: nothing was ever stored there."""
    return any(parent.exists() and not parent.is_dir() for parent in path.parents)


def _copied(path: Path, folder: Path, busy_timeout: float) -> Database:
    """A copy of a database that cannot be written, with what its log holds. Raises OSError and ``StoreError``."""
    if not path.exists():
        return Database.in_memory(path)
    return Database.open(copied_files(path, folder), busy_timeout)


def _salvaged(path: Path, folder: Path, busy_timeout: float) -> Database:
    """What can be read of a damaged database. Raises OSError and ``StoreError``, also when that is nothing."""
    from agent_tui.store.damage.rebuild import rebuild

    if not rebuild(path, folder).sessions:
        raise StoreError("nothing can be read")
    return Database.open(folder / "new.db", busy_timeout)
