"""Lines from a stream that anyone may write to: each is bounded, and what is longer is passed over."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator
from typing import BinaryIO

MAX_LINE = 64 * 1024 * 1024
"""Bytes of one line: several images fit in it."""

_CHUNK = 1 << 20


def own_input() -> BinaryIO:
    """Standard input for a thread that may still be reading at the end of the program: Python ends itself with SIGABRT
    where another thread holds its own reader of it."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):
        return sys.stdin.buffer


async def lines(stream: BinaryIO) -> AsyncGenerator[bytes | None, None]:
    """Yields the lines as they come, None for one that is longer than ``MAX_LINE``. Raises OSError."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[bytes | OSError | None] = asyncio.Queue(maxsize=2)

    def read() -> None:
        # A thread of its own, which nobody waits for: a read that blocks must not keep the program from ending.
        line: bytes | OSError | None = None
        while line is None or (line and not isinstance(line, OSError)):
            try:
                line = _line(stream)
            except OSError as error:
                line = error
            try:
                asyncio.run_coroutine_threadsafe(waiting.put(line), loop).result()
            except (RuntimeError, asyncio.CancelledError):
                return

    threading.Thread(target=read, name="standard-input", daemon=True).start()
    while (line := await waiting.get()) != b"":
        if isinstance(line, OSError):
            raise line
        yield line


def _line(stream: BinaryIO) -> bytes | None:
    line = stream.readline(MAX_LINE + 1)
    if len(line) <= MAX_LINE:
        return line
    while line and not line.endswith(b"\n"):
        line = stream.readline(_CHUNK)
    return None
