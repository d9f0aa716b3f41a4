"""Forecasts what the next request of a session will find in the provider's cache; asked for whenever nothing runs."""

from __future__ import annotations

import time
from operator import is_

from agent_tui.context.cache_forecast import ForecastBasis, forecast
from agent_tui.engine.calls import next_call
from agent_tui.engine.runtime import Runtime
from agent_tui.models.context import ContextUsage
from agent_tui.models.requests import Effort
from agent_tui.models.steps import CacheForecast, ColdRequest
from agent_tui.models.usage import TokenUsage


class CacheForecaster:
    """Keeps what was found, so that to ask again while nothing changes costs nothing."""

    def __init__(self) -> None:
        self._objects: tuple[object, ...] = ()
        self._values: tuple[object, ...] = ()
        self._basis: ForecastBasis | None = None
        self._said: CacheForecast | None = None

    def passed(self) -> bool:
        """Returns whether the last answer no longer holds for the mere reason that time has passed."""
        said = self._said
        if self._basis is None or said is None:
            return False
        now = forecast(self._basis, time.time())
        return (now.read, now.cold is None) != (said.read, said.cold is None)

    def forecast(self, runtime: Runtime, usage: ContextUsage) -> CacheForecast | None:
        """That of the next request if it is sent now; None where nothing is known of it. ``usage`` is the calculator's
        answer for it."""
        # While all of these are the same, only time makes it another.
        objects = runtime.conversation.view(), runtime.request_prefix, runtime.info, runtime.output_schema
        values = runtime.effort, newest_of(runtime), usage.total, usage.margin, runtime.schema_refused
        if values != self._values or not all(map(is_, objects, self._objects)):
            self._basis = _forecast_basis(runtime, usage)
            self._objects, self._values = objects, values
        self._said = None if self._basis is None else forecast(self._basis, time.time())
        return self._said


def cold_with(runtime: Runtime, usage: ContextUsage, effort: Effort) -> ColdRequest | None:
    """Returns what the next request would pay anew if the model were asked to think so much."""
    made = _forecast_basis(runtime, usage, effort)
    return forecast(made, time.time()).cold if made is not None else None


def newest_of(runtime: Runtime) -> str:
    """The newest step of a session, as it is now."""
    steps = runtime.conversation.steps
    return f"{len(steps)} {steps[-1].id} {steps[-1].status}" if steps else ""


def _forecast_basis(runtime: Runtime, usage: ContextUsage, effort: Effort | None = None) -> ForecastBasis | None:
    conversation = runtime.conversation
    if not conversation.steps or not usage.total:
        return None
    call = next_call(runtime, usage, effort=effort)
    call.step.usage = TokenUsage(usage.total, 0)
    return runtime.sent_log.forecast_basis(
        call.step, call.request, call.info, call.plan, call.thinking, conversation.steps, conversation.summaries
    )
