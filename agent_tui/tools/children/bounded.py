"""A small helper run to its end: a hook, a search, a conversion, a git outside of the sandbox."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Literal

from agent_tui.records import dataclass
from agent_tui.tools.children.process import ProcessGroup
from agent_tui.tools.sandbox.policy import Launch
from agent_tui.tools.sandbox.start import as_file

_CHUNK = 1 << 16

Take = Callable[[bytes], Awaitable[bool]]
"""Takes a piece of output; False once there is no room for more."""


@dataclass(slots=True, frozen=True)
class BoundedEnd:
    """How a helper ended: with a ``code``, where it was not ended for its ``time``, because there was no ``room`` for
    what it said, or because nobody ``wanted`` its answer any more."""

    why: Literal["", "time", "room", "unwanted"]
    code: int = 0


class Buffer:
    """Takes up to ``most`` bytes."""

    def __init__(self, most: int) -> None:
        self.data, self._most = bytearray(), most

    async def take(self, data: bytes) -> bool:
        self.data += data
        return len(self.data) <= self._most

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


async def _ignore(data: bytes) -> bool:
    return True


async def run_bounded(
    launch: Launch,
    cwd: Path,
    seconds: float | None,
    output: Take,
    errors: Take = _ignore,
    *,
    given: bytes | tuple[int, int] = b"",
    unwanted: Coroutine[Any, Any, object] | None = None,
    drain: float = 0.5,
) -> BoundedEnd:
    """Runs ``launch``, which is ``given`` its input, until it ends, ``seconds`` are over, there is no room for what it
    says, or ``unwanted`` ends; what it leaves running is ended with it. Descriptors that are ``given`` are what it
    reads and writes in the place of input and output. ``drain`` are the seconds in which what it said arrives when it
    has ended. Whoever is cancelled meanwhile leaves nothing running. Raises
    ToolError where it cannot be started."""
    readers: list[tuple[Callable[[int], Awaitable[bytes]], Take]] = []
    stop = asyncio.Event()
    ends: list[asyncio.Future[Any]] = [asyncio.ensure_future(stop.wait())]
    if unwanted is not None:
        ends.append(asyncio.ensure_future(unwanted))
    reading: set[asyncio.Task[None]] = set()
    transport: asyncio.BaseTransport | None = None
    group: ProcessGroup | None = None
    room = True

    async def read_all(read: Callable[[int], Awaitable[bytes]], take: Take) -> None:
        nonlocal room
        try:
            while room and (data := await read(_CHUNK)):
                room = await take(data) and room
        except BaseException:
            stop.set()
            raise
        if not room:
            stop.set()

    try:
        if isinstance(given, bytes):
            read_end, write_end = os.pipe()
            reader = asyncio.StreamReader(limit=_CHUNK)
            pipe = os.fdopen(read_end, "rb", buffering=0)
            try:
                transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                    lambda: asyncio.StreamReaderProtocol(reader), pipe
                )
                readers.append((reader.read, output))
                streams = as_file(given), write_end
            except BaseException:
                os.close(write_end)
                raise
        else:
            streams = given
        try:
            group = await ProcessGroup.start(launch, cwd, streams=streams)
        finally:
            for fd in streams:
                os.close(fd)
        started = group
        readers.append((lambda _: started.read(), errors))
        reading |= {asyncio.create_task(read_all(read, take)) for read, take in readers}
        waiting = asyncio.ensure_future(group.wait())
        await asyncio.wait({waiting, *ends}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done() and room:
            # What it left in the background may hold its pipes open for as long as it likes.
            await asyncio.wait(reading, timeout=drain)
        for task in reading:
            if task.done():
                task.result()
        if not room:
            return BoundedEnd("room")
        if waiting.done():
            return BoundedEnd("", waiting.result())
        waiting.cancel()
        return BoundedEnd("unwanted" if unwanted is not None and ends[-1].done() else "time")
    finally:
        for left in (*reading, *ends):
            left.cancel()
        try:
            if group is not None:
                await group.end()
        finally:
            if group is not None:
                group.close()
            if transport is not None:
                transport.close()
