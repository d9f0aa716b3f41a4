"""The breakdown on the context screen: a tree of rows with tokens, share, basis, cache and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from textual.binding import Binding, BindingType

from agent_tui.models.context import ContextRow
from agent_tui.models.usage import Prices
from agent_tui.text.cells import fit, shorten
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import grouped, money, share, tokens, whole_percent
from agent_tui.ui.draw import Piece, width_of
from agent_tui.ui.screens import context_lines as words
from agent_tui.ui.screens.context_head import PLAIN_FILL
from agent_tui.ui.screens.context_rows import Shown, cached_tokens, row_cost
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.rows import RowList

BASIS = {"measured": ("●", "success"), "derived": ("◐", "primary"), "estimated": ("○", "muted")}


class OpensRows(Protocol):
    """Whose rows these are."""

    @property
    def now(self) -> float:
        """Seconds since the epoch that ages are counted from."""

    @property
    def prices(self) -> Prices | None: ...

    def toggle(self, key: str) -> None:
        """Opens or closes a row."""


class ContextRows(RowList):
    """The breakdown as a tree; ←/→ close and open."""

    DEFAULT_CSS = "ContextRows { padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "open(True)", "Open", show=False),
        Binding("left,h", "open(False)", "Close", show=False),
        Binding("space", "choose", "Open", show=False),
    ]

    def __init__(self, owner: OpensRows) -> None:
        super().__init__(id="rows")
        self._owner = owner
        self.shown: list[Shown] = []
        self.extra: list[list[Piece]] = []

    def show(self, shown: list[Shown], extra: list[list[Piece]]) -> None:
        """New lines; the cursor stays on the row it is on."""
        key = self.shown[self.cursor].key if self.cursor < len(self.shown) else ""
        self.shown, self.extra = shown, extra
        cursor = next((i for i, s in enumerate(shown) if s.key == key), min(self.cursor, max(0, len(shown) - 1)))
        self.set_count(len(shown) + len(extra), cursor)

    def selectable(self, index: int) -> bool:
        return index < len(self.shown) and self.shown[index].kind != "gap"

    def action_open(self, wanted: bool) -> None:
        if self.cursor >= len(self.shown):
            return
        line = self.shown[self.cursor]
        if line.open is not None and line.open != wanted:
            self._owner.toggle(line.key)
        elif not wanted and line.depth:
            self.move_to(next(i for i in range(self.cursor, -1, -1) if self.shown[i].depth < line.depth), -1)

    def row(self, index: int, width: int, paint: Paint) -> Sequence[Piece]:
        if index >= len(self.shown):
            return self.extra[index - len(self.shown)]
        line = self.shown[index]
        match line.kind:
            case "gap":
                return []
            case "compaction":
                assert line.record is not None
                text = words.compaction_text(line.record, self._owner.now)
                color = "foreground" if line.record.active else "faint"
                return [("    ", paint()), (shorten(text, max(0, width - 4)), paint(color))]
            case "heading":
                return [("▾ " if line.open else "▸ ", paint("muted")), (line.label, paint("foreground"))]
            case _:
                return self._tokens(line, width, paint)

    def _tokens(self, line: Shown, width: int, paint: Paint) -> list[Piece]:
        row = line.row
        arrow = "  " if line.open is None else "▾ " if line.open else "▸ "
        swatch = PLAIN_FILL.get(line.color.removeprefix("context-"), "■") if self.app.no_color else "■"
        indent = "  " * line.depth
        wide = width >= 108
        label_room = 40 if wide else min(30, max(10, width - 30))
        label = one_line(line.label, 200)
        lead = f"  {indent}{arrow}" if line.depth else arrow
        name_room = max(1, label_room - len(lead) - (2 if not line.depth else 0))
        pieces: list[Piece] = [(lead, paint("muted"))]
        if not line.depth:
            pieces.append((f"{swatch} ", paint(line.color)))
        weak = line.kind != "row"
        pieces.append(
            (fit(label, name_room), paint("error" if line.kind == "over" else "muted" if weak else "foreground"))
        )
        rough = row is not None and (row.approximate or row.basis == "estimated")
        number = f"{'~' if rough else ''}{grouped(line.tokens or 0)}"
        pieces.append((fit(number, 11, right=True), paint("foreground", bold=not line.depth and not weak)))
        pieces.append((fit(share(line.tenths), 9, right=True), paint("muted")))
        if row is None:
            return pieces
        if width >= 62:
            mark, color = BASIS[row.basis]
            pieces += [(f"  {mark} ", paint(color)), (fit(row.basis, 10), paint("muted"))]
        if wide:
            pieces += self._money(row, paint)
        room = width - width_of(pieces) - 2
        if room > 3:
            pieces.append(("  " + shorten(_note(line), room), paint("faint")))
        return pieces

    def _money(self, row: ContextRow, paint: Paint) -> list[Piece]:
        cached = cached_tokens(row)
        if cached is None or not row.tokens:
            state = ""
        else:
            state = (
                "cached"
                if cached == row.tokens
                else "not cached"
                if not cached
                else f"{whole_percent(cached, row.tokens)} cached"
            )
        cost = row_cost(row, self._owner.prices)
        return [
            (fit(state, 13), paint("success" if state == "cached" else "muted")),
            (fit("" if cost is None else money(cost, 4), 10, right=True), paint("muted")),
        ]


def _note(line: Shown) -> str:
    row = line.row
    if row is None:
        return ""
    parts = []
    if row.replay:
        parts.append(row.replay)
    if row.detail:
        parts.append(row.detail)
    elif row.path:
        parts.append(row.path)
    if row.deferred_tokens:
        parts.append(f"{tokens(row.deferred_tokens, True)} deferred")
    if not parts and row.children and not line.open and line.depth == 0:
        largest = max(row.children, key=lambda c: c.tokens)
        if len(row.children) > 1 and largest.tokens:
            rough = largest.approximate or largest.basis == "estimated"
            parts.append(f"{one_line(largest.label, 60)} {tokens(largest.tokens, rough)}")
    return one_line(" · ".join(parts), 300)
