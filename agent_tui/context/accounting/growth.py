"""How many turns are left before the limit, from how much recent turns added."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import Step

TURNS = 10
MIN_TURNS = 3


def turns_left(
    view: Sequence[SentMessage], chain: Sequence[Step], total: int, limit: int | None, prune_ids: Sequence[str] = ()
) -> int | None:
    """``floor((limit - total) / median growth of the last 10 turns)``; None under 3 turns, without growth or limit.

    Only turns since the last compaction count. ``chain`` are the measured steps of the conversation as it is sent now,
    so turns before a summary are not in it; those sent with other prune records than ``prune_ids`` end the stretch.
    """
    if limit is None:
        return None
    sizes = _turn_sizes(view, chain, TURNS, set(prune_ids))
    if len(sizes) < MIN_TURNS:
        return None
    sizes.append(total)
    growth = statistics.median(b - a for a, b in itertools.pairwise(sizes))
    return max(0, int((limit - total) // growth)) if growth > 0 else None


def _turn_sizes(view: Sequence[SentMessage], chain: Sequence[Step], count: int, prune_ids: set[str]) -> list[int]:
    """Inputs of the first measured step of each of the newest turns, oldest first."""
    sizes: list[int] = []
    for number in range(len(chain) - 1, -1, -1):
        step = chain[number]
        if set(step.prune_ids) != prune_ids:
            break
        start = 0
        if number:
            before = chain[number - 1]
            start = before.sent_count + (1 if before.kind == "turn" else 0)
        opens = any(view[i].message.role == "user" for i in range(start, step.sent_count))
        if opens and step.counted is not None:
            sizes.append(step.counted.input)
            if len(sizes) == count:
                break
    return sizes[::-1]
