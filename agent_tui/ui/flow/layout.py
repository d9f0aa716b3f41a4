"""Makes screen lines of a width from logical rows (a paragraph, a line of code), wrapped, cut and bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, field
from typing import Literal, TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.style import Style
from textual.strip import Strip

from agent_tui.records import dataclass
from agent_tui.text.cells import shorten, tail_of
from agent_tui.text.numbers import plural
from agent_tui.ui.flow.palette import Palette

_WIDE = (
    "\u1100-\u11ff\u2e80-\u303f\u3040-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff"
)
_CLOSING = "、。，．！？）」』】〉》：；"
_COMMAND = r"(?<!\S)/[a-z][a-z-]* [a-z]\S*\s*"
"""A slash command and the word behind it: nobody types one of them alone."""
_TOKEN = re.compile(rf"{_COMMAND}|[{_WIDE}][{_CLOSING}]*\s*|[^\s{_WIDE}]+\s*|\s+")


def wrap(text: str, width: int) -> list[tuple[int, int]]:
    """Ranges of characters, one a line, broken at spaces (and between ideographs); words longer than a line are cut,
    paths between their folders.
    ``\\n`` ends a line. Spaces at a break belong to the line before it, which may thus be wider than ``width``."""
    return [piece for start, end in _lines(text) for piece in _wrap_line(text, start, end, max(1, width))]


def chop(text: str, width: int) -> list[tuple[int, int]]:
    """Ranges of characters that fill each line up to ``width`` cells: for code, where spaces are no place to break."""
    out: list[tuple[int, int]] = []
    for start, end in _lines(text):
        line = text[start:end]
        if line.isascii():
            out += [(k, min(k + width, end)) for k in range(start, end, width)] or [(start, end)]
            continue
        for part in chop_cells(line, width) if cell_len(line) > width else [line]:
            out.append((start, start + len(part)))
            start += len(part)
    return out


def _lines(text: str) -> list[tuple[int, int]]:
    ends = [match.start() for match in re.finditer("\n", text)]
    return list(zip([0, *(end + 1 for end in ends)], [*ends, len(text)], strict=True))


def _wrap_line(text: str, start: int, end: int, width: int) -> list[tuple[int, int]]:
    line = text[start:end]
    if (len(line) if line.isascii() else cell_len(line)) <= width:
        return [(start, end)]
    out: list[tuple[int, int]] = []
    begin, used = start, 0
    for match in _TOKEN.finditer(text, start, end):
        word = match.group()
        bare = word.rstrip()
        size = len(bare) if bare.isascii() else cell_len(bare)
        at = match.start()
        if used + size > width:
            if at > begin and used:
                out.append((begin, at))
                begin, used = at, 0
            if size > width:
                parts = _cut(bare, width)
                for part in parts[:-1]:
                    out.append((begin, at + len(part)))
                    at += len(part)
                    begin = at
                used = cell_len(parts[-1]) + len(word) - len(bare)
                continue
        used += size + len(word) - len(bare)
    out.append((begin, end))
    return out


def _cut(word: str, width: int) -> list[str]:
    """The pieces of a word that is longer than a line; a path is cut between its folders where that leaves no line
    half empty."""
    if "/" not in word:
        return chop_cells(word, width)
    parts: list[str] = []
    begin = 0
    while begin < len(word):
        part = chop_cells(word[begin : begin + width], width)[0]
        folders = part.rfind("/") + 1
        if begin + len(part) < len(word) and folders > len(part) // 2:
            part = part[:folders]
        parts.append(part)
        begin += len(part)
    return parts


Run: TypeAlias = tuple[int, str, str | None]
"""``(end, style names, link)``: the text from the end of the run before up to ``end``."""
Decoration: TypeAlias = tuple[tuple[str, str], ...]
"""``(text, style names)`` pieces that are drawn and never copied."""
Action: TypeAlias = tuple[str, str | list[str]]
"""``("copy", lines of text)``, ``("fold", key)`` or ``("picture", key)``: what a click does."""
Wrap: TypeAlias = Literal["word", "char", "cut"]

MAX_PROSE = 120
"""Prose wider than this many cells is hard to read; tables, and lines of code that are longer, use all there is."""


@dataclass(slots=True, eq=False)
class Line:
    """One line on the screen."""

    row: int
    text: str
    """The whole row's."""
    fill: Style
    segments: list[tuple[str, Style, int]] = field(default_factory=list)
    """Each with the place in the row's text where it begins, -1 for decoration."""
    actions: tuple[tuple[int, int, Action], ...] = ()
    """``(from cell, to cell, action)``."""
    strip: Strip | None = None
    """The plain painted line, once it was painted."""
    shown: Strip | None = None
    """The same as it was last handed to the screen, in the view that ``look`` stands for."""
    look: object = None

    @property
    def plain(self) -> str:
        return "".join(text for text, _, _ in self.segments)

    @property
    def cells(self) -> int:
        return sum(cell_len(text) for text, _, _ in self.segments)

    def add(self, text: str, style: Style, start: int = -1) -> None:
        self.segments.append((text, style, start))

    def pad(self, width: int, style: Style) -> None:
        """Draws blanks up to that many cells."""
        if (missing := width - self.cells) > 0:
            self.add(" " * missing, style)


