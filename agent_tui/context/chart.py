"""The chart of the timeline as a plan without colours, which the screen and the page draw: the columns, the scale, the
lines at round numbers, and where each band of a column begins and ends."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterator, Sequence

from agent_tui.context.timeline import NOW, Column, Folded, Stack, Timeline
from agent_tui.records import dataclass
from agent_tui.text.numbers import tokens

EIGHTHS = 8
"""Parts of a line that a block of a terminal can fill."""
QUARTERS = 4
"""Heights in a line at which a terminal can draw another line."""
WIDEST = 10
"""Cells of a column at most, the blank behind it included."""
APART = 3
"""From so many cells on a column has a blank behind it."""
LEAST_AHEAD = 4
"""One of so many cells may be of the projected columns."""
FAR_OFF = 4
"""Where the highest column is less than one of so many parts of the limit, the scale ends at the column."""
LOOK_AHEAD = 1.5
"""How many times as high as the highest column the turns ahead are drawn where the limit is out of sight."""
TICK_ROWS, HIGH = 2, 10
"""Lines between two numbers of the axis at least; one more from so many lines on."""
STAY = 3
"""A band that the column before has stays in place of one that is up to so many times as large."""
AHEAD, LEFT = "ahead", "left"
"""What projected columns are made of, and those whose rows are not known."""

Band = tuple[str, int, int]
"""A row of the breakdown with where it begins and ends in a column, in parts of a line."""


@dataclass(slots=True, frozen=True)
class Course:
    """What is to be drawn: the steps, the next request, and how it goes on. ``marked`` is the number of the step that
    is shown below; ``path`` the ids of the conversation's messages as it is now; ``draft`` the tokens of what is
    written and not sent yet."""

    timeline: Timeline
    path: Container[str]
    now: Column
    ahead: Sequence[int] = ()
    limit: int | None = None
    marked: int = NOW
    draft: int = 0


@dataclass(slots=True, frozen=True)
class Slot:
    """A column's place. ``turn``: a projected one, so many turns from now."""

    x: int
    width: int
    total: int
    stack: Stack
    column: Column | None = None
    turn: int = 0

    @property
    def middle(self) -> int:
        return self.x + self.width // 2

    @property
    def left(self) -> bool:
        """Whether a rewind left it behind."""
        return self.column is not None and self.column.left


