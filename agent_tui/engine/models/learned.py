"""What servers say of a model's limits by refusing a request: believed where it makes sense, kept, and forgotten."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import replace

from agent_tui.errors import StoreError
from agent_tui.models.failure import Overflow
from agent_tui.models.requests import ModelInfo
from agent_tui.models.steps import Step
from agent_tui.models.usage import LearnedLimit, Limits
from agent_tui.store.store import Store

log = logging.getLogger(__name__)

SMALLEST_WINDOW = 1_024
"""Tokens; no model that chats has less, so a smaller number is something else."""

SMALLEST_OUTPUT = 256
"""Tokens; the same of the longest answer."""

NEAR = 0.999
"""Servers name their own window a token or so off; what is this close to the known one is no news."""


def with_learned(store: Store, info: ModelInfo) -> ModelInfo:
    """The model with what its server said before. What is out of date, because the configuration or what is known of
    the window has changed since, is forgotten."""
    spec, limits = info.spec, info.limits
    try:
        row = store.learned.limit(spec.model, spec.api_base or "")
        if row is None:
            return info
        if _outdated(row, info):
            log.info("Forgotten what was learned of %s: it is configured differently now", spec.key)
            store.learned.forget_limit(row.model, row.server)
            return info
    except StoreError as error:
        log.warning("What was learned of %s cannot be read: %s", spec.key, error)
        return info
    return replace(info, limits=_applied(limits, row))


def learn(store: Store, info: ModelInfo, overflow: Overflow, steps: Iterable[Step] = ()) -> ModelInfo | None:
    """Takes the limits of a refusal over where they are smaller than what is known; the model with them, or None when
    there is nothing to learn. ``steps`` are the session's: a size that was accepted is no limit."""
    limits, spec, now = info.limits, info.spec, time.time()
    accepted = _accepted(info, steps)
    split = limits.max_input is not None
    window = overflow.window if overflow.window is not None or split else overflow.max_input
    found = LearnedLimit(
        spec.model,
        spec.api_base or "",
        _smaller(window, limits.window, max(SMALLEST_WINDOW, accepted + 1)),
        _smaller(overflow.max_input, limits.max_input, max(SMALLEST_WINDOW, accepted + 1)) if split else None,
        _smaller(overflow.max_output, limits.max_output, SMALLEST_OUTPUT),
        limits.window,
        spec.context_window,
        spec.max_output,
        now,
        overflow.text,
    )
    if found.window is None and found.max_input is None and found.max_output is None:
        return None
    try:
        before = store.learned.limit(found.model, found.server)
        if before is not None:
            found = replace(
                found,
                window=found.window or before.window,
                max_input=found.max_input or before.max_input,
                max_output=found.max_output or before.max_output,
                believed=before.believed,
            )
        store.learned.put_limit(found)
    except StoreError as error:
        # It holds for this session; the next refusal teaches it again.
        log.warning("What was learned of %s cannot be stored: %s", spec.key, error)
    log.info("Learned of %s: %s", spec.key, overflow.text)
    return replace(info, limits=_applied(limits, found))


def _outdated(row: LearnedLimit, info: ModelInfo) -> bool:
    spec, window = info.spec, info.limits.window
    if (row.configured_window, row.configured_output) != (spec.context_window, spec.max_output):
        return True
    # A server that cannot be asked just now says nothing new.
    return window is not None and window != row.believed


def _applied(limits: Limits, row: LearnedLimit) -> Limits:
    window, max_input = _least(limits.window, row.window), _least(limits.max_input, row.max_input)
    max_output = _least(_least(limits.max_output, row.max_output), window)
    if max_input is not None and window is not None and max_input >= window:
        max_input = None
    said = {"window": row.window, "max_input": row.max_input, "max_output": row.max_output}
    values = {"window": window, "max_input": max_input, "max_output": max_output}
    learned = tuple(name for name, value in said.items() if value is not None and values[name] == value)
    source = "learned" if "window" in learned or "max_input" in learned else limits.source
    return Limits(window, max_input, max_output, source, learned, row.learned_at if learned else None)


def _smaller(said: int | None, known: int | None, least: int) -> int | None:
    """A stated limit, where it can be true and is news."""
    if said is None or said < least or (known is not None and said >= known * NEAR):
        return None
    return said


def _accepted(info: ModelInfo, steps: Iterable[Step]) -> int:
    """The largest input of this model that was measured in the session: a window cannot be below it."""
    target = info.target
    return max(
        (
            s.counted.input
            for s in steps
            if s.counted is not None
            and s.counted.anchors
            and s.kind == "turn"
            and s.status == "complete"
            and (s.model, s.provider, s.api) == (target.model, target.provider, target.api)
        ),
        default=0,
    )


def _least(one: int | None, other: int | None) -> int | None:
    return min((n for n in (one, other) if n is not None), default=None)
