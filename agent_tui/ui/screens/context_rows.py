"""The columns of the breakdown: what stands in them, and which there is room for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.message import Message

from agent_tui.commands.context_texts import came_back_text, compaction_text, operations
from agent_tui.commands.report import ContextReport, cached_tokens, estimated, total_mark
from agent_tui.context.accounting.usage import row_shares, window_shares
from agent_tui.context.compaction.regret import Regret
from agent_tui.context.past_reasons import Pair, identity, pairs
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.rows import FREE, MESSAGES, RESERVE, ROW_KINDS
from agent_tui.models.steps import CompactionRecord
from agent_tui.models.usage import Prices
from agent_tui.records import dataclass
from agent_tui.text.cells import fit
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import grouped, money, share, tokens, whole_percent
from agent_tui.ui.screens.context_head import wrapped
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.rows import RowList

TOKENS, CHANGE, SHARE, KNOWN, CACHED, COST = 10, 10, 8, 3, 13, 12
LEAST_LABEL, LABEL, WIDE_LABEL = 10, 28, 40
LEAST_BAR, BAR = 6, 24
"""Cells of the bars, beside labels of at least ``BESIDE`` cells."""
BESIDE = 20


@dataclass(slots=True, frozen=True)
class Columns:
    """Cells for each column; 0: it is left out. ``note`` is what is left for words at the end of a line."""

    label: int
    known: int
    change: int
    share: int
    bar: int
    cached: int
    cost: int
    note: int


def columns(width: int, compared: bool, shares: bool = True) -> Columns:
    """The columns of a line of ``width`` cells. ``compared``: to another moment; ``shares``: the window is known."""
    left = width - TOKENS
    known = KNOWN if left >= LEAST_LABEL + KNOWN else 0
    change = CHANGE if compared and left - known >= LEAST_LABEL + CHANGE else 0
    share = SHARE if shares and left - known - change >= LEAST_LABEL + SHARE else 0
    left -= known + change + share
    money = left >= WIDE_LABEL + LEAST_BAR + CACHED + COST
    cached, cost = (CACHED, COST) if money else (0, 0)
    left -= cached + cost
    bar = min(BAR, max(LEAST_BAR, (left - LABEL) // 2)) + 1 if left >= BESIDE + LEAST_BAR + 1 else 0
    label = max(LEAST_LABEL, min(WIDE_LABEL if money else LABEL, left - bar))
    return Columns(label, known, change, share, bar, cached, cost, max(0, left - bar - label))


def headings(cells: Columns) -> str:
    """The names of the columns, above them. What was cached is of the last request; the price is without any cache."""
    line = f"{'':<{cells.label + cells.known}}{'tokens':>{TOKENS}}"
    named = {
        "change": cells.change,
        "share": cells.share,
        " ": cells.bar,
        "cached last": cells.cached,
        "full price": cells.cost,
    }
    return (line + "".join(name.rjust(size) for name, size in named.items() if size)).rstrip()


EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar_of(part: int, whole: int, cells: int) -> str:
    """``part`` of ``whole`` as a bar of at most ``cells`` cells, to the eighth of one; what is not nothing is seen."""
    eighths = min(8 * cells, max(1 if part > 0 else 0, round(8 * cells * part / whole))) if whole > 0 else 0
    full, rest = divmod(max(0, eighths), 8)
    return EIGHTHS[8] * full + (EIGHTHS[rest] if rest else "")


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


def flatten(
    usage: ContextUsage, opened: set[str], before: ContextUsage | None = None, order: Order | None = None
) -> list[Shown]:
    """The lines to show, in ``order`` (else in that of the request). Only opened rows are walked, so 10 000 closed
    messages cost nothing. With ``before`` each line has its change since, and what went since has a line; the changes
    add up as the tokens do."""
    shares = window_shares(usage)
    lines: list[Shown] = []
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


def _rest(kind: Literal["free", "reserve", "over"], label: str, tokens: int, tenths: int, before: int | None) -> Shown:
    change = None if before is None else tokens - before
    return Shown(kind, kind, 0, label, tokens, tenths, kind_id=kind, change=change)


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

    def __init__(self, lines: list[Shown], opened: set[str], order: Order | None) -> None:
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
                self._row(row, key, depth, kind_id, part, change, known)
            elif old is not None and change:
                label = old.label if pair.count == 1 else f"{pair.count:,} that went"
                self._lines.append(Shown(key, "gone", depth, label, 0, 0, kind_id=kind_id or old.id, change=change))

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


def compaction_lines(
    records: Iterable[CompactionRecord], opened: set[str], came_back: Mapping[str, Regret]
) -> list[Shown]:
    """The history of compactions, newest first, one line an operation; its label is what came back afterwards."""
    newest = operations(records)
    if not newest:
        return []
    is_open = COMPACTIONS in opened
    heading = Shown(COMPACTIONS, "heading", 0, f"Compactions ({len(newest)})", open=is_open)
    said = {operation: came_back_text(regret) for operation, regret in came_back.items()}
    lines = (
        Shown(f"{COMPACTIONS}/{r.operation_id}", "compaction", 1, said.get(r.operation_id, ""), record=r)
        for r in (newest if is_open else ())
    )
    return [Shown("gap", "gap", 0, ""), heading, *lines]


def row_cost(row: ContextRow, prices: Prices | None, total: int) -> float | None:
    """Dollars of a row in a request of ``total`` tokens of which nothing is in the cache."""
    rates = prices.rates(total) if prices is not None else None
    return None if rates is None or rates.input is None else row.tokens * rates.input


INDENT = 4


def reason(line: Shown) -> str:
    row = line.row
    if row is None:
        return ""
    parts = [part for part in (row.replay, row.detail) if part]
    if row.deferred_tokens:
        parts.append(f"{tokens(row.deferred_tokens, True)} deferred")
    return one_line(" · ".join(parts), 400) if parts else ""


def hint(line: Shown, room: int) -> str:
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


def note(line: Shown, room: int) -> str:
    """Returns the note that there is room for; a message's reason in short where it does not fit: Enter shows it."""
    why = reason(line)
    if not why:
        return hint(line, room)
    if cell_len(why) <= room:
        return why
    short = why.partition(":")[0]
    return short if line.row is not None and line.row.message_id and cell_len(short) <= room else ""


