"""Sums over the steps of a session."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.models.context import SessionTotals
from agent_tui.models.steps import CompactionRecord, Step


def session_totals(steps: Sequence[Step], records: Sequence[CompactionRecord]) -> SessionTotals:
    """What the session used and cost so far; what no step reported stays None.

    An exact count uses no tokens: its number is the size of a request that was never sent. ``compactions`` are those in
    force; what was undone is not among them.
    """
    usages = [s.usage for s in steps if s.usage is not None and s.kind != "count"]
    return SessionTotals(
        input_tokens=_sum([u.input for u in usages]),
        output_tokens=_sum([u.output for u in usages]),
        reasoning_tokens=_sum([u.reasoning for u in usages if u.reasoning is not None]),
        cache_read_tokens=_sum([u.cache_read for u in usages if u.cache_read is not None]),
        cache_write_tokens=_sum([u.cache_write for u in usages if u.cache_write is not None]),
        cost_usd=sum(costs) if (costs := [s.cost_usd for s in steps if s.cost_usd is not None]) else None,
        compactions=len({r.operation_id for r in records if r.active}),
        steps=len(steps),
    )


def _sum(values: list[int]) -> int | None:
    return sum(values) if values else None
