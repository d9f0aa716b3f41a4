"""Finds where a motion leads: a table from its key to a function that knows only text and cursor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from agent_tui.records import dataclass
from agent_tui.ui.vim.text import BLANK, Place, TextBuffer, Walker

FAR = 1_000_000
"""The column that ``$`` wants: the end, however long the line."""

Reach = Literal["exclusive", "inclusive", "lines"]


@dataclass(slots=True, frozen=True)
class MotionRequest:
    """A motion's key, and the situation that it starts from. ``count`` is None where none was typed; ``argument`` is
    the character that ``f`` was given; ``wanted`` is the column that up and down keep; ``operator`` waits for the
    motion, if any; ``visual``: the cursor may stand at the end of a line. ``found``: the last ``f F t T`` and its
    character, for ``;`` and ``,``."""

    key: str
    text: TextBuffer
    cursor: Place
    count: int | None = None
    argument: str = ""
    wanted: int = 0
    operator: str = ""
    visual: bool = False
    found: tuple[str, str] | None = None

    @property
    def times(self) -> int:
        return self.count or 1

    def row(self, by: int) -> int | None:
        """So many rows on, or as far as there are; None where there is none at all."""
        row = min(max(self.cursor[0] + by, 0), self.text.last)
        return row if row != self.cursor[0] or not by else None


@dataclass(slots=True, frozen=True)
class Move:
    """Where a motion leads, and what an operator takes. ``wanted``: the column to keep; None is that of ``to``."""

    to: Place
    reach: Reach = "exclusive"
    wanted: int | None = None


Motion = Callable[[MotionRequest], Move | None]
"""None: the motion is not possible from there."""


def _left(asked: MotionRequest) -> Move | None:
    place = asked.cursor
    for _ in range(min(asked.times, place[1])):
        place = asked.text.on((place[0], place[1] - 1))
    return Move(place) if asked.cursor[1] or asked.operator else None


def _right(asked: MotionRequest) -> Move | None:
    text, place = asked.text, asked.cursor
    for _ in range(min(asked.times, text.length(place[0]))):
        following = text.after(place)
        if not asked.visual and following[1] >= text.length(place[0]):
            return Move(place, "inclusive") if asked.operator or place != asked.cursor else None
        place = following
    return Move(place) if place != asked.cursor or asked.operator else None


def _up_or_down(asked: MotionRequest) -> Move | None:
    row = asked.row(asked.times if asked.key == "j" else -asked.times)
    if row is None:
        return None
    return Move(asked.text.within((row, asked.wanted), asked.visual), "lines", asked.wanted)


def _first_word_of_row(asked: MotionRequest) -> Move | None:
    row = asked.row({"+": asked.times, "-": -asked.times, "_": asked.times - 1}[asked.key])
    if row is None:
        return None
    # Yanking lines leaves the cursor where it is.
    stays = asked.key == "_" and asked.operator == "y"
    return Move((row, asked.cursor[1]) if stays else asked.text.first_word(row), "lines")


def _line_end(asked: MotionRequest) -> Move | None:
    row = asked.row(asked.times - 1)
    if row is None:
        return None
    return Move(asked.text.within((row, FAR), asked.visual), "inclusive", FAR)


def _last_word(asked: MotionRequest) -> Move | None:
    row = asked.row(asked.times - 1)
    if row is None:
        return None
    return Move(asked.text.on((row, max(0, len(asked.text.lines[row].rstrip(" \t")) - 1))), "inclusive")


def _column(asked: MotionRequest) -> Move:
    return Move(asked.text.within((asked.cursor[0], asked.times - 1), asked.visual), wanted=asked.times - 1)


def _line(asked: MotionRequest) -> Move:
    text = asked.text
    row = asked.count - 1 if asked.count else 0 if asked.key == "gg" else text.last
    return Move(text.first_word(min(row, text.last)), "lines")


def _word(asked: MotionRequest) -> Move | None:
    """``w e b ge``; ``W`` …: words between blanks. A count too large goes as far as it can; with an operator forward
    only."""
    walker = Walker(asked.text, asked.cursor, big=asked.key[-1].isupper())
    reach: Reach = "inclusive"
    match asked.key.lower():
        case "e":
            done = walker.word_end(asked.times)
        case "ge":
            done = walker.end_back(asked.times)
        case "b":
            done, reach = walker.word_back(asked.times), "exclusive"
        case _ if asked.operator == "c" and walker.kind != BLANK:
            done = walker.word_end(asked.times, stay=True)
        case _:
            done, reach = walker.next_word(asked.times, bool(asked.operator)), "exclusive"
    place = walker.place
    backward = asked.key in ("b", "B", "ge", "gE")
    if not done and (backward if asked.operator else place == asked.cursor):
        return None
    if place > asked.cursor and not asked.visual and place[1] > 0 and not asked.text.at(place):
        # Not behind the last character, which an operator then takes.
        return Move(asked.text.on(place), "inclusive")
    return Move(place, reach)


def _find(asked: MotionRequest) -> Move | None:
    """``f F t T``, and ``;`` and ``,``, which go on where ``t`` stands before its character already."""
    key, character, again = asked.key, asked.argument, asked.key in (";", ",")
    if again:
        if asked.found is None:
            return None
        key, character = asked.found
        key = key.swapcase() if asked.key == "," else key
    (row, column), line = asked.cursor, asked.text.lines[asked.cursor[0]]
    forward, till = key in "ft", key in "tT"
    step = 1 if forward else -1
    beside = column + step
    if till and again and asked.times == 1 and 0 <= beside < len(line) and line[beside] == character:
        column = beside
    for _ in range(asked.times):
        column = line.find(character, column + 1) if forward else line.rfind(character, 0, max(column, 0))
        if column < 0:
            return None
    return Move((row, column - step if till else column), "inclusive" if forward else "exclusive")


def _paragraph(asked: MotionRequest) -> Move | None:
    lines, row = asked.text.lines, asked.cursor[0]
    by = 1 if asked.key == "}" else -1
    for left in reversed(range(asked.times)):
        seen = bool(lines[row])
        row += by
        while 0 <= row < len(lines) and (lines[row] or not seen):
            seen = seen or bool(lines[row])
            row += by
        if not 0 <= row < len(lines):
            if left:
                return None
            row -= by
    if row == len(lines) - 1 and by > 0 and lines[row]:
        return Move(asked.text.on((row, len(lines[row]))), "inclusive")
    return Move((row, 0))


PARTNERS = {"(": ")", ")": "(", "[": "]", "]": "[", "{": "}", "}": "{"}


def _pair(asked: MotionRequest) -> Move | None:
    """``%``: the partner of the next bracket of the line; with a count so many percent of the text."""
    if asked.count is not None:
        row = (min(asked.count, 100) * len(asked.text.lines) + 99) // 100 - 1
        return Move(asked.text.first_word(row), "lines") if asked.count <= 100 else None
    row, column = asked.cursor
    line = asked.text.lines[row]
    start = next((i for i in range(column, len(line)) if line[i] in PARTNERS), None)
    if start is None:
        return None
    sign = line[start]
    found = partner(asked.text, (row, start), sign, PARTNERS[sign], 1 if sign in "([{" else -1)
    return Move(found, "inclusive") if found else None


def partner(text: TextBuffer, place: Place, sign: str, other: str, by: int) -> Place | None:
    """The ``other`` that closes (``by`` 1) or opens (``by`` -1) the level that ``place`` is on; ``sign`` nests."""
    depth, (row, column) = 0, place
    while 0 <= row <= text.last:
        line = text.lines[row]
        column += by
        while 0 <= column < len(line):
            if line[column] == other:
                if depth == 0:
                    return row, column
                depth -= 1
            elif line[column] == sign:
                depth += 1
            column += by
        row += by
        column = -1 if by > 0 else (text.length(row) if row >= 0 else 0)
    return None


FINDS = "fFtT"
MOTIONS: dict[str, Motion] = {
    "h": _left,
    "l": _right,
    **dict.fromkeys("jk", _up_or_down),
    **dict.fromkeys("+-_", _first_word_of_row),
    "0": lambda asked: Move((asked.cursor[0], 0)),
    "^": lambda asked: Move(asked.text.first_word(asked.cursor[0])),
    "$": _line_end,
    "g_": _last_word,
    "|": _column,
    **dict.fromkeys(("G", "gg"), _line),
    **dict.fromkeys(("w", "W", "e", "E", "b", "B", "ge", "gE"), _word),
    **dict.fromkeys("{}", _paragraph),
    "%": _pair,
    **dict.fromkeys((*FINDS, ";", ","), _find),
}
ALIASES = {"left": "h", "backspace": "h", "right": "l", " ": "l", "down": "j", "up": "k", "home": "0", "end": "$"}
"""Keys that mean the same as a letter."""
