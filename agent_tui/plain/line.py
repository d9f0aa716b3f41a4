"""A line that is typed: its text, where the next letter goes, and what was typed before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

UNDONE = 200
"""Changes of a line that can be taken back."""


class _Was(NamedTuple):
    text: str
    at: int


def hangs(text: str, at: int) -> bool:
    """Whether a character is written on the one before it, and takes no cell of its own."""
    return at < len(text) and text[at].isprintable() and not cell_len(text[at])


class Line:
    """Keys that change the line, with the meaning they have in a shell. ``past`` are earlier lines, the newest last."""

    def __init__(self, past: Sequence[str]) -> None:
        self.text = ""
        self.at = 0
        self._past = list(past)
        self._back = 0
        self._typed = ""
        self._cut = ""
        self._was: list[_Was] = []
        self._searched: str | None = None
        self._before = _Was("", 0)

    def put(self, text: str, at: int | None = None) -> None:
        """Lets ``text`` be the line."""
        if text != self.text:
            self._was = [*self._was[1 - UNDONE :], _Was(self.text, self.at)]
        self.text, self.at = text, len(text) if at is None else at

    def clear(self) -> None:
        """A new line begins."""
        self.text, self.at = "", 0
        self._back, self._searched = 0, None
        self._was.clear()

    def remember(self, text: str) -> None:
        """A line that can be had again."""
        if text.strip() and self._past[-1:] != [text]:
            self._past.append(text)

    def insert(self, text: str) -> None:
        if self._searched is not None:
            self._search(self._searched + text, len(self._past) - 1)
        else:
            self.put(self.text[: self.at] + text + self.text[self.at :], self.at + len(text))

    # What is looked for

    @property
    def searched(self) -> str | None:
        """The letters that an earlier line is looked for with; None while none is."""
        return self._searched

    def _search(self, letters: str, newest: int) -> bool:
        """Shows the newest line, from ``newest`` on, with the letters in it."""
        self._searched = letters
        for at in range(newest, -1, -1) if letters else ():
            found = self._past[at].lower().find(letters.lower())
            if found >= 0:
                self._found = at
                self.put(self._past[at], found)
                return True
        return False

    def _search_key(self, name: str) -> bool:
        """Whether a key belongs to the search."""
        if name == "search" and self._searched is None:
            self._before, self._searched = _Was(self.text, self.at), ""
            self._found = len(self._past)
        elif self._searched is None:
            return False
        elif name == "search":
            self._search(self._searched, self._found - 1)
        elif name == "back":
            self._search(self._searched[:-1], len(self._past) - 1)
        elif name in ("cancel", "interrupt"):
            self._searched = None
            self.put(*self._before)
        else:
            self._searched = None
            return False
        return True

    _found = 0

    # Keys

    def press(self, name: str) -> bool:
        """A key that is no letter; False for one that does nothing to a line."""
        if self._search_key(name):
            return True
        text, at = self.text, self.at
        match name:
            case "left":
                self.at = self._left(at)
            case "right":
                self.at = self._right(at)
            case "word left":
                self.at = self._word_left(at)
            case "word right":
                self.at = self._word_right(at)
            case "home":
                self.at = 0
            case "end":
                self.at = len(text)
            case "back":
                self._take(self._left(at), at)
            case "delete":
                self._take(at, self._right(at))
            case "word back":
                self._take(self._word_left(at), at, cut=True)
            case "word delete":
                self._take(at, self._word_right(at), cut=True)
            case "cut left":
                self._take(0, at, cut=True)
            case "cut right":
                self._take(at, len(text), cut=True)
            case "paste":
                self.insert(self._cut)
            case "swap" if len(text) > 1 and at:
                end = min(at + 1, len(text))
                self.put(text[: end - 2] + text[end - 1] + text[end - 2] + text[end:], end)
            case "undo" if self._was:
                self.text, self.at = self._was.pop()
            case "up":
                self._older()
            case "down":
                self._newer()
            case _:
                return False
        return True

    def _take(self, begin: int, end: int, cut: bool = False) -> None:
        if begin < end:
            if cut:
                self._cut = self.text[begin:end]
            self.put(self.text[:begin] + self.text[end:], begin)

    def _left(self, at: int) -> int:
        """One letter with what is written on it."""
        at = max(0, at - 1)
        while at and hangs(self.text, at):
            at -= 1
        return at

    def _right(self, at: int) -> int:
        at = min(len(self.text), at + 1)
        while hangs(self.text, at):
            at += 1
        return at

    def _word_left(self, at: int) -> int:
        found = re.search(r"\S+\s*\Z", self.text[:at])
        return found.start() if found else 0

    def _word_right(self, at: int) -> int:
        found = re.match(r"\s*\S+", self.text[at:])
        return at + found.end() if found else len(self.text)

    def _older(self) -> None:
        if self._back < len(self._past):
            if not self._back:
                self._typed = self.text
            self._back += 1
            self.put(self._past[-self._back])

    def _newer(self) -> None:
        if self._back:
            self._back -= 1
            self.put(self._past[-self._back] if self._back else self._typed)
