"""Locks that the operating system lets go of when a process dies, however it dies: on sessions, and on private folders
that go with the process that made them.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from agent_tui.errors import SessionBusyError, StoreError, StoreLockedError
from agent_tui.paths import private_dir
from agent_tui.store.sessions import SessionRows


def take(descriptor: int) -> None:
    """Locks an open file, without waiting. Raises OSError where another holds it."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def file_lock(path: Path, patience: float) -> Iterator[None]:
    """Holds the lock of a file that serves nothing else; it is made where it is not there. Raises ``StoreError`` where
    another holds it for longer than ``patience`` seconds."""
    descriptor = -1
    deadline = time.monotonic() + patience
    try:
        private_dir(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        while True:
            try:
                take(descriptor)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(PROBE_SECONDS)
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise StoreLockedError(f"another agent-tui is at work on {path.parent.parent}: try again") from error
        raise StoreError(f"cannot lock {path}: {error.strerror or error}") from error
    try:
        yield
    finally:
        os.close(descriptor)


PROBE_SECONDS = 0.02
"""Whoever asks whether a lock is held holds it for an instant itself: after so long it is tried once more."""


class SessionLock:
    """Held from construction until ``release`` (or the end of a ``with``).

    Raises ``SessionBusyError`` when another holder, also one in this process, has the session.
    """

    def __init__(self, path: Path, session_id: str, released: Callable[[SessionLock], None]) -> None:
        self.session_id = session_id
        self.path = path
        self._released = released
        self._descriptor: int | None = _acquire(path, session_id)

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def release(self) -> None:
        """Lets others have the session. The file stays: removing it would let two openers hold different files."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._released(self)

    def remove(self) -> None:
        """Releases the lock of a session that is gone, and its file with it."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self.release()

    def __enter__(self) -> SessionLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Locks:
    """The rights to write to sessions, of one database. Those that were taken here are held until they are released,
    or the process ends."""

    def __init__(self, folder: Path, sessions: SessionRows) -> None:
        self._folder = folder
        self._sessions = sessions
        self._held: dict[str, SessionLock] = {}

    def take(self, session_id: str) -> SessionLock:
        """The right to write to a session. Raises ``SessionBusyError`` when another holder has it; the session can
        still be read. Raises ``NoSessionError`` where there is none."""
        self._sessions.require(session_id)
        lock = SessionLock(self._file(session_id), session_id, self._forget)
        self._held[session_id] = lock
        return lock

    def held(self, session_id: str) -> SessionLock | None:
        """The lock of a session, where it was taken here."""
        return self._held.get(session_id)

    def in_use(self, session_id: str) -> bool:
        """True where somebody may write to a session now: a draft in it is then a live answer, not what a crash cut."""
        return _is_held(self._file(session_id))

    def release(self) -> None:
        """Releases all that were taken here."""
        for lock in list(self._held.values()):
            lock.release()

    def _file(self, session_id: str) -> Path:
        return self._folder / f"{session_id}.lock"

    def _forget(self, lock: SessionLock) -> None:
        if self._held.get(lock.session_id) is lock:
            del self._held[lock.session_id]


def _is_held(path: Path) -> bool:
    """Returns whether somebody holds the lock of that file; False where that cannot be known."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        take(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _acquire(path: Path, session_id: str) -> int:
    try:
        private_dir(path.parent)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                try:
                    _take_patiently(descriptor)
                except OSError as error:
                    raise SessionBusyError(_busy_line(descriptor, session_id)) from error
                if _is_current(descriptor, path):
                    _sign(descriptor)
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"cannot lock the session ({path}): {error.strerror or error}") from error


def _take_patiently(descriptor: int) -> None:
    try:
        take(descriptor)
    except OSError:
        time.sleep(PROBE_SECONDS)
        take(descriptor)


def _sign(descriptor: int) -> None:
    # The number only serves the message others get; a full disk is no reason to refuse the lock.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, str(os.getpid()).encode())


def _is_current(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _busy_line(descriptor: int, session_id: str) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
    who = f"process {owner}" if owner.isdigit() else "another process"
    return f"session {session_id} is open in {who}: here it is read-only"


log = logging.getLogger(__name__)

PREFIX = "agent-tui-kept-"
_MARK = "in-use.lock"
_THEIRS = b"sessions\n"
_SESSION = re.compile(r"ses_[A-Za-z0-9]{1,64}")


class PassingFolder:
    """A folder for what must not outlive this process. A lock in it, which the system lets go of however the process
    ends, tells others whether it is in use. ``sessions``: those in it exist nowhere else."""

    def __init__(self, *, sessions: bool = False) -> None:
        try:
            self._folder = TemporaryDirectory(prefix=PREFIX)
        except OSError as error:
            raise StoreError(f"No folder for temporary files ({error}). Set TMPDIR to one you can write to.") from None
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
    return about.st_uid == os.getuid() and not about.st_mode & 0o077


@contextlib.contextmanager
def _unused(folder: Path) -> Iterator[bool]:
    """Yields whether the process that made a folder is gone; nobody else removes it meanwhile."""
    try:
        mark = os.open(folder / _MARK, os.O_RDWR | os.O_NOFOLLOW)
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
