"""The limits on silence of one call: seconds without a byte, and seconds in which bytes come but nothing of the
answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agent_tui.models.requests import ModelRequest
from agent_tui.providers.net.bounds import SilenceError

LINGER = 3.0
"""Seconds of silence after the reason why an answer ended: what may still come is usage. Some gateways keep the
connection open then."""


class Silence:
    """``complete`` says whether the provider has told how its answer ended."""

    def __init__(self, request: ModelRequest, complete: Callable[[], bool]) -> None:
        self._request, self._complete = request, complete
        self._content_at = asyncio.get_running_loop().time()

    def broken(self) -> None:
        """Something of the answer came, or the call begins."""
        self._content_at = asyncio.get_running_loop().time()

    def patience(self) -> float:
        """Seconds from now that nothing may come, and nothing of the answer."""
        left = self._content_at + self._request.content_timeout - asyncio.get_running_loop().time()
        most = min(self._request.timeout, LINGER) if self._complete() else self._request.timeout
        return min(most, max(0.0, left))

    def wait_on(self, clock: asyncio.Timeout) -> None:
        """Bytes came: the clock begins anew, unless it has run out."""
        if not clock.expired():
            clock.reschedule(asyncio.get_running_loop().time() + self.patience())

    def error(self) -> SilenceError:
        return SilenceError(
            f"The connection lives, but nothing of the answer came for {self._request.content_timeout:g} s. "
            "Try again, or raise agent.content_timeout."
        )
