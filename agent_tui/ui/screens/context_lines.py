"""The lines of the context screen, in their order: the rows that are open, what was dropped, the compactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.cells import cell_len

from agent_tui.commands.context_texts import compaction_text, operations
from agent_tui.commands.edits import message_words
from agent_tui.context.accounting.usage import row_shares, window_shares
from agent_tui.context.cuts import parts_words
from agent_tui.context.row_pairs import Pair, identity, pairs
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.messages import attachments_of
from agent_tui.models.rows import FREE, MESSAGES, RESERVE, ROW_KINDS
from agent_tui.models.steps import CompactionRecord
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import tokens
from agent_tui.ui.screens.context_head import in_lines

if TYPE_CHECKING:
    from agent_tui.engine.edits import Dropped


class Order:
    """By which the rows of a level stand: the largest first, or as they came. ``held``: rows keep the places that they
    have, and those that came stand behind them."""

    def __init__(self) -> None:
        self.by_time = False
        self.held = False
        self._places: dict[str, dict[str, int]] = {}

    def arranged(self, level: str, depth: int, rows: list[Placed]) -> list[Placed]:
        """The rows of a level in their order, which is kept."""
        known = self._places.get(level, {}) if self.held else {}
        if self.by_time and depth > 1:
            arranged = rows
        else:
            arranged = sorted(rows, key=lambda row: (known.get(row.key, len(known)), -row.size))
        self._places[level] = {row.key: place for place, row in enumerate(arranged)}
        return arranged


class Placed(NamedTuple):
    """A row of a level with its name, and its share of the window; ``size`` is what it has now, or had."""

    key: str
    pair: Pair
    size: int
    share: int | None


Kind = Literal["row", "gone", "free", "reserve", "over", "note", "gap", "heading", "compaction", "dropped"]
COMPACTIONS, DROPPED = "compactions", "dropped"


@dataclass(slots=True)
class RowLine:
    """One visible line. ``tenths`` is its share of the window in tenths of a percent, rounded so that the shares of
    its siblings add up to their parent's. ``change`` are tokens more than at the moment it is compared with; None: it
    is compared with none. ``key`` names it across refreshes, ``kind_id`` the row whose colour it has. A ``note``
    belongs to the line above it. ``remeasured``: it is what it was, and only its size is known better."""

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
    remeasured: bool = False


def flatten(
    usage: ContextUsage, opened: set[str], before: ContextUsage | None = None, order: Order | None = None
) -> list[RowLine]:
    """The lines to show, in ``order`` (else in that of the request). Only opened rows are walked, so 10 000 closed
    messages cost nothing. With ``before`` each line has its change since, and what went since has a line; the changes
    add up as the tokens do."""
    shares = window_shares(usage)
    lines: list[RowLine] = []
    tops: Sequence[int | None] = [None] * len(usage.rows) if shares is None else shares.rows
    _Walk(lines, opened, order).level("", 0, "", usage.rows, None if before is None else before.rows, tops)
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


def _rest(
    kind: Literal["free", "reserve", "over"], label: str, tokens: int, tenths: int, before: int | None
) -> RowLine:
    change = None if before is None else tokens - before
    return RowLine(kind, kind, 0, label, tokens, tenths, kind_id=kind, change=change)


def _placed(
    start: str, now: Sequence[ContextRow], before: Sequence[ContextRow] | None, shares: Sequence[int | None]
) -> Iterator[Placed]:
    """The rows of one level, by names that they keep however others come and go."""
    met: dict[str, int] = {}
    left = iter(shares)
    for pair in (Pair(row, None) for row in now) if before is None else pairs(now, before):
        if (row := pair.now) is not None:
            key = start + identity(row)
            number = met[key] = met.get(key, 0) + 1
            yield Placed(key if number == 1 else f"{key}#{number}", pair, row.tokens, next(left))
        elif pair.before is not None:
            yield Placed(f"{start}gone/{identity(pair.before)}", pair, pair.tokens, None)


class _Walk:
    """Adds the lines of rows and of what is open below them; one line of each, for there may be tens of thousands."""

    def __init__(self, lines: list[RowLine], opened: set[str], order: Order | None) -> None:
        self._lines = lines
        self._opened = opened
        self._order = order

    def level(
        self,
        parent: str,
        depth: int,
        kind_id: str,
        now: Sequence[ContextRow],
        before: Sequence[ContextRow] | None,
        shares: Sequence[int | None],
    ) -> None:
        rows = list(_placed(f"{parent}/" if parent else "", now, before, shares))
        for key, pair, _, part in rows if self._order is None else self._order.arranged(parent, depth, rows):
            row, old = pair.now, pair.before
            change = None if before is None else pair.change
            if row is not None:
                known = None if before is None else old.children if old is not None else []
                same = bool(change) and old is not None and _same(row, old)
                self._row(row, key, depth, kind_id, part, change, known, same)
            elif old is not None and change:
                label = old.label if pair.count == 1 else f"{pair.count:,} removed"
                kind = kind_of(old, depth, kind_id)
                self._lines.append(RowLine(key, "gone", depth, label, 0, 0, kind_id=kind, change=change))

    def _row(
        self,
        row: ContextRow,
        key: str,
        depth: int,
        kind_id: str,
        share: int | None,
        change: int | None,
        before: Sequence[ContextRow] | None,
        remeasured: bool,
    ) -> None:
        children = row.children
        if not (row.tokens or children or row.deferred_tokens or row.message_id or change):
            return
        kind_id = kind_of(row, depth, kind_id)
        is_open = key in self._opened if children else None
        line = RowLine(key, "row", depth, row.label, row.tokens, share, row, is_open, None, kind_id, change, remeasured)
        self._lines.append(line)
        if is_open:
            shares = [None] * len(children) if share is None else row_shares(share, children)
            self.level(key, depth + 1, kind_id, children, before, shares)


def kind_of(row: ContextRow, depth: int, above: str) -> str:
    """The row whose colour a row at this depth has; ``above`` is that of the one that it belongs to."""
    if depth == 0:
        return row.id
    kind = ROW_KINDS.get(row.id) if depth == 1 and above == MESSAGES.id else None
    return above if kind is None else kind.drawn or kind.id


def _same(now: ContextRow, before: ContextRow) -> bool:
    """Returns whether the parts of a row that goes with every request are the very ones that they were."""
    if now.children or before.children:
        both = zip(now.children, before.children, strict=False)
        return len(now.children) == len(before.children) and all(_same(*pair) for pair in both)
    return now.message_id is None and now.fingerprint == before.fingerprint


def dropped_lines(dropped: Sequence[Dropped], opened: set[str]) -> list[RowLine]:
    """What the user dropped, and what waits for that, each with the tokens that it would bring back."""
    if not dropped:
        return []
    size = sum(each.tokens for each in dropped if not each.waiting)
    parts = sum(each.attachment is not None for each in dropped)
    name = f"Dropped: {parts_words(len(dropped) - parts, parts)}, {tokens(size, True)} not sent"
    lines = [RowLine("gap", "gap", 0, ""), RowLine(DROPPED, "heading", 0, name, open=DROPPED in opened)]
    for each in dropped if DROPPED in opened else ():
        message = each.message
        row = ContextRow(message.id, "", each.tokens, "estimated", each.tokens, message_id=message.id)
        row.attachment = number = each.attachment
        row.detail = "dropped when the cache is cold" if each.waiting else ""
        words = message_words(message) if number is None else one_line(attachments_of(message)[number - 1].name, 200)
        kind = {"user": "user", "tool": "tool_results"}.get(message.role if number is None else "", MESSAGES.id)
        lines.append(RowLine(f"{DROPPED}/{row.part_id}", "dropped", 1, words, each.tokens, row=row, kind_id=kind))
    return lines


def compaction_lines(records: Iterable[CompactionRecord], opened: set[str]) -> list[RowLine]:
    """The history of compactions, newest first, one line an operation."""
    newest = operations(records)
    if not newest:
        return []
    is_open = COMPACTIONS in opened
    heading = RowLine(COMPACTIONS, "heading", 0, f"Compactions ({len(newest)})", open=is_open)
    lines = (
        RowLine(f"{COMPACTIONS}/{r.operation_id}", "compaction", 1, "", record=r) for r in (newest if is_open else ())
    )
    return [RowLine("gap", "gap", 0, ""), heading, *lines]


INDENT = 4


def reason(line: RowLine) -> str:
    row = line.row
    if row is None:
        return ""
    parts = [part for part in (row.replay, row.detail) if part]
    if row.deferred_tokens:
        parts.append(f"{tokens(row.deferred_tokens, True)} deferred")
    return one_line(" · ".join(parts), 400) if parts else ""


def hint(line: RowLine, room: int) -> str:
    """Returns a hint of at most ``room`` cells: where a file is, what is the largest part."""
    row = line.row
    if row is None or room < 4:
        return ""
    text = one_line(row.path or "", 400)
    if row.path:
        text = text if cell_len(text) <= room else text.rpartition("/")[2]
    elif line.depth == 0 and not line.open and len(row.children) > 1:
        largest = max(row.children, key=lambda child: child.tokens)
        text = f"mostly {one_line(largest.label, 60)}" if 2 * largest.tokens >= row.tokens > 0 else ""
    return text if cell_len(text) <= room else ""


def note(line: RowLine, room: int) -> str:
    """Returns the note that there is room for; a message's reason in short where it does not fit: Enter shows it."""
    why = reason(line)
    if not why:
        return hint(line, room)
    if cell_len(why) <= room:
        return why
    short = why.partition(":")[0]
    return short if line.row is not None and line.row.message_id and cell_len(short) <= room else ""


def with_notes(lines: Iterable[RowLine], room: int, width: int, now: float) -> Iterator[RowLine]:
    """The lines of ``width`` cells, each reason that does not fit ``room`` cells at the end wrapped below its own."""
    for line in lines:
        row = line.row
        if row is not None:
            yield line
            if row.message_id or not (row.replay or row.detail or row.deferred_tokens):
                continue
            why = reason(line)
            if cell_len(why) > room:
                left = width - INDENT - 2 * line.depth
                yield from (RowLine(line.key, "note", line.depth, text) for text in in_lines(why, left))
        elif (record := line.record) is not None:
            indent = "  " * (line.depth + 1)
            first, *more = in_lines(
                " · ".join(filter(None, [compaction_text(record, now), line.label])), width - len(indent)
            )
            yield RowLine(line.key, line.kind, line.depth, first, record=record)
            yield from (RowLine(line.key, "note", line.depth + 1, text, record=record) for text in more)
        else:
            yield line
