"""The context step by step: what each request was made of, what of it was read from the cache, where it was compacted,
and how it goes on until the next compaction."""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from agent_tui.context.cuts import parts_of
from agent_tui.models.context import ContextUsage
from agent_tui.models.rows import MESSAGES, STACKED
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.records import dataclass
from agent_tui.text.numbers import plural, tokens

Stack = tuple[tuple[str, int], ...]
"""Tokens by the row that draws them, from the bottom of a column; they add up to its total."""


@dataclass(slots=True, frozen=True)
class Folded:
    """A compaction, or what the user dropped, folded or restored. ``step`` is the number of the first step after it,
    one more than there are where none came yet; sizes are None where they were not stored."""

    operation: str
    step: int
    before: int | None
    after: int | None
    """Always an estimate; ``before`` where ``rough`` says so."""
    rough: bool = True
    undone: bool = False
    what: str = "compacted"


@dataclass(slots=True, frozen=True)
class Column:
    """Steps ``first`` to ``last`` as one column: the numbers are those of the step ``number``, the one of them with
    the most tokens; read and cost are of all of them. ``total`` is what was expected of that step when it was sent,
    which is what the time machine shows at it; None where nothing was expected of it."""

    first: int
    last: int
    number: int
    total: int | None
    stack: Stack = ()
    read: float | None = None
    """The share of the input that was read from the provider's cache; None where nobody said."""
    cost: float | None = None
    """Dollars, as far as they are known."""
    left: bool = False
    """The conversation does not go on from that step: a rewind left it behind."""
    folds: tuple[Folded, ...] = ()
    """The compactions between the column before it and its end."""


PRICED = 50
NOW = 0
"""The number of the next request's column."""

Sums = tuple[int, int, float, int]
"""Of the steps that told: tokens of input, those of them that were read from the cache, dollars, and how many said
what they cost."""


