"""The items of a stream on their way to who shows them, who is woken for each: deltas that arrive close together are
handed on as one, and those of a burst with turns for others between them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from agent_tui.models.requests import Delta, StreamItem

TEXT_LIMIT = 64_000
"""Characters of one delta: a huge chunk becomes several, so that handling one never stalls."""

DELAY = 0.03
"""Seconds that deltas wait for company: about the time between two frames of the screen. The first delta of a stream
does not wait."""

SLICE = 0.002
"""Seconds of handling what came in a burst before others on the loop, such as the keys, have their turn."""

T = TypeVar("T")


async def in_turns(queue: asyncio.Queue[T]) -> AsyncIterator[T]:
    """What comes in a queue, without end; others on the loop have a turn after each ``SLICE``."""
    began = time.monotonic()
    while True:
        waiting = queue.empty()
        if not waiting and time.monotonic() - began >= SLICE:
            await asyncio.sleep(0)
            waiting = True
        item = await queue.get()
        if waiting:
            began = time.monotonic()
        yield item


def in_pieces(item: StreamItem) -> Iterator[StreamItem]:
    """The item, a very long delta cut in pieces that append to the same part."""
    if not isinstance(item, Delta) or len(item.text) <= TEXT_LIMIT:
        yield item
        return
    text = item.text
    for start in range(0, len(text), TEXT_LIMIT):
        piece = replace(item, text=text[start : start + TEXT_LIMIT])
        if start > 0:
            piece = replace(piece, call_id=None, name=None)
        if start + TEXT_LIMIT < len(text):
            piece = replace(piece, metadata=None, closed=False)
        yield piece


def merge(first: Delta, second: Delta) -> Delta | None:
    """Two deltas as one that does the same to the answer, or None when they have to stay apart."""
    if first.index != second.index or first.kind != second.kind or first.closed:
        return None
    if second.call_id is not None:
        return None
    return Delta(
        first.index,
        first.kind,
        first.text + second.text,
        second.metadata if second.metadata is not None else first.metadata,
        second.closed,
        first.call_id,
        first.name if first.name is not None else second.name,
    )


class DeltaGatherer:
    """Hands the items of one stream to ``emit``, in their order; a delta waits up to ``DELAY`` to be joined with the
    next ones."""

    def __init__(self, emit: Callable[[StreamItem], None]) -> None:
        self._emit = emit
        self._waiting: list[Delta] = []
        self._begun = False
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0

    def put(self, item: StreamItem) -> None:
        if not isinstance(item, Delta):
            self.flush()
            self._emit(item)
            return
        joined = merge(self._waiting[-1], item) if self._waiting else None
        if joined is not None:
            self._waiting[-1] = joined
        else:
            self._waiting.append(item)
        loop = asyncio.get_running_loop()
        if not self._begun:
            self._begun = True
            self.flush()
        elif self._timer is None:
            self._timer = loop.call_later(DELAY, self.flush)
        elif loop.time() - self._last >= DELAY:
            self.flush()

    def flush(self) -> None:
        """Hands on what waits."""
        waiting = self._waiting
        self.drop()
        self._last = asyncio.get_running_loop().time()
        for delta in waiting:
            for piece in in_pieces(delta):
                self._emit(piece)

    def drop(self) -> None:
        """Forgets what waits: nobody listens any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waiting = []
