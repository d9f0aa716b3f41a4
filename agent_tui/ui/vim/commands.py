"""Reads commands, from the first key each time so that nothing is half remembered; and what is typed in insert mode,
so that undo, counts and ``.`` know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_tui.records import dataclass
from agent_tui.ui.vim.motions import ALIASES, FINDS, MOTIONS
from agent_tui.ui.vim.objects import OBJECTS
from agent_tui.ui.vim.text import Place, TextBuffer

OPERATORS = frozenset({"d", "c", "y", ">", "<", "gu", "gU", "g~"})
CHARACTER_FOLLOWS = frozenset({*FINDS, "r"})
NORMAL = frozenset({*MOTIONS, *"iaIAoOpPJ~uvV.r", "gJ", "gv", "ctrl+r"})
VISUAL = frozenset({*MOTIONS, *"oOxXsSRDCYpPJ~uUvVr", "gJ", "delete"})
SHORT = {
    "x": ("d", "l"),
    "delete": ("d", "l"),
    "X": ("d", "h"),
    "D": ("d", "$"),
    "C": ("c", "$"),
    "s": ("c", "l"),
    "S": ("c", "lines"),
    "Y": ("y", "lines"),
}
"""Commands of normal mode that stand for an operator with its motion."""
DIGITS = frozenset("0123456789")
LONGEST_COUNT = 4
"""Digits; no prompt has more lines, and a slip must not repeat something for minutes."""


@dataclass(slots=True, frozen=True)
class VimCommand:
    """``key`` is a command, a motion or an operator; of an operator ``motion`` is a motion, an object (``iw``), or
    ``lines`` (``dd``). ``argument`` is the character that ``f`` or ``r`` was given. ``count`` is None where none
    was typed."""

    key: str
    motion: str = ""
    argument: str = ""
    count: int | None = None
    register: str = ""


class Incomplete(Exception):
    """More keys have to come."""


class Unknown(Exception):
    """These keys mean nothing."""


def read(keys: Sequence[str], visual: bool) -> VimCommand:
    """The command that the keys are. Raises Incomplete or Unknown."""
    reader = _Reader(keys)
    register, count = "", reader.count()
    while (key := reader.key()) == '"':
        register = reader.character()
        more = reader.count()
        count = more if count is None else count * (more or 1)
    key = reader.whole(key)
    if visual and key in "ia":
        return VimCommand(key + reader.object(), count=count, register=register)
    if key in OPERATORS:
        command = VimCommand(key, count=count, register=register)
        return command if visual else reader.operated(command)
    if not visual and key in SHORT:
        return VimCommand(*SHORT[key], count=count, register=register)
    if key not in (VISUAL if visual else NORMAL):
        raise Unknown
    return VimCommand(key, argument=reader.argument(key), count=count, register=register)


class _Reader:
    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._at = 0

    def _typed(self) -> str:
        if self._at == len(self._keys):
            raise Incomplete
        self._at += 1
        return self._keys[self._at - 1]

    def key(self) -> str:
        typed = self._typed()
        return ALIASES.get(typed, typed)

    def whole(self, key: str) -> str:
        """A key with the second one that belongs to ``g``."""
        return key + self.key() if key == "g" else key

    def character(self) -> str:
        """The character that a key is given; not a key such as ``left``."""
        found = self._typed()
        if len(found) != 1:
            raise Unknown
        return found

    def argument(self, key: str) -> str:
        return self.character() if key in CHARACTER_FOLLOWS else ""

    def count(self) -> int | None:
        digits = ""
        while (key := self.key()) in DIGITS and (digits or key != "0"):
            digits += key
        self._at -= 1
        return int(digits[:LONGEST_COUNT]) if digits else None

    def object(self) -> str:
        key = self._typed()
        if key not in OBJECTS:
            raise Unknown
        return key

    def operated(self, command: VimCommand) -> VimCommand:
        more = self.count()
        if more is not None:
            command = replace(command, count=more * (command.count or 1))
        operator, key = command.key, self.key()
        if key == operator[-1]:
            return replace(command, motion="lines")
        if key in ("i", "a"):
            return replace(command, motion=key + self.object())
        key = self.whole(key)
        if key == operator:  # ``gugu`` for ``guu``
            return replace(command, motion="lines")
        if key not in MOTIONS:
            raise Unknown
        return replace(command, motion=key, argument=self.argument(key))


@dataclass(slots=True, frozen=True)
class TypedChange:
    """So many characters removed before the place where it began, and then ``text``."""

    removed: int
    text: str

    def onto(self, text: TextBuffer, place: Place) -> tuple[TextBuffer, Place]:
        row, column = place
        start = (row, max(0, column - self.removed))
        return text.replaced(start, place, self.text), text.advanced(start, self.text)


@dataclass(slots=True, frozen=True)
class InsertSession:
    """``before`` is the text before the command that led here, ``opened`` the one after it, ``at`` the place where
    typing begins. ``times`` and ``new_lines``: ``3o`` opens two more lines with the same at the end."""

    before: TextBuffer
    opened: TextBuffer
    at: Place
    undo_at: Place
    times: int = 1
    new_lines: bool = False
    began: bool = False

    def typed(self, now: TextBuffer) -> TypedChange:
        """Finds out what was typed, by what the text is now, and returns it."""
        old, new = str(self.opened), str(now)
        at = len("\n".join((*self.opened.lines[: self.at[0]], self.opened.lines[self.at[0]][: self.at[1]])))
        head, tail = old[:at], old[at:]
        if not new.endswith(tail) or len(new) < len(tail):
            # The cursor was moved in between: only the last stretch can be told, as one.
            same = shared(old, new)
            rest = shared(old[same:][::-1], new[same:][::-1])
            return TypedChange(0, new[same : len(new) - rest])
        front = new[: len(new) - len(tail)]
        same = shared(head, front)
        return TypedChange(len(head) - same, front[same:])

    def multiplied(self, now: TextBuffer, cursor: Place, typed: TypedChange) -> tuple[TextBuffer, Place]:
        """With the same typed as often again as a count asked for."""
        if self.times == 1 or (not typed.text and not self.new_lines):
            return now, cursor
        more = (f"\n{typed.text}" if self.new_lines else typed.text) * (self.times - 1)
        return now.replaced(cursor, cursor, more), now.advanced(cursor, more)


def shared(one: str, two: str) -> int:
    differ = (at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    return next(differ, min(len(one), len(two)))


OPENERS = frozenset("iaIAoO")
"""The commands that go into insert mode and change nothing themselves, or open a line."""


def opened(key: str, text: TextBuffer, cursor: Place) -> InsertSession:
    row = cursor[0]
    if key in "oO":
        row += key == "o"
        return InsertSession(text, text.with_rows(row, row - 1, ("",)), (row, 0), cursor, began=True)
    places = {"i": cursor, "a": text.after(cursor), "I": (row, text.indent(row)), "A": (row, text.length(row))}
    return InsertSession(text, text, places[key], places[key], began=True)
