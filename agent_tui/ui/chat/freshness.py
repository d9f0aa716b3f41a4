"""Looks now and then whether files that are part of every request have changed, while nothing else happens."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.ui.chat.host import Repeats, SeesFocus
    from agent_tui.ui.chat.needs import HasContext

log = logging.getLogger(__name__)

EVERY = 2.0
"""Seconds between two looks. A look asks the file system about a handful of paths, in a thread, and draws nothing; what
changed is told by the agent as an event."""


class Freshness:
    """Looks only while the user does: not when the terminal has lost the focus, and not while the agent works."""

    def __init__(self, seat: HasContext, focus: SeesFocus, clock: Repeats) -> None:
        self._seat = seat
        self._focus = focus
        self._clock = clock
        self._look: asyncio.Task[bool] | None = None

    def begin(self) -> None:
        self._clock.set_interval(EVERY, self.look)

    def look(self) -> None:
        """One look, unless the last one still waits for a slow disk."""
        agent = self._seat.agent
        if agent is None or agent.turns.busy or not self._focus.is_looked_at:
            return
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(agent.context.refresh(), name="freshness")
            self._look.add_done_callback(_told)


def _told(look: asyncio.Task[bool]) -> None:
    if not look.cancelled() and (error := look.exception()) is not None:
        log.error("Looking for changed files failed", exc_info=error)
