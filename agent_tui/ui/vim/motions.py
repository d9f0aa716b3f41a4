"""Finds where a motion leads: a table from its key to a function that knows only text and cursor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from agent_tui.records import dataclass
from agent_tui.ui.vim.text import BLANK, Place, Text, Walker, kind_of

FAR = 1_000_000
"""The column that ``$`` wants: the end, however long the line."""

OPENING, CLOSING = "([{<", ")]}>"

Reach = Literal["exclusive", "inclusive", "lines"]


@dataclass(slots=True, frozen=True)
class Asked:
    """The situation that a motion starts from. ``count`` is None where none was typed; ``wanted`` is the column that up
    and down keep; ``operator`` waits for the motion, if any; ``visual``: the cursor may stand at the end of a line."""

    text: Text
    cursor: Place
    count: int | None = None
    argument: str = ""
    wanted: int = 0
    operator: str = ""
    visual: bool = False

    @property
    def times(self) -> int:
        return self.count or 1


@dataclass(slots=True, frozen=True)
class Move:
    """The result of a motion: where it leads, and what an operator takes. ``wanted``: the column to keep; None is that
    of ``to``."""

    to: Place
    reach: Reach = "exclusive"
    wanted: int | None = None


Motion = Callable[[Asked], Move | None]
"""None: the motion is not possible from there."""


def _left(asked: Asked) -> Move | None:
    row, column = asked.cursor
    place = asked.cursor
    for _ in range(min(asked.times, column)):
        place = asked.text.on((row, place[1] - 1))
    return Move(place) if column or asked.operator else None


def _right(asked: Asked) -> Move | None:
    text, place = asked.text, asked.cursor
    for _ in range(min(asked.times, text.length(place[0]))):
        following = text.after(place)
        if not asked.visual and following[1] >= text.length(place[0]):
            return Move(place, "inclusive") if asked.operator or place != asked.cursor else None
        place = following
    return Move(place) if place != asked.cursor or asked.operator else None


def _row(asked: Asked, by: int) -> int | None:
    """So many rows on, or as far as there are; None where there is none at all."""
    row = min(max(asked.cursor[0] + by, 0), asked.text.last)
    return row if row != asked.cursor[0] or not by else None


def _vertical(by: int) -> Motion:
    def move(asked: Asked) -> Move | None:
        row = _row(asked, by * asked.times)
        if row is None:
            return None
        return Move(asked.text.within((row, asked.wanted), asked.visual), "lines", asked.wanted)

    return move


def _first_word_below(by: int, less: int = 0) -> Motion:
    def move(asked: Asked) -> Move | None:
        row = _row(asked, by * (asked.times - less))
        if row is None:
            return None
        # Yanking lines leaves the cursor where it is.
        stays = less and asked.operator == "y"
        return Move((row, asked.cursor[1]) if stays else asked.text.first_word(row), "lines")

    return move


def _line_start(asked: Asked) -> Move:
    return Move((asked.cursor[0], 0))


def _line_word(asked: Asked) -> Move:
    return Move(asked.text.first_word(asked.cursor[0]))


def _line_end(asked: Asked) -> Move | None:
    row = _row(asked, asked.times - 1)
    if row is None:
        return None
    return Move(asked.text.within((row, FAR), asked.visual), "inclusive", FAR)


def _last_word(asked: Asked) -> Move | None:
    row = _row(asked, asked.times - 1)
    if row is None:
        return None
    return Move(asked.text.on((row, max(0, len(asked.text.lines[row].rstrip(" \t")) - 1))), "inclusive")


def _column(asked: Asked) -> Move:
    return Move(asked.text.within((asked.cursor[0], asked.times - 1), asked.visual), wanted=asked.times - 1)


def _line(otherwise: Literal["first", "last"]) -> Motion:
    def move(asked: Asked) -> Move:
        last = asked.text.last
        row = (asked.count - 1) if asked.count else (0 if otherwise == "first" else last)
        return Move(asked.text.first_word(min(row, last)), "lines")

    return move


def _settled(asked: Asked, walker: Walker, reach: Reach, done: bool) -> Move | None:
    """A word motion's end: not behind the last character, which an operator then takes."""
    if not done and not asked.operator:
        at_end = walker.place > asked.cursor
        if not at_end:
            return None
    place = walker.place
    if place > asked.cursor and not asked.visual and place[1] > 0 and not asked.text.at(place):
        return Move(asked.text.on(place), "inclusive")
    return Move(place, reach)


def _next_word(big: bool) -> Motion:
    def move(asked: Asked) -> Move | None:
        walker = Walker(asked.text, asked.cursor, big)
        here = asked.text.at(asked.cursor)
        if asked.operator == "c" and here and kind_of(here, big) != BLANK:
            done = walker.word_end(asked.times, stay=True)
            return _settled(asked, walker, "inclusive", done)
        return _settled(asked, walker, "exclusive", walker.next_word(asked.times, bool(asked.operator)))

    return move


def _word_end(big: bool) -> Motion:
    def move(asked: Asked) -> Move | None:
        walker = Walker(asked.text, asked.cursor, big)
        return _settled(asked, walker, "inclusive", walker.word_end(asked.times))

    return move


def _came_near(asked: Asked, walker: Walker) -> bool:
    """With too large a count the cursor goes as far as it can; an operator does nothing."""
    return not asked.operator and walker.place != asked.cursor


def _word_back(big: bool) -> Motion:
    def move(asked: Asked) -> Move | None:
        walker = Walker(asked.text, asked.cursor, big)
        done = walker.word_back(asked.times)
        return Move(walker.place) if done or _came_near(asked, walker) else None

    return move


