"""A call of the provider made again where that is safe, after the wait that the provider asks for."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeAlias

from agent_tui.context.tokens import char_tokens
from agent_tui.engine.runtime import Emit
from agent_tui.models.events import RetryWaiting
from agent_tui.models.failure import Failure, with_more, without_ways
from agent_tui.models.requests import Delta, Failed, ModelRequest, Provider, StreamItem
from agent_tui.records import dataclass

log = logging.getLogger(__name__)

BACKOFF_SECONDS = 1.0
BACKOFF_LIMIT = 30.0
PATIENCE_SECONDS = 300.0
"""A provider that asks for more than this is not waited for: the user is told instead."""

NOT_RUN = "The tool call that it had begun was not run."


@dataclass(slots=True, frozen=True)
class Interrupted:
    """The answer broke off and the call is made again: what came of it counts no more once something comes anew."""

    failure: Failure


CallItem: TypeAlias = StreamItem | Interrupted

MayRepeat: TypeAlias = Callable[[Failure, float | None], bool]
"""Says whether a call may be made again after a failure; told how many tokens of an answer had come (None: nothing)."""


async def stream_with_retries(
    provider: Provider, request: ModelRequest, attempts: int, emit: Emit, again: MayRepeat
) -> AsyncGenerator[CallItem, None]:
    """The items of the call. A failure that may be tried again is not passed on: after a wait, told as
    ``RetryWaiting``, the call is made again where ``again`` allows it, at most ``attempts`` times in all. Where
    something of the answer had come, ``Interrupted`` tells it first; with a tool call in it nothing is tried again.
    Closing it ends call and wait."""
    for attempt in range(1, max(1, attempts) + 1):
        failure, came, calls = None, None, False
        async with aclosing(provider.stream(request)) as items:
            async for item in items:
                if isinstance(item, Failed):
                    failure = item.failure
                    break
                if isinstance(item, Delta):
                    came = (came or 0.0) + char_tokens(item.text)
                    calls = calls or item.kind == "tool_call"
                yield item
        if failure is None:
            return
        if calls:
            yield Failed(with_more(failure, NOT_RUN))
            return
        seconds = retry_delay(failure, attempt)
        last = not failure.retryable or attempt >= attempts or seconds > PATIENCE_SECONDS
        if last or not again(failure, came):
            yield Failed(failure)
            return
        log.info("Attempt %d of %d failed (%s), again in %.1f s", attempt, attempts, failure.kind, seconds)
        if came is not None:
            yield Interrupted(failure)
            failure = without_ways(failure)
        emit(RetryWaiting(seconds, attempt, attempts, failure))
        await asyncio.sleep(seconds)


def retry_delay(failure: Failure, attempt: int) -> float:
    """Seconds to wait before the next attempt: what the provider asked for, else doubling from 1 s with jitter."""
    if failure.retry_after is not None:
        return max(0.0, failure.retry_after)
    spread: float = random.uniform(0.8, 1.2)
    return float(min(BACKOFF_LIMIT, BACKOFF_SECONDS * 2 ** (attempt - 1)) * spread)
