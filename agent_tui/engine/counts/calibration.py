"""The model's calibration: measured against estimated growth over its newest steps, in all sessions."""

from __future__ import annotations

import logging

from agent_tui.context.accounting.accuracy import growth_ratio, verified_growth
from agent_tui.engine.turns.runtime import Runtime
from agent_tui.errors import StoreError
from agent_tui.models.requests import ModelInfo
from agent_tui.models.steps import Step
from agent_tui.store.store import Store

log = logging.getLogger(__name__)


def calibration_key(info: ModelInfo) -> str:
    """Under which name a model's growth is kept: LiteLLM's name and the API, which decide how text becomes tokens."""
    return f"{info.spec.model} {info.target.api}"


def recalled_ratio(store: Store, info: ModelInfo) -> float:
    """The ratio of the model's newest verified steps, whatever session they were in; 1.0 before the first."""
    ratio = growth_ratio(store.growths(calibration_key(info)))
    return 1.0 if ratio is None else ratio


def learn(runtime: Runtime, step: Step) -> None:
    """Takes a finished step into the model's growth and lets the calculator use the new ratio."""
    growth = verified_growth(step)
    if growth is None or runtime.conversation.read_only:
        return
    store = runtime.conversation.store
    try:
        store.add_growth(calibration_key(runtime.info), step.id, *growth)
        runtime.ratio = recalled_ratio(store, runtime.info)
    except StoreError as error:
        # The numbers stay right without it.
        log.warning("The calibration could not be stored: %s", error)
