"""Private folders that go with the process that made them, and are removed later where it could not do so itself."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from agent_tui.store.lock import take

log = logging.getLogger(__name__)

PREFIX = "agent-tui-kept-"
_MARK = "in-use.lock"
_THEIRS = b"sessions\n"
_SESSION = re.compile(r"ses_[A-Za-z0-9]{1,64}")


class PassingFolder:
    """A folder for what must not outlive this process. A lock in it, which the system lets go of however the process
    ends, tells others whether it is in use. ``sessions``: those in it exist nowhere else."""

    def __init__(self, *, sessions: bool = False) -> None:
        self._folder = TemporaryDirectory(prefix=PREFIX)
        self.path = Path(self._folder.name)
        # Locked before it has its name: whoever finds the mark can rely on it.
        unnamed = self.path / "new.lock"
        self._lock: int | None = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            take(self._lock)
            os.write(self._lock, _THEIRS if sessions else b"copy\n")
            unnamed.rename(self.path / _MARK)
        except OSError:
            log.warning("The folder %s cannot be marked", self.path, exc_info=True)

    def cleanup(self) -> None:
        self._folder.cleanup()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_left_behind(saved: Path) -> int:
    """Removes the folders of processes that are gone, and below ``saved`` what their sessions had put there. A folder
    counts as ours when it has our mark, belongs to this user and nobody else may enter it. How many were removed."""
    removed = 0
    for folder in _ours():
        with _unused(folder) as gone:
            if not gone:
                continue
            for session in _sessions(folder):
                shutil.rmtree(saved / session, ignore_errors=True)
            shutil.rmtree(folder, ignore_errors=True)
            removed += not folder.exists()
    return removed


def _ours() -> list[Path]:
    found: list[Path] = []
    try:
        entries = list(os.scandir(gettempdir()))
    except OSError:
        return found
    for entry in entries:
        if entry.name.startswith(PREFIX):
            with contextlib.suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode) and _is_private(about):
                    found.append(Path(entry.path))
    return found


def _is_private(about: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or (about.st_uid == os.getuid() and not about.st_mode & 0o077)


@contextlib.contextmanager
def _unused(folder: Path) -> Iterator[bool]:
    """Whether the process that made a folder is gone; nobody else removes it meanwhile."""
    try:
        mark = os.open(folder / _MARK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        yield False
        return
    try:
        try:
            take(mark)
        except OSError:
            yield False
        else:
            yield stat.S_ISREG(os.fstat(mark).st_mode)
    finally:
        os.close(mark)


def _sessions(folder: Path) -> list[str]:
    """The ids of the sessions that were in a folder's database and nowhere else, as far as it can be read."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        if (folder / _MARK).read_bytes() != _THEIRS:
            return found
    for database in folder.glob("*.db"):
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(database)) as opened:
            found += [str(row[0]) for row in opened.execute("SELECT id FROM session")]
    return [session for session in found if _SESSION.fullmatch(session)]
