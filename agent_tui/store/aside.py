"""Database files that are moved out of the way: of an earlier version, or damaged. None is ever written over."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agent_tui.errors import SessionBusyError, StoreError
from agent_tui.paths import home_as_tilde
from agent_tui.store.locks import SessionLock, file_lock
from agent_tui.store.schema import VERSION, version_of

_SIDES = ("-wal", "-shm")


@contextlib.contextmanager
def all_sessions_locked(path: Path, patience: float) -> Iterator[None]:
    """Keeps every other agent-tui from work on the database meanwhile. Raises ``StoreError`` where one is at work on
    it, or does the same as this one for longer than ``patience`` seconds."""
    folder = path.parent / "locks"
    with contextlib.ExitStack() as held:
        held.enter_context(file_lock(folder / "database", patience))
        for file in sorted(folder.glob("*.lock")):
            try:
                held.enter_context(SessionLock(file, file.stem, lambda lock: None))
            except SessionBusyError as error:
                raise StoreError(f"{error}; close it, then try again") from error
        yield


def move_aside(path: Path, ending: str, new: Path | None = None) -> Path:
    """Renames a database, and its log with it; returns the new name, which no file had before. ``new`` takes its place.
    Raises OSError; then nothing has changed."""
    kept, number = path.with_name(f"{path.name}.{ending}"), 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}.{ending}-{number}")
    moved: list[tuple[Path, Path]] = []
    try:
        for side in (*_SIDES, ""):
            source, target = path.with_name(path.name + side), kept.with_name(kept.name + side)
            if source.exists():
                source.rename(target)
                moved.append((target, source))
        if new is not None:
            new.rename(path)
    except OSError:
        for target, source in reversed(moved):
            target.rename(source)
        raise
    kept.chmod(0o600)
    return kept


def move_older_aside(path: Path, patience: float) -> str | None:
    """Moves a database of an earlier version aside and returns the line that says so; None where another agent-tui has
    just done it. Raises ``StoreError`` where one is at work on it."""
    with all_sessions_locked(path, patience):
        try:
            with closing(sqlite3.connect(path, timeout=patience, isolation_level=None)) as connection:
                version = version_of(connection)
            if not 0 < version < VERSION:
                return None
            kept = move_aside(path, f"version-{version}")
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{path} is of an earlier version and cannot be renamed: {error}") from error
    return (
        f"{home_as_tilde(path)} was of an earlier development version, which this one cannot read: it is kept as "
        f"{kept.name} beside it, and sessions, trusted folders and remembered rules begin anew."
    )
