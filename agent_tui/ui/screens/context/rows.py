"""The rows of the context screen: a flat list of what is open, with percentages that add up at every level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agent_tui.commands.usage_words import cached_tokens
from agent_tui.context.accounting.shares import row_shares, window_shares
from agent_tui.context.past.changes import Pair, identity, pairs
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.rows import FREE, MESSAGES, RESERVE, ROW_KINDS
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Prices

Kind = Literal["row", "gone", "free", "reserve", "over", "note", "gap", "heading", "compaction"]
COMPACTIONS = "compactions"


@dataclass(slots=True, frozen=True)
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
    for key, pair, part in _level("", usage.rows, None if before is None else before.rows, tops):
        lines += _walk(pair, key, 0, part, opened, "", before is not None)
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


def _level(
    parent: str, now: Sequence[ContextRow], before: Sequence[ContextRow] | None, shares: Sequence[int | None]
) -> Iterator[tuple[str, Pair, int | None]]:
    """The rows of one level with the names they keep however others come and go, and their shares."""
    left, met = iter(shares), dict[str, int]()
    for pair in (Pair(row, None) for row in now) if before is None else pairs(now, before):
        if pair.now is None:
            yield f"{parent}/gone/{identity(pair.before) if pair.before is not None else ''}", pair, 0
            continue
        name = identity(pair.now)
        number = met[name] = met.get(name, 0) + 1
        key = f"{parent}/{name}" if parent else name
        yield key if number == 1 else f"{key}#{number}", pair, next(left)


def _walk(
    pair: Pair, key: str, depth: int, tenths: int | None, opened: set[str], kind_id: str, compared: bool
) -> Iterator[Shown]:
    row = pair.now
    change = pair.change if compared else None
    if row is None:
        if pair.before is not None and change:
            label = pair.before.label if pair.count == 1 else f"{pair.count:,} that went"
            yield Shown(key, "gone", depth, label, 0, 0, kind_id=kind_id or pair.before.id, change=change)
        return
    if not (row.tokens or row.children or row.deferred_tokens or row.message_id or change):
        return
    if depth == 0:
        kind_id = row.id
    elif kind_id == MESSAGES.id and depth == 1 and (kind := ROW_KINDS.get(row.id)) is not None:
        kind_id = kind.drawn or kind.id
    is_open = key in opened if row.children else None
    yield Shown(key, "row", depth, row.label, row.tokens, tenths, row, is_open, kind_id=kind_id, change=change)
    if not is_open:
        return
    shares = [None] * len(row.children) if tenths is None else row_shares(tenths, row.children)
    before = None if not compared else [] if pair.before is None else pair.before.children
    for name, child, share in _level(key, row.children, before, shares):
        yield from _walk(child, name, depth + 1, share, opened, kind_id, compared)


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
    """Dollars of sending a row once, as part of a request of ``total`` tokens, with what the last request read from the
    cache at the cache's price."""
    rates = prices.rates(total) if prices is not None else None
    if rates is None or rates.input is None:
        return None
    cached = cached_tokens(row) or 0
    read = rates.input if rates.cache_read is None else rates.cache_read
    return (row.tokens - cached) * rates.input + cached * read
