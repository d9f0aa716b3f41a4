"""A program in a pseudo terminal that is read at once and answered as a terminal answers: for measuring what it writes
and when."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ANSWERS: tuple[tuple[bytes, bytes], ...] = (
    (rb"\x1b\[\?2026\$p", b"\x1b[?2026;2$y"),
    (rb"\x1b\[\?2048\$p", b"\x1b[?2048;0$y"),
    (rb"\x1b\[\?u", b"\x1b[?0u"),
    (rb"\x1b\[0?c", b"\x1b[?62;22c"),
    (rb"\x1b\[>0?q", b"\x1bP>|XTerm(380)\x1b\\"),
    (rb"\x1b\]10;\?(?:\x07|\x1b\\)", b"\x1b]10;rgb:e0e0/e0e0/e0e0\x1b\\"),
    (rb"\x1b\]11;\?(?:\x07|\x1b\\)", b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\"),
)
"""What a terminal of today answers to questions: it knows synchronized output, and no resize reports in band."""
_QUESTION = re.compile(b"|".join(b"(" + question + b")" for question, _ in ANSWERS))
_LONGEST = 16
"""Bytes of the longest question."""
FRAME = b"\x1b[?2026h"
"""Begins a frame of a program that was told of synchronized output."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process has used: processor seconds of all its threads, times it was woken."""

    seconds: float
    woken: int

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.seconds - other.seconds, self.woken - other.woken)


def spent(pid: int) -> Spent:
    """What a running process has used so far. Threads that have ended are left out."""
    nanoseconds, woken = 0, 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            nanoseconds += int((task / "schedstat").read_text().split()[0])
            found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.M)
        except FileNotFoundError:
            continue
        woken += int(found[1]) if found else 0
    return Spent(nanoseconds / 1e9, woken)


class Watched:
    """A running program. ``seen`` is what it wrote, ``frames`` the number of its synchronized frames."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.seen = bytearray()
        self.frames = 0
        self._descriptor = descriptor

    @property
    def written(self) -> int:
        """Bytes it wrote so far."""
        return len(self.seen)

    def type(self, keys: bytes) -> float:
        """Presses keys; when that was."""
        at = time.perf_counter()
        os.write(self._descriptor, keys)
        return at

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def watch(self, seconds: float) -> None:
        """Reads what it writes for so long."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self._read(left)

    def settle(self, calm: float = 4.0, longest: float = 30.0) -> None:
        """Reads until neither the program nor its children have had to do with anything for ``calm`` seconds."""
        end = time.perf_counter() + longest
        while time.perf_counter() < end:
            before = self._busy()
            self.watch(calm)
            if self._busy() - before < 0.05 * calm:
                return

    def _busy(self) -> float:
        return sum(spent(pid).seconds for pid in (self.pid, *descendants(self.pid)))

    def wait_for(self, text: bytes, since: int, seconds: float = 60.0) -> float:
        """Reads until ``text`` stands behind the first ``since`` bytes; when the last of it came
        (``time.perf_counter()``). Raises TimeoutError."""
        end = time.perf_counter() + seconds
        while self.seen.find(text, since) < 0:
            since = max(since, len(self.seen) - len(text) + 1)
            if (left := end - time.perf_counter()) <= 0:
                raise TimeoutError(f"{text!r} never came; the last bytes were {bytes(self.seen[-2000:])!r}")
            self._read(left)
        return time.perf_counter()

    def _read(self, seconds: float) -> None:
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return
        try:
            data = os.read(self._descriptor, 1 << 16)
        except OSError:  # as Linux tells that nobody holds the other side any more
            data = b""
        if not data:
            raise EOFError(f"the program ended; its last bytes were {bytes(self.seen[-2000:])!r}")
        before = len(self.seen)
        self.seen += data
        self.frames += self.seen.count(FRAME, max(0, before - len(FRAME) + 1))
        for question in _QUESTION.finditer(self.seen, max(0, before - _LONGEST)):
            if question.end() > before:
                os.write(self._descriptor, ANSWERS[(question.lastindex or 1) - 1][1])


@contextmanager
def watched(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], size: tuple[int, int]
) -> Iterator[Watched]:
    """The program in a terminal of ``size`` columns and lines, killed at the end with the children it started."""
    ready, go = os.pipe()
    pid, descriptor = os.forkpty()
    if pid == 0:
        os.close(go)
        os.read(ready, 1)  # the terminal has its size before the program looks
        os.chdir(folder)
        own = {"TERM": "xterm-256color", "COLORTERM": "truecolor", **environment}
        os.execvpe(command[0], list(command), {**os.environ, **own})
    os.close(ready)
    program = Watched(pid, descriptor)
    try:
        program.resize(*size)
        os.close(go)
        yield program
    finally:
        for victim in (*descendants(pid), pid):
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.waitpid(pid, 0)
        os.close(descriptor)


def descendants(pid: int) -> list[int]:
    """The children of a process, theirs, and so on."""
    try:
        direct = [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in _children(task)]
    except OSError:
        return []
    return [*direct, *(grand for child in direct for grand in descendants(child))]


def _children(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except OSError:
        return []
