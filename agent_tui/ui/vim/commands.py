"""What keys mean in normal and visual mode: read from the beginning each time, so that nothing is half remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.ui.vim.marks import MARKS
from agent_tui.ui.vim.motions import ALIASES, FINDS, MOTIONS
from agent_tui.ui.vim.objects import OBJECTS

OPERATORS = frozenset({"d", "c", "y", ">", "<", "gu", "gU", "g~"})
CHARACTER_FOLLOWS = frozenset({*FINDS, *MARKS, "r", "m"})
NORMAL = frozenset({*"iaIAoOxXsSDCYpPJ~uvV.rRm;,", *FINDS, *MARKS, "gJ", "gv", "ctrl+r"})
VISUAL = frozenset({*"oOxXsSRDCYpPJ~uUvVrm;,", *FINDS, *MARKS, "gJ", "delete"})
SHORT = {"x": "dl", "X": "dh", "D": "d$", "C": "c$", "s": "cl", "S": "cc", "Y": "yy", "delete": "dl"}
"""Commands that stand for an operator with its motion."""
LONGEST_COUNT = 4
"""Digits; no prompt has more lines, and a slip must not repeat something for minutes."""


@dataclass(slots=True, frozen=True)
class Command:
    """``key`` is a command, a motion or an operator; of an operator ``motion`` is a motion, an object (``iw``), or
    ``lines`` (``dd``). ``argument`` is the character that ``f``, ``r`` or ``m`` was given. ``count`` is None where none
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


def read(keys: Sequence[str], visual: bool) -> Command:
    """The command that the keys are. Raises Incomplete or Unknown."""
    reader = _Reader([ALIASES.get(key, key) for key in keys], list(keys), visual)
    return reader.command()


class _Reader:
    def __init__(self, keys: list[str], typed: list[str], visual: bool) -> None:
        self._keys = keys
        self._typed = typed
        self._visual = visual
        self._at = 0

    def _next(self, typed: bool = False) -> str:
        if self._at == len(self._keys):
            raise Incomplete
        self._at += 1
        return (self._typed if typed else self._keys)[self._at - 1]

    def _character(self) -> str:
        """The character that a key is given; not a key such as ``left``."""
        found = self._next(typed=True)
        if len(found) != 1:
            raise Unknown
        return found

    def _count(self) -> int | None:
        digits = ""
        while True:
            key = self._next()
            if len(key) == 1 and key in "0123456789" and (digits or key != "0"):
                digits += key
                continue
            self._at -= 1
            return int(digits[:LONGEST_COUNT]) if digits else None

    def _prefixed(self, key: str) -> str:
        return key + self._next() if key == "g" else key

    def command(self) -> Command:
        register, count = "", self._count()
        while (key := self._next()) == '"':
            register = self._character()
            more = self._count()
            count = more if count is None else count * (more or 1)
        key = self._prefixed(key)
        if self._visual and key in "ia":
            return Command(key + self._object(), count=count, register=register)
        if key in OPERATORS:
            return self._operator(key, count, register)
        if not self._visual and key in SHORT:
            operator, motion = SHORT[key][0], SHORT[key][1]
            return Command(operator, "lines" if motion == operator else motion, "", count, register)
        if key not in (VISUAL if self._visual else NORMAL) and key not in MOTIONS:
            raise Unknown
        argument = self._character() if key in CHARACTER_FOLLOWS else ""
        return Command(key, "", argument, count, register)

    def _operator(self, operator: str, count: int | None, register: str) -> Command:
        if self._visual:
            return Command(operator, "", "", count, register)
        more = self._count()
        if more is not None:
            count = more * (count or 1)
        key = self._next()
        if key == operator[-1] or (key == "g" and operator[0] == "g" and self._doubled(operator)):
            return Command(operator, "lines", "", count, register)
        if key in ("i", "a"):
            return Command(operator, key + self._object(), "", count, register)
        key = self._prefixed(key)
        if key not in MOTIONS and key not in FINDS and key not in MARKS and key not in ";,":
            raise Unknown
        return Command(operator, key, self._character() if key in CHARACTER_FOLLOWS else "", count, register)

    def _doubled(self, operator: str) -> bool:
        """``gugu`` for ``guu``; anything else after the second ``g`` is read as a motion."""
        if self._next() == operator[-1]:
            return True
        self._at -= 1
        return False

    def _object(self) -> str:
        key = self._next(typed=True)
        if key not in OBJECTS:
            raise Unknown
        return key
