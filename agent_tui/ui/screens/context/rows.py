"""The rows of the context screen: a flat list of what is open, with percentages that add up at every level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from agent_tui.commands.usage_text import adds_up as adds_up
from agent_tui.context.accounting.shares import row_shares, window_shares
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.rows import FREE, RESERVE
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Prices
from agent_tui.text.numbers import largest_remainder, money, whole_percent

Kind = Literal["row", "free", "reserve", "over", "gap", "heading", "compaction"]


@dataclass(slots=True, frozen=True)
class Shown:
    """One visible line. ``tenths`` is its share of the window in tenths of a percent, rounded so that the shares of
    its siblings add up to their parent's. ``key`` names it across refreshes."""

    key: str
    kind: Kind
    depth: int
    label: str
    tokens: int | None = None
    tenths: int | None = None
    row: ContextRow | None = None
    open: bool | None = None
    record: CompactionRecord | None = None
    color: str = ""


def flatten(usage: ContextUsage, opened: set[str]) -> list[Shown]:
    """The lines to show, in order. Only opened rows are walked, so 10 000 closed messages cost nothing.

    Rows without tokens, children or deferred tools are left out.
    """
    shares = window_shares(usage)
    lines: list[Shown] = []
    for index, row in enumerate(usage.rows):
        if row.tokens or row.children or row.deferred_tokens:
            tenths = None if shares is None else shares.rows[index]
            lines += _walk(row, row.id, 0, tenths, opened, f"context-{row.id}")
    if shares is not None:
        reserve = Shown("reserve", "reserve", 0, RESERVE.label, usage.reserve, shares.reserve, color="context-reserve")
        if usage.over:
            lines += [reserve, Shown("over", "over", 0, "Over the limit", -usage.over, -shares.over, color="error")]
        else:
            lines += [Shown("free", "free", 0, FREE.label, usage.free, shares.free, color="context-free"), reserve]
    return lines


def _walk(row: ContextRow, key: str, depth: int, tenths: int | None, opened: set[str], color: str) -> Iterator[Shown]:
    is_open = key in opened if row.children else None
    yield Shown(key, "row", depth, row.label, row.tokens, tenths, row, is_open, color=color)
    if not is_open:
        return
    shares = [None] * len(row.children) if tenths is None else row_shares(tenths, row.children)
    for number, (child, share) in enumerate(zip(row.children, shares, strict=True)):
        if child.tokens or child.children or child.deferred_tokens or child.message_id:
            yield from _walk(child, f"{key}/{child.message_id or child.id}#{number}", depth + 1, share, opened, color)


def compaction_lines(records: Iterable[CompactionRecord], opened: set[str]) -> list[Shown]:
    """The history of compactions, newest first, one line an operation."""
    operations: dict[str, CompactionRecord] = {}
    for record in records:
        known = operations.get(record.operation_id)
        if known is None or record.kind == "summary":
            operations[record.operation_id] = record
    if not operations:
        return []
    is_open = "compactions" in opened
    lines = [
        Shown("gap", "gap", 0, ""),
        Shown("compactions", "heading", 0, f"Compactions ({len(operations)})", open=is_open),
    ]
    if is_open:
        newest = sorted(operations.values(), key=lambda r: r.created, reverse=True)
        lines += [Shown(f"compactions/{r.operation_id}", "compaction", 1, "", record=r) for r in newest]
    return lines


def cached_tokens(row: ContextRow) -> int | None:
    """How many of a row's tokens the provider read from its cache; None when that is not known."""
    if row.cached_tokens is not None:
        return row.cached_tokens
    if row.cached is not None:
        return row.tokens if row.cached else 0
    if not row.children:
        return None
    known = [cached_tokens(child) for child in row.children]
    return sum(k for k in known if k is not None) if any(k is not None for k in known) else None


def row_cost(row: ContextRow, prices: Prices | None) -> float | None:
    """Dollars of sending a row once, with what is cached at the cache's price."""
    if prices is None or prices.input is None:
        return None
    cached = cached_tokens(row) or 0
    read = prices.input if prices.cache_read is None else prices.cache_read
    return (row.tokens - cached) * prices.input + cached * read


def request_text(usage: ContextUsage, prices: Prices | None) -> str:
    """What the next request costs and how much of it is cached. Where the provider does not report what it writes to
    its cache, nobody knows what the next request will find there: the last one's share is named as that."""
    known = [cached_tokens(row) for row in usage.rows]
    last = sum(k for k in known if k is not None) if any(k is not None for k in known) else None
    read = usage.expected_read if usage.expected_read is not None else last
    parts = []
    if prices is not None and prices.input is not None:
        price = prices.input if prices.cache_read is None else prices.cache_read
        parts.append(f"next request {money((usage.total - (read or 0)) * prices.input + (read or 0) * price)}")
    if usage.total and read is not None:
        expected = usage.expected_read is not None
        whole = usage.total if expected else usage.calculation.last_input or usage.total
        parts.append(f"{'' if expected else 'last request '}{whole_percent(read, whole)} cached")
    return ", ".join(parts)


def bar_cells(usage: ContextUsage, width: int) -> list[tuple[str, int]]:
    """(row id, ``free``, ``limit`` or ``reserve``; cells) from left to right, ``width`` cells in all. What has tokens
    has a cell. The limit is one cell between free and reserve."""
    rows = [(r.id, r.tokens) for r in usage.rows if r.tokens > 0]
    if usage.window is not None and usage.free is not None and usage.reserve is not None:
        if usage.over:
            rows += [("limit", 0), ("reserve", max(0, usage.window - usage.total))]
        else:
            rows += [("free", usage.free), ("limit", 0), ("reserve", usage.reserve)]
    marks = sum(1 for name, _ in rows if name == "limit")
    room = max(0, width - marks)
    cells = largest_remainder(room, [tokens for _, tokens in rows])
    for i, (_, tokens) in enumerate(rows):
        if tokens > 0 and cells[i] == 0 and room > len(rows):
            largest = max(range(len(cells)), key=cells.__getitem__)
            cells[largest] -= 1
            cells[i] += 1
    return [(name, 1 if name == "limit" else n) for (name, _), n in zip(rows, cells, strict=True)]
