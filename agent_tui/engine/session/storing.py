"""Waiting for the store without blocking the loop, and what the user is told when it cannot be written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from agent_tui.errors import StoreError, StoreLockedError
from agent_tui.models.failure import TEXT_KEPT, Failure

T = TypeVar("T")

WAITS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, *(1.0,) * 13)
"""Seconds between the tries of a write while another program holds the database: fifteen in all. Most writes take
milliseconds, one of a message of 100 MB takes seconds."""


async def patiently(write: Callable[[], T]) -> T:
    """Does a write, again while the database is locked, without blocking in between. Raises StoreError."""
    for seconds in WAITS:
        try:
            return write()
        except StoreLockedError:
            await asyncio.sleep(seconds)
    return write()


def store_failure(error: StoreError, unsent: bool = False) -> Failure:
    """A turn that ended because it could not be stored. ``unsent``: the user's message goes back to the queue."""
    text = str(error)
    line = text[:1].upper() + text[1:].rstrip(".")
    kept = (
        f"{TEXT_KEPT} It waits until you send it again."
        if unsent
        else ("What was not saved is kept in memory and stored with your next message.")
    )
    return Failure("store", f"{line}. {kept}")
