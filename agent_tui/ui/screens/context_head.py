"""Words in lines of a width: nothing is cut off, or it is said that there is more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rich.cells import cell_len, chop_cells

from agent_tui.commands.report import ContextReport, estimated, expectation, largest_kind, share_words
from agent_tui.models.context import ContextUsage, Draft
from agent_tui.models.rows import MESSAGES, ROW_KINDS
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import (
    largest_remainder,
    money,
    plural,
    tenths_of,
    tokens,
    total_text,
    whole_percent,
)
from agent_tui.ui.theme import Paint, Piece, width_of
from agent_tui.ui.widgets.drawn_lines import Lines

LEAST = 8
_BRACKETS = re.compile(r" \(.*\)")
BETWEEN = " · "


def in_lines(text: str, width: int) -> list[str]:
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
            if len(in_lines(BETWEEN.join([*kept, said]), width)) <= most:
                kept.append(said)
                break
    return in_lines(BETWEEN.join(kept), width) if kept else []


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
    cells = largest_remainder(room, [size for _, size in parts])
    for i, (_, size) in enumerate(parts):
        if size > 0 and cells[i] == 0 and room > len(parts):
            largest = max(range(len(cells)), key=cells.__getitem__)
            cells[largest] -= 1
            cells[i] += 1
    return [(name, 1 if name == LIMIT else n) for (name, _), n in zip(parts, cells, strict=True)]


FILL = "█"
"""Where colours tell the parts of the bar apart. Sixteen are too few for that, so patterns do it there."""


@dataclass(slots=True, frozen=True)
class Said:
    """A part of the headline, with the theme's colour of its words; ``swatch``: the row whose colour stands before."""

    text: str
    color: str = "foreground"
    bold: bool = False
    swatch: str = ""

    @property
    def width(self) -> int:
        return cell_len(self.text) + 2 * bool(self.swatch)


def headline(moment: ContextReport) -> list[Said]:
    """How full it is, what fills it, and when it compacts."""
    usage, total = moment.usage, moment.usage.total + moment.in_flight
    rough = usage.approximate or moment.in_flight > 0
    used = tokens(total, True) if moment.in_flight else total_text(usage)
    color = "error" if usage.over else "foreground"
    of = f"{used} of an unknown window"
    if usage.window:
        part = share_words(total, tenths_of(total, usage.window), rough)
        of = f"{used} of {tokens(usage.window, False)}, {part}"
    said = [Said(of, color, bold=True)]
    if (largest := largest_kind(moment.whole)) is not None:
        row, tenths = largest
        kind = ROW_KINDS.get(row.id)
        label = kind.label if kind is not None else one_line(row.label, 40)
        part = share_words(row.tokens, tenths, rough or estimated(row), used=moment.whole.total)
        said.append(Said(f"{label.lower()} {part}", swatch=row.id if kind is None else kind.drawn or kind.id))
    said.append(_compaction(usage, total, rough))
    if usage.draft is not None:
        said.append(Said(draft_words(usage.draft), "muted"))
    return said


SOON = 2
"""Turns before a compaction from which on it is told as a warning."""


def _compaction(usage: ContextUsage, total: int, rough: bool) -> Said:
    if usage.limit is None:
        return Said("no automatic compaction", "muted")
    if usage.held:
        return Said(usage.held, "warning")
    if usage.would_compact or total >= usage.limit:
        return Said("compacts next", "error")
    turns = usage.turns_left
    if turns is None:
        return Said(f"compacts in {tokens(usage.limit - total, rough)} tokens")
    if turns == 0:
        return Said("probably compacts in the next turn", "warning")
    return Said(f"compacts in about {plural(turns, 'turn')}", "warning" if turns <= SOON else "foreground")


def draft_words(draft: Draft) -> str:
    """What is written and not sent yet. It is in no total and in no row: those are of what was said."""
    size = tokens(draft.tokens, draft.approximate)
    return f"+ {size} queued and typed, not sent yet" if draft.waiting else f"+ {size} typed, not sent yet"


def next_price(usage: ContextUsage) -> str:
    """``next request ~$0.04 · 86 % cached``; empty where nothing is known of it."""
    forecast = usage.forecast
    if forecast is None or not usage.total or usage.would_compact:
        return ""  # What is compacted first is not the request that was foreseen.
    cost = f" ~{money(forecast.usd)} ·" if forecast.usd else ""
    return f"next request{cost} {whole_percent(min(forecast.read, usage.total), usage.total)} cached"


