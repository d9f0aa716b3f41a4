"""Percentages for display: those in one column add up to what their parent shows."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.context.tokens.estimate import largest_remainder
from agent_tui.models.context import ContextUsage

TENTHS = 1_000


def split_percent(parent: float, tokens: Sequence[int]) -> list[float]:
    """``parent`` percent split by ``tokens``, to one decimal; the parts sum to it as shown."""
    return [t / 10 for t in largest_remainder(round(parent * 10), [float(t) for t in tokens])]


def column(usage: ContextUsage) -> dict[str, float] | None:
    """Percent of the window for ``total``, ``free``, ``reserve``, ``over`` and each row's id, to one decimal.

    ``total + free + reserve - over = 100`` and the rows sum to ``total``, as shown. None for an unknown window.
    """
    window, free, reserve, over = usage.window, usage.free, usage.reserve, usage.over
    if not window or free is None or reserve is None or over is None:
        return None
    if over == 0:
        total_part, free_part, reserve_part = largest_remainder(
            TENTHS, [float(usage.total), float(free), float(reserve)]
        )
        over_part = 0
    else:
        total_part, reserve_part, free_part = round(TENTHS * usage.total / window), round(TENTHS * reserve / window), 0
        over_part = total_part + reserve_part - TENTHS
    shown = {"total": total_part / 10, "free": free_part / 10, "reserve": reserve_part / 10, "over": over_part / 10}
    shares = split_percent(total_part / 10, [r.tokens for r in usage.rows])
    return {**shown, **{row.id: share for row, share in zip(usage.rows, shares, strict=True)}}
