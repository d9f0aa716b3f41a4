"""Time limits that stand still while the user is asked: their time is not the server's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class Patience:
    """The limits of what runs with one server, here or in the tool host."""

    def __init__(self) -> None:
        self._left: dict[asyncio.Timeout, float] = {}
        self._pauses = 0
        self._since = 0.0
        self.waited = 0.0
        """Seconds that the user was waited for."""

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[None]:
        """Raises TimeoutError after so many seconds in which nobody was asked."""
        async with asyncio.timeout(None if self._pauses else seconds) as limit:
            self._left[limit] = seconds
            try:
                yield
            finally:
                del self._left[limit]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The user is asked meanwhile."""
        now = asyncio.get_running_loop().time
        if not self._pauses:
            self._since = now()
            for limit in self._left:
                self._left[limit] = (limit.when() or now()) - now()
                _move(limit, None)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self.waited += now() - self._since
                for limit, left in self._left.items():
                    _move(limit, now() + left)


def _move(limit: asyncio.Timeout, when: float | None) -> None:
    if not limit.expired():
        limit.reschedule(when)
