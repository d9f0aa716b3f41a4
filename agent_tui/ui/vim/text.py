"""The text that is edited, as lines, and places in it. Nothing here changes anything: each change gives a new text."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

Place = tuple[int, int]
"""(row, column), both from 0; the column counts characters of the line."""

BLANK, PUNCTUATION, WORD = 0, 1, 2

_SCRIPTS = ((0x3040, 0x309F), (0x30A0, 0x30FF), (0x3400, 0x9FFF), (0xAC00, 0xD7A3))
"""Hiragana, Katakana, Chinese characters, Hangul: a word ends where the script does."""


def kind_of(character: str, big: bool) -> int:
    """The class of a character: words are runs of one class. ``big``: only blanks separate (``W``, ``B``, ``E``)."""
    if not character or character in " \t":
        return BLANK
    if big:
        return PUNCTUATION
    if character.isalnum() or character == "_":
        code = ord(character)
        for index, (first, last) in enumerate(_SCRIPTS):
            if first <= code <= last:
                return WORD + 1 + index
        return WORD
    return PUNCTUATION


def joins(character: str) -> bool:
    """Whether a character stands on the one before it, as accents do."""
    return bool(unicodedata.combining(character)) or character in "\ufe0f\u200d"


@dataclass(slots=True, frozen=True)
class Text:
    """At least one line."""

    lines: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Text:
        return cls(tuple(text.split("\n")))

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def last(self) -> int:
        """The last row."""
        return len(self.lines) - 1

    def length(self, row: int) -> int:
        return len(self.lines[row])

    def at(self, place: Place) -> str:
        """The character there; empty at the end of a line."""
        line = self.lines[place[0]]
        return line[place[1]] if place[1] < len(line) else ""

    def after(self, place: Place) -> Place:
        """Behind the character at ``place`` and what stands on it; the same at the end of a line."""
        row, column = place
        line = self.lines[row]
        column += column < len(line)
        while column < len(line) and joins(line[column]):
            column += 1
        return row, column

    def on(self, place: Place) -> Place:
        """The beginning of the character that ``place`` is in, and never behind the last of the line."""
        row, column = place
        line = self.lines[row]
        column = min(column, max(0, len(line) - 1))
        while 0 < column < len(line) and joins(line[column]):
            column -= 1
        return row, column

    def within(self, place: Place, past_end: bool = False) -> Place:
        """The nearest place that exists. ``past_end``: the end of a line is one."""
        row = min(max(place[0], 0), self.last)
        column = min(max(place[1], 0), self.length(row))
        return (row, column) if past_end else self.on((row, column))

    def first_word(self, row: int) -> Place:
        """The first character of a row that is not blank, or its last."""
        line = self.lines[row]
        indent = self.indent(row)
        return self.on((row, indent if indent < len(line) else max(0, len(line) - 1)))

    def indent(self, row: int) -> int:
        """How many blanks the row begins with."""
        line = self.lines[row]
        return len(line) - len(line.lstrip(" \t"))

    def between(self, start: Place, end: Place) -> str:
        """The text from ``start`` up to ``end``, which is not part of it."""
        if start[0] == end[0]:
            return self.lines[start[0]][start[1] : end[1]]
        first, last = self.lines[start[0]][start[1] :], self.lines[end[0]][: end[1]]
        return "\n".join([first, *self.lines[start[0] + 1 : end[0]], last])

    def replaced(self, start: Place, end: Place, new: str) -> Text:
        """With ``new`` in place of what lies between the two."""
        around = f"{self.lines[start[0]][: start[1]]}{new}{self.lines[end[0]][end[1] :]}"
        return Text((*self.lines[: start[0]], *around.split("\n"), *self.lines[end[0] + 1 :]))

    def with_rows(self, first: int, last: int, new: tuple[str, ...]) -> Text:
        """With ``new`` in place of the rows from ``first`` to ``last``, both included."""
        return Text((*self.lines[:first], *new, *self.lines[last + 1 :]) or ("",))

    def advanced(self, start: Place, inserted: str) -> Place:
        """The end of ``inserted`` where it begins at ``start``."""
        rows = inserted.count("\n")
        if not rows:
            return start[0], start[1] + len(inserted)
        return start[0] + rows, len(inserted) - inserted.rfind("\n") - 1
