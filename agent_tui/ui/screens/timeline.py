"""The timeline of the context as it is drawn: stacked columns up to the limit, strips of the cache and the cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from rich.cells import cell_len
from textual import events
from textual.geometry import Region
from textual.message import Message

from agent_tui.context.chart import (
    AHEAD,
    EIGHTHS,
    LEFT,
    Band,
    Course,
    Scale,
    Slot,
    bands_of,
    fold_words,
    scale_of,
    slots_of,
    ticks,
)
from agent_tui.context.timeline import NOW, Column, Folded
from agent_tui.models.rows import FREE as FREE_SPACE
from agent_tui.models.rows import ROW_KINDS
from agent_tui.records import dataclass
from agent_tui.text.numbers import tokens
from agent_tui.ui.theme import FADED, Paint, Piece
from agent_tui.ui.widgets.drawn_lines import Lines

BLOCKS = " ▁▂▃▄▅▆▇█"
LABEL = 7
"""Cells of the axis at the left, the blank before the columns included."""
CROWDED = 6
"""More compactions than these are not marked one by one: the cliffs show them."""
GHOST, HALF = "┊", "╷"
"""A whole line and half of one of a column that only may come, or was left, where there are no colours."""
DOTS, RULES = "⡀⠄⠂⠁", "▁──▔"
"""What the lines of the axis and of the limit are drawn with, by the quarter of a cell where they stand."""


Look = tuple[str | None, str | None, bool]
"""Names of the colour in front and behind, and whether it is bold."""
NO_LOOK: Look = (None, None, False)


@dataclass(slots=True)
class Grid:
    """Cells of ``width`` × ``height``, the highest line first; ``signs``: what stands there without words, in words."""

    width: int
    height: int
    lines: list[list[tuple[str, Look]]] = field(default_factory=list)
    signs: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lines = [[(" ", NO_LOOK)] * self.width for _ in range(self.height)]

    def put(self, x: int, y: int, text: str, look: Look) -> None:
        """Text from a cell on, as far as it is inside; what stands behind its cells stays."""
        for place, char in enumerate(text, x):
            if 0 <= place < self.width and 0 <= y < self.height:
                back = self.lines[y][place][1][1]
                self.lines[y][place] = (char, (look[0], look[1] or back, look[2]))

    def free(self, x: int, y: int, count: int) -> bool:
        """True where nothing stands in these cells, and in the one before and behind them."""
        if x < 0 or x + count > self.width or not 0 <= y < self.height:
            return False
        line = self.lines[y]
        return all(_is_free(*line[place]) for place in range(max(0, x - 1), min(self.width, x + count + 1)))


def _is_free(char: str, look: Look) -> bool:
    """Whether a word may stand on it: a blank, a dot of the axis, the limit's line."""
    return char == " " or char in DOTS or (char in RULES and look[0] == "warning")


def cell_of(bands: Sequence[Band], row: int) -> tuple[str, str, str | None] | None:
    """A line of a column: its block, the kind in front, and the kind behind it; None where it is empty."""
    low = row * EIGHTHS
    here = [(name, end - low) for name, start, end in bands if end > low and start < low + EIGHTHS]
    if not here:
        return None
    (name, end), *others = here
    return BLOCKS[min(EIGHTHS, end)], name, others[0][0] if others else None


def color_of(name: str, left: bool = False) -> str:
    """The colour of a row; faded in a column that a rewind left behind."""
    kind = ROW_KINDS.get(name)
    color = FREE_SPACE.variable if kind is None else kind.variable
    return FADED + color if left and kind is not None else color


def pattern_of(name: str) -> str:
    kind = ROW_KINDS.get(name)
    return GHOST if kind is None else kind.pattern


@dataclass(slots=True, frozen=True)
class ChartStyle:
    """What a picture is drawn with. ``patterns``: colours alone do not tell the parts apart."""

    patterns: bool = False
    cache: bool = True
    cost: bool = False


