"""The model's calibration: measured against estimated growth over its newest steps, in all sessions."""

from __future__ import annotations

import logging

from agent_tui.context.accounting.reports import growth_ratio, verified_growth
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
    ratio = growth_ratio(store.measured.growths(calibration_key(info)))
    return 1.0 if ratio is None else ratio


def learned_ratio(store: Store, info: ModelInfo, step: Step, ratio: float) -> float:
    """Takes a finished step into the model's growth; the ratio with it, or ``ratio`` where it teaches nothing."""
    growth = verified_growth(step)
    if growth is None:
        return ratio
    try:
        store.measured.add_growth(calibration_key(info), step.id, *growth)
        return recalled_ratio(store, info)
    except StoreError as error:
        # The numbers stay right without it.
        log.warning("The calibration could not be stored: %s", error)
        return ratio
