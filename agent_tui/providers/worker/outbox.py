"""What the worker writes: deltas that come close together in one write, everything else at once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agent_tui.models.requests import Delta, StreamItem
from agent_tui.providers.worker.protocol import FROM_WORKER, item_lines, merge

DELAY = 0.03
"""Seconds that deltas wait for company: about the time between two frames of the screen, which is woken for each line.
The first delta of a stream does not wait."""


class Outbox:
    """Orders and gathers lines for ``write``, which takes bytes and never blocks."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._waiting: dict[int, list[Delta]] = {}
        self._begun: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0

    def send(self, message: object, call_id: int = 0) -> None:
        """Writes a message that is not part of a stream's content."""
        self.flush()
        self._write(FROM_WORKER.line(message, call_id))

    def item(self, call_id: int, item: StreamItem) -> None:
        """Adds a stream item; a delta waits up to ``DELAY`` to be joined with the next ones."""
        if not isinstance(item, Delta):
            self.flush()
            self._put(call_id, item)
            return
        waiting = self._waiting.setdefault(call_id, [])
        joined = merge(waiting[-1], item) if waiting else None
        if joined is not None:
            waiting[-1] = joined
        else:
            waiting.append(item)
        loop = asyncio.get_running_loop()
        if call_id not in self._begun:
            self._begun.add(call_id)
            self.flush()
        elif self._timer is None:
            self._timer = loop.call_later(DELAY, self.flush)
        elif loop.time() - self._last >= DELAY:
            self.flush()

    def end(self, call_id: int) -> None:
        """Forgets a stream; what of it still waits is written."""
        self.flush()
        self._begun.discard(call_id)

    def drop(self, call_id: int) -> None:
        """Forgets a stream that nobody listens to any more."""
        self._waiting.pop(call_id, None)
        self._begun.discard(call_id)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._last = asyncio.get_running_loop().time()
        waiting, self._waiting = self._waiting, {}
        for call_id, deltas in waiting.items():
            for delta in deltas:
                self._put(call_id, delta)

    def _put(self, call_id: int, item: StreamItem) -> None:
        for data in item_lines(call_id, item):
            self._write(data)
