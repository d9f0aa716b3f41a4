"""Opening the session database to look at it, whatever its state."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from agent_tui.errors import StoreDamagedError, StoreError, StoreUnwritableError
from agent_tui.store.backup import backups_of, day_of_backup
from agent_tui.store.database import Database, copied_files
from agent_tui.store.locks import PassingFolder
from agent_tui.store.store import BUSY_TIMEOUT, Store


def open_for_reading(path: Path, busy_timeout: float = BUSY_TIMEOUT) -> Store:
    """As ``Store.open``; where the file or its folder cannot be written, or the disk is full, a private copy is opened,
    and a copy of the newest backup where SQLite refuses a damaged file. It refuses writes and says why in ``problem``.
    Without a file, that is an empty database. Raises ``StoreError`` as ``open`` does for all else, and where something
    that is no folder is in the way."""
    try:
        return Store.open(path, busy_timeout)
    except StoreUnwritableError as error:
        if _has_no_folder(path):
            raise
        return _opened_copy(path, path, error, str(error), busy_timeout)
    except StoreDamagedError as error:
        if not (backups := backups_of(path)):
            raise
        problem = f"{error}; shown is the backup of {day_of_backup(backups[0])}"
        return _opened_copy(path, backups[0], error, problem, busy_timeout)


def _has_no_folder(path: Path) -> bool:
    """Returns whether a file stands where one of the path's folders should be: nothing was ever stored there."""
    return any(parent.exists() and not parent.is_dir() for parent in path.parents)


def _opened_copy(path: Path, source: Path, error: StoreError, problem: str, busy_timeout: float) -> Store:
    """A copy of ``source`` in the place of ``path``. Raises ``error`` where that is not possible either."""
    folder = PassingFolder()
    try:
        if source.exists():
            database = Database.open(copied_files(source, folder.path), busy_timeout)
        else:
            database = Database.in_memory(path)
    except (OSError, sqlite3.Error, StoreError):
        folder.cleanup()
        raise error from None
    database.forbid_writing()
    database.path = path
    return Store(database, folder, problem=problem, damaged=isinstance(error, StoreDamagedError))