class Head(Lines):
    """The headline; at its right what the next request costs."""

    DEFAULT_CSS = "Head { padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(id="head", height=1)
        self._said: list[list[Said]] = []
        self._right = ""
        self._at = -1

    @property
    def priced(self) -> bool:
        """Whether there was room for what the next request costs."""
        return self._at >= 0

    def show(self, moment: ContextReport, width: int) -> int:
        """The headline of a moment, as many lines as it takes in ``width`` cells."""
        if moment.problem:
            parts = [Said(line, "warning") for line in in_lines(moment.problem, width)]
            lines = [[part] for part in parts]
        else:
            lines, told = [[]], headline(moment)
            if sum(part.width + len(APART) for part in told) - len(APART) > width:
                told = [part for part in told if not part.swatch]  # The rows below say it.
            for said in told:
                used = sum(part.width + len(APART) for part in lines[-1])
                if used and used + said.width > width:
                    lines.append([])
                if said.width <= width:
                    lines[-1].append(said)
                else:
                    cut = [replace(said, text=text, swatch="") for text in in_lines(said.text, width)]
                    lines[-1:] = [*(lines[-1:] if lines[-1] else []), *([part] for part in cut)]
        self._right = "" if moment.title or moment.problem else next_price(moment.usage)
        room = [width - sum(part.width + len(APART) for part in line) for line in lines]
        fits = (place for place, left in enumerate(room) if left >= cell_len(self._right))
        self._at = next(fits, -1) if self._right else -1
        if lines != self._said or self._right:
            self.refresh()
        self._said = lines
        if self.line_count != len(lines):
            self.set_height(len(lines))
        return len(lines)

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if y >= len(self._said):
            return []
        pieces: list[Piece] = []
        for said in self._said[y]:
            pieces += [(APART, paint())] if pieces else []
            if kind := ROW_KINDS.get(said.swatch):
                plain = self.app.no_color or self.app.current_theme.ansi
                pieces.append((f"{kind.pattern if plain else '■'} ", paint(kind.variable)))
            pieces.append((said.text, paint(said.color, bold=said.bold)))
        if y == self._at:
            pieces.append((" " * (width - width_of(pieces) - cell_len(self._right)), paint()))
            pieces.append((self._right, paint("muted")))
        return pieces


APART = "   "


class StepCaption(Lines):
    """What is told of the marked step, or of now, below the timeline; then the names of the columns. Where there is no
    timeline yet it begins with the bar."""

    DEFAULT_CSS = "StepCaption { padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(id="told")
        self._usage: ContextUsage | None = None
        self._words: list[tuple[str, str]] = []
        self._headings = ""

    def show(
        self,
        moment: ContextReport,
        width: int,
        bar: int,
        gap: int,
        room: tuple[int, int, bool],
        signs: Sequence[str] = (),
    ) -> int:
        """Another moment, its words wrapped to ``width``; the bar is ``bar`` lines high, and ``gap`` lines are left
        free around. ``signs`` explains those of the timeline. ``room``: facts are said shorter, or left out, where
        there would be more than so many lines, and
        what is told of a step where there would be more than the second; whether the price is told above. Returns how
        many lines it takes.
        """
        most, most_told, priced = room
        self._usage = moment.usage
        title = [(line, "title") for line in in_lines(one_line(moment.title, 300), width)] if moment.title else []
        told = [line for said in moment.told for line in in_lines(one_line(said, 1_000), width)]
        if moment.problem:
            return self._set([*title, *((line, "told") for line in told)][: max(1, most)])
        above = [*[("", "bar")] * bar, *[("", "gap")] * gap, *title]
        rest = len(above) + gap + 1
        shown = [(line, "told") for line in shortened(told, most_told - rest, width)]
        short = "" if moment.usage.forecast is None or moment.usage.forecast.cold else next_price(moment.usage)
        expected = short.replace(" ·", ",") or expectation(moment.usage, moment.prices)
        facts = BETWEEN.join([*signs, moment.facts("" if short and priced else expected)])
        shown += [(line, "facts") for line in fitting(facts, most - rest - len(shown), width)]
        return self._set([*above, *shown, *[("", "gap")] * gap, ("", "headings")])

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
        color = {"told": "foreground", "title": "accent"}.get(kind, "muted")
        text = self._headings if kind == "headings" else text
        return [(text, paint(color, bold=kind == "title"))]

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