def draw(course: Course, slots: Sequence[Slot], width: int, height: int, how: ChartStyle) -> Grid:
    """The picture: columns in ``height`` lines, the numbers of the steps, and the strips."""
    grid = Grid(width, height + 1 + how.cache + how.cost)
    limit, scale = course.limit, scale_of(max((slot.total for slot in slots), default=0), course.limit, height)
    for number in ticks(scale, height, limit):
        row, quarter = scale.place(number)
        _rule(grid, height - 1 - row, number, DOTS[quarter] + " " * 3, "line", "faint")
    row, quarter = scale.place(limit) if limit else (height, 0)
    if limit and row < height:
        _rule(grid, height - 1 - row, limit, RULES[quarter], "warning", "warning")
    columns = bands_of(slots, scale, not how.patterns)
    for slot, bands in zip(slots, columns, strict=True):
        _column(grid, slot, bands, height, how, _is_marked(slot, course.marked))
        if slot.left:
            grid.signs[f"{GHOST if how.patterns else 'faded'}: left by a rewind"] = None
    if row < height:
        _word(grid, height - 1 - row, "limit", ("warning", None, False))
    elif limit:
        text = f"limit {tokens(limit, False)} ↑"
        if (x := next((x for x in (width - len(text), LABEL) if grid.free(x, 0, len(text))), None)) is not None:
            grid.put(x, 0, text, ("faint", None, False))
    for place in range(len(slots) - 1, -1, -1):
        column = slots[place].column
        if column is not None and column.folds:
            _say_folds(grid, slots, place, scale, height)
    _axis(grid, slots, height, course.marked)
    if how.cache:
        _strip(grid, slots, height + 1, "cache", how)
    if how.cost:
        _strip(grid, slots, height + 1 + how.cache, "cost", how)
    return grid


