"""When to compact and how much output to ask for: the formulas, pure and in one place."""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.context.inputs import DEFAULT_RESERVE, CompactPolicy
from agent_tui.models.context import ContextUsage
from agent_tui.models.requests import ModelInfo
from agent_tui.models.usage import Limits

RESERVE_SHARE = 0.25
"""The reserve for the answer never takes more than this share of the window, so a small window stays usable."""

MIN_OUTPUT = 1_024
"""Output tokens a request must still have room for; below it the turn stops instead of being cut off."""


@dataclass(slots=True, frozen=True)
class Budget:
    """Window, limit and reserve in tokens; all None when the window is unknown. ``limit + reserve == window``."""

    window: int | None
    limit: int | None
    reserve: int | None


UNKNOWN_BUDGET = Budget(None, None, None)


def budget(limits: Limits, policy: CompactPolicy, compact_at: float | None = None) -> Budget:
    """The limit: ``min(window - min(max output or cap, cap, 25 % of window), max input, compact_at)``.

    ``compact_at`` is the model's own setting and wins over the policy's. An unknown or zero window has no limit.
    """
    window = limits.window
    if not window or window < 0:
        return UNKNOWN_BUDGET
    cap = max(0, policy.max_output_reserve)
    answer = min(limits.max_output or cap, cap, int(window * RESERVE_SHARE))
    limit = window - answer
    if limits.max_input:
        limit = min(limit, limits.max_input)
    at = policy.compact_at if compact_at is None else compact_at
    if at is not None and at > 0:
        limit = min(limit, int(window * at) if at <= 1.0 else int(min(at, window)))
    return Budget(window, limit, window - limit)


def reserve_problem(limits: Limits, policy: CompactPolicy) -> str | None:
    """One line when the configured reserve is refused because it would take over a quarter of the window."""
    window, reserve = limits.window, policy.max_output_reserve
    if not window or reserve == DEFAULT_RESERVE or reserve <= int(window * RESERVE_SHARE):
        return None
    return (
        f"max_output_reserve {reserve:,} is above 25 % of the window of {window:,}; "
        f"using {int(window * RESERVE_SHARE):,}."
    )


def output_room(window: int, next_input: int) -> int:
    """Tokens left for an answer: the window less the next input and a margin of 1 % of the window. May be negative."""
    return window - next_input - window // 100


def max_output_for(usage: ContextUsage, limits: Limits) -> int | None:
    """The output tokens to ask for: ``min(model max output, window - next input - 1 %)``, never below 0.

    None when neither the window nor the model's maximum is known. Below ``MIN_OUTPUT`` the request should not be made.
    """
    known = [limits.max_output] if limits.max_output else []
    if usage.window:
        known.append(output_room(usage.window, usage.total))
    return max(0, min(known)) if known else None


def compact_at_of(model: ModelInfo, policy: CompactPolicy) -> float | None:
    """The ``compact_at`` in force for a model."""
    return policy.compact_at if model.spec.compact_at is None else model.spec.compact_at
