"""The rows of the context screen: a flat list of what is open, with percentages that add up at every level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent_tui.context.accounting.usage import row_shares, window_shares
from agent_tui.context.past_reasons import identity, pairs
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.rows import FREE, MESSAGES, RESERVE, ROW_KINDS
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Prices

Kind = Literal["row", "gone", "free", "reserve", "over", "note", "gap", "heading", "compaction"]
COMPACTIONS = "compactions"


@dataclass(slots=True)
class Shown:
    """One visible line. ``tenths`` is its share of the window in tenths of a percent, rounded so that the shares of
    its siblings add up to their parent's. ``change`` are tokens more than at the moment it is compared with; None: it
    is compared with none. ``key`` names it across refreshes, ``kind_id`` the row whose colour it has. A ``note``
    belongs to the line above it."""

    key: str
    kind: Kind
    depth: int
    label: str
    tokens: int | None = None
    tenths: int | None = None
    row: ContextRow | None = None
    open: bool | None = None
    record: CompactionRecord | None = None
    kind_id: str = ""
    change: int | None = None


def flatten(usage: ContextUsage, opened: set[str], before: ContextUsage | None = None) -> list[Shown]:
    """The lines to show, in order. Only opened rows are walked, so 10 000 closed messages cost nothing.

    Rows without tokens, children or deferred tools are left out. With ``before`` each line has its change since, and
    what went since has a line; the changes add up as the tokens do.
    """
    shares = window_shares(usage)
    lines: list[Shown] = []
    tops: Sequence[int | None] = [None] * len(usage.rows) if shares is None else shares.rows
    _Walk(lines, opened).level("", 0, "", usage.rows, None if before is None else before.rows, tops)
    if shares is None:
        return lines
    last = None if before is None or before.window is None else before
    free = _rest("free", FREE.label, usage.free or 0, shares.free, None if last is None else last.free)
    reserve = _rest(
        "reserve", RESERVE.label, usage.reserve or 0, shares.reserve, None if last is None else last.reserve
    )
    above = None if last is None else -(last.over or 0)
    over = _rest("over", "Over the limit", -(usage.over or 0), -shares.over, above)
    if usage.over:
        return [*lines, *([free] if free.change else []), reserve, over]
    return [*lines, free, reserve, *([over] if over.change else [])]


def _rest(kind: Literal["free", "reserve", "over"], label: str, tokens: int, tenths: int, before: int | None) -> Shown:
    change = None if before is None else tokens - before
    return Shown(kind, kind, 0, label, tokens, tenths, kind_id=kind, change=change)


class _Walk:
    """Adds the lines of rows and of what is open below them. It makes no more than a line of each: there may be tens of
    thousands."""

    def __init__(self, lines: list[Shown], opened: set[str]) -> None:
        self._lines = lines
        self._opened = opened

    def level(
        self,
        parent: str,
        depth: int,
        kind_id: str,
        now: Sequence[ContextRow],
        before: Sequence[ContextRow] | None,
        shares: Sequence[int | None],
    ) -> None:
        """The rows of one level, by names that they keep however others come and go."""
        met: dict[str, int] = {}
        start = f"{parent}/" if parent else ""

        def key(row: ContextRow) -> str:
            name = start + identity(row)
            number = met[name] = met.get(name, 0) + 1
            return name if number == 1 else f"{name}#{number}"

        if before is None:
            for row, share in zip(now, shares, strict=True):
                self._row(row, key(row), depth, kind_id, share, None, None)
            return
        left = iter(shares)
        for pair in pairs(now, before):
            if pair.now is not None:
                children = [] if pair.before is None else pair.before.children
                self._row(pair.now, key(pair.now), depth, kind_id, next(left), pair.change, children)
            elif pair.before is not None and pair.change:
                label = pair.before.label if pair.count == 1 else f"{pair.count:,} that went"
                name = f"{start}gone/{identity(pair.before)}"
                own = kind_id or pair.before.id
                self._lines.append(Shown(name, "gone", depth, label, 0, 0, kind_id=own, change=pair.change))

    def _row(
        self,
        row: ContextRow,
        key: str,
        depth: int,
        kind_id: str,
        share: int | None,
        change: int | None,
        before: Sequence[ContextRow] | None,
    ) -> None:
        children = row.children
        if not (row.tokens or children or row.deferred_tokens or row.message_id or change):
            return
        if depth == 0:
            kind_id = row.id
        elif depth == 1 and kind_id == MESSAGES.id and (kind := ROW_KINDS.get(row.id)) is not None:
            kind_id = kind.drawn or kind.id
        is_open = key in self._opened if children else None
        self._lines.append(Shown(key, "row", depth, row.label, row.tokens, share, row, is_open, None, kind_id, change))
        if is_open:
            shares = [None] * len(children) if share is None else row_shares(share, children)
            self.level(key, depth + 1, kind_id, children, before, shares)


def compaction_lines(records: Iterable[CompactionRecord], opened: set[str]) -> list[Shown]:
    """The history of compactions, newest first, one line an operation."""
    operations: dict[str, CompactionRecord] = {}
    for record in records:
        known = operations.get(record.operation_id)
        if known is None or record.kind == "summary":
            operations[record.operation_id] = record
    if not operations:
        return []
    is_open = COMPACTIONS in opened
    lines = [
        Shown("gap", "gap", 0, ""),
        Shown(COMPACTIONS, "heading", 0, f"Compactions ({len(operations)})", open=is_open),
    ]
    if is_open:
        newest = sorted(operations.values(), key=lambda r: r.created, reverse=True)
        lines += [Shown(f"{COMPACTIONS}/{r.operation_id}", "compaction", 1, "", record=r) for r in newest]
    return lines


def row_cost(row: ContextRow, prices: Prices | None, total: int) -> float | None:
    """Dollars of a row in a request of ``total`` tokens of which nothing is in the cache. How much of a single row the
    next request will find there cannot be said; that of all of them is above the rows."""
    rates = prices.rates(total) if prices is not None else None
    return None if rates is None or rates.input is None else row.tokens * rates.input
