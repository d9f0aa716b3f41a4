"""Shares of the window, in tenths of a percent: those in one column add up to what their parent shows.

Everyone who shows a share (the screen, the plain text, the JSON) takes it from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.text.numbers import largest_remainder, tenths_of

WHOLE = 1_000


@dataclass(slots=True, frozen=True)
class Shares:
    """Tenths of a percent of the window. ``total + free + reserve - over = 1000``; ``rows``, in the order of the
    usage's, add up to ``total``, which is rounded as everywhere else; what is left goes to free and reserve."""

    total: int
    free: int
    reserve: int
    over: int
    rows: tuple[int, ...]


def window_shares(usage: ContextUsage) -> Shares | None:
    """The shares of all rows; None for an unknown window."""
    window, free, reserve, over = usage.window, usage.free, usage.reserve, usage.over
    if not window or free is None or reserve is None:
        return None
    total = tenths_of(usage.total, window)
    if over:
        free_part, reserve_part = 0, tenths_of(reserve, window)
    else:
        free_part, reserve_part = largest_remainder(WHOLE - total, [free, reserve])
    over_part = total + free_part + reserve_part - WHOLE
    return Shares(total, free_part, reserve_part, over_part, tuple(row_shares(total, usage.rows)))


def row_shares(parent: int, rows: Sequence[ContextRow]) -> list[int]:
    """``parent`` tenths split over its rows by their tokens."""
    return largest_remainder(parent, [row.tokens for row in rows])
