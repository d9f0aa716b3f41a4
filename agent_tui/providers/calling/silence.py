"""The limits on the time of one call: seconds without a byte, seconds in which bytes come but nothing of the answer,
and seconds for all of it."""

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
        self._content_at = self._began = asyncio.get_running_loop().time()

    def broken(self) -> None:
        """Something of the answer came, or the call begins."""
        self._content_at = asyncio.get_running_loop().time()

    def patience(self) -> float:
        """Seconds from now that nothing may come, and nothing of the answer."""
        left = self._content_at + self._request.content_timeout - asyncio.get_running_loop().time()
        if self._request.answer_timeout:
            left = min(left, self._left_of_all())
        most = min(self._request.timeout, LINGER) if self._complete() else self._request.timeout
        return min(most, max(0.0, left))

    def wait_on(self, clock: asyncio.Timeout) -> None:
        """Bytes came: the clock begins anew, unless it has run out."""
        if not clock.expired():
            clock.reschedule(asyncio.get_running_loop().time() + self.patience())

    def _left_of_all(self) -> float:
        return self._began + self._request.answer_timeout - asyncio.get_running_loop().time()

    def error(self) -> SilenceError:
        """Why there is no patience left."""
        if self._request.answer_timeout and self._left_of_all() <= 0:
            return SilenceError(
                f"The answer was not complete after {self._request.answer_timeout:g} s. "
                "Try again, or raise agent.answer_timeout."
            )
        return SilenceError(
            f"The connection lives, but nothing of the answer came for {self._request.content_timeout:g} s. "
            "Try again, or raise agent.content_timeout."
        )
