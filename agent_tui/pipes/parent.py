"""The child process and its pipes: spawned in a process group of its own, read line by line."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

log = logging.getLogger(__name__)

PIPE_LIMIT = 256_000_000
"""Bytes of one line of a child: everything in it is bounded, the pictures of one result being the most."""


class LineReader:
    """Cuts a byte stream into lines; the cost of a long line is linear in its length. One of more than ``limit`` bytes
    raises ValueError."""

    def __init__(self, limit: int = PIPE_LIMIT) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._limit = limit

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that ``data`` completes, without their newline."""
        *lines, rest = data.split(b"\n")
        for end in lines:
            if self._pieces:
                self._pieces.append(end)
                end = b"".join(self._pieces)
                self._pieces.clear()
                self._size = 0
            yield end
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
            if self._size > self._limit:
                self._pieces.clear()
                raise ValueError(f"a line of more than {self._limit:,} bytes")


class ChildPipe(asyncio.Protocol):
    """A running child. ``on_line`` gets its lines, ``on_death`` is called once, after its last line.

    ``heard`` says whether there was any output, ``missed`` how many pings (which the owner counts) since the newest.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        on_line: Callable[[bytes], None],
        on_death: Callable[[ChildPipe], None],
    ) -> None:
        self._process = process
        self._on_line, self._on_death = on_line, on_death
        self._reader = LineReader()
        self._loop = asyncio.get_running_loop()
        self._input: asyncio.WriteTransport | None = None
        self._output: asyncio.BaseTransport | None = None
        self.dead = asyncio.Event()
        self.heard = False
        self.missed = 0

    @classmethod
    async def over(
        cls,
        process: subprocess.Popen[bytes],
        on_line: Callable[[bytes], None],
        on_death: Callable[[ChildPipe], None],
    ) -> ChildPipe:
        """The pipe of a child that was started with ``start.start``."""
        pipe = cls(process, on_line, on_death)
        pipe._input, _ = await pipe._loop.connect_write_pipe(asyncio.BaseProtocol, process.stdin)
        pipe._output, _ = await pipe._loop.connect_read_pipe(lambda: pipe, process.stdout)
        return pipe

    @property
    def pid(self) -> int:
        return self._process.pid

    def data_received(self, data: bytes) -> None:
        self.heard, self.missed = True, 0
        try:
            for line in self._reader.feed(data):
                self._on_line(line)
        except ValueError as error:
            log.error("A child process is ended: it wrote %s", error)
            self.kill()

    def connection_lost(self, exc: Exception | None) -> None:
        """Its output ended: it is of no use any more, whether it still runs or not."""
        self.kill()
        # A thread of its own: the loop's executor takes nothing any more when the program ends, and whoever waits for
        # the child's death then would wait for ever.
        threading.Thread(target=self._reap, name=f"reap {self.pid}", daemon=True).start()

    def _reap(self) -> None:
        self._process.wait()
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._gone)

    def _gone(self) -> None:
        if self._input is not None and not self._input.is_closing():
            self._input.abort()
        self.dead.set()
        self._on_death(self)

    def write(self, data: bytes) -> None:
        """Queues bytes for the child; written to a dead one they are lost, which its death reports."""
        if self._input is not None and not self._input.is_closing():
            self._input.write(data)

    def kill(self) -> None:
        """Ends the child's whole process group at once."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def close(self, patience: float = 1.0) -> None:
        """Ends the child: it leaves by itself when its input ends, else it is killed."""
        if self._input is not None:
            self._input.close()
        try:
            async with asyncio.timeout(patience):
                await self.dead.wait()
        except TimeoutError:
            self.kill()
            await self.dead.wait()
        if self._output is not None:
            self._output.close()
