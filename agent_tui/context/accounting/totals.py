"""Sums over model calls: of a session, a run, a turn. Whoever prints what calls used or cost takes it from here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from agent_tui.models.context import KindTotals, SessionTotals
from agent_tui.models.money import NO_COST, Cost
from agent_tui.models.steps import CompactionRecord, Step, StepKind
from agent_tui.models.usage import COUNTS, TokenUsage
from agent_tui.text.numbers import money, whole_percent


class Sums:
    """Calls added up one after another, by kind."""

    def __init__(self) -> None:
        self._kinds: dict[StepKind, _Sum] = {}

    def add(self, step: Step) -> None:
        kind = self._kinds.get(step.kind)
        if kind is None:
            kind = self._kinds[step.kind] = _Sum()
        kind.add(step)

    def copy(self) -> Sums:
        copy = Sums()
        copy._kinds = {name: replace(kind, tokens=list(kind.tokens)) for name, kind in self._kinds.items()}
        return copy

    def totals(self, records: Iterable[CompactionRecord] = ()) -> SessionTotals:
        """The sums as they stand; ``records`` are the session's compactions."""
        kinds = {name: kind.totals() for name, kind in self._kinds.items()}
        of = kinds.values()
        return SessionTotals(
            usage=_usage_of(*self._kinds.values()),
            cost=sum((k.cost for k in of), NO_COST),
            compactions=len({r.operation_id for r in records if r.active}),
            steps=sum(k.calls for k in of),
            by_kind=kinds,
            held_usd=sum(kind.held for kind in self._kinds.values()),
            doubted=sum(k.doubted for k in of),
        )


def session_totals(steps: Sequence[Step], records: Sequence[CompactionRecord] = ()) -> SessionTotals:
    """What these calls used and cost; what none of them reported stays None."""
    sums = Sums()
    for step in steps:
        sums.add(step)
    return sums.totals(records)


def turn_figure(spent: SessionTotals) -> str | None:
    """What a turn cost and how much of its input was read from the cache: ``$0.012 · 84 % cached``; None where it cost
    nothing, or nobody knows."""
    if not spent.cost.known:
        return None
    parts = [money(spent.cost)]
    if spent.cached is not None:
        parts.append(f"{whole_percent(*spent.cached)} cached")
    return " · ".join(parts)


@dataclass(slots=True)
class _Sum:
    """``KindTotals`` that grow."""

    calls: int = 0
    tokens: list[int | None] = field(default_factory=lambda: [None] * len(COUNTS))
    reports: int = 0
    made_up: int = 0
    doubted: int = 0
    known: float = 0.0
    unpriced: int = 0
    held: float = 0.0

    def add(self, step: Step) -> None:
        cost, usage = step.cost, step.usage
        self.calls += 1
        self.known += cost.known
        self.unpriced += cost.unpriced
        self.held += step.held_usd
        self.doubted += step.believed is not None
        if usage is None or step.kind == "count":
            return
        self.reports += 1
        self.made_up += usage.source == "estimated"
        self.tokens = [
            before if value is None else value + (before or 0)
            for before, value in zip(self.tokens, _counts_of(usage), strict=True)
        ]

    def totals(self) -> KindTotals:
        return KindTotals(self.calls, _usage_of(self), Cost(self.known, self.unpriced), self.doubted)


_counts_of = attrgetter(*COUNTS)


def _usage_of(*sums: _Sum) -> TokenUsage | None:
    if not any(one.reports for one in sums):
        return None
    tokens: dict[str, Any] = {name: _sum(one.tokens[at] for one in sums) for at, name in enumerate(COUNTS)}
    return TokenUsage(**tokens, source="estimated" if any(one.made_up for one in sums) else "provider", context=False)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
