"""Trying a model call again while nothing of its answer has arrived."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing

from agent_tui.engine.runtime.runtime import Emit
from agent_tui.models.events import RetryWaiting
from agent_tui.models.failure import Failure
from agent_tui.models.requests import Delta, Failed, ModelRequest, Provider, StreamItem

log = logging.getLogger(__name__)

BACKOFF_SECONDS = 1.0
BACKOFF_LIMIT = 30.0
PATIENCE_SECONDS = 300.0
"""A provider that asks for more than this is not waited for: the user is told instead."""


async def stream_with_retries(
    provider: Provider, request: ModelRequest, attempts: int, emit: Emit
) -> AsyncGenerator[StreamItem, None]:
    """The items of the call. A retryable failure before the first delta is not passed on: after a wait, told as
    ``RetryWaiting``, the call is made again, at most ``attempts`` times in all. Closing it ends call and wait."""
    for attempt in range(1, max(1, attempts) + 1):
        received, failure = False, None
        async with aclosing(provider.stream(request)) as items:
            async for item in items:
                if isinstance(item, Failed):
                    failure = item.failure
                    break
                received = received or isinstance(item, Delta)
                yield item
        if failure is None:
            return
        seconds = retry_delay(failure, attempt)
        if received or not failure.retryable or attempt >= attempts or seconds > PATIENCE_SECONDS:
            yield Failed(failure)
            return
        log.info("Attempt %d of %d failed (%s), again in %.1f s", attempt, attempts, failure.kind, seconds)
        emit(RetryWaiting(seconds, attempt, attempts, failure))
        await asyncio.sleep(seconds)


def retry_delay(failure: Failure, attempt: int) -> float:
    """Seconds to wait before the next attempt: what the provider asked for, else doubling from 1 s with jitter."""
    if failure.retry_after is not None:
        return max(0.0, failure.retry_after)
    spread: float = random.uniform(0.8, 1.2)
    return float(min(BACKOFF_LIMIT, BACKOFF_SECONDS * 2 ** (attempt - 1)) * spread)