def _end_back(big: bool) -> Motion:
    def move(asked: Asked) -> Move | None:
        walker = Walker(asked.text, asked.cursor, big)
        done = walker.end_back(asked.times)
        return Move(asked.text.on(walker.place), "inclusive") if done or _came_near(asked, walker) else None

    return move


def find(key: str, character: str, asked: Asked, again: bool = False) -> Move | None:
    """``f F t T``. ``again``: as ``;`` does, which goes on where ``t`` stands before its character already."""
    line, (row, column) = asked.text.lines[asked.cursor[0]], asked.cursor
    forward, till = key in "ft", key in "tT"
    step = 1 if forward else -1
    if till and again and asked.times == 1:
        beside = column + step
        if 0 <= beside < len(line) and line[beside] == character:
            column = beside
    for _ in range(asked.times):
        column = line.find(character, column + 1) if forward else line.rfind(character, 0, max(column, 0))
        if column < 0:
            return None
    return Move((row, column - step if till else column), "inclusive" if forward else "exclusive")


def _paragraph(by: int) -> Motion:
    def move(asked: Asked) -> Move | None:
        lines, row = asked.text.lines, asked.cursor[0]
        left = asked.times
        while left:
            left -= 1
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

    return move


def _pair(asked: Asked) -> Move | None:
    if asked.count is not None:
        rows = len(asked.text.lines)
        row = (min(asked.count, 100) * rows + 99) // 100 - 1
        return Move(asked.text.first_word(row), "lines") if asked.count <= 100 else None
    row, column = asked.cursor
    line = asked.text.lines[row]
    signs = "()[]{}"
    start = next((i for i in range(column, len(line)) if line[i] in signs), None)
    if start is None:
        return None
    sign = line[start]
    opens = sign in OPENING
    other = CLOSING[OPENING.index(sign)] if opens else OPENING[CLOSING.index(sign)]
    found = partner(asked.text, (row, start), sign, other, 1 if opens else -1)
    return Move(found, "inclusive") if found else None


def partner(text: Text, place: Place, sign: str, other: str, by: int) -> Place | None:
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


MOTIONS: dict[str, Motion] = {
    "h": _left,
    "l": _right,
    "j": _vertical(1),
    "k": _vertical(-1),
    "+": _first_word_below(1),
    "-": _first_word_below(-1),
    "_": _first_word_below(1, less=1),
    "0": _line_start,
    "^": _line_word,
    "$": _line_end,
    "g_": _last_word,
    "|": _column,
    "G": _line("last"),
    "gg": _line("first"),
    "w": _next_word(False),
    "W": _next_word(True),
    "e": _word_end(False),
    "E": _word_end(True),
    "b": _word_back(False),
    "B": _word_back(True),
    "ge": _end_back(False),
    "gE": _end_back(True),
    "{": _paragraph(-1),
    "}": _paragraph(1),
    "%": _pair,
}
ALIASES = {
    "left": "h",
    "backspace": "h",
    "right": "l",
    " ": "l",
    "down": "j",
    "up": "k",
    "home": "0",
    "end": "$",
}
"""Keys that mean the same as a letter."""

FINDS = "fFtT"


def moved(key: str, argument: str, asked: Asked, found: tuple[str, str] | None) -> Move | None:
    """Returns where the motion of that key leads. ``found``: the last ``f F t T`` and its character, for ``;`` and
    ``,``."""
    if key in FINDS:
        return find(key, argument, asked)
    if key in ";,":
        if found is None:
            return None
        kind = found[0] if key == ";" else found[0].swapcase()
        return find(kind, found[1], asked, again=True)
    return MOTIONS[key](replace(asked, argument=argument))


MARKS = frozenset("`'")
"""Motions to a mark: to its place, and to its line."""
LAST_JUMP = "'"
JUMPS = frozenset({*MARKS, "G", "gg", "%", "{", "}"})
"""Motions that are jumps: `` `` `` goes back to where they began."""


class Marks:
    """Named by a small letter; what any other character names is not kept."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._text = Text(("",))

    def forget(self, text: Text) -> None:
        """Another text begins."""
        self._places.clear()
        self._text = text

    def set(self, name: str, place: Place) -> None:
        if name.isascii() and name.islower():
            self._places[name] = place
        elif name in MARKS:
            self._places[LAST_JUMP] = place

    def move(self, key: str, name: str, text: Text) -> Move | None:
        """Returns where the motion ``key`` to a mark leads; None where there is none of that name, or not any more."""
        place = self._places.get(LAST_JUMP, (0, 0)) if name in MARKS else self._places.get(name)
        if place is None:
            return None
        row = min(place[0], text.last)
        return Move(text.first_word(row), "lines") if key == "'" else Move(text.within((row, place[1])))

    def follow(self, text: Text) -> None:
        """After each change: marks behind lines that came or went move along, and those of lines that are gone go."""
        old, new = self._text.lines, text.lines
        self._text = text
        if old == new or not self._places:
            return
        if new == ("",):
            self._places.clear()
        most = min(len(old), len(new))
        top = next((row for row in range(most) if old[row] != new[row]), most)
        tail = next((row for row in range(most - top) if old[-1 - row] != new[-1 - row]), most - top)
        moved: dict[str, Place] = {}
        for name, (row, column) in self._places.items():
            if row >= len(old) - tail:
                moved[name] = (row + len(new) - len(old), column)
            elif row < max(top, len(new) - tail):
                moved[name] = (row, column)
        self._places = moved