@dataclass(slots=True, eq=False)
class Flow:
    """A logical row: its text, how the text is styled, what stands before its lines."""

    text: str = ""
    runs: Sequence[Run] = ()
    _: KW_ONLY
    base: str = ""
    first: Decoration = ()
    rest: Decoration | None = None
    """Before all lines but the first, where that is something else."""
    fill: str = ""
    """The background."""
    bare: int = 0
    """Pieces of the decoration that stay without it."""
    boxed: bool = False
    """It ends where prose does, or with the text where that is longer."""
    wrap: Wrap = "word"
    kept: int | None = None
    """A row that is cut loses what follows that many characters, up to the end that fits; else its end."""
    wide: bool = False
    lead: str = ""
    """Copied before the text when the row is copied from its start (a list's marker, a diff's sign)."""
    silent: bool = False
    """Decoration only, never copied."""
    right: str = ""
    """Drawn at the right end of the first line."""
    right_action: Action | None = None
    action: Action | None = None
    ruled: str = ""
    """The style of a rule that goes on behind its last line."""

    def __post_init__(self) -> None:
        # A terminal would jump where a blank is counted.
        if "\t" in self.text:
            self.text = self.text.replace("\t", " ")
        if "\t" in self.right:
            self.right = self.right.replace("\t", " ")

    def lay(self, row: int, width: int, palette: Palette) -> list[Line]:
        """Returns the row's lines at ``width`` cells."""
        first, rest = self.leads(width)
        right = self._right(width - cells_in(first))
        beside = cell_len(right) + 2 if self.wrap == "cut" else 1
        room, below = (max(1, width - cells_in(lead) - beside) for lead in (first, rest))
        if not self.wide:
            room, below = min(room, MAX_PROSE), min(below, MAX_PROSE)
        fill = palette("" if self.boxed else self.fill)
        edge = min(width, cells_in(first[: self.bare]) + MAX_PROSE) if self.boxed else width
        out: list[Line] = []
        for start, end in self._ranges(room, below):
            line = Line(row, self.text, fill)
            for k, (text, style) in enumerate(rest if out else first):
                line.add(text, palette(style if k < self.bare else f"{self.fill} {style}"))
            self._text(line, start, end, palette, room)
            out.append(line)
        self._finish(out[0], right, edge, palette)
        if self.ruled and (rule := width - 2 - out[-1].cells) > 0:
            out[-1].add(f" {'─' * rule}", palette(self.ruled))
        if self.boxed:
            for line in out:
                line.pad(edge, palette(self.fill))
        return out

    def height(self, width: int) -> int:
        """Returns how many lines ``lay`` makes, without making them."""
        first, rest = self.leads(width)
        most = width if self.wide else MAX_PROSE
        room, below = (min(most, max(1, width - cells_in(lead) - 1)) for lead in (first, rest))
        return len(self._ranges(room, below))

    def leads(self, width: int) -> tuple[Decoration, Decoration]:
        """Returns what stands before the first line and before the others."""
        first = bounded(self.first, width)
        return first, first if self.rest is None else bounded(self.rest, width)

    def _right(self, width: int) -> str:
        """Returns the text at the right end: beside a text that is cut it takes no more than half of the line, unless
        the text leaves it more. What stands behind its last dot stays."""
        room = max(width // 2, width - cell_len(self.text) - 2)
        if self.wrap != "cut" or cell_len(self.right) <= room:
            return self.right
        before, dot, last = self.right.rpartition(" · ")
        return shorten(before, max(1, room - cell_len(dot + last))) + dot + last

    def _ranges(self, room: int, below: int) -> list[tuple[int, int]]:
        """Returns the lines' parts of the text: the first in ``room`` cells, the others in ``below``."""
        if not self.text or self.wrap == "cut":
            return [(0, len(self.text))]
        broken = chop if self.wrap == "char" else wrap
        lines = broken(self.text, room)
        if len(lines) == 1 or room == below:
            return lines
        at = lines[1][0]
        return [lines[0], *((at + begin, at + end) for begin, end in broken(self.text[at:], below))]

    def _text(self, line: Line, start: int, end: int, palette: Palette, room: int) -> None:
        text = self.text
        if self.wrap != "char":
            end = start + len(text[start:end].rstrip(" "))
        tail, parts = -1, [(start, end)]
        if self.kept is not None and (gap := room - 1 - cell_len(text[: self.kept])) > 0 and cell_len(text) > room:
            tail = tail_of(text, gap)
            parts = [(0, self.kept), (tail, len(text))]
        left = room
        for part in parts:
            for at, stop, names, link in runs_in(self.runs or ((len(text), "", None),), *part):
                piece = f"…{text[at:stop]}" if at == tail else text[at:stop]
                if self.wrap == "cut":
                    size = cell_len(piece)
                    if size > left:
                        piece = set_cell_size(piece, max(0, left - 1)) + "…"
                    left -= size
                line.add(piece, palette(f"{self.fill} {self.base} {names}", link), at - (at == tail))
                if left <= 0:
                    return

    def _finish(self, line: Line, right: str, width: int, palette: Palette) -> None:
        # Where the eye is: above the end of the prose, not at the far side of a wide screen.
        prose = min(width, cells_in(self.first[: self.bare]) + MAX_PROSE)
        at = min(width - 1 - cell_len(right), max(prose - 1 - cell_len(right), line.cells + 2))
        if right and at > line.cells:
            line.pad(at, palette(self.fill))
            line.add(right, palette(f"{self.fill} label"))
            if self.right_action is not None:
                line.actions = ((at, width, self.right_action),)
        if self.action is not None:
            line.actions += ((0, width, self.action),)


def runs_in(runs: Sequence[Run], start: int, end: int) -> Iterator[tuple[int, int, str, str | None]]:
    """Yields the runs of a part of a text, each with where it begins and ends."""
    for run_end, names, link in runs:
        stop = min(run_end, end)
        if stop > start:
            yield start, stop, names, link
            start = stop
        if run_end >= end:
            return


class Drawn(Flow):
    """A silent row whose decoration depends on the width: a rule, a table's border."""

    __slots__ = ("_draw",)

    def __init__(self, draw: Callable[[int], str], first: Decoration) -> None:
        super().__init__(first=first, silent=True)
        self._draw = draw

    def lay(self, row: int, width: int, palette: Palette) -> list[Line]:
        first, _ = self.leads(width)
        line = Line(row, "", palette(""))
        for text, style in first:
            line.add(text, palette(style))
        line.add(self._draw(max(1, width - cells_in(first) - 1)), palette("rule"))
        return [line]


def bounded(decoration: Decoration, width: int) -> Decoration:
    """Decoration that leaves at least half of the line to the text."""
    size = cells_in(decoration)
    if size * 2 <= width or not decoration:
        return decoration
    text = "".join(text for text, _ in decoration)[: max(0, width // 2)]
    return ((text, decoration[-1][1]),) if text else ()


def cells_in(decoration: Decoration) -> int:
    """Returns the cells that decoration takes."""
    return sum(cell_len(text) for text, _ in decoration)


MAX_LINE = 100_000
"""Characters of one line that are shown. Far beyond anything readable, small enough to lay out at once."""
MAX_TEXT = 1_000_000
"""Characters of one text that are shown; copying still gives all of it."""


def shown_line(line: str) -> str:
    """A line of at most ``MAX_LINE`` characters, saying how many are missing, and without tabs."""
    return (line if len(line) <= MAX_LINE else line[:MAX_LINE] + hidden(len(line) - MAX_LINE)).expandtabs(4)


def hidden(count: int) -> str:
    """Returns the words that stand for text that is not shown."""
    return f" … {plural(count, 'more character')}"
