"""The breakdown as it is drawn: the columns that there is room for, and what stands in them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message

from agent_tui.commands.report import ContextReport, cached_tokens, estimated, total_mark
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.rows import MESSAGES, ROW_KINDS
from agent_tui.models.usage import Prices
from agent_tui.records import dataclass
from agent_tui.text.cells import bar_of, fit
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import grouped, money, share, whole_percent
from agent_tui.ui.screens.context_lines import (
    INDENT,
    Order,
    RowLine,
    compaction_lines,
    dropped_lines,
    flatten,
    note,
    with_notes,
)
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.rows import RowList

KNOWN_BY = {"measured": "●", "derived": "◐", "estimated": "○"}
SWATCH, GONE = "■", "□"
SIGNS = {
    **{sign: basis for basis, sign in KNOWN_BY.items()},
    SWATCH: "the row's color in the timeline",
    GONE: "no longer sent: gone since the step before, or dropped",
    "~": "an estimate",
    "·": "no change",
    "≈": "the same, only measured better now",
    "✓": "marked",
    "▼": "compacted, folded or dropped there",
}
"""What stands on the screen without words."""
NO_LONGER = "no longer sent"
TOKENS, CHANGE, SHARE, KNOWN, CACHED, COST = 10, 10, 10, 3, 13, 12
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


def columns(width: int, compared: bool, shares: bool = True, priced: bool = True) -> Columns:
    """The columns of a line of ``width`` cells. ``compared``: to another moment; ``shares``: the window is known;
    ``priced``: the model costs something."""
    left = width - TOKENS
    known = KNOWN if left >= LEAST_LABEL + KNOWN else 0
    change = CHANGE if compared and left - known >= LEAST_LABEL + CHANGE else 0
    share = SHARE if shares and left - known - change >= LEAST_LABEL + SHARE else 0
    left -= known + change + share
    money = left >= WIDE_LABEL + LEAST_BAR + CACHED + COST
    cached, cost = (CACHED if money else 0, COST if money and priced else 0)
    left -= cached + cost
    bar = min(BAR, max(LEAST_BAR, (left - LABEL) // 2)) + 1 if left >= BESIDE + LEAST_BAR + 1 else 0
    label = max(LEAST_LABEL, min(WIDE_LABEL if money else LABEL, left - bar))
    return Columns(label, known, change, share, bar, cached, cost, max(0, left - bar - label))


def headings(cells: Columns, read: bool = True, bases: Container[str] = KNOWN_BY) -> str:
    """The names of the columns, above them, and before those what the signs of these ``bases`` mean. The price is
    without any cache. ``read``: what the last request read from the cache is known; else its column is empty and has no
    name."""
    line = f"{'tokens':>{cells.label + cells.known + TOKENS}}"
    for shown in (KNOWN_BY, [basis for basis in KNOWN_BY if basis in bases]):
        legend = " ".join(f"{KNOWN_BY[basis]} {basis}" for basis in shown)
        if cells.known and len(legend) < len(line) - len("tokens"):
            line = legend + line[len(legend) :]
            break
    named = {"change": cells.change, "of window": cells.share, " ": cells.bar}
    named |= {"last request" if read else "  ": cells.cached, "full price": cells.cost}
    return (line + "".join(name.rjust(size) for name, size in named.items() if size)).rstrip()


def row_cost(row: ContextRow, prices: Prices | None, total: int) -> float | None:
    """Dollars of a row in a request of ``total`` tokens of which nothing is in the cache."""
    rates = prices.rates(total) if prices is not None else None
    return None if rates is None or rates.input is None else row.tokens * rates.input


SCROLL = 1
"""Cells of the scroll bar beside the rows."""


class ContextRows(RowList):
    """The breakdown as a tree; h and l close and open, as Enter does both."""

    DEFAULT_CSS = "ContextRows { width: 1fr; height: 1fr; padding: 0 0 0 1; scrollbar-gutter: stable; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "open(True)", "Open", show=False),
        Binding("h", "open(False)", "Close", show=False),
        Binding("space", "mark(0)", "Mark the row, for d, z and p", show=False),
        Binding("shift+up", "mark(-1)", "Mark upwards", show=False),
        Binding("shift+down", "mark(1)", "Mark downwards", show=False),
    ]

    @dataclass
    class Toggled(Message):
        """A row is to be opened or closed."""

        key: str

    def __init__(self) -> None:
        super().__init__(id="rows")
        self.shown: list[RowLine] = []
        self.columns: Columns = columns(80, compared=False)
        self.order = Order()
        self.marked: set[str] = set()
        self._moment: ContextReport | None = None
        self._usage: ContextUsage | None = None

    def show(self, moment: ContextReport, opened: set[str], width: int) -> str:
        """The lines of a moment in ``width`` cells; the cursor stays on the row it is on. Returns the headings."""
        usage = moment.whole
        line = self.line
        key = line.key if line is not None else ""
        same = self._moment is not None and self._moment.title == moment.title
        self._moment, self._usage = moment, usage
        self.order.held = same and line is not None and bool(line.depth or line.open)
        # The column of the changes has its place before they are known.
        compared = moment.before is not None or bool(moment.steps)
        rates = moment.prices.rates(usage.total) if moment.prices is not None else None
        priced = rates is not None and bool(rates.input)
        self.columns = columns(width - SCROLL, compared, bool(usage.window), priced)
        lines = [
            *flatten(usage, opened, moment.before, self.order),
            *dropped_lines(moment.dropped, opened),
            *compaction_lines(moment.records, opened),
        ]
        self.shown = list(with_notes(lines, self.columns.note - 2, width - SCROLL, moment.now))
        cursor = next((i for i, s in enumerate(self.shown) if s.key == key), min(self.cursor, len(self.shown) - 1))
        self.set_count(len(self.shown), max(0, cursor))
        bases = {line.row.basis for line in self.shown if line.row is not None}
        return headings(self.columns, any(cached_tokens(row) is not None for row in usage.rows), bases)

    def selectable(self, index: int) -> bool:
        return index < len(self.shown) and self.shown[index].kind not in ("gap", "note")

    @property
    def line(self) -> RowLine | None:
        """The line that the cursor is on."""
        return self.shown[self.cursor] if self.cursor < len(self.shown) else None

    def chosen(self) -> list[RowLine]:
        """The marked lines, or else the one that the cursor is on."""
        marked = [line for line in self.shown if line.key in self.marked and line.kind != "note"]
        return marked or ([self.line] if self.line is not None else [])

    def unmark(self) -> bool:
        """Takes all marks away; False where there are none."""
        had = bool(self.marked)
        self.marked.clear()
        self.refresh()
        return had

    def action_mark(self, by: int) -> None:
        """Marks the line, or takes that back, and goes on; with ``by`` it marks on the way."""
        line = self.line
        if line is None or line.kind not in ("row", "dropped"):
            self.move_to(self.cursor + (by or 1), by or 1)
            return
        self.marked = self.marked | {line.key} if by else self.marked ^ {line.key}
        self.move_to(self.cursor + (by or 1), by or 1)
        if by and self.line is not None and self.line.kind == line.kind:
            self.marked.add(self.line.key)
        self.refresh()
        self.post_message(self.Moved(self.cursor))

    def action_open(self, wanted: bool) -> None:
        line = self.line
        if line is None:
            return
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
            case "dropped":
                return self._struck(line, paint)
            case _:
                return self._numbers(line, paint)

    def _struck(self, line: RowLine, paint: Paint) -> list[Piece]:
        assert line.row is not None
        cells, waits = self.columns, bool(line.row.detail)
        lead, kind = self._lead(line, "    "), ROW_KINDS[line.kind_id]
        room = max(1, cells.label + cells.known - len(lead) - 2)
        text = one_line(line.label, 200)
        style = paint("muted") if waits else paint("faint") + Style(strike=True)
        text = fit(text, room).rstrip() if cell_len(text) > room else text
        pieces = [(lead, paint("accent")), (f"{GONE} ", paint(kind.variable)), (text, style)]
        pieces.append((" " * (room - cell_len(text)), paint()))
        pieces.append((fit(f"~{grouped(line.tokens or 0)}", TOKENS, right=True), paint("muted")))
        return [*pieces, (f"  {line.row.detail or 'd restores'}", paint("muted"))]

    def _lead(self, line: RowLine, blank: str) -> str:
        """What stands before a label: a mark where the user marked the line."""
        return blank[:-2] + "✓ " if line.key in self.marked else blank

    def _numbers(self, line: RowLine, paint: Paint) -> list[Piece]:
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
            gone = line.kind == "gone" and cells.note > len(NO_LONGER) + 1
            return [*pieces, (f"  {NO_LONGER}", paint("muted"))] if gone else pieces
        if cells.cached:
            pieces += self._money(row, paint)
        pieces.append(("  " + note(line, cells.note - 2), paint("muted")))
        return pieces

    def _bar(self, line: RowLine, cells: int, paint: Paint) -> Piece:
        usage = self._usage
        whole = 0 if usage is None else usage.window or usage.total
        kind = ROW_KINDS.get(line.kind_id)
        color = "error" if line.kind == "over" else kind.variable if kind is not None else "primary"
        bar = bar_of(abs(line.tokens or 0), whole, cells - 1)
        return (fit(f" {bar}", cells), paint("line" if line.kind in ("free", "reserve") else color))

    def _label(self, line: RowLine, paint: Paint) -> list[Piece]:
        arrow = "  " if line.open is None else "▾ " if line.open else "▸ "
        kind = ROW_KINDS.get(line.kind_id)
        drawn = not line.depth or (line.depth == 1 and line.key.startswith(MESSAGES.id))
        lead = self._lead(line, f"{'  ' * (line.depth if drawn else line.depth + 1)}{arrow}")
        pieces: list[Piece] = [(lead, paint("accent" if line.key in self.marked else "muted"))]
        swatch = ""
        if drawn:
            plain = self.app.no_color or self.app.current_theme.ansi
            swatch = f"{GONE if line.kind == 'gone' else kind.pattern if kind is not None and plain else SWATCH} "
            color = "error" if line.kind == "over" else kind.variable if kind is not None else "primary"
            pieces.append((swatch, paint(color)))
        color = {"over": "error", "row": "foreground", "gone": "faint"}.get(line.kind, "muted")
        room = max(1, self.columns.label - len(lead) - len(swatch))
        return [*pieces, (fit(one_line(line.label, 200), room), paint(color))]

    def _count(self, line: RowLine) -> str:
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
            state = "cached" if cached == row.tokens else "not cached"
            if 0 < cached < row.tokens:
                state = f"{whole_percent(cached, row.tokens)} cached"
        cost = row_cost(row, self._moment.prices, self._moment.usage.total)
        price = "" if cost is None else money(cost)
        if estimated(row) and price.startswith("$") and cost:
            price = f"~{price}"
        pieces = [(fit(state, self.columns.cached, right=True), paint("success" if state == "cached" else "muted"))]
        return [*pieces, (fit(price, self.columns.cost, right=True), paint("muted"))] if self.columns.cost else pieces


def _change(line: RowLine, width: int, paint: Paint) -> Piece:
    if not line.change:
        return (fit("" if line.change is None else "·", width, right=True), paint("faint"))
    sign = "+" if line.change > 0 else "−"
    if line.remeasured:
        return (fit(f"≈ {sign}{grouped(abs(line.change))}", width, right=True), paint("faint"))
    # What there is more of is what one looks for; of what is free there is less then.
    more = (line.change > 0) == (line.kind in ("row", "gone"))
    return (fit(f"{sign}{grouped(abs(line.change))}", width, right=True), paint("accent" if more else "success"))
