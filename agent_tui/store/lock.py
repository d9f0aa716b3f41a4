"""Session locks: the operating system lets go of them when a process dies, however it dies."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from agent_tui.errors import SessionBusyError, StoreError
from agent_tui.paths import private_dir

if sys.platform == "win32":
    import msvcrt

    # Beyond the owner's number, so that this can still be read while the lock is held.
    _LOCKED_BYTE = 1024

    def take(descriptor: int) -> None:
        """Locks an open file, without waiting. Raises OSError where another holds it."""
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def take(descriptor: int) -> None:
        """Locks an open file, without waiting. Raises OSError where another holds it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
        if sys.platform != "win32":
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
        self.release()

    def __enter__(self) -> SessionLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock of that file; False where that cannot be known."""
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
        raise StoreError(f"the session cannot be locked ({path}): {error.strerror or error}") from error


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
    return f"session {session_id} is open in {who}: it can be read here, but not continued"
