"""The model's calibration: how measured growth compares with estimated growth over its newest steps, persisted."""

from __future__ import annotations

from agent_tui.context.accuracy import growth_ratio
from agent_tui.engine.runtime import Runtime

NEWEST_STEPS = 50


def learn(runtime: Runtime) -> None:
    """Takes the session's verified steps into the model's ratio, stores it, and lets the calculator use it."""
    steps = [s for s in runtime.conversation.steps if s.model_key == runtime.info.spec.key]
    ratio = growth_ratio(steps[-NEWEST_STEPS:])
    if ratio is not None and ratio != runtime.ratio:
        runtime.ratio = ratio
        if not runtime.conversation.read_only:
            runtime.conversation.store.set_ratio(runtime.info.spec.model, ratio)
