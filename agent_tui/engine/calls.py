"""The next call of a session before it is made: its request and step, an exact count of it, and a shorter answer that
fits where it was refused."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

from agent_tui.context.accounting.next_input import max_output_for, min_output
from agent_tui.context.accounting.reports import after_step, before_step
from agent_tui.context.past import given_of
from agent_tui.context.tokens import estimate_message, family_of
from agent_tui.context.view import active_prune_ids
from agent_tui.engine.model_call import PlannedCall, new_step
from agent_tui.engine.runtime import Runtime
from agent_tui.models.context import ContextUsage
from agent_tui.models.failure import Overflow
from agent_tui.models.messages import user_message
from agent_tui.models.requests import (
    ModelInfo,
    ModelRequest,
    ModelSpec,
    Provider,
    SentMessage,
    StreamItem,
    Target,
)
from agent_tui.models.steps import Step, StepKind
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.catalog import DEMO, sees

log = logging.getLogger(__name__)


def next_call(
    runtime: Runtime,
    usage: ContextUsage,
    kind: StepKind = "turn",
    *,
    max_output: int | None = None,
) -> PlannedCall:
    """Returns the next call of a session as it stands. Whoever sends it has it from here, and whoever tells beforehand
    what it will be: so they cannot differ.

    ``usage`` is the calculator's answer for it. ``max_output`` is given where a refusal has said how much there is room
    for.
    """
    prefix, agent, info = runtime.request_prefix, runtime.settings.agent, runtime.info
    view = list(runtime.view())
    most = max_output_for(usage, info.limits) if max_output is None else max_output
    expected = runtime.expected(usage, most)
    room, _, capped = runtime.longest_answer(expected, most, info)
    step = _step_of_now(runtime, kind)
    step.max_output = room if capped else most
    request = ModelRequest(
        id=step.id,
        spec=info.spec,
        session_id=runtime.conversation.info.id,
        system=prefix.system,
        messages=view,
        tools=prefix.tools,
        max_output=step.max_output,
        effort=runtime.effort,
        kind=kind,
        fixed_fingerprint=prefix.fingerprint,
        timeout=agent.timeout,
        documents=prefix.documents,
        replay=runtime.rule(),
        output_schema=None if runtime.schema_refused else runtime.output_schema,
        output_due=runtime.output_due,
        media=sees(info),
        capped=capped,
    )
    if prefix.sent_before and any(sent.message.role == "assistant" for sent in view[prefix.sent_before + 1 :]):
        request.sent_before = prefix.sent_before
    return PlannedCall(request, step, info, expected, most, runtime)


def _step_of_now(runtime: Runtime, kind: StepKind) -> Step:
    """A step that records what is sent now: messages, fixed parts, records in force."""
    conversation, prefix = runtime.conversation, runtime.request_prefix
    step, view = new_step(kind, runtime.info), conversation.view()
    step.sent_count = len(view)
    step.fixed, step.fixed_fingerprint = conversation.fixed_sets.one(prefix.fixed), prefix.fingerprint
    step.prune_ids = active_prune_ids(conversation.records)
    step.given = given_of(runtime.inputs(), conversation.info.head_id)
    if kind in ("turn", "count"):
        runtime.calculator.record(step, runtime.inputs())
    return step


WORTH_TOKENS = 8_000
"""Below so many estimated tokens an estimate is off by less than anybody acts on, and the first step measures it
anyway."""

WORTH_NEAR = 16
"""The same for a server that counts by itself, which costs it milliseconds."""


def stand_in(target: Target) -> tuple[SentMessage, int]:
    """What stands for the user's next message where a request is counted before there is one, and its tokens: without
    it many models refuse to begin, or take an answer at the end for one that they are to go on with."""
    message = user_message(".")
    message.raw_tokens = 1
    return SentMessage(message, message.id), estimate_message(message, family_of(target)).tokens


async def count_exactly(runtime: Runtime, current: Callable[[], bool]) -> int | None:
    """Asks the provider how long the next request is, without the user's message that is still to come; stored as a
    step of kind ``count``, which anchors.

    None where it is switched off, the provider has no such endpoint, the call failed, or what would be sent changed
    while it was under way: the answer is then about a request that nobody will send. ``current`` says whether the
    runtime is still the session's. Before anything was said, and of a session that is only looked at (nothing is stored
    then), only a server that counts by itself is asked: what the user has not sent yet is told to nobody else.
    """
    conversation = runtime.conversation
    view, off = conversation.view(), runtime.settings.context.exact_counting == "off"
    if off or not (runtime.info.counting or (view and not conversation.read_only)):
        return None
    usage = runtime.usage()
    call = next_call(runtime, usage, "count")
    step, beside = call.step, 0
    if not view or view[-1].message.role == "assistant":
        message, beside = stand_in(runtime.info.target)
        call.request.messages.append(message)
        call.decide()
    asked = _subject(runtime)
    tokens = await runtime.provider.count_exact(call.request)
    if tokens is None or tokens <= beside:
        return None
    tokens -= beside
    if not current() or _subject(runtime) != asked:
        log.info("An exact count of %s came too late: the conversation has changed", tokens)
        return None
    # What had no count yet when it was asked may have one by now.
    usage = runtime.usage() if usage.pending else usage
    before_step(step, usage)
    step.usage = TokenUsage(input=tokens, output=0)
    step.status, step.finished = "complete", time.time()
    after_step(step)
    runtime.settle(step)
    if conversation.read_only:
        conversation.steps.append(step)
    else:
        conversation.add_step(step)
    runtime.learn_growth(step)
    return tokens


def _subject(runtime: Runtime) -> tuple[object, ...]:
    """Returns what a count is about: the messages as sent, the fixed parts, the model, and how much was measured
    before."""
    measured = sum(s.status != "running" for s in runtime.conversation.steps)
    keys = tuple(sent.key for sent in runtime.conversation.view())
    return keys, measured, runtime.info.target, runtime.request_prefix.fingerprint, runtime.effort


def undecided(usage: ContextUsage) -> bool:
    """Returns whether the next request may be on either side of the limit."""
    return usage.limit is not None and usage.low <= usage.limit < usage.high


def worth_counting(runtime: Runtime, least: int = WORTH_TOKENS) -> bool:
    """Returns whether an exact count is called for: allowed, and enough of the next request is estimated."""
    if runtime.settings.context.exact_counting == "off":
        return False
    return runtime.usage().estimated_tokens >= least


EXACT_MARGIN = 16
"""Tokens left free beside an input that the provider itself has counted."""

ROUGH_WINDOW_SHARE, ROUGH_INPUT_SHARE = 0.01, 0.02
"""What is left free beside an input that is about so long: the larger of these shares of the window and of itself."""


def fitting_output(
    overflow: Overflow | None,
    asked: int | None,
    estimate: int,
    *,
    window: int | None,
    max_input: int | None = None,
    fits_well: bool = False,
) -> int | None:
    """The output tokens with which the same request fits; None when its input does not, or nothing says that it does.

    ``asked`` was refused; ``estimate`` is the input by our own numbers. ``window`` and ``max_input`` are what is known
    of the model, with what the refusal taught. ``fits_well``: by our numbers the input fits, so that half of the answer
    is tried where the refusal states no size.
    """
    if overflow is not None and overflow.max_output is not None:
        known = [overflow.max_output]
        if window:
            known.append(window - estimate - _rough_margin(window, estimate))
        return _less(min(known), asked, 1)
    stated = overflow.window if overflow is not None else None
    smallest = min((n for n in (window, stated) if n), default=0)
    if not smallest:
        return None
    least = min_output(smallest)
    size = _stated_input(overflow, estimate, asked)
    if size is None:
        complains = overflow is not None and overflow.max_input is not None
        return asked // 2 if asked and fits_well and not complains and asked >= 2 * least else None
    if max_input and size > max_input:
        return None
    exact = overflow is not None and overflow.exact and overflow.input is not None
    room = smallest - size - (EXACT_MARGIN if exact else _rough_margin(smallest, size))
    return _less(room, asked, least)


def _stated_input(overflow: Overflow | None, estimate: int, asked: int | None) -> int | None:
    """The input's size as the refusal has it; what is "at least" so long is as long as we think it is."""
    if overflow is None:
        return None
    if overflow.input is not None:
        return overflow.input if overflow.exact else max(overflow.input, estimate)
    if overflow.total is None:
        return None
    # It is not said whether the answer is in it: whichever is nearer to our own number.
    candidates = [overflow.total, overflow.total - (asked or 0)]
    return max(1, min(candidates, key=lambda size: abs(size - estimate)))


def _less(room: int, asked: int | None, least: int) -> int | None:
    return room if room >= least and (asked is None or room < asked) else None


def _rough_margin(window: int, size: int) -> int:
    return int(max(ROUGH_WINDOW_SHARE * window, ROUGH_INPUT_SHARE * size))


class RoutedProvider:
    """Sends requests for the demo model to ``demo`` and all others, ``with_key``, to ``remote``."""

    def __init__(self, demo: Provider, remote: Provider, with_key: Callable[[ModelSpec], Awaitable[ModelSpec]]) -> None:
        self._demo = demo
        self._remote = remote
        self._with_key = with_key

    def _for(self, spec: ModelSpec) -> Provider:
        return self._demo if spec.model == DEMO else self._remote

    async def _keyed(self, request: ModelRequest) -> ModelRequest:
        return replace(request, spec=await self._with_key(request.spec))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        async with aclosing(self._for(request.spec).stream(await self._keyed(request))) as items:
            async for item in items:
                yield item

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        return await self._for(spec).describe(await self._with_key(spec))

    async def count_exact(self, request: ModelRequest) -> int | None:
        return await self._for(request.spec).count_exact(await self._keyed(request))