def with_notes(lines: Iterable[Shown], room: int, width: int, now: float) -> Iterator[Shown]:
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
                yield from (Shown(line.key, "note", line.depth, text) for text in wrapped(why, left))
        elif (record := line.record) is not None:
            indent = "  " * (line.depth + 1)
            first, *more = wrapped(
                " · ".join(filter(None, [compaction_text(record, now), line.label])), width - len(indent)
            )
            yield Shown(line.key, line.kind, line.depth, first, record=record)
            yield from (Shown(line.key, "note", line.depth + 1, text, record=record) for text in more)
        else:
            yield line


KNOWN_BY = {"measured": "●", "derived": "◐", "estimated": "○"}
SWATCH = "■"
SCROLL = 1
"""Cells of the scroll bar beside the rows."""


class ContextRows(RowList):
    """The breakdown as a tree; h and l close and open, as Enter does both."""

    DEFAULT_CSS = "ContextRows { width: 1fr; height: 1fr; padding: 0 0 0 1; scrollbar-gutter: stable; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "open(True)", "Open", show=False),
        Binding("h", "open(False)", "Close", show=False),
        Binding("space", "choose", "Open", show=False),
    ]

    @dataclass
    class Toggled(Message):
        """A row is to be opened or closed."""

        key: str

    def __init__(self) -> None:
        super().__init__(id="rows")
        self.shown: list[Shown] = []
        self.columns: Columns = columns(80, compared=False)
        self.order = Order()
        self._moment: ContextReport | None = None
        self._usage: ContextUsage | None = None

    def show(self, moment: ContextReport, opened: set[str], width: int) -> str:
        """The lines of a moment in ``width`` cells; the cursor stays on the row it is on. Returns the headings."""
        usage = moment.whole
        line = self.shown[self.cursor] if self.cursor < len(self.shown) else None
        key = line.key if line is not None else ""
        same = self._moment is not None and self._moment.title == moment.title
        self._moment, self._usage = moment, usage
        self.order.held = same and line is not None and bool(line.depth or line.open)
        # The column of the changes has its place before they are known.
        compared = moment.before is not None or bool(moment.steps)
        self.columns = columns(width - SCROLL, compared, bool(usage.window))
        lines = [
            *flatten(usage, opened, moment.before, self.order),
            *compaction_lines(moment.records, opened, moment.came_back),
        ]
        self.shown = list(with_notes(lines, self.columns.note - 2, width - SCROLL, moment.now))
        cursor = next((i for i, s in enumerate(self.shown) if s.key == key), min(self.cursor, len(self.shown) - 1))
        self.set_count(len(self.shown), max(0, cursor))
        return headings(self.columns)

    def selectable(self, index: int) -> bool:
        return index < len(self.shown) and self.shown[index].kind not in ("gap", "note")

    def action_open(self, wanted: bool) -> None:
        if self.cursor >= len(self.shown):
            return
        line = self.shown[self.cursor]
        if line.open is not None and line.open != wanted:
            self.post_message(self.Toggled(line.key))
        elif not wanted and line.depth:
            self.move_to(next(i for i in range(self.cursor, -1, -1) if self.shown[i].depth < line.depth), -1)

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        line = self.shown[index]
        match line.kind:
            case "gap":
                return []
            case "note":
                return [(" " * (INDENT + 2 * line.depth) + line.label, paint("muted"))]
            case "compaction":
                color = "foreground" if line.record is not None and line.record.active else "faint"
                return [("  " * (line.depth + 1) + line.label, paint(color))]
            case "heading":
                return [("▾ " if line.open else "▸ ", paint("muted")), (line.label, paint("foreground"))]
            case _:
                return self._numbers(line, paint)

    def _numbers(self, line: Shown, paint: Paint) -> list[Piece]:
        cells, row = self.columns, line.row
        pieces = self._label(line, paint)
        main = not line.depth and line.kind == "row"
        if cells.known:
            pieces.append((f" {KNOWN_BY[row.basis] if row is not None else ' '} ", paint("faint")))
        pieces.append((fit(self._count(line), TOKENS, right=True), paint("foreground", bold=main)))
        if cells.change:
            pieces.append(_change(line, cells.change, paint))
        if cells.share:
            part = "" if line.kind == "gone" else share(line.tenths, bool(line.tokens))
            pieces.append((fit(part, cells.share, right=True), paint("muted")))
        if cells.bar:
            pieces.append(self._bar(line, cells.bar, paint))
        if row is None:
            return pieces
        if cells.cost:
            pieces += self._money(row, paint)
        pieces.append(("  " + note(line, cells.note - 2), paint("muted")))
        return pieces

    def _bar(self, line: Shown, cells: int, paint: Paint) -> Piece:
        usage = self._usage
        whole = 0 if usage is None else usage.window or usage.total
        kind = ROW_KINDS.get(line.kind_id)
        color = "error" if line.kind == "over" else kind.variable if kind is not None else "primary"
        bar = bar_of(abs(line.tokens or 0), whole, cells - 1)
        return (fit(f" {bar}", cells), paint("line" if line.kind in ("free", "reserve") else color))

    def _label(self, line: Shown, paint: Paint) -> list[Piece]:
        arrow = "  " if line.open is None else "▾ " if line.open else "▸ "
        kind = ROW_KINDS.get(line.kind_id)
        drawn = not line.depth or (line.depth == 1 and line.key.startswith(MESSAGES.id))
        lead = f"{'  ' * (line.depth if drawn else line.depth + 1)}{arrow}"
        pieces: list[Piece] = [(lead, paint("muted"))]
        swatch = ""
        if drawn:
            plain = self.app.no_color or self.app.current_theme.ansi
            swatch = f"{kind.pattern if kind is not None and plain else SWATCH} "
            color = "error" if line.kind == "over" else kind.variable if kind is not None else "primary"
            pieces.append((swatch, paint(color)))
        color = {"over": "error", "row": "foreground", "gone": "faint"}.get(line.kind, "muted")
        room = max(1, self.columns.label - len(lead) - len(swatch))
        return [*pieces, (fit(one_line(line.label, 200), room), paint(color))]

    def _count(self, line: Shown) -> str:
        if line.kind == "gone":
            return "–"
        if line.row is not None:
            mark = "~" if estimated(line.row) else ""
        else:
            now = self._moment
            mark = total_mark(now.usage, now.in_flight) if now is not None and line.kind != "reserve" else ""
        return f"{mark}{grouped(line.tokens or 0)}"

    def _money(self, row: ContextRow, paint: Paint) -> list[Piece]:
        assert self._moment is not None
        cached = cached_tokens(row) if row.tokens else None
        state = ""
        if cached is not None:
            state = "all" if cached == row.tokens else "none" if not cached else whole_percent(cached, row.tokens)
        cost = row_cost(row, self._moment.prices, self._moment.usage.total)
        price = "" if cost is None else money(cost)
        if estimated(row) and price.startswith("$") and cost:
            price = f"~{price}"
        return [
            (fit(state, self.columns.cached, right=True), paint("success" if state == "all" else "muted")),
            (fit(price, self.columns.cost, right=True), paint("muted")),
        ]


def _change(line: Shown, width: int, paint: Paint) -> Piece:
    if not line.change:
        return (fit("" if line.change is None else "·", width, right=True), paint("faint"))
    sign = "+" if line.change > 0 else "−"
    # What there is more of is what one looks for; of what is free there is less then.
    more = (line.change > 0) == (line.kind in ("row", "gone"))
    return (fit(f"{sign}{grouped(abs(line.change))}", width, right=True), paint("accent" if more else "success"))
