"""After a refusal for its size: how long an answer the same request may ask for, so that it fits."""

from __future__ import annotations

from agent_tui.context.accounting.next_input import min_output
from agent_tui.models.failure import Overflow

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
    least: int = 1,
) -> int | None:
    """The output tokens with which the same request fits; None when its input does not, or nothing says that it does.

    ``asked`` was refused; ``estimate`` is the input by our own numbers. ``window`` and ``max_input`` are what is known
    of the model, with what the refusal taught. ``fits_well``: by our numbers the input fits, so that half of the answer
    is tried where the refusal states no size. Below ``least`` an answer is of no use to the caller.
    """
    if overflow is not None and overflow.max_output is not None:
        known = [overflow.max_output]
        if window:
            known.append(window - estimate - _rough_margin(window, estimate))
        return _less(min(known), asked, least)
    stated = overflow.window if overflow is not None else None
    smallest = min((n for n in (window, stated) if n), default=0)
    if not smallest:
        return None
    least = max(least, min_output(smallest))
    size = _stated_input(overflow, estimate, asked)
    if size is None:
        complains = overflow is not None and overflow.max_input is not None
        return None if complains or not fits_well or asked is None else _half(asked, least)
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


def _half(asked: int, least: int) -> int | None:
    return asked // 2 if asked >= 2 * least else None


def _less(room: int, asked: int | None, least: int) -> int | None:
    return room if room >= least and (asked is None or room < asked) else None


def _rough_margin(window: int, size: int) -> int:
    return int(max(ROUGH_WINDOW_SHARE * window, ROUGH_INPUT_SHARE * size))
