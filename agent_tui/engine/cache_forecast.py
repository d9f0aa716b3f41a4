"""Forecasts what the next request of a session will find in the provider's cache; asked for whenever nothing runs."""

from __future__ import annotations

import time
from operator import is_

from agent_tui.context.accounting.next_input import max_output_for, room_for_answer
from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.cache_forecast import ForecastBasis, forecast
from agent_tui.context.tokens import estimate_message, family_of
from agent_tui.engine.calls import next_call
from agent_tui.engine.model_call import PlannedCall, new_step
from agent_tui.engine.runtime import Runtime
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import user_message
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import CacheForecast
from agent_tui.models.usage import TokenUsage

WARM_SHARE = 0.5
"""Of a conversation, from which on a question is put within it: what is read costs about a tenth."""


class CacheForecaster:
    """Keeps what was found, so that to ask again while nothing changes costs nothing."""

    def __init__(self) -> None:
        self._objects: tuple[object, ...] = (None, None, None)
        self._refused = False
        self._basis: ForecastBasis | None = None
        self._said: CacheForecast | None = None

    def passed(self) -> bool:
        """Returns whether the last answer no longer holds for the mere reason that time has passed."""
        said = self._said
        if self._basis is None or said is None:
            return False
        found = forecast(self._basis, time.time())
        return (found.read, found.cold is None) != (said.read, said.cold is None)

    def forecast(self, runtime: Runtime, usage: ContextUsage) -> CacheForecast | None:
        """That of the next request if it is sent now; None where nothing is known of it. ``usage`` is the calculator's
        answer for it."""
        # While all of these are the same, only time makes it another.
        objects = runtime.inputs(), runtime.request_prefix, runtime.output_schema
        if runtime.schema_refused is not self._refused or not all(map(is_, objects, self._objects)):
            self._basis = _forecast_basis(runtime, usage)
            self._objects, self._refused = objects, runtime.schema_refused
        self._said = None if self._basis is None else forecast(self._basis, time.time())
        return self._said


def warm_call(runtime: Runtime, question: str, answer: int) -> PlannedCall | None:
    """Returns a question put as the next message of the conversation, so that all before it is read from the provider's
    cache, which keeps that for longer by it; for an answer of about ``answer`` tokens. The request is the next one of
    the conversation with the same tools, thinking and cache markers, and nothing says in it that no tool may be called:
    what is sent of that stands before the messages, which would be read anew (so it is with Anthropic's
    ``tool_choice``). None where less than ``WARM_SHARE`` of it is expected to be in the cache, where it does not fit
    the window, or where answers are held to a schema."""
    conversation, info, usage = runtime.conversation, runtime.info, runtime.usage()
    message = user_message(question)
    length = estimate_message(message, family_of(info.target)).tokens
    room, most = room_for_answer(usage), max_output_for(usage, info.limits)
    if room is not None and most is not None:
        most = min(most, room - 2 * length)  # The question is an estimate: what is asked for has to fit in any case.
    too_long = bool(usage.max_input) and usage.high + length > (usage.max_input or 0)
    if not conversation.steps or runtime.output_schema is not None or too_long or (most is not None and most < answer):
        return None
    call = next_call(runtime, usage, "compaction", max_output=most)
    call.request.messages.append(SentMessage(message, message.id))
    call.decide()
    known = _basis_of(runtime, call, usage.total + length)
    found = None if known is None else forecast(known, time.time())
    if found is None or found.read < WARM_SHARE * usage.total:
        return None
    hour, high = info.spec.cache_ttl == "1h", usage.high + length
    expected = priced_call(info.prices, usage.total + length, found.read, answer, hour, high)
    # Nothing is built on its step: that says only what the cache may hold.
    step = new_step("compaction", info)
    step.fixed = call.step.fixed
    return PlannedCall(call.request, step, info, expected, call.most, runtime)


def _forecast_basis(runtime: Runtime, usage: ContextUsage) -> ForecastBasis | None:
    conversation = runtime.conversation
    if not conversation.steps or not usage.total:
        return None
    return _basis_of(runtime, next_call(runtime, usage), usage.total)


def _basis_of(runtime: Runtime, call: PlannedCall, total: int) -> ForecastBasis | None:
    """That of a call of so many tokens."""
    steps, summaries, lists = runtime.conversation.steps, runtime.conversation.summaries, runtime.calculator.lists
    call.step.usage = TokenUsage(total, 0)
    return runtime.sent_log.forecast_basis(
        call.step, call.request, call.info, call.plan, call.thinking, steps, summaries, lists
    )
