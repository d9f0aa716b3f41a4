"""The program in a pseudo terminal of its own, driven by what it writes there and by the files it changes."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.nursery import PROGRAM, stand_in
from tests.support.waiting import PATIENCE, Changes, opened

ROOT = Path(__file__).resolve().parents[2]


class Terminal:
    """A running program and its terminal. ``seen`` is all that was read from it."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.seen = b""
        self.code: int | None = None
        self._descriptor = descriptor
        self._open = True
        self._heard = [descriptor]  # until nothing can come from there any more

    def type(self, text: bytes) -> None:
        os.write(self._descriptor, text)

    def modes(self) -> list[object]:
        """How the terminal treats what is typed."""
        return list(termios.tcgetattr(self._descriptor))

    def resize(self, columns: int, rows: int = 24) -> None:
        """Gives its window another size."""
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def listen(self, seconds: float) -> None:
        """Reads what comes in a time: for users who do something at a moment of their own."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select(self._heard, [], [], left)[0]:
                self._hear(end + PATIENCE)

    def close(self) -> None:
        """Closes the terminal, as its window would be closed."""
        if self._open:
            self._open = False
            self._heard.clear()
            os.close(self._descriptor)

    def wait_for(self, text: bytes, begin: int | None = None) -> int:
        """Reads on until ``text`` was in what came since the call, or since byte ``begin``; returns where it ends."""
        begin = len(self.seen) if begin is None else begin
        end = time.monotonic() + PATIENCE
        while text not in self.seen[begin:]:
            assert self._heard, self.seen[-1000:]
            self._hear(end)
        return self.seen.index(text, begin) + len(text)

    def wait_until(self, ready: Callable[[], bool], folder: Path) -> None:
        """Reads on until ``ready``, which is asked again whenever something in ``folder`` was changed or something
        came: of what a database commits, the last step is a write to shared memory, of which nobody is told."""
        end = time.monotonic() + PATIENCE
        with Changes(folder) as changes:
            while not ready():
                self._hear(end, changes.descriptor)
                changes.forget()

    def wait_for_end(self) -> int:
        """The exit status, once the process is gone."""
        end = time.monotonic() + PATIENCE
        for gone in opened([self.pid]):
            try:
                while gone not in self._hear(end, gone):
                    pass
            finally:
                os.close(gone)
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def kill(self) -> None:
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.code = -signal.SIGKILL

    def _hear(self, end: float, *more: int) -> list[int]:
        """Waits until something can be read, takes what the program wrote, and returns which others were heard."""
        found, _, _ = select.select([*self._heard, *more], [], [], max(0.0, end - time.monotonic()))
        assert found, ("nothing came any more", self.seen[-1000:])
        if self._heard and self._descriptor in found:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except OSError:  # as Linux tells that nobody holds the other side any more
                data = b""
            self.seen += data
            if not data:
                self._heard.clear()
        return found


@contextmanager
def in_terminal(
    folder: Path,
    environment: Mapping[str, str],
    *arguments: str,
    size: tuple[int, int] | None = None,
    nursery: str = "",
) -> Iterator[Terminal]:
    """The program with the demo model and ``arguments``, started in ``folder`` in a terminal of so many columns and
    lines, or of none that are known; killed at the end where it has not ended. One of a ``nursery`` costs a third; its
    pid is not the program's, which gets no signal."""
    arguments = ("-m", "demo", *arguments)
    command = stand_in(nursery, PROGRAM, *arguments) if nursery else [sys.executable, "-m", "agent_tui", *arguments]
    descriptor, own = os.openpty()
    if size is not None:
        fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    pid = os.fork()
    if pid == 0:
        if nursery:
            for number in range(3):
                os.dup2(own, number)
        else:
            os.login_tty(own)
        os.chdir(folder)
        variables = {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **environment}
        os.execve(command[0], command, {**os.environ, **variables})
    os.close(own)
    terminal = Terminal(pid, descriptor)
    try:
        yield terminal
    finally:
        terminal.kill()
        terminal.close()
