"""The child process and its pipes: spawned in a process group of its own, read line by line."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
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


class WorkerPipe(asyncio.SubprocessProtocol):
    """A running worker. ``on_line`` gets its lines, ``on_death`` is called once, after its last line.

    ``last_data`` is the loop time of its newest output, ``heard`` whether there was any, ``missed`` the number of pings
    since.
    """

    def __init__(self, on_line: Callable[[bytes], None], on_death: Callable[[WorkerPipe], None]) -> None:
        self._on_line, self._on_death = on_line, on_death
        self._reader = LineReader()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.SubprocessTransport | None = None
        self.dead = asyncio.Event()
        self.last_data = self._loop.time()
        self.heard = False
        self.missed = 0

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_line: Callable[[bytes], None],
        on_death: Callable[[WorkerPipe], None],
    ) -> WorkerPipe:
        """Starts the child. Raises OSError when it cannot be started."""
        pipe = cls(on_line, on_death)
        await pipe._loop.subprocess_exec(
            lambda: pipe,
            *command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
        return pipe

    @property
    def pid(self) -> int | None:
        return self._transport.get_pid() if self._transport else None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.last_data, self.heard, self.missed = self._loop.time(), True, 0
        try:
            for line in self._reader.feed(data):
                self._on_line(line)
        except ValueError as error:
            log.error("A child process is ended: it wrote %s", error)
            self.kill()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.kill()

    def connection_lost(self, exc: Exception | None) -> None:
        self.dead.set()
        self._on_death(self)

    def write(self, data: bytes) -> None:
        """Queues bytes for the child; written to a dead one they are lost, which its death reports."""
        stdin = self._transport.get_pipe_transport(0) if self._transport else None
        if isinstance(stdin, asyncio.WriteTransport) and not stdin.is_closing():
            stdin.write(data)

    def kill(self) -> None:
        """Ends the child's whole process group at once."""
        if self.pid is not None and not self.dead.is_set():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def close(self, patience: float = 1.0) -> None:
        """Ends the child: it leaves by itself when its input ends, else it is killed."""
        if self._transport is None:
            return
        if (stdin := self._transport.get_pipe_transport(0)) is not None:
            stdin.close()
        try:
            async with asyncio.timeout(patience):
                await self.dead.wait()
        except TimeoutError:
            self.kill()
            await self.dead.wait()
        self._transport.close()
