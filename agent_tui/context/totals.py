"""Sums over all steps of a session, of every kind."""

from __future__ import annotations

from collections.abc import Sequence

from agent_tui.models.context import SessionTotals
from agent_tui.models.steps import CompactionRecord, Step


def session_totals(steps: Sequence[Step], records: Sequence[CompactionRecord]) -> SessionTotals:
    """What the session used and cost so far; what no step reported stays None."""
    usages = [s.usage for s in steps if s.usage is not None]
    return SessionTotals(
        input_tokens=_sum([u.input for u in usages]),
        output_tokens=_sum([u.output for u in usages]),
        reasoning_tokens=_sum([u.reasoning for u in usages if u.reasoning is not None]),
        cache_read_tokens=_sum([u.cache_read for u in usages if u.cache_read is not None]),
        cache_write_tokens=_sum([u.cache_write for u in usages if u.cache_write is not None]),
        cost_usd=sum(costs) if (costs := [s.cost_usd for s in steps if s.cost_usd is not None]) else None,
        compactions=len({r.operation_id for r in records}),
        steps=len(steps),
    )


def _sum(values: list[int]) -> int | None:
    return sum(values) if values else None
