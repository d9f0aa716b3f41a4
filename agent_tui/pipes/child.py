"""The child's side of a pipe: it owns its two ends, reads lines until its input ends, and ends then."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

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
