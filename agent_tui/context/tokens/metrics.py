"""Metrics of the token counter: how often a stored estimate could be used, and how much was counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent_tui.text.numbers import percent, uptime

GOOD_HIT_RATE = 85.0
LOW_HIT_RATE = 70.0
MANY_RECALCULATIONS = 20
LARGE_MESSAGE = 5_000
"""Thresholds of the token-counting document: percent, percent, per session, tokens."""

ENOUGH = 100
"""Look-ups before which nothing is said of what they mean: the first messages of every session are unique."""


@dataclass(slots=True)
class TokenCounterMetrics:
    """Counts since the start or the last reset. Tokens are o200k_base counts, before any family's factor."""

    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    hits: int = 0
    misses: int = 0
    recalculations: int = 0
    total_tokens: int = 0
    largest_message: int = 0
    started: float = 0.0

    def __post_init__(self) -> None:
        self.started = self.clock()

    def hit(self, count: int = 1) -> None:
        """So many stored counts were used. Raises ValueError for a negative number."""
        if count < 0:
            raise ValueError(f"Invalid number of hits: {count}")
        self.hits += count

    def miss(self, tokens: int) -> None:
        """A message had to be counted; it has ``tokens``. Raises ValueError for a negative number."""
        if tokens < 0:
            raise ValueError(f"Invalid token count: {tokens}")
        self.misses += 1
        self.total_tokens += tokens
        self.largest_message = max(self.largest_message, tokens)

    def recalculation(self) -> None:
        """The whole conversation was gone through again: after a compaction, a rewind, a model change."""
        self.recalculations += 1

    def reset(self) -> None:
        self.hits = self.misses = self.recalculations = self.total_tokens = self.largest_message = 0
        self.started = self.clock()

    @property
    def hit_rate(self) -> float | None:
        """Percent of look-ups that were answered from what was stored; None before the first."""
        looked = self.hits + self.misses
        return 100 * self.hits / looked if looked else None

    @property
    def mean(self) -> float | None:
        """Tokens a message, on average; None before the first."""
        return self.total_tokens / self.misses if self.misses else None

    @property
    def uptime(self) -> float:
        """Seconds since the start or the last reset."""
        return self.clock() - self.started


def health_hints(metrics: TokenCounterMetrics) -> list[str]:
    """What the numbers mean, one line each; empty before enough was counted to say it."""
    rate = metrics.hit_rate
    if rate is None or metrics.hits + metrics.misses < ENOUGH:
        return []
    hints: list[str] = []
    if rate > GOOD_HIT_RATE:
        hints.append(f"Good: hit rate over {percent(GOOD_HIT_RATE, 0)}.")
    elif rate < LOW_HIT_RATE:
        hints.append(f"Needs attention: hit rate under {percent(LOW_HIT_RATE, 0)} (too many unique messages).")
    if metrics.recalculations > MANY_RECALCULATIONS:
        hints.append(f"Needs attention: over {MANY_RECALCULATIONS} recalculations (too much compaction).")
    if metrics.largest_message > LARGE_MESSAGE:
        hints.append(f"Needs attention: largest message over {LARGE_MESSAGE:,} tokens.")
    return hints


def format_metrics(metrics: TokenCounterMetrics) -> str:
    """The text of ``/context stats``."""
    rate, mean = metrics.hit_rate, metrics.mean
    lines = [
        "Token Counter Metrics:",
        f"  Cache Hit Rate: {'–' if rate is None else percent(rate, tight=True)}",
        f"  Cache Hits: {metrics.hits}",
        f"  Cache Misses: {metrics.misses}",
        f"  Recalculations: {metrics.recalculations}",
        f"  Total Tokens Counted: {metrics.total_tokens}",
        f"  Largest Message: {metrics.largest_message} tokens",
        f"  Avg Tokens/Message: {'–' if mean is None else round(mean)}",
        f"  Uptime: {uptime(metrics.uptime)}",
    ]
    return "\n".join([*lines, *(f"  {hint}" for hint in health_hints(metrics))])
