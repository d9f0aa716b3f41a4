"""What the steps of a session read from the cache and paid anew, as the views show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import get_args

from agent_tui.models.cache import CacheEntry, CacheMiss, MissCause, MissSum
from agent_tui.models.money import NO_COST, Cost
from agent_tui.models.steps import Step


def cache_entries(steps: Sequence[Step]) -> list[CacheEntry]:
    """The calls of a session that asked for an answer, newest first; those of subagents among them."""
    return [_entry(step) for step in reversed(steps) if step.kind in ("turn", "subagent") and step.counted is not None]


def _entry(step: Step) -> CacheEntry:
    usage = step.counted
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
        step.kind == "subagent",
    )


def miss_sums(steps: Sequence[Step]) -> dict[MissCause, MissSum]:
    """The misses of a session by cause, subagents' included; causes without one are left out."""
    found: dict[MissCause, MissSum] = {}
    for cause in get_args(MissCause):
        misses = [step.miss for step in steps if step.miss is not None and step.miss.cause == cause]
        if misses:
            cost = sum((_cost(miss) for miss in misses), NO_COST)
            found[cause] = MissSum(len(misses), sum(miss.tokens for miss in misses), cost)
    return found


def _cost(miss: CacheMiss) -> Cost:
    return Cost(unpriced=1) if miss.cost_usd is None else Cost(miss.cost_usd)


def whole(sums: Iterable[MissSum]) -> MissSum:
    """All causes together."""
    parts = list(sums)
    cost = sum((one.cost for one in parts), NO_COST)
    return MissSum(sum(one.count for one in parts), sum(one.tokens for one in parts), cost)
