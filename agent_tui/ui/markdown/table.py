"""Tables that fit the width: columns shrink and cells wrap; when even that does not fit, one record under the other."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_tui.text.clean import drawable
from agent_tui.ui.flow.layout import Decoration, Drawn, Flow, Line, Run, cells_in, runs_in, wrap
from agent_tui.ui.flow.palette import Palette
from agent_tui.urls import hosts_in, page_address, urls_in

if TYPE_CHECKING:
    from markdown_it.token import Token


_STYLES = {"em_open": "em", "strong_open": "strong", "s_open": "strike"}


class _Text:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.runs: list[Run] = []
        self.end = 0

    def add(self, text: str, style: str, link: str | None = None) -> None:
        if text:
            self.parts.append(text)
            self.end += len(text)
            self.runs.append((self.end, style, link))


def inline(token: Token) -> tuple[str, list[Run]]:
    """Returns text and runs of an ``inline`` token. Soft breaks are spaces, hard ones newlines."""
    out = _Text()
    styles: list[str] = []
    links: list[tuple[str, int]] = []
    link: str | None = None
    for child in token.children or ():
        kind, style = child.type, " ".join(styles)
        said = drawable(child.content).replace("\n", " ")
        if kind == "text":
            _text(out, said.replace("\t", " "), style, link)
        elif kind == "code_inline":
            out.add(drawable(child.content).replace("\t", " "), f"{style} inline", link)
        elif kind in ("softbreak", "hardbreak"):
            out.add(" " if kind == "softbreak" else "\n", style, link)
        elif kind == "link_open":
            href = str(child.attrs.get("href", ""))
            links.append((href, out.end))
            link = page_address(href)
            styles.append("link")
        elif kind == "link_close":
            styles.pop()
            link = None
            href, start = links.pop()
            label, page = "".join(out.parts)[start:], page_address(href)
            if href and label != href and (page is None or _misleads(label, page)):
                out.add(f" ({drawable(page or href)})", "muted", page)
        elif kind == "image":
            href = str(child.attrs.get("src", ""))
            out.add(f"🖼 {said or drawable(href)}".replace("\n", " "), f"{style} link", page_address(href))
        elif kind in _STYLES:
            styles.append(_STYLES[kind])
        elif kind.endswith("_close"):
            styles.pop()
        else:
            out.add(said, f"{style} muted", link)
    return "".join(out.parts), out.runs


def _text(out: _Text, text: str, style: str, link: str | None) -> None:
    at = 0
    if link is None and "://" in text:
        for start, end, url in urls_in(text):
            page = page_address(url.text)
            out.add(text[at:start], style)
            out.add(text[start:end], f"{style} link", page)
            if page is not None and url.host not in text[start:end].lower():
                out.add(f" ({drawable(page)})", "muted", page)
            at = end
    out.add(text[at:], style, link)


def _misleads(label: str, page: str) -> bool:
    """Returns whether the words of a link name another place than the one it opens."""
    named, (leads_to, *_) = hosts_in(label), [*hosts_in(page), ""]
    return bool(named) and (named != [leads_to] or leads_to not in label.lower())


Cell = tuple[str, list[Run]]
MIN_COLUMN = 6
"""Cells that a column keeps at least before the table is stacked instead."""


class Table:
    """All of a table that decides about its columns."""

    def __init__(self, header: list[Cell], rows: list[list[Cell]], aligns: list[str]) -> None:
        self.header = header
        self.rows = rows
        self.aligns = aligns
        self._known: tuple[int, list[int] | None] | None = None

    def flows(self, first: Decoration, rest: Decoration) -> list[Flow]:
        """Returns header, rule, rows."""
        head = [TableRow(self, self.header, first, rest, header=True), Drawn(self._rule, rest)]
        return [*head, *(TableRow(self, row, rest, rest) for row in self.rows)]

    @cached_property
    def _natural(self) -> list[int]:
        return [max(1, *(cell_len(text) for text, _ in column)) for column in zip(self.header, *self.rows, strict=True)]

    def columns(self, room: int) -> list[int] | None:
        """The width of each column, or None when they do not fit beside each other."""
        if self._known is None or self._known[0] != room:
            self._known = (room, self._fit(room))
        return self._known[1]

    def _fit(self, room: int) -> list[int] | None:
        widths = self._natural
        spare = room - 3 * (len(widths) - 1)
        if sum(widths) <= spare:
            return widths
        if sum(min(width, MIN_COLUMN) for width in widths) > spare:
            return None
        low, high = MIN_COLUMN, max(widths)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if sum(min(w, middle) for w in widths) <= spare else (low, middle - 1)
        cut = [min(width, low) for width in widths]
        rest = spare - sum(cut)
        for k, width in enumerate(widths):
            if rest and cut[k] < width:
                cut[k] += 1
                rest -= 1
        return cut

    def _rule(self, room: int) -> str:
        columns = self.columns(room)
        return "─" * min(room, 24) if columns is None else "─┼─".join("─" * width for width in columns)


class TableRow(Flow):
    """One row of a table; its text is the Markdown row, so that a copied table is a table again."""

    __slots__ = ("_cells", "_header", "_table")

    def __init__(
        self, table: Table, cells: list[Cell], first: Decoration, rest: Decoration, *, header: bool = False
    ) -> None:
        text = "| " + " | ".join(text.replace("\n", " ") for text, _ in cells) + " |"
        if header:
            text += "\n|" + "|".join(_MARK.get(align, "---") for align in table.aligns) + "|"
        super().__init__(text, first=first, rest=rest)
        self._table = table
        self._cells = cells
        self._header = header

    def lay(self, row: int, width: int, palette: Palette) -> list[Line]:
        first, rest = self.leads(width)
        room = max(1, width - cells_in(rest) - 1)
        columns = self._table.columns(room)
        if columns is None:
            return self._stacked(row, room, first, rest, palette)
        wrapped = [wrap(text, size) for (text, _), size in zip(self._cells, columns, strict=True)]
        out: list[Line] = []
        for k in range(max(map(len, wrapped))):
            line = self._line(row, rest if k else first, palette)
            for column, (size, ranges) in enumerate(zip(columns, wrapped, strict=True)):
                if column:
                    line.add(" │ ", palette("rule"))
                self._cell(line, column, size, ranges[k] if k < len(ranges) else (0, 0), palette)
            out.append(line)
        return out

    def _line(self, row: int, prefix: Decoration, palette: Palette) -> Line:
        line = Line(row, self.text, palette(""))
        for piece, names in prefix:
            line.add(piece, palette(names))
        return line

    def _offset(self, column: int) -> int:
        """Returns where the text of a cell begins in that of the row."""
        return 2 + sum(len(text) + 3 for text, _ in self._cells[:column])

    def _cell(self, line: Line, column: int, size: int, part: tuple[int, int], palette: Palette) -> None:
        (text, runs), (start, end) = self._cells[column], part
        end = start + len(text[start:end].rstrip())
        pad = max(0, size - cell_len(text[start:end]))
        align = self._table.aligns[column]
        left = pad if align == "right" else pad // 2 if align == "center" else 0
        if left:
            line.add(" " * left, palette(""))
        for at, stop, names, link in runs_in(runs, start, end):
            style = palette(f"{'th' if self._header else ''} {names}", link)
            line.add(text[at:stop], style, self._offset(column) + at)
        if pad - left:
            line.add(" " * (pad - left), palette(""))

    def _stacked(self, row: int, room: int, first: Decoration, rest: Decoration, palette: Palette) -> list[Line]:
        if self._header:
            return []
        out: list[Line] = []
        for column, (text, _) in enumerate(self._cells):
            name = self._table.header[column][0]
            for start, end in wrap(text, max(1, room - 2)) if text else ():
                for a, b in wrap(name, room) if start == 0 and name else ():
                    out.append(self._line(row, rest if out else first, palette))
                    if name[a:b]:
                        out[-1].add(name[a:b], palette("th"))
                out.append(self._line(row, (*(rest if out else first), ("  ", "")), palette))
                if said := text[start:end].rstrip():
                    out[-1].add(said, palette(""), self._offset(column) + start)
        return [*out, self._line(row, rest, palette)]


_MARK = {"left": ":---", "right": "---:", "center": ":---:"}
