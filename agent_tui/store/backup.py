"""A copy of the session database for each of the last days it was used, beside it: what a broken file is restored
from."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from agent_tui.errors import StoreError, StoreLockedError
from agent_tui.store.database import FAULTS, damaged, explain
from agent_tui.store.locks import file_lock

log = logging.getLogger(__name__)

KEPT = 2
"""Backups that are kept: the newest."""

_STALE_SECONDS = 3600
"""After so long, a copy that was never finished is one of a program that was killed."""


def backups_of(path: Path) -> list[Path]:
    """The backups of a database, the newest first."""
    return sorted(path.parent.glob(f"{path.name}.backup-????-??-??"), reverse=True)


def day_of_backup(backup: Path) -> str:
    """The day on which a backup was made: ``2026-11-28``."""
    return backup.name[-10:]


def back_up_daily(path: Path) -> bool:
    """Makes today's backup of a database where there is none; to be called in a thread, nobody's write waits for it.
    Returns whether it did. Raises ``StoreError``; where the database is damaged, the backups stay as they are."""
    target = path.with_name(f"{path.name}.backup-{time.strftime('%Y-%m-%d')}")
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(lock_backups(path, 0.0))
        except StoreLockedError:
            return False  # another program makes it, or deletes a session
        if target.exists() or not path.is_file():
            return False
        made = target.with_name(f"{target.name}.{os.getpid()}.new")
        held.callback(made.unlink, missing_ok=True)
        try:
            if shutil.disk_usage(path.parent).free < 2 * path.stat().st_size:
                log.warning("No backup of %s: the disk is almost full", path)
                return False
            _copy(path, made)
            if problems := file_problems(made):
                raise damaged(path, problems[0])
            made.rename(target)
            for old in backups_of(path)[KEPT:]:
                old.unlink(missing_ok=True)
            for left in path.parent.glob(f"{path.name}.backup-*.new"):
                if left.stat().st_mtime < time.time() - _STALE_SECONDS:
                    left.unlink(missing_ok=True)
        except FAULTS as error:
            raise explain(error, path) from error
        except OSError as error:
            raise StoreError(f"no backup of {path} could be made: {error.strerror or error}") from error
    return True


def lock_backups(path: Path, patience: float) -> contextlib.AbstractContextManager[None]:
    """Keeps other programs from making backups meanwhile. Raises ``StoreError`` after ``patience`` seconds."""
    return file_lock(path.parent / "locks" / "backups", patience)


def _copy(path: Path, target: Path) -> None:
    """A private copy of one state of the database, safe on the disk."""
    target.unlink(missing_ok=True)
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        # All pages in one step: in several, each write of another connection would begin it anew.
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def opened_unchanged(path: Path) -> sqlite3.Connection:
    """A connection to a database that nobody else writes to; no file is made beside it. Raises ``sqlite3.Error``."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True, isolation_level=None)


def file_problems(path: Path) -> list[str]:
    """Returns the problems that SQLite finds in a file that nobody writes to, at most ten lines."""
    with closing(opened_unchanged(path)) as connection:
        return problems_of(connection)


def problems_of(connection: sqlite3.Connection) -> list[str]:
    """Returns the problems that SQLite finds in a database, at most ten lines."""
    try:
        rows = connection.execute("PRAGMA quick_check(10)").fetchall()
    except FAULTS as error:
        return [" ".join(str(error).split())]
    found = [" ".join(str(row[0]).split()) for row in rows]
    return [] if found == ["ok"] else found