class Timeline:
    """The columns of one session, whose steps and compactions these are."""

    def __init__(self, steps: Sequence[Step], records: Sequence[CompactionRecord]) -> None:
        self._steps = steps
        self._records = records
        self._exact: dict[int, Stack] = {}

    @property
    def count(self) -> int:
        """The number of steps: the model calls of the turns."""
        return len(self._turns())

    @property
    def peak(self) -> int:
        """Tokens of the highest column."""
        return max(self._totals(self._turns()), default=0)

    @property
    def priced(self) -> bool:
        """True where it is known of the newest steps what they cost, and it is something."""
        return any(step.cost_usd for step in self._turns()[-PRICED:])

    def _turns(self) -> list[Step]:
        return [step for step in self._steps if step.kind == "turn"]

    def _totals(self, turns: Sequence[Step]) -> list[int]:
        totals = [step.estimated_input or 0 for step in turns]
        for number, stack in self._exact.items():
            totals[number - 1] = sum(size for _, size in stack)
        return totals

    def made_again(self, number: int, usage: ContextUsage) -> None:
        """What the time machine shows at a step: its column has these numbers from now on, should they differ from what
        was stored with it."""
        self._exact[number] = stack_of(usage.stack())

    def columns(self, most: int, path: Container[str]) -> list[Column]:
        """At most ``most`` columns (at least one) of all the steps; ``path`` are the ids of the messages of the
        conversation as it is now."""
        turns = self._turns()
        count = len(turns)
        if not count:
            return []
        totals, sums = self._totals(turns), _added(turns)
        most = max(1, min(most, count))
        bounds = [place * count // most for place in range(most + 1)]
        folds = self.folds()
        found: list[Column] = []
        at = 0
        for start, end in itertools.pairwise(bounds):
            here = at
            while at < len(folds) and folds[at].step <= end:
                at += 1
            # Of those that are as high as each other the newest.
            place = max(range(start, end), key=lambda each: (totals[each], each))
            sent, read, cost, priced = map(operator.sub, sums[end], sums[start])
            step, stack = turns[place], self._exact.get(place + 1) or stack_of(turns[place].estimated_rows or {})
            column = Column(
                start + 1,
                end,
                place + 1,
                sum(size for _, size in stack) if stack else step.estimated_input,
                stack,
                min(1.0, read / sent) if sent else None,
                (step.cost_usd if end == start + 1 else cost) if priced else None,
                _left(step, path),
                tuple(folds[here:at]),
            )
            found.append(column)
        return found

    def folds(self) -> list[Folded]:
        """The compactions in the order of time. One that was undone is among them where something was sent with it."""
        turns = self._turns()
        by_operation: dict[str, list[CompactionRecord]] = {}
        for record in sorted(self._records, key=lambda each: each.created):
            if record.created and _was_in_force(record, turns):
                by_operation.setdefault(record.operation_id, []).append(record)
        _take_opposites(by_operation, turns)
        found: list[tuple[float, Folded]] = []
        for operation, records in by_operation.items():
            before = next((r.before_tokens for r in records if r.before_tokens is not None), None)
            after = next((r.after_tokens for r in reversed(records) if r.after_tokens is not None), None)
            created = records[0].created
            step = _steps_before(created, turns) + 1
            undone = not any(record.active for record in records)
            rough = records[0].before_estimated
            found.append((created, Folded(operation, step, before, after, rough, undone, _done(records))))
        return [fold for _, fold in sorted(found, key=lambda pair: pair[0])]

    def now(self, usage: ContextUsage, in_flight: int = 0) -> Column:
        """The column of the next request; ``in_flight`` tokens of an answer are on their way."""
        sizes, count = usage.stack(), self.count
        if in_flight:
            sizes[MESSAGES.id] = sizes.get(MESSAGES.id, 0) + in_flight
        forecast = usage.forecast
        read = usage.expected_read if forecast is None else forecast.read
        return Column(
            count + 1,
            count + 1,
            NOW,
            usage.total + in_flight,
            stack_of(sizes),
            read / usage.total if read is not None and usage.total else None,
            None if forecast is None else forecast.usd,
            folds=tuple(fold for fold in self.folds() if fold.step > count),
        )


def _steps_before(moment: float, turns: Sequence[Step]) -> int:
    return bisect.bisect_left(turns, moment, key=lambda step: step.created)


def _was_in_force(record: CompactionRecord, turns: Sequence[Step]) -> bool:
    """Returns whether a record is in force, or a step was made while it was."""
    moments = [record.created, *record.switched]
    steps = [_steps_before(moment, turns) for moment in moments]
    return len(moments) % 2 == 1 or any(end > start for start, end in zip(steps[::2], steps[1::2], strict=True))


def _take_opposites(by_operation: dict[str, list[CompactionRecord]], turns: Sequence[Step]) -> None:
    """Leaves out what the user dropped and restored again, or restored and dropped again, with no step between."""
    waiting: dict[tuple[int, str], dict[str, set[str]]] = {}
    for operation, records in list(by_operation.items()):
        kinds = {record.kind for record in records}
        if not (kinds == {"drop"} or kinds == {"restore"}):
            continue
        step, (kind,) = _steps_before(records[0].created, turns), kinds
        parts = {part for record in records for part in parts_of(record)}
        others = waiting.get((step, "restore" if kind == "drop" else "drop"), {})
        if parts and parts <= set().union(*others.values()):
            del by_operation[operation]
            for other, left in list(others.items()):
                left -= parts
                if not left:
                    del others[other], by_operation[other]
        else:
            waiting.setdefault((step, kind), {})[operation] = parts


def _done(records: Sequence[CompactionRecord]) -> str:
    """What one operation did, in a word."""
    kinds, edit = {record.kind for record in records}, records[0].reason == "edit"
    done = "restored" if kinds == {"restore"} else "dropped" if kinds & {"drop"} else "folded" if edit else "compacted"
    if records[0].by != "agent":
        return done
    return f"{'let go' if edit and kinds == {'prune'} else done} by the agent"


def stack_of(sizes: Mapping[str, int]) -> Stack:
    """Sizes by row in the order in which a column is drawn; those of rows that this version does not know are the
    messages'."""
    known = {name: sizes[name] for name in STACKED if sizes.get(name, 0) > 0}
    if others := sum(size for name, size in sizes.items() if name not in STACKED and size > 0):
        known[MESSAGES.id] = known.get(MESSAGES.id, 0) + others
    return tuple((name, known[name]) for name in STACKED if name in known)


def _added(steps: Iterable[Step]) -> list[Sums]:
    """What was read and paid until each of the steps, and behind the last of them."""
    sent, read, cost, priced = 0, 0, 0.0, 0
    found: list[Sums] = [(sent, read, cost, priced)]
    for step in steps:
        usage = step.believed or step.usage
        if usage is not None and usage.cache_read is not None and usage.input:
            sent += usage.input
            read += usage.cache_read
        if step.cost_usd is not None:
            cost += step.cost_usd
            priced += 1
        found.append((sent, read, cost, priced))
    return found


def _left(step: Step, path: Container[str]) -> bool:
    if step.message_id is not None:
        return step.message_id not in path
    head = None if step.given is None else step.given.head
    return head is not None and head not in path


def projected(usage: ContextUsage, in_flight: int = 0) -> list[int]:
    """The next input after each turn until the next compaction, at the growth that ``turns_left`` is made of: so many
    of them."""
    if usage.growth is None or usage.turns_left is None or usage.held:
        return []
    return [round(usage.total + in_flight + turn * usage.growth) for turn in range(1, usage.turns_left + 1)]


def in_words(timeline: Timeline, now: int, path: Container[str]) -> str:
    """``The context rose from 2.1k to 13.7k over 12 steps, compacted once, and is 5.1k now.`` Branches that were left
    are not told of. Empty where nothing was sent."""
    columns = timeline.columns(timeline.count, path)
    totals = [column.total for column in columns if column.total is not None and not column.left]
    if not totals:
        return ""
    peak = max(*totals, now)
    held = sum(fold.what.startswith("compacted") and not fold.undone for fold in timeline.folds())
    times = {0: "", 1: ", compacted once", 2: ", compacted twice"}.get(held, f", compacted {held:,} times")
    over = f"over {plural(len(totals), 'step')}{times}"
    start, top, end = (tokens(size, False) for size in (totals[0], peak, now))
    if top == start:
        how = f"stayed at {start}" if end == start else f"fell from {start} to {end}"
        return f"The context {how} {over}."
    return f"The context rose from {start} to {top} {over}{'' if end == top else f', and is {end} now'}."


def timeline_json(timeline: Timeline, usage: ContextUsage, path: Container[str]) -> dict[str, Any]:
    """Every step by itself, the compactions, and how it is expected to go on."""
    columns, folds = timeline.columns(timeline.count, path), timeline.folds()
    return {
        "text": in_words(timeline, usage.total, path) or None,
        "steps": [
            {
                "step": column.number,
                "total": column.total,
                "rows": dict(column.stack),
                "cache_read_share": None if column.read is None else round(column.read, 4),
                "cost_usd": column.cost,
                "left": column.left,
            }
            for column in columns
        ],
        "compactions": [
            {
                "operation": fold.operation,
                "what": fold.what,
                "before_step": fold.step,
                "before_tokens": fold.before,
                "after_tokens": fold.after,
                "undone": fold.undone,
            }
            for fold in folds
        ],
        "growth_per_turn": usage.growth,
        "projected": projected(usage),
    }
