"""Waiting for other processes by what the system tells, not by looking again and again."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

PATIENCE = 60.0
"""Seconds after which a wait has failed. Generous: only a broken program makes anybody wait for it."""


class Bell:
    """A named pipe between the test and another process, which opens it as it would a file: what the process writes
    there is heard here (``rung``), and a process that reads there goes on when it is told to (``ring``)."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def __enter__(self) -> Bell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def __str__(self) -> str:
        return str(self.path)

    def ring(self) -> None:
        """Lets one reader go on."""
        os.write(self._fd, b"\n")

    async def rung(self) -> str:
        """Waits until a process has written, and returns what. Raises TimeoutError."""
        await _readable(self._fd)
        return os.read(self._fd, 65_536).decode()


class Changes:
    """Tells when something in a folder is made, written or taken away: ``descriptor`` can be read then."""

    _ANY = (
        0x002 | 0x008 | 0x040 | 0x080 | 0x100 | 0x200
    )  # modify, close after writing, moved from and to, create, delete

    def __init__(self, folder: Path) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0 or library.inotify_add_watch(self.descriptor, os.fsencode(folder), self._ANY) < 0:
            raise OSError(ctypes.get_errno(), "cannot watch", str(folder))

    def __enter__(self) -> Changes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    def forget(self) -> None:
        """What has been told so far; the next change is told again."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.descriptor, 65_536):
                pass


async def ended(*pids: int) -> None:
    """Waits until processes have ended, whoever's children they are; a zombie has. Raises TimeoutError."""
    for descriptor in opened(pids):
        try:
            await _readable(descriptor)
        finally:
            os.close(descriptor)


def running(pid: int) -> bool:
    """Whether a process has not ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def opened(pids: Iterable[int]) -> list[int]:
    """Descriptors that can be read once a process has ended, to be closed by the caller; none for what is gone."""
    descriptors = []
    for pid in pids:
        try:
            descriptors.append(os.pidfd_open(pid))
        except ProcessLookupError:
            continue
    return descriptors


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        async with asyncio.timeout(PATIENCE):
            await ready.wait()
    finally:
        loop.remove_reader(descriptor)
