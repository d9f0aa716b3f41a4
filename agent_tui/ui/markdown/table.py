"""Tables that fit the width: columns shrink and cells wrap; when even that does not fit, one record under the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.style import Style

from agent_tui.text.clean import drawable
from agent_tui.ui.flow.lines import Decoration, Drawn, Flow, Line, Run, bounded, wrap
from agent_tui.ui.flow.palette import Palette

if TYPE_CHECKING:
    from markdown_it.token import Token


_URL = re.compile(r"https?://[^\s<>\"'`│]*[^\s<>\"'`│.,;:!?)\]}*_]")
_SAFE = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x20\x7f-\x9f]+\Z", re.IGNORECASE)
_STYLES = {"em_open": "em", "strong_open": "strong", "s_open": "strike"}


def safe_link(url: str) -> str | None:
    """The address, if a click on it can do no more than open a page or a mail."""
    return url if len(url) <= 2_000 and _SAFE.match(url) else None


class _Text:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.runs: list[Run] = []
        self.end = 0

    def add(self, text: str, style: str, link: str | None) -> None:
        if text:
            self.parts.append(text)
            self.end += len(text)
            self.runs.append((self.end, style, link))


def inline(token: Token, base: str = "") -> tuple[str, list[Run]]:
    """Text and runs of an ``inline`` token."""
    return render(token.children or (), base)


def render(children: Sequence[Token], base: str = "") -> tuple[str, list[Run]]:
    """Text and runs of inline tokens. Soft breaks are spaces, hard ones newlines."""
    out = _Text()
    styles = [base] if base else []
    links: list[tuple[str, int]] = []
    link: str | None = None
    style = base
    for token in children:
        kind = token.type
        if kind == "text":
            _text(out, drawable(token.content).replace("\n", " ").replace("\t", " "), style, link)
        elif kind == "code_inline":
            out.add(drawable(token.content).replace("\t", " "), f"{style} inline", link)
        elif kind == "softbreak":
            out.add(" ", style, link)
        elif kind == "hardbreak":
            out.add("\n", style, link)
        elif kind == "link_open":
            href = str(token.attrs.get("href", ""))
            links.append((href, out.end))
            link = safe_link(href)
            styles.append("link")
        elif kind == "link_close":
            if styles:
                styles.pop()
            link = None
            href, start = links.pop() if links else ("", 0)
            text = "".join(out.parts)[start:] if href else ""
            if href and safe_link(href) is None and text != href:
                out.add(f" ({drawable(href)})", "muted", None)
        elif kind == "image":
            href = str(token.attrs.get("src", ""))
            alt = drawable(token.content) or drawable(href)
            out.add(f"🖼 {alt}".replace("\n", " "), f"{style} link", safe_link(href))
        elif kind in _STYLES:
            styles.append(_STYLES[kind])
        elif kind.endswith("_close"):
            if styles:
                styles.pop()
        else:
            out.add(drawable(token.content).replace("\n", " "), f"{style} muted", link)
        style = " ".join(styles)
    return "".join(out.parts), out.runs


def _text(out: _Text, text: str, style: str, link: str | None) -> None:
    if link is None and "://" in text:
        at = 0
        for match in _URL.finditer(text):
            out.add(text[at : match.start()], style, None)
            out.add(match.group(), f"{style} link", safe_link(match.group()))
            at = match.end()
        text = text[at:]
    out.add(text, style, link)


Cell = tuple[str, list[Run]]
MIN_COLUMN = 6
"""Cells that a column keeps at least before the table is stacked instead."""


class Table:
    """All of a table that decides about its columns."""

    def __init__(self, header: list[Cell], rows: list[list[Cell]], aligns: list[str]) -> None:
        self.header = header
        self.rows = rows
        self.aligns = aligns
        self._natural: list[int] | None = None
        self._known: tuple[int, list[int] | None] | None = None

    def flows(self, first: Decoration, rest: Decoration) -> list[Flow]:
        """Header, rule, rows."""
        out: list[Flow] = [Row(self, self.header, first, rest, header=True)]
        out.append(Drawn(self._rule, base="rule", first=rest))
        out += [Row(self, row, rest, rest) for row in self.rows]
        return out

    def columns(self, room: int) -> list[int] | None:
        """The width of each column, or None when they do not fit beside each other."""
        if self._known is None or self._known[0] != room:
            self._known = (room, self._fit(room))
        return self._known[1]

    def _fit(self, room: int) -> list[int] | None:
        if self._natural is None:
            widths = [1] * len(self.header)
            for row in (self.header, *self.rows):
                for k, (text, _) in enumerate(row):
                    widths[k] = max(widths[k], cell_len(text))
            self._natural = widths
        widths = list(self._natural)
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


class Row(Flow):
    """One row of a table; its text is the Markdown row, so that a copied table is a table again."""

    __slots__ = ("_cells", "_header", "_offsets", "_table")

    def __init__(self, table: Table, cells: list[Cell], first: Decoration, rest: Decoration, header: bool = False):
        text = "| " + " | ".join(text.replace("\n", " ") for text, _ in cells) + " |"
        if header:
            text += "\n|" + "|".join(_MARK.get(align, "---") for align in table.aligns) + "|"
        super().__init__(text, first=first, rest=rest)
        self._table = table
        self._cells = cells
        self._header = header
        self._offsets: list[int] = []
        at = 2
        for cell, _ in cells:
            self._offsets.append(at)
            at += len(cell) + 3

    def lay(self, row: int, width: int, palette: Palette) -> list[Line]:
        first, rest = bounded(self.first, width), bounded(self.rest, width)
        room = max(1, width - sum(cell_len(text) for text, _ in rest) - 1)
        columns = self._table.columns(room)
        if columns is None:
            return self._stacked(row, room, first, rest, palette)
        wrapped = [wrap(text, size) for (text, _), size in zip(self._cells, columns, strict=True)]
        out: list[Line] = []
        for k in range(max(map(len, wrapped))):
            segments: list[tuple[str, Style]] = []
            starts: list[int] = []
            for text, style in first if k == 0 else rest:
                segments.append((text, palette(style)))
                starts.append(-1)
            for column, size in enumerate(columns):
                if column:
                    segments.append((" │ ", palette("rule")))
                    starts.append(-1)
                ranges = wrapped[column]
                start, end = ranges[k] if k < len(ranges) else (0, 0)
                self._cell(segments, starts, column, start, end, size, palette)
            out.append(Line(row, self.text, segments, starts, palette("")))
        return out

    def _cell(
        self,
        segments: list[tuple[str, Style]],
        starts: list[int],
        column: int,
        start: int,
        end: int,
        size: int,
        palette: Palette,
    ) -> None:
        text, runs = self._cells[column]
        end = start + len(text[start:end].rstrip())
        pad = max(0, size - cell_len(text[start:end]))
        align = self._table.aligns[column]
        left = pad if align == "right" else pad // 2 if align == "center" else 0
        if left:
            segments.append((" " * left, palette("")))
            starts.append(-1)
        base = "th" if self._header else ""
        begin = start
        for run_end, names, link in runs:
            stop = min(run_end, end)
            if stop > begin:
                segments.append((text[begin:stop], palette(f"{base} {names}", link)))
                starts.append(self._offsets[column] + begin)
                begin = stop
        if pad - left:
            segments.append((" " * (pad - left), palette("")))
            starts.append(-1)

    def _stacked(self, row: int, room: int, first: Decoration, rest: Decoration, palette: Palette) -> list[Line]:
        if self._header:
            return []
        out: list[Line] = []
        for column, (text, _) in enumerate(self._cells):
            name = self._table.header[column][0]
            for start, end in wrap(text, max(1, room - 2)) if text else ():
                if start == 0 and name:
                    for a, b in wrap(name, room):
                        out.append(self._plain(row, rest if out else first, name[a:b], -1, "th", palette))
                at = self._offsets[column] + start
                indent: Decoration = (*(rest if out else first), ("  ", ""))
                out.append(self._plain(row, indent, text[start:end].rstrip(), at, "", palette))
        out.append(self._plain(row, rest, "", -1, "", palette))
        return out

    def _plain(self, row: int, prefix: Decoration, text: str, at: int, style: str, palette: Palette) -> Line:
        segments = [(piece, palette(names)) for piece, names in prefix]
        starts = [-1] * len(segments)
        if text:
            segments.append((text, palette(style)))
            starts.append(at)
        return Line(row, self.text, segments, starts, palette(""))


_MARK = {"left": ":---", "right": "---:", "center": ":---:"}
