"""Words in lines of a width: nothing is cut off, or it is said that there is more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len, chop_cells

from agent_tui.commands.report import ContextReport
from agent_tui.models.context import ContextUsage
from agent_tui.models.rows import MESSAGES, ROW_KINDS
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import largest_remainder
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.drawn_lines import Lines

LEAST = 8
_BRACKETS = re.compile(r" \(.*\)")
BETWEEN = " · "


def wrapped(text: str, width: int) -> list[str]:
    """Text in lines of at most ``width`` cells (at least ``LEAST``), broken between its `` · `` parts or words."""
    return joined(text.split(BETWEEN), BETWEEN, width)


def joined(parts: Iterable[str], between: str, width: int) -> list[str]:
    """The same of parts, and what stands between two in a line."""
    width = max(LEAST, width)
    lines = [""]
    for gap, piece in _pieces(parts, between, width):
        longer = f"{lines[-1]}{gap}{piece}" if lines[-1] else piece
        if cell_len(longer) <= width:
            lines[-1] = longer
            continue
        first, *more = chop_cells(piece, width) or [""]
        if lines[-1]:
            lines.append(first)
        else:
            lines[-1] = first
        lines += more
    return lines


def fitting(text: str, most: int, width: int) -> list[str]:
    """The `` · `` parts of a text in at most ``most`` lines: whole, without their brackets, or left out."""
    kept: list[str] = []
    for part in text.split(BETWEEN):
        for said in dict.fromkeys((part, _BRACKETS.sub("", part))):
            if len(wrapped(BETWEEN.join([*kept, said]), width)) <= most:
                kept.append(said)
                break
    return wrapped(BETWEEN.join(kept), width) if kept else []


def shortened(lines: list[str], most: int, width: int) -> list[str]:
    """At most the first ``most`` lines of wrapped words; an ellipsis says that they go on."""
    if len(lines) <= most or most < 1:
        return lines[: max(0, most)]
    last = lines[most - 1]
    while last and cell_len(last) + 2 > width:
        last = last.rpartition(" ")[0]
    return [*lines[: most - 1], f"{last} …".lstrip()]


def _pieces(parts: Iterable[str], between: str, width: int) -> Iterator[tuple[str, str]]:
    for part in parts:
        if cell_len(part) <= width:
            yield between, part
            continue
        for number, word in enumerate(part.split()):
            yield " " if number else between, word


LIMIT = "limit"


def segments(usage: ContextUsage) -> Iterator[tuple[str, int]]:
    """Row ids with their tokens, from left to right; kinds of messages with a colour of their own stand apart."""
    for row in usage.rows:
        if row.id != MESSAGES.id:
            yield row.id, row.tokens
            continue
        own = [
            (kind.id, child.tokens) for child in row.children if (kind := ROW_KINDS.get(child.id)) and not kind.drawn
        ]
        yield row.id, row.tokens - sum(tokens for _, tokens in own)
        yield from own


def bar_cells(usage: ContextUsage, width: int) -> list[tuple[str, int]]:
    """(row id, ``free``, ``limit`` or ``reserve``; cells), ``width`` in all. What has tokens has a cell; so has the
    limit."""
    parts = [(name, tokens) for name, tokens in segments(usage) if tokens > 0]
    if usage.window is not None and usage.free is not None and usage.reserve is not None:
        if usage.over:
            parts += [(LIMIT, 0), ("reserve", max(0, usage.window - usage.total))]
        else:
            parts += [("free", usage.free), (LIMIT, 0), ("reserve", usage.reserve)]
    marks = sum(1 for name, _ in parts if name == LIMIT)
    room = max(0, width - marks)
    cells = largest_remainder(room, [tokens for _, tokens in parts])
    for i, (_, tokens) in enumerate(parts):
        if tokens > 0 and cells[i] == 0 and room > len(parts):
            largest = max(range(len(cells)), key=cells.__getitem__)
            cells[largest] -= 1
            cells[i] += 1
    return [(name, 1 if name == LIMIT else n) for (name, _), n in zip(parts, cells, strict=True)]


FILL = "█"
"""Where colours tell the parts of the bar apart. Sixteen are too few for that, so patterns do it there."""


class Head(Lines):
    DEFAULT_CSS = "Head { padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(id="head", height=3)
        self._usage: ContextUsage | None = None
        self._words: list[tuple[str, str]] = []
        self._headings = ""

    def show(self, moment: ContextReport, width: int, thick: int, gap: int, most: int, most_told: int) -> int:
        """Another moment, its words wrapped to ``width``; the bar is ``thick`` lines high, and ``gap`` lines below are
        left free above the names of the columns. Facts are said shorter, or left out, where there would be more than
        ``most`` lines, and what is told of a step where there would be more than ``most_told``. Returns how many lines
        it takes.
        """
        self._usage = moment.usage
        title = [(line, "title") for line in wrapped(one_line(moment.title, 300), width)] if moment.title else []
        words = [(line, "words") for line in joined(moment.sentences(), " ", width)]
        told = [line for said in moment.told for line in wrapped(one_line(said, 1_000), width)]
        if moment.problem:
            words = [(line, "words") for line in wrapped(moment.problem, width)]
            return self._set([*title, *words, *((line, "told") for line in told)][: max(1, most)])
        above = [*title, *words, *[("", "bar")] * thick]
        rest = len(above) + gap + 1
        shown = [(line, "told") for line in shortened(told, most_told - rest, width)]
        shown += [(line, "facts") for line in fitting(moment.facts(), most - rest - len(shown), width)]
        return self._set([*above, *shown, *[("", "facts")] * gap, ("", "headings")])

    def _set(self, words: list[tuple[str, str]]) -> int:
        self._words = words
        if self.line_count != len(words):
            self.set_height(len(words))
        self.refresh()
        return len(words)

    def name_columns(self, text: str) -> None:
        self._headings = text

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if self._usage is None or y >= len(self._words):
            return []
        text, kind = self._words[y]
        if kind == "bar":
            return self.bar(self._usage, width, paint)
        words = "error" if self._usage.over else "foreground"
        color = {"told": "foreground", "title": "accent", "words": words}.get(kind, "muted")
        text = self._headings if kind == "headings" else text
        return [(text, paint(color, bold=kind in ("title", "words")))]

    def bar(self, usage: ContextUsage, width: int, paint: Paint) -> list[Piece]:
        plain, few = self.app.no_color, self.app.current_theme.ansi
        pieces: list[Piece] = []
        for name, cells in bar_cells(usage, width):
            kind = ROW_KINDS.get(name)
            if name == LIMIT:
                pieces.append(("┊", paint("warning", bold=True)))
            elif kind is None:
                pieces.append((FILL * cells, paint("primary")))
            else:
                fill = kind.pattern if plain or few or name == "reserve" else FILL
                pieces.append((fill * cells, paint() if plain else paint(kind.variable)))
        return pieces
