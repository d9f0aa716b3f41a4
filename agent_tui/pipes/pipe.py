"""The pipe between the program and a child of its own: one message a line, both ways, none of its fields lost; and the
two ends that own it.

A message is a dataclass; a line is ``{"op": NAME, "id": N, "v": {its fields}}``, derived from it. Requests share the
pipe and are told apart by ``id``; what belongs to none has the id 0. What a line says that this process does not know
is an error while ``STRICT`` is set, else a line in the log, once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from agent_tui.models.codec import decoder, dumps_for_pipe
from agent_tui.records import dataclass

log = logging.getLogger(__name__)

STRICT = "AGENT_TUI_STRICT_PIPES"
"""Environment variable, inherited by the processes behind the pipes, that makes an unknown name an error."""

_told: set[str] = set()


class BadLineError(ValueError):
    """A line that cannot be understood. ``id`` is the request it belongs to, 0 where it does not say."""

    def __init__(self, text: str, call_id: int = 0) -> None:
        super().__init__(text)
        self.id = call_id


class UnknownNameError(BadLineError):
    """A line that names what this process does not know, while that is an error."""


@dataclass(slots=True, frozen=True)
class Refused:
    """The answer to a request that failed; ``error`` says why."""

    error: str


class PipeLanguage:
    """The messages of one direction of a pipe, by the names they have in its lines."""

    def __init__(self, messages: Mapping[str, type[Any]]) -> None:
        self.messages = dict(messages)
        self._names = {cls: name for name, cls in messages.items()}

    def line(self, message: Any, call_id: int = 0) -> bytes:
        """A message as a line."""
        return f'{{"op":"{self._names[type(message)]}","id":{call_id},"v":{dumps_for_pipe(message)}}}\n'.encode()

    def read(self, data: bytes) -> tuple[int, Any]:
        """The id and the message of a line; None in its place for an unknown operation, which was reported.
        Raises BadLineError."""
        try:
            parsed = json.loads(data)
            op, call_id = parsed["op"], int(parsed["id"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadLineError(f"{len(data)} bytes that are no message") from error
        try:
            cls: Any = self.messages.get(op)
            if cls is None:
                unknown(f"operation {op}")
                return call_id, None
            return call_id, decoder(cls, unknown_field)(parsed["v"])
        except UnknownNameError as error:
            error.id = call_id
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadLineError(f"{op} cannot be understood: {type(error).__name__}: {error}", call_id) from error


def unknown_field(name: str) -> None:
    unknown(f"field {name}")


def unknown(what: str) -> None:
    """Reports a name of the other process's that this one does not know. Raises UnknownNameError where that is an
    error."""
    if os.environ.get(STRICT):
        raise UnknownNameError(f"unknown {what}")
    if what not in _told and len(_told) < 100:
        _told.add(what)
        log.warning("Ignored what another version may have sent: unknown %s", what[:200])


Take = Callable[[bytes], None]


def own_the_pipe(log_variable: str) -> tuple[BinaryIO, BinaryIO]:
    """Keeps the two ends of the pipe to ourselves: whatever a library prints goes to the file that an environment
    variable names, or nowhere, and whatever it reads is empty."""
    stdin = os.fdopen(os.dup(0), "rb", buffering=1 << 20)
    stdout = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    path = os.environ.get(log_variable) or os.devnull
    try:
        sink = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    return stdin, stdout


def log_to_stderr(name: str, redact: Callable[[str], str]) -> None:
    """Has warnings logged, without their secrets, under the child's name."""

    class Redacting(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return redact(super().format(record))

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Redacting(f"%(asctime)s {name} %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def read_until_the_end(stdin: BinaryIO, take: Take, last: Callable[[], None] = lambda: None) -> None:
    """Hands the lines of the input to the running loop, from a thread. When the input ends (the parent is gone) the
    process ends at once and hard, even if the loop is blocked; ``last`` is called before that, in the thread."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            for data in stdin:
                loop.call_soon_threadsafe(take, data)
        finally:
            try:
                last()
            finally:
                os._exit(0)

    threading.Thread(target=read, name="input", daemon=True).start()


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
        self, process: subprocess.Popen[bytes], on_line: Callable[[bytes], None], on_death: Callable[[ChildPipe], None]
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
        cls, process: subprocess.Popen[bytes], on_line: Callable[[bytes], None], on_death: Callable[[ChildPipe], None]
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