def _rule(grid: Grid, y: int, number: int, signs: str, color: str, label: str) -> None:
    """A line over all columns, which are drawn in front of it, with its number."""
    grid.put(LABEL, y, signs * (grid.width // len(signs) + 1), (color, None, False))
    grid.put(0, y, tokens(number, False).rjust(LABEL - 1), (label, None, False))


def _is_marked(slot: Slot, marked: int) -> bool:
    column = slot.column
    if column is None:
        return False
    return column.number == NOW if marked == NOW else column.number != NOW and column.first <= marked <= column.last


def _column(grid: Grid, slot: Slot, bands: Sequence[Band], height: int, how: ChartStyle, marked: bool) -> None:
    for row in range(height):
        y, made = height - 1 - row, cell_of(bands, row)
        if made is None:
            if marked and how.patterns:
                if not row or cell_of(bands, row - 1) is not None:
                    grid.put(slot.x + slot.width // 2 + LABEL, y, "▾", ("accent", None, True))
            elif marked:
                for x in range(slot.x, slot.x + slot.width):
                    char, (front, _, bold) = grid.lines[y][x + LABEL]
                    grid.lines[y][x + LABEL] = (char, (front, "panel", bold))
            continue
        char, front, back = made
        if how.patterns and (slot.left or front in (AHEAD, LEFT)):
            char = GHOST if char in BLOCKS[6:] else HALF if char in BLOCKS[2:] else " "
        elif how.patterns and char == BLOCKS[-1]:
            char = pattern_of(front)
        behind = color_of(back, slot.left) if back is not None else "panel" if marked and not how.patterns else None
        grid.put(slot.x + LABEL, y, char * slot.width, (color_of(front, slot.left), behind, False))
        for x in (slot.x + LABEL - 1, slot.x + LABEL + slot.width):
            if LABEL <= x < grid.width and grid.lines[y][x][0] in DOTS:
                grid.lines[y][x] = (" ", NO_LOOK)


def _word(grid: Grid, y: int, text: str, look: Look) -> None:
    """A word on a line, at its beginning or its end, where it covers nothing."""
    for x in (LABEL, grid.width - len(text)):
        if grid.free(x, y, len(text)):
            grid.put(x, y, text + " " * (x + len(text) < grid.width), look)
            return


def _say_folds(grid: Grid, slots: Sequence[Slot], place: int, scale: Scale, height: int) -> None:
    """What was compacted, in the room above the cliff; shorter, or only a mark, where it would cover a column."""
    slot = slots[place]
    assert slot.column is not None
    folds = slot.column.folds
    before = slots[place - 1] if place else slot
    top = min(height - 1, (scale.filled(before.total) - 1) // EIGHTHS)
    own = (scale.filled(slot.total) - 1) // EIGHTHS + 1
    rows = [*range(top, own - 1, -1), *range(top + 1, height)]
    crowded = sum(slot.column is not None and bool(slot.column.folds) for slot in slots) > CROWDED
    texts = fold_texts(folds)
    for text in texts[:2] if crowded else texts:
        for row in rows:
            size = cell_len(text)
            for x in (slot.x + LABEL, grid.width - size) if row <= top else (slot.x + LABEL - size // 2,):
                if (row > top or x >= slot.x + LABEL) and grid.free(x, height - 1 - row, size):
                    grid.put(x, height - 1 - row, text, ("context-summary", None, len(text) > 1))
                    if text != texts[0]:
                        grid.signs.update({f"▼ {fold.what}": None for fold in folds})
                    return


def fold_texts(folds: Sequence[Folded]) -> list[str]:
    """What is said of compactions at one place, the longest first."""
    fold = max(folds, key=lambda each: (each.before or 0) - (each.after or 0))
    what, sizes, undone = fold_words(fold, sum(each.what == fold.what for each in folds))
    return [f"▼ {what}{sizes}{undone}", f"▼{sizes}{undone}" if sizes else "▼", "▼"]


def _axis(grid: Grid, slots: Sequence[Slot], y: int, marked: int) -> None:
    """The numbers of the steps: the marked one, the first, and round ones where there is room; the turns ahead."""
    grid.put(0, y, "step".rjust(LABEL - 1), ("faint", None, False))
    named: list[tuple[int, str, Look]] = []
    steps: list[tuple[int, str, Look]] = []
    every = _stride([slot.column for slot in slots if slot.column is not None], slots)
    for slot in slots:
        column = slot.column
        if column is None:
            continue
        if _is_marked(slot, marked):
            text = "now" if marked == NOW else f"{marked:,}"
            named.insert(0, (slot.middle, text, ("accent", None, True)))
        elif column.number == NOW:
            named.append((slot.middle, "now", ("muted", None, False)))
        elif column.first == 1 or (number := column.last // every * every) >= column.first:
            text = f"{1 if column.first == 1 else number:,}"
            steps.append((slot.middle, text, ("faint", None, False)))
    last = slots[-1] if slots else None
    if last is not None and last.turn:
        for text in (f"+{last.turn:,} turn{'s' * (last.turn > 1)}", f"+{last.turn:,}"):
            named.append((last.x + last.width - len(text) // 2, text, ("faint", None, False)))
    taken = [False] * (grid.width + 1)
    for middle, text, look in [*named, *steps]:
        if text.startswith("+") and any(char == "+" for char, _ in grid.lines[y]):
            continue
        x = max(LABEL, min(grid.width - len(text), LABEL + middle - len(text) // 2))
        if x + len(text) <= grid.width and not any(taken[max(LABEL, x - 1) : x + len(text) + 1]):
            taken[x : x + len(text)] = [True] * len(text)
            grid.put(x, y, text, look)


def _stride(columns: Sequence[Column], slots: Sequence[Slot]) -> int:
    """Every so many steps one is named: as often as there is room for."""
    count = max((column.last for column in columns), default=1)
    cells = (slots[-1].x + slots[-1].width) / max(1, len(slots)) * len(columns) / max(1, count) if slots else 1.0
    step = 1
    while step * cells < len(f"{count:,}") + 2:
        step = next((step * by for by in (2, 5) if step * by * cells >= len(f"{count:,}") + 2), step * 10)
    return step


def _strip(grid: Grid, slots: Sequence[Slot], y: int, name: str, how: ChartStyle) -> None:
    """One line of small columns: the share read from the cache, or the cost beside the highest."""
    grid.put(0, y, name.rjust(LABEL - 1), ("faint", None, False))
    columns = [(slot, column) for slot in slots if (column := slot.column) is not None]
    values = [column.read if name == "cache" else column.cost for _, column in columns]
    most = 1.0 if name == "cache" else max((value for value in values if value), default=0.0)
    for (slot, column), value in zip(columns, values, strict=True):
        if value is None or not most:
            continue
        color = "faint" if column.left or column.number == NOW else "success" if name == "cache" else "secondary"
        block = BLOCKS[max(1, min(EIGHTHS, round(value / most * EIGHTHS)))]
        grid.put(slot.x + LABEL, y, block * slot.width, (color if value else "line", None, False))


def sparkline(course: Course, width: int) -> list[tuple[str, Look]]:
    """All columns in one line, where there is no room for more."""
    ends = (f"{course.timeline.count:,} steps ", " now")
    room = width - len(ends[0]) - len(ends[1])
    if room < EIGHTHS:
        ends, room = ("", ""), width
    slots = slots_of(course, max(1, room))
    scale = scale_of(max((slot.total for slot in slots), default=0), course.limit, 1)
    line: list[tuple[str, Look]] = [(" ", NO_LOOK)] * room
    for slot in slots:
        marked = _is_marked(slot, course.marked)
        block = BLOCKS[min(EIGHTHS, scale.filled(slot.total))]
        name = "line" if slot.turn or (slot.column is not None and slot.column.left) else "context-messages"
        for x in range(slot.x, min(room, slot.x + slot.width)):
            line[x] = (block, ("accent" if marked else name, "panel" if marked else None, marked))
    used = max((slot.x + slot.width for slot in slots if not slot.turn), default=0)
    first = [(char, ("faint", None, False)) for char in ends[0]]
    last: list[tuple[str, Look]] = [(char, ("faint", None, False)) for char in ends[1]]
    if any(slot.turn for slot in slots) or course.marked != NOW:
        last = []
    return [*first, *line[: max(used, len(line) if not last else used)], *last]


class TimelineView(Lines):
    """The timeline. A click goes to the step of a column."""

    DEFAULT_CSS = "TimelineView { padding: 0 1; }"

    @dataclass
    class Picked(Message):
        """A click on a column: the number of its step, 0 for now."""

        number: int

    def __init__(self) -> None:
        super().__init__(id="timeline")
        self._slots: list[Slot] = []
        self._lines: list[list[tuple[str, Look]]] = []
        self.signs: Sequence[str] = ()
        """What of it has no words beside it, in words."""

    def show(self, course: Course | None, width: int, height: int, how: ChartStyle) -> int:
        """The picture in ``width`` cells, its columns in ``height`` lines: none for nothing, one for a sparkline.
        Returns how many lines it takes in all. Only lines that are others now are drawn again."""
        lines: list[list[tuple[str, Look]]] = []
        self.signs = ()
        if course is None or height < 1 or width < 1:
            self._slots = []
        elif height == 1 or width <= 3 * LABEL:
            lines = [sparkline(course, width)]
            self._slots = []
        else:
            self._slots = slots_of(course, width - LABEL)
            grid = draw(course, self._slots, width, height, how)
            lines, self.signs = grid.lines, list(grid.signs)
        old, self._lines = self._lines, lines
        if len(lines) != self.line_count:
            self.set_height(len(lines))
        elif self.is_mounted:
            changed = [y for y, (one, two) in enumerate(zip(old, lines, strict=False)) if one != two]
            if changed:
                self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))
        return len(lines)

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        if y >= len(self._lines):
            return []
        pieces: list[Piece] = []
        plain = self.app.no_color
        text, look = "", NO_LOOK
        for char, other in self._lines[y]:
            if other != look and text:
                pieces.append((text, _style(look, paint, plain)))
                text = ""
            text, look = text + char, other
        return [*pieces, (text, _style(look, paint, plain))]

    def on_click(self, event: events.Click) -> None:
        x = event.x - 1 - LABEL
        for slot in self._slots:
            if slot.column is not None and slot.x <= x <= slot.x + slot.width:
                event.stop()
                self.post_message(self.Picked(slot.column.number))
                return


def _style(look: Look, paint: Paint, plain: bool):  # type: ignore[no-untyped-def]
    front, back, bold = look
    return paint(bold=bold) if plain else paint(front, back, bold=bold)
