"""Who hears what happens, and what goes on in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from agent_tui.models.events import Event, Notice

log = logging.getLogger(__name__)


class Hub:
    """Events go to all subscribers, in the order they subscribed; background work that fails is told as one."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[Event], None]] = []
        self._background: set[asyncio.Task[Any]] = set()

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Calls ``callback`` with every event from now on; returns what ends that."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback) if callback in self._subscribers else None

    def publish(self, event: Event) -> None:
        """Tells everybody; one subscriber's failure is in the log and keeps nothing from the others."""
        for callback in tuple(self._subscribers):
            try:
                callback(event)
            except Exception:
                log.exception("A subscriber failed on %s", type(event).__name__)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        """Does work in the background; it ends with the agent at the latest."""
        self.keep(asyncio.create_task(work, name=name))

    def keep(self, task: asyncio.Task[Any]) -> None:
        """The same of a task that runs already."""
        self._background.add(task)
        task.add_done_callback(self._reap)

    async def settled(self) -> None:
        """Waits until nothing goes on in the background."""
        while self._background:
            await asyncio.gather(*self._background, return_exceptions=True)

    async def close(self) -> None:
        """Ends what goes on in the background."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    def _reap(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("Background task %s failed", task.get_name(), exc_info=error)
            self.publish(Notice("error", str(error) or type(error).__name__, "background"))