def slots_of(course: Course, width: int) -> list[Slot]:
    """The columns side by side in ``width`` cells: steps, the next request, the turns ahead. Where there are more than
    cells, steps next to each other share one, and so do turns."""
    peak, turns = max(course.timeline.peak, course.now.total or 0), len(course.ahead)
    if is_far_off(peak, course.limit):
        # As far as the scale allows: drawn to a limit that is far off they would look near. The headline says when.
        near = (size <= LOOK_AHEAD * peak and is_far_off(size, course.limit) for size in course.ahead)
        turns = sum(itertools.takewhile(bool, near))
    ahead = min(turns, width // LEAST_AHEAD)
    columns = [*course.timeline.columns(max(1, width - ahead - 1), course.path), course.now]
    columns = columns[-max(1, width) :]
    every = len(columns) + ahead
    pitch = min(WIDEST, width // every) if every else 1
    slots: list[Slot] = []
    for place in range(every):
        x, end = (
            (place * width // every, (place + 1) * width // every)
            if pitch < APART
            else (place * pitch, (place + 1) * pitch - 1)
        )
        if place < len(columns):
            column = columns[place]
            stack: Stack = column.stack or (((LEFT, column.total),) if column.total else ())
            draft = course.draft if column.number == NOW else 0
            stack = (*stack, (AHEAD, draft)) if draft else stack
            slots.append(Slot(x, end - x, (column.total or 0) + draft, stack, column))
        else:
            turn = (place - len(columns) + 1) * turns // ahead
            total = course.ahead[turn - 1]
            slots.append(Slot(x, end - x, total, ((AHEAD, total),), turn=turn))
    return slots


def is_far_off(peak: int, limit: int | None) -> bool:
    """Whether the limit is so high, or none is known, that columns of ``peak`` tokens are not drawn up to it."""
    return not limit or peak * FAR_OFF < limit


@dataclass(slots=True, frozen=True)
class Scale:
    """Tokens of one line, and the parts of a line that can be filled."""

    unit: float
    parts: int = EIGHTHS

    def filled(self, size: float) -> int:
        """Parts of lines that are filled at this size: at least one where there is something."""
        return max(1 if size > 0 else 0, round(size / self.unit * self.parts))

    def place(self, size: int) -> tuple[int, int]:
        """The line that contains this size, counted from below, and in which of its quarters that is."""
        # What floats lose at a line's very beginning does not put it into the line below.
        return divmod(int(size / self.unit * QUARTERS + 1e-6), QUARTERS)


def scale_of(peak: int, limit: int | None, height: int) -> Scale:
    """The scale of columns of at most ``peak`` tokens in ``height`` lines. A limit that is in sight stands at the
    beginning of a line where it can."""
    peak = max(1, peak)
    if not limit or is_far_off(peak, limit):
        return Scale(peak / height)
    if height == 1:
        return Scale(max(peak, limit))
    row = height - 1 if peak <= limit else min(height - 1, height * limit // peak)
    return Scale(limit / row if row else peak / height)


def round_step(least: float) -> int:
    """Returns the smallest number of those that people count in (1, 2, 4, 5, 10, …) which is at least this."""
    step = 1
    while step < least:
        step = next((step * by for by in (2, 4, 5) if step * by >= least), step * 10)
    return step


def ticks(scale: Scale, height: int, limit: int | None) -> Iterator[int]:
    """Round numbers for the axis; none whose line is that of the limit, or beside it."""
    step = round_step(scale.unit * (TICK_ROWS + (height >= HIGH)))
    taken = scale.place(limit)[0] if limit else -2
    for number in range(step, int(height * scale.unit) + 1, step):
        row, _ = scale.place(number)
        if row < height and abs(row - taken) > 1:
            yield number


def bands_of(slots: Sequence[Slot], scale: Scale, split: bool = True) -> list[list[Band]]:
    """What each column is made of. A line has room for two bands (one without ``split``, and one where it is not
    filled), so a border moves by up to half a line, and the smallest bands of a column that have no room are not drawn.
    A row that has none in most columns where it is high enough has none in the others: no band comes and goes."""
    every = frozenset(name for slot in slots for name, _ in slot.stack)
    found = _side_by_side(slots, scale, split, every)
    votes: Counter[str] = Counter()
    for slot, bands in zip(slots, found, strict=True):
        drawn = {name for name, _, _ in bands}
        votes.update({name: 1 if name in drawn else -1 for name, _, _ in _seen(slot, scale, split)})
    rare = {name for name, count in votes.items() if count < 0}
    return _side_by_side(slots, scale, split, every - rare) if rare else found


def _side_by_side(slots: Sequence[Slot], scale: Scale, split: bool, wanted: Container[str]) -> list[list[Band]]:
    """The bands of each column, where there is a choice those that the column before it has."""
    found: list[list[Band]] = []
    for slot in slots:
        before = {name for name, _, _ in found[-1]} if found else set[str]()
        found.append(_column_bands(slot, scale, split, wanted, before))
    return found


def _seen(slot: Slot, scale: Scale, split: bool) -> list[tuple[str, int, int]]:
    """The rows of a column that are as high as what can be drawn, a part of a line or without ``split`` half of one,
    with their tokens and where they end in parts of a line."""
    least, below = scale.unit / (scale.parts if split else 2), 0
    found: list[tuple[str, int, int]] = []
    for name, size in slot.stack:
        below += size
        if size >= least:
            found.append((name, size, round(below / scale.unit * scale.parts)))
    return found


def _column_bands(slot: Slot, scale: Scale, split: bool, wanted: Container[str], before: Container[str]) -> list[Band]:
    """The bands of one column: of the rows that are wanted all that there is room for, else its largest."""
    top = scale.filled(slot.total)
    seen = [each for each in _seen(slot, scale, split) if each[0] in wanted]
    while len(seen) > 1:
        if ends := _fitted([end for _, _, end in seen], top, scale.parts, split):
            starts = [0, *ends[:-1]]
            return [(name, start, end) for (name, _, _), start, end in zip(seen, starts, ends, strict=True)]
        seen.remove(min(seen, key=lambda each: each[1] * (STAY if each[0] in before else 1)))
    largest = max(seen or slot.stack, key=lambda each: each[1], default=None)
    return [(largest[0], 0, top)] if largest is not None and top else []


def _fitted(ends: list[int], top: int, line: int, split: bool) -> list[int]:
    """Where bands end that would end at ``ends``, each at least as high as can be drawn: at most one border inside a
    line of ``line`` parts, none where the column's top is inside it. Empty where one would move by more than half a
    line. The border below the highest band is not asked for that: else a low one would come and go with the top."""
    split = split and line > 1
    ends = [*ends[:-1], top]
    most = [top] * len(ends)
    for place in range(len(ends) - 2, -1, -1):
        above = most[place + 1]
        most[place] = above - above % line if above % line else above - (1 if split else line)
    if most[0] < 1:
        return []
    ends[-2] = min(ends[-2], most[-2])
    found: list[int] = []
    low = 0
    for place, end in enumerate(ends[:-1]):
        after = low + (line - low % line if low % line or not split else 1)
        wanted = end if split else line * ((end + line // 2) // line)
        inside, following = wanted % line, ends[place + 1]
        crowded = following // line == wanted // line and following % line and place + 2 < len(ends)
        if inside and crowded and inside <= line - following % line and wanted - inside >= after:
            wanted -= inside
        low = min(max(wanted, after), most[place])
        if abs(low - end) > line // 2:
            return []
        found.append(low)
    return [*found, top]


def fold_words(fold: Folded, times: int = 1) -> tuple[str, str, str]:
    """What happened, between which sizes, and whether it was undone, as far as it is known."""
    known = fold.before is not None and fold.after is not None
    sizes = f" {tokens(fold.before, fold.rough)} → {tokens(fold.after, fold.guess)}" if known else ""
    return f"{fold.what}{f' {times} times' if times > 1 else ''}", sizes, ", undone" if fold.undone else ""
