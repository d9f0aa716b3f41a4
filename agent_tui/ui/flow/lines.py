"""Makes screen lines of a width from logical rows (a paragraph, a line of code), wrapped, cut and bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.style import Style
from textual.strip import Strip

from agent_tui.text.cells import shorten, tail_of
from agent_tui.text.numbers import plural
from agent_tui.ui.flow.palette import Palette

_WIDE = (
    "\u1100-\u11ff\u2e80-\u303f\u3040-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff"
)
_CLOSING = "、。，．！？）」』】〉》：；"
_TOKEN = re.compile(rf"[{_WIDE}][{_CLOSING}]*\s*|[^\s{_WIDE}]+\s*|\s+")


def wrap(text: str, width: int) -> list[tuple[int, int]]:
    """Ranges of characters, one a line, broken at spaces (and between ideographs); words longer than a line are cut.
    ``\\n`` ends a line. Spaces at a break belong to the line before it, which may thus be wider than ``width``."""
    return [piece for start, end in _lines(text) for piece in _wrap_line(text, start, end, max(1, width))]


def chop(text: str, width: int) -> list[tuple[int, int]]:
    """Ranges of characters that fill each line up to ``width`` cells: for code, where spaces are no place to break."""
    out: list[tuple[int, int]] = []
    for start, end in _lines(text):
        line = text[start:end]
        if line.isascii():
            out += [(k, min(k + width, end)) for k in range(start, end, width)] or [(start, end)]
        else:
            _chop_into(out, line, start, width)
    return out


def _lines(text: str) -> list[tuple[int, int]]:
    if "\n" not in text:
        return [(0, len(text))]
    out = []
    start = 0
    for line in text.split("\n"):
        out.append((start, start + len(line)))
        start += len(line) + 1
    return out


def _chop_into(out: list[tuple[int, int]], line: str, start: int, width: int) -> None:
    if cell_len(line) <= width:
        out.append((start, start + len(line)))
        return
    for part in chop_cells(line, width):
        out.append((start, start + len(part)))
        start += len(part)


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
                parts = chop_cells(bare, width)
                for part in parts[:-1]:
                    out.append((begin, at + len(part)))
                    at += len(part)
                    begin = at
                used = cell_len(parts[-1]) + len(word) - len(bare)
                continue
        used += size + len(word) - len(bare)
    out.append((begin, end))
    return out


Run: TypeAlias = tuple[int, str, str | None]
"""``(end, style names, link)``: the text from the end of the run before up to ``end``."""
Decoration: TypeAlias = tuple[tuple[str, str], ...]
"""``(text, style names)`` pieces that are drawn and never copied."""
Action: TypeAlias = tuple[str, str | list[str]]
"""``("copy", lines of text)``, ``("fold", key)`` or ``("picture", key)``: what a click does."""
Wrap: TypeAlias = Literal["word", "char", "cut"]

MAX_PROSE = 120
"""Prose wider than this many cells is hard to read; tables, and lines of code that are longer, use all there is."""


class Line:
    """One line on the screen. ``starts`` holds for each segment where in the row's text it begins, -1 for decoration.
    ``actions`` are ``(from cell, to cell, action)``. ``strip`` is the plain painted line, once it was painted;
    ``shown`` is that as it was last handed to the screen, in the view that ``look`` stands for."""

    __slots__ = ("actions", "fill", "look", "row", "segments", "shown", "starts", "strip", "text")

    def __init__(
        self,
        row: int,
        text: str,
        segments: list[tuple[str, Style]],
        starts: list[int],
        fill: Style,
        actions: tuple[tuple[int, int, Action], ...] = (),
    ) -> None:
        self.row = row
        self.text = text
        self.segments = segments
        self.starts = starts
        self.fill = fill
        self.actions = actions
        self.strip: Strip | None = None
        self.shown: Strip | None = None
        self.look: object = None

    @property
    def plain(self) -> str:
        return "".join(text for text, _ in self.segments)


class Flow:
    """A logical row: its text, how the text is styled, what stands before its lines.

    ``lead`` is what copying puts before the text when the row is copied from its start (a list's marker).
    ``silent`` rows are decoration only and never copied. ``right`` is drawn at the right end of the first line.
    A row that is ``cut`` loses its end, or with ``kept`` what follows that many characters, up to the end that fits.
    ``fill`` is the background; ``bare`` pieces of the decoration stay without it. ``boxed``: it ends where prose does,
    or with the text where that is longer.
    """

    __slots__ = (
        "action",
        "bare",
        "base",
        "boxed",
        "fill",
        "first",
        "kept",
        "lead",
        "rest",
        "right",
        "right_action",
        "runs",
        "silent",
        "text",
        "wide",
        "wrap",
    )

    def __init__(
        self,
        text: str = "",
        runs: Sequence[Run] = (),
        *,
        base: str = "",
        first: Decoration = (),
        rest: Decoration | None = None,
        fill: str = "",
        bare: int = 0,
        boxed: bool = False,
        wrap: Wrap = "word",
        kept: int | None = None,
        wide: bool = False,
        lead: str = "",
        silent: bool = False,
        right: str = "",
        right_action: Action | None = None,
        action: Action | None = None,
    ) -> None:
        self.text = text
        self.runs = runs
        self.base = base
        self.first = first
        self.rest = first if rest is None else rest
        self.fill = fill
        self.bare = bare
        self.boxed = boxed
        self.wrap: Wrap = wrap
        self.kept = kept
        self.wide = wide
        self.lead = lead
        self.silent = silent
        self.right = right
        self.right_action = right_action
        self.action = action

    def lay(self, row: int, width: int, palette: Palette) -> list[Line]:
        """The row's lines at ``width`` cells."""
        first, rest = bounded(self.first, width), bounded(self.rest, width)
        right = self._right(width - _cells(first))
        room, below = (
            max(1, width - _cells(lead) - (1 if self.wrap != "cut" else cell_len(right) + 2)) for lead in (first, rest)
        )
        if not self.wide:
            room, below = min(room, MAX_PROSE), min(below, MAX_PROSE)
        fill = palette("" if self.boxed else self.fill)
        edge = min(width, _cells(first[: self.bare]) + MAX_PROSE) if self.boxed else width
        out: list[Line] = []
        for start, end in self._ranges(room, below):
            segments: list[tuple[str, Style]] = []
            starts: list[int] = []
            for k, (text, style) in enumerate(first if not out else rest):
                segments.append((text, palette(style if k < self.bare else f"{self.fill} {style}")))
                starts.append(-1)
            self._text(segments, starts, start, end, palette, room)
            out.append(Line(row, self.text, segments, starts, fill))
        self._finish(out[0], right, edge, palette)
        if self.boxed:
            for line in out:
                self._fill_up(line, edge, palette)
        return out

    def _fill_up(self, line: Line, edge: int, palette: Palette) -> None:
        """Draws the background up to its edge."""
        used = sum(cell_len(text) for text, _ in line.segments)
        if used < edge:
            line.segments.append((" " * (edge - used), palette(self.fill)))
            line.starts.append(-1)

    def _right(self, width: int) -> str:
        """Returns the text at the right end: beside a text that is cut it takes no more than half of the line, unless
        the text leaves it more. What stands behind its last dot stays."""
        if self.wrap != "cut":
            return self.right
        room = max(width // 2, width - cell_len(self.text) - 2)
        if cell_len(self.right) <= room:
            return self.right
        before, dot, last = self.right.rpartition(" · ")
        return shorten(before, max(1, room - cell_len(dot + last))) + dot + last

    def _ranges(self, room: int, below: int) -> list[tuple[int, int]]:
        """The lines' parts of the text: the first in ``room`` cells, the others in ``below``."""
        if not self.text:
            return [(0, 0)]
        if self.wrap == "cut":
            return [(0, len(self.text))]
        broken = chop if self.wrap == "char" else wrap
        lines = broken(self.text, room)
        if len(lines) == 1 or room == below:
            return lines
        at = lines[1][0]
        return [lines[0], *((at + begin, at + end) for begin, end in broken(self.text[at:], below))]

    def _text(
        self, segments: list[tuple[str, Style]], starts: list[int], start: int, end: int, palette: Palette, room: int
    ) -> None:
        text, fill, base = self.text, self.fill, self.base
        if self.wrap != "char":
            while end > start and text[end - 1] == " ":
                end -= 1
        left = room if self.wrap == "cut" else -1
        if self.kept is not None and (gap := room - 1 - cell_len(text[: self.kept])) > 0 and cell_len(text) > room:
            self._ends(segments, starts, self.kept, tail_of(text, gap), palette)
            return
        begin = start
        for run_end, names, link in self.runs or ((len(text), "", None),):
            if run_end <= begin:
                continue
            stop = min(run_end, end)
            if stop > begin:
                piece = text[begin:stop]
                if left >= 0:
                    size = cell_len(piece)
                    if size > left:
                        piece = set_cell_size(piece, max(0, left - 1)) + "…"
                        size = left
                    left -= size
                segments.append((piece, palette(f"{fill} {base} {names}", link)))
                starts.append(begin)
                begin = stop
                if left == 0:
                    break
            if run_end >= end:
                break

    def _ends(
        self, segments: list[tuple[str, Style]], starts: list[int], kept: int, tail: int, palette: Palette
    ) -> None:
        """The first characters that are kept, and the text from ``tail`` on."""
        begin = 0
        for end, names, link in self.runs or ((len(self.text), "", None),):
            for start, stop in ((begin, min(end, kept)), (max(begin, tail), end)):
                if start < stop:
                    cut = "…" if start == tail else ""
                    segments.append((cut + self.text[start:stop], palette(f"{self.fill} {self.base} {names}", link)))
                    starts.append(start - len(cut))
            begin = end

    def _finish(self, line: Line, right: str, width: int, palette: Palette) -> None:
        actions: list[tuple[int, int, Action]] = []
        if right:
            used = sum(cell_len(text) for text, _ in line.segments)
            at = width - 1 - cell_len(right)
            if at > used:
                line.segments += [
                    (" " * (at - used), palette(self.fill)),
                    (right, palette(f"{self.fill} label")),
                ]
                line.starts += [-1, -1]
                if self.right_action is not None:
                    actions.append((at, width, self.right_action))
        if self.action is not None:
            actions.append((0, width, self.action))
        line.actions = tuple(actions)


class Drawn(Flow):
    """A silent row whose decoration depends on the width: a rule, a table's border."""

    __slots__ = ("_draw",)

    def __init__(self, draw: Callable[[int], str], *, base: str = "", first: Decoration = (), fill: str = "") -> None:
        super().__init__(base=base, first=first, fill=fill, silent=True)
        self._draw = draw

    def lay(self, row: int, width: int, palette: Palette) -> list[Line]:
        first = bounded(self.first, width)
        segments = [(text, palette(f"{self.fill} {style}")) for text, style in first]
        segments.append((self._draw(max(1, width - _cells(first) - 1)), palette(f"{self.fill} {self.base}")))
        return [Line(row, "", segments, [-1] * len(segments), palette(self.fill))]


def blank(first: Decoration = (), fill: str = "") -> Flow:
    """An empty row, copied as an empty line."""
    return Flow("", first=first, fill=fill)


def bounded(decoration: Decoration, width: int) -> Decoration:
    """Decoration that leaves at least half of the line to the text."""
    size = _cells(decoration)
    if size * 2 <= width or not decoration:
        return decoration
    text = "".join(text for text, _ in decoration)[: max(0, width // 2)]
    return ((text, decoration[-1][1]),) if text else ()


def _cells(decoration: Decoration) -> int:
    return sum(cell_len(text) for text, _ in decoration)


MAX_LINE = 100_000
"""Characters of one line that are shown. Far beyond anything readable, small enough to lay out at once."""
MAX_TEXT = 1_000_000
"""Characters of one text that are shown; copying still gives all of it."""


def cap_line(line: str) -> str:
    """A line of at most ``MAX_LINE`` characters, saying how many are missing."""
    return line if len(line) <= MAX_LINE else line[:MAX_LINE] + hidden(len(line) - MAX_LINE)


def hidden(count: int) -> str:
    """Returns the words that stand for text that is not shown."""
    return f" … {plural(count, 'more character')}"
