"""Keeps what the terminal shows, so that only what is different is sent to it, and what only moved is moved there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from textual.color import Color
    from textual.filter import LineFilter
    from textual.strip import Strip

Cells: TypeAlias = dict[int, str]
"""A row, or the parts of it that may have changed: the text with its control sequences by the column it begins at."""

LEAST_MOVED = 4
"""Rows that must have moved together before moving them is thought of."""
MOVING = 32
"""Bytes of the control sequences that move rows."""
NO_REGIONS = ("", "dumb", "unknown", "emacs", "cons25")
"""Values of ``TERM`` of terminals that cannot scroll a part of the screen; all others do since the VT100."""


class Frame(NamedTuple):
    text: str
    """What is to be sent; empty when the terminal shows all of it already."""
    rows: list[Cells | None]
    """What the terminal shows then."""
    shaped: bool
    """Whether a row may begin its parts at other columns than before."""


class ScreenBuffer:
    """Rows as they were sent. A row that is not known (None) has to be sent whole. ``regions``: the terminal can scroll
    a part of its screen. ``shapes`` is another number whenever rows are not known any more, or may be made of other
    parts."""

    def __init__(self, regions: bool) -> None:
        self.regions = regions
        self.width = 0
        self.shapes = 0
        self._rows: list[Cells | None] = []

    def forget(self) -> None:
        """The terminal may show anything: it was resized, or somebody else wrote to it."""
        self._rows = [None] * len(self._rows)
        self.shapes += 1

    def fit(self, width: int, height: int) -> None:
        """The screen's size; another one than before makes everything unknown."""
        if width != self.width or height != len(self._rows):
            self.width = width
            self.shapes += 1
            self._rows = [None] * height

    def knows(self, y: int, columns: Sequence[int]) -> bool:
        """Returns whether the row is known, and is made of parts that begin at these columns."""
        row = self._rows[y]
        return row is not None and list(row) == columns

    def frame(self, changes: Mapping[int, Cells], whole: Mapping[int, bool]) -> Frame:
        """Returns what has to be sent for these rows; ``whole`` ones are given in all their parts, of others what may
        differ."""
        rows = self._rows.copy()
        wanted: dict[int, Cells] = {}
        for y in sorted(changes):
            have = rows[y]
            want = changes[y] if whole[y] or have is None else {**have, **changes[y]}
            if want != have:
                wanted[y] = want
        out = [_move(rows, wanted) if self.regions and len(wanted) >= LEAST_MOVED else ""]
        for y, want in wanted.items():
            _write(out, y, rows[y], want)
            rows[y] = want
        return Frame("".join(out), rows, any(whole.values()))

    def sent(self, frame: Frame) -> None:
        """The frame is on its way to the terminal, and nothing was since it was made."""
        self._rows = frame.rows
        self.shapes += frame.shaped


def _move(rows: list[Cells | None], wanted: dict[int, Cells]) -> str:
    """Moves rows on the terminal where that leaves less to send; ``wanted`` may get rows then that moved along."""
    top, bottom = min(wanted), max(wanted)
    region = rows[top : bottom + 1]
    if any(row is None for row in region):
        return ""
    have = [row for row in region if row is not None]
    want = [wanted.get(y, have[y - top]) for y in range(top, bottom + 1)]
    by = _shift([_longest(row) for row in have], [_longest(row) for row in want])
    if by == 0:
        return ""
    gap: list[Cells | None] = [None] * abs(by)
    after = [*have[by:], *gap] if by > 0 else [*gap, *have[:by]]
    before = sum(_size(a, b) for a, b in zip(have, want, strict=True))
    if sum(_size(a, b) for a, b in zip(after, want, strict=True)) + MOVING >= before:
        return ""
    rows[top : bottom + 1] = after
    wanted.clear()
    wanted.update({top + k: row for k, row in enumerate(want) if row != after[k]})
    margins = f"\x1b[{top + 1};{bottom + 1}r"
    if by > 0:
        return f"{margins}\x1b[{bottom + 1};1H" + "\n" * by + "\x1b[r"
    return f"{margins}\x1b[{top + 1};1H" + "\x1bM" * -by + "\x1b[r"


def _longest(row: Cells) -> str:
    return max(row.values(), key=len, default="")


def _shift(have: Sequence[str], want: Sequence[str]) -> int:
    """By how many rows most of the texts moved upwards; 0 where few did."""
    seen = Counter(have)
    place = {text: y for y, text in enumerate(have) if seen[text] == 1}
    votes = Counter(place[text] - y for y, text in enumerate(want) if text in place)
    if not votes:
        return 0
    by, count = max(votes.items(), key=lambda vote: (vote[1], -abs(vote[0])))
    return by if count >= LEAST_MOVED else 0


def _size(have: Cells | None, want: Cells) -> int:
    """About how many bytes it takes to make one row of the other."""
    if have is None or have.keys() != want.keys():
        return sum(map(len, want.values()))
    return sum(len(text) for x, text in want.items() if have[x] != text)


def _write(out: list[str], y: int, have: Cells | None, want: Cells) -> None:
    """The parts of a row that are different. A terminal may think that a text that is not plain ASCII is wider than we
    do: what stands right of it is written after it."""
    if have is not None and have.keys() != want.keys():
        have = None
    going_on = spilled = False
    for x, text in want.items():
        if have is not None and have[x] == text and not spilled:
            going_on = False
            continue
        spilled = spilled or not text.isascii()
        if not going_on or spilled:
            out.append(f"\x1b[{y + 1};{x + 1}H")
        out.append(text)
        going_on = True


def can_scroll_regions(term: str | None = None) -> bool:
    """Returns whether a terminal of this name (of the environment's) can scroll a part of its screen."""
    return (os.environ.get("TERM", "") if term is None else term) not in NO_REGIONS


def through(strip: Strip, filters: Sequence[LineFilter], background: Color) -> Strip:
    """A line behind filters that may have to know what is behind it."""
    for line_filter in filters:
        strip = strip.apply_filter(line_filter, background)
    return strip


def runs(rows: Iterable[int]) -> list[tuple[int, int]]:
    """Returns rows, which go down, that follow each other: the first of them, and how many."""
    out: list[tuple[int, int]] = []
    for y in rows:
        if out and sum(out[-1]) == y:
            out[-1] = out[-1][0], out[-1][1] + 1
        else:
            out.append((y, 1))
    return out
