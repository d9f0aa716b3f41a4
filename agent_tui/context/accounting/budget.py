"""When to compact and how much output to ask for: the formulas, pure and in one place."""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.context.accounting.given.inputs import DEFAULT_RESERVE, CompactionSettings
from agent_tui.models.context import ContextUsage
from agent_tui.models.requests import ModelInfo
from agent_tui.models.usage import Limits

RESERVE_SHARE = 0.25
"""The reserve for the answer never takes more than this share of the window, so a small window stays usable."""

MIN_OUTPUT = 1_024
"""Output tokens a request must still have room for; below it the turn stops instead of being cut off. Windows under
16 384 need less, see ``min_output``."""

MIN_OUTPUT_SHARE = 16
"""A small window keeps one part in so many for the answer: 512 tokens of 8 192, 256 of 4 096."""

MARGIN_SHARE = 0.005
MARGIN_ERRORS = 3
MARGIN_ESTIMATED = 0.10
"""The margin between the calculated input and the window: half a percent of the window, three times the 95th
percentile of the model's recent errors, or a tenth of what is estimate, whichever is most."""

MARGIN_ERROR_CAP = 0.10
"""What past errors may add, as a share of the window: one absurd report must not take the room of the next answers."""


@dataclass(slots=True, frozen=True)
class Budget:
    """Window, limit and reserve in tokens; all None when the window is unknown. ``limit + reserve == window``."""

    window: int | None
    limit: int | None
    reserve: int | None


UNKNOWN_BUDGET = Budget(None, None, None)


def budget(limits: Limits, settings: CompactionSettings, compact_at: float | None = None) -> Budget:
    """The limit: ``min(window - min(max output or cap, cap, 25 % of window), max input, compact_at)``.

    ``compact_at`` is the model's own setting and wins over it. An unknown or zero window has no limit.
    """
    window = limits.window
    if not window or window < 0:
        return UNKNOWN_BUDGET
    cap = max(0, settings.max_output_reserve)
    answer = min(limits.max_output or cap, cap, int(window * RESERVE_SHARE))
    limit = window - answer
    if limits.max_input:
        limit = min(limit, limits.max_input)
    at = settings.compact_at if compact_at is None else compact_at
    if at is not None and at > 0:
        limit = min(limit, int(window * at) if at <= 1.0 else int(min(at, window)))
    return Budget(window, limit, window - limit)


def reserve_problem(limits: Limits, settings: CompactionSettings) -> str | None:
    """One line when the configured reserve is refused because it would take over a quarter of the window."""
    window, reserve = limits.window, settings.max_output_reserve
    if not window or reserve == DEFAULT_RESERVE or reserve <= int(window * RESERVE_SHARE):
        return None
    return (
        f"max_output_reserve {reserve:,} is above 25 % of the window of {window:,}; "
        f"using {int(window * RESERVE_SHARE):,}."
    )


def min_output(window: int) -> int:
    """Output tokens without which a request is not made: ``MIN_OUTPUT``, in small windows a sixteenth of the window."""
    return max(1, min(MIN_OUTPUT, window // MIN_OUTPUT_SHARE))


def send_margin(window: int, total: int, estimated: int, p95_error: int = 0) -> int:
    """Tokens to keep free beside the next input of ``total`` tokens, ``estimated`` of which are estimate.

    ``max(0.5 % of the window, 3 x p95 error, 10 % of estimated)``. It gives way, down to the half percent, where the
    least answer would not fit beside it: less output is asked for then, but what fits can be sent.
    """
    least = int(window * MARGIN_SHARE)
    errors = min(MARGIN_ERRORS * p95_error, int(window * MARGIN_ERROR_CAP))
    wanted = max(least, errors, int(estimated * MARGIN_ESTIMATED))
    return min(wanted, max(least, window - total - min_output(window)))


def room_for_answer(usage: ContextUsage) -> int | None:
    """Output tokens that fit beside the next input and its margin; may be negative. None for an unknown window."""
    if not usage.window:
        return None
    if usage.max_input and usage.total > usage.max_input:
        return usage.max_input - usage.total
    return usage.window - usage.total - max(usage.margin, int(usage.window * MARGIN_SHARE))


def fits_to_send(usage: ContextUsage) -> bool:
    """Whether the next request has room for the least answer; an unknown window is not held against it."""
    room = room_for_answer(usage)
    return room is None or room >= min_output(usage.window or 0)


def output_room(window: int, next_input: int) -> int:
    """The same for a request of which there is only an estimate, and no usage. May be negative."""
    return window - next_input - send_margin(window, next_input, next_input)


def max_output_for(usage: ContextUsage, limits: Limits) -> int | None:
    """The output tokens to ask for: ``min(model max output, room for the answer)``, never below 0.

    None when neither the window nor the model's maximum is known. Where the room is below ``min_output`` the request
    should not be made (``fits_to_send``).
    """
    known = [limits.max_output] if limits.max_output else []
    room = room_for_answer(usage)
    if room is not None:
        known.append(room)
    return max(0, min(known)) if known else None


def compact_at_of(model: ModelInfo, settings: CompactionSettings) -> float | None:
    """The ``compact_at`` in force for a model."""
    return settings.compact_at if model.spec.compact_at is None else model.spec.compact_at
