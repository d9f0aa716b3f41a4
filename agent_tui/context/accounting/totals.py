"""Sums over model calls: of a session, a run, a turn. Whoever prints what calls used or cost takes it from here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agent_tui.models.context import KindTotals, SessionTotals
from agent_tui.models.money import NO_COST, Cost
from agent_tui.models.steps import CompactionRecord, Step, StepKind
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
        copy._kinds = {name: replace(kind) for name, kind in self._kinds.items()}
        return copy

    def totals(self, records: Iterable[CompactionRecord] = ()) -> SessionTotals:
        """The sums as they stand; ``records`` are the session's compactions."""
        kinds = {name: kind.totals() for name, kind in self._kinds.items()}
        of = kinds.values()
        return SessionTotals(
            input_tokens=_sum(k.input_tokens for k in of),
            output_tokens=_sum(k.output_tokens for k in of),
            reasoning_tokens=_sum(k.reasoning_tokens for k in of),
            cache_read_tokens=_sum(k.cache_read_tokens for k in of),
            cache_write_tokens=_sum(k.cache_write_tokens for k in of),
            cost=sum((k.cost for k in of), NO_COST),
            compactions=len({r.operation_id for r in records if r.active}),
            steps=sum(k.calls for k in of),
            by_kind=kinds,
            held_usd=sum(kind.held for kind in self._kinds.values()),
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
    if spent.cache_read_tokens is not None and spent.input_tokens:
        parts.append(f"{whole_percent(spent.cache_read_tokens, spent.input_tokens)} cached")
    return " · ".join(parts)


@dataclass(slots=True)
class _Sum:
    """``KindTotals`` that grow."""

    calls: int = 0
    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    known: float = 0.0
    unpriced: int = 0
    held: float = 0.0

    def add(self, step: Step) -> None:
        cost, usage = step.cost, step.usage
        self.calls += 1
        self.known += cost.known
        self.unpriced += cost.unpriced
        self.held += step.held_usd
        if usage is None or step.kind == "count":
            return
        self.input = usage.input + (self.input or 0)
        self.output = usage.output + (self.output or 0)
        self.reasoning = _plus(self.reasoning, usage.reasoning)
        self.cache_read = _plus(self.cache_read, usage.cache_read)
        self.cache_write = _plus(self.cache_write, usage.cache_write)

    def totals(self) -> KindTotals:
        cost = Cost(self.known, self.unpriced)
        return KindTotals(self.calls, self.input, self.output, self.reasoning, self.cache_read, self.cache_write, cost)


def _plus(before: int | None, value: int | None) -> int | None:
    return before if value is None else value + (before or 0)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
