"""Blocking work beside the event loop, which stops when the caller is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
Stop = threading.Event


async def in_thread(work: Callable[[Stop], T]) -> T:
    """Runs ``work`` in a daemon thread. When the caller is cancelled the event given to it is set; the work looks at
    it and ends. A daemon thread, so that a name lookup that hangs cannot hold up the end of the program."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    stop = Stop()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def body() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = work(stop)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=body, name="tool", daemon=True).start()
    try:
        return await future
    finally:
        stop.set()
