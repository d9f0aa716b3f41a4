"""Exact counts from the provider: in the background where there is nothing to build on, and when the user asks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from agent_tui.context.accounting.next_input import max_output_for
from agent_tui.engine.runtime.requests import build_request, new_step, record_sent
from agent_tui.engine.runtime.runtime import Runtime
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
    """What a count is about: the messages as sent, the fixed parts, the model, and how much was measured before."""
    measured = sum(s.status != "running" for s in runtime.conversation.steps)
    keys = tuple(sent.key for sent in runtime.conversation.view())
    return keys, measured, runtime.info.target, runtime.prelude.fingerprint, runtime.effort


def worth_counting(runtime: Runtime) -> bool:
    """Whether an exact count is called for: allowed, nothing to build on, and long enough to matter."""
    if runtime.settings.context.exact_counting == "off":
        return False
    usage = runtime.usage()
    return usage.anchor_step is None and usage.total >= WORTH_TOKENS
