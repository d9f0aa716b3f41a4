"""Calls of the provider: a request tried again where that is safe, and the exact size of the next one asked for."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from agent_tui.context.accounting.next_input import max_output_for
from agent_tui.engine.runtime import Emit, Runtime, build_request, new_step, record_sent
from agent_tui.models.events import RetryWaiting
from agent_tui.models.failure import Failure
from agent_tui.models.requests import Delta, Failed, ModelRequest, Provider, StreamItem
from agent_tui.models.usage import TokenUsage

log = logging.getLogger(__name__)

WORTH_TOKENS = 8_000
"""Below this an estimate is off by less than anybody acts on, and the first step measures it anyway."""


async def count_exactly(runtime: Runtime, current: Callable[[], bool] = lambda: True) -> int | None:
    """Asks the provider how long the next request is; stored as a step of kind ``count``, which anchors.

    None where it is switched off, the provider has no such endpoint, the call failed, or what would be sent changed
    while it was under way: the answer is then about a request that nobody will send. ``current`` says whether the
    runtime is still the session's.
    """
    if runtime.settings.context.exact_counting == "off":
        return None
    if not runtime.conversation.view() or runtime.conversation.read_only:
        return None
    usage = runtime.usage()
    step = new_step(runtime, "count")
    step.estimated_input = usage.total
    request = build_request(runtime, step.id, max_output_for(usage, runtime.info.limits))
    record_sent(step, request, runtime)
    asked = _subject(runtime)
    tokens = await runtime.provider.count_exact(request)
    if tokens is None or tokens <= 0:
        return None
    if not current() or _subject(runtime) != asked:
        log.info("An exact count of %s came too late: the conversation has changed", tokens)
        return None
    step.usage = TokenUsage(input=tokens, output=0)
    step.actual_input = tokens
    step.status, step.finished = "complete", time.time()
    runtime.conversation.add_step(step)
    return tokens


def _subject(runtime: Runtime) -> tuple[object, ...]:
    """Returns what a count is about: the messages as sent, the fixed parts, the model, and how much was measured
    before."""
    measured = sum(s.status != "running" for s in runtime.conversation.steps)
    keys = tuple(sent.key for sent in runtime.conversation.view())
    return keys, measured, runtime.info.target, runtime.request_prefix.fingerprint, runtime.effort


def worth_counting(runtime: Runtime) -> bool:
    """Returns whether an exact count is called for: allowed, nothing to build on, and long enough to matter."""
    if runtime.settings.context.exact_counting == "off":
        return False
    usage = runtime.usage()
    return usage.anchor_step is None and usage.total >= WORTH_TOKENS


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
