"""The breakdown on the context screen: a tree of rows with tokens, share, how they are known, cache and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from agent_tui.commands.usage_words import cached_tokens, estimated, total_mark
from agent_tui.models.context import ContextRow
from agent_tui.models.rows import MESSAGES, ROW_KINDS
from agent_tui.text.cells import fit
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import grouped, money, share, whole_percent
from agent_tui.ui.screens.context.columns import TOKENS, Columns, columns, headings
from agent_tui.ui.screens.context.moment import Moment
from agent_tui.ui.screens.context.notes import INDENT, note, with_notes
from agent_tui.ui.screens.context.rows import Shown, compaction_lines, flatten, row_cost
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.rows import RowList

KNOWN_BY = {"measured": ("●", "success"), "derived": ("◐", "primary"), "estimated": ("○", "muted")}
SWATCH = "■"
BAR = 1
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
        self._moment: Moment | None = None

    def show(self, moment: Moment, opened: set[str], width: int) -> str:
        """The lines of a moment in ``width`` cells; the cursor stays on the row it is on. Returns the headings."""
        usage = moment.usage
        key = self.shown[self.cursor].key if self.cursor < len(self.shown) else ""
        self._moment = moment
        self.columns = columns(width - BAR, moment.before is not None, bool(usage.window))
        lines = [*flatten(usage, opened, moment.before), *compaction_lines(moment.records, opened)]
        self.shown = list(with_notes(lines, self.columns.note - 2, width - BAR, moment.now))
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
        pieces.append((fit(self._count(line), TOKENS, right=True), paint("foreground", bold=main)))
        if cells.change:
            pieces.append(_change(line, cells.change, paint))
        if cells.share:
            part = "" if line.kind == "gone" else share(line.tenths, bool(line.tokens))
            pieces.append((fit(part, cells.share, right=True), paint("muted")))
        if row is None:
            return pieces
        if cells.basis:
            mark, color = KNOWN_BY[row.basis]
            pieces += [(f"{mark} ".rjust(cells.basis - 9), paint(color)), (fit(row.basis, 9), paint("muted"))]
        if cells.cost:
            pieces += self._money(row, paint)
        pieces.append(("  " + note(line, cells.note - 2), paint("muted")))
        return pieces

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
            mark = total_mark(self._moment.usage) if self._moment is not None and line.kind != "reserve" else ""
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
        return (" " * width, paint())
    sign = "+" if line.change > 0 else ""
    # What there is more of is what one looks for; of what is free there is less then.
    more = (line.change > 0) == (line.kind in ("row", "gone"))
    return (fit(f"{sign}{grouped(line.change)}", width, right=True), paint("accent" if more else "success"))
