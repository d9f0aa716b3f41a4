"""What the steps of a session read from the cache and paid anew, as the views show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from agent_tui.models.cache import CacheEntry, MissCause, MissSum
from agent_tui.models.steps import Step


def cache_entries(steps: Sequence[Step]) -> list[CacheEntry]:
    """The calls of a session that asked for an answer, newest first; those of subagents among them."""
    return [_entry(step) for step in reversed(steps) if step.kind in ("turn", "subagent") and step.usage is not None]


def _entry(step: Step) -> CacheEntry:
    usage = step.usage
    told = usage.told if usage is not None and usage.told else {}
    return CacheEntry(
        step.id,
        step.created,
        step.model_key,
        usage.input if usage is not None else None,
        usage.cache_read if usage is not None else None,
        usage.cache_write if usage is not None else None,
        step.expected_read,
        step.miss,
        step.cache_life,
        tuple(told.items()),
    )


def miss_sums(steps: Sequence[Step]) -> list[MissSum]:
    """The misses of a session by cause, subagents' included; causes without one are left out."""
    found: list[MissSum] = []
    for cause in get_args(MissCause):
        misses = [step.miss for step in steps if step.miss is not None and step.miss.cause == cause]
        if misses:
            costs = [miss.cost_usd for miss in misses if miss.cost_usd is not None]
            tokens = sum(miss.tokens for miss in misses)
            found.append(MissSum(cause, len(misses), tokens, sum(costs), len(misses) - len(costs)))
    return found


def whole(sums: Sequence[MissSum]) -> tuple[int, int, float, int]:
    """Count, tokens, known dollars and calls without a price of all causes together."""
    return (
        sum(s.count for s in sums),
        sum(s.tokens for s in sums),
        sum(s.known_usd for s in sums),
        sum(s.unpriced for s in sums),
    )
