"""The text that is edited, as lines, and places in it, which move by words; undo keeps old texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from agent_tui.records import dataclass

Place = tuple[int, int]
"""(row, column), both from 0; the column counts characters of the line."""

BLANK, PUNCTUATION, WORD = 0, 1, 2

_SCRIPTS = ((0x3040, 0x309F), (0x30A0, 0x30FF), (0x3400, 0x9FFF), (0xAC00, 0xD7A3))
"""Hiragana, Katakana, Chinese characters, Hangul: a word ends where the script does."""


def kind_of(character: str, big: bool) -> int:
    """The class of a character: words are runs of one class. ``big``: only blanks separate (``W``, ``B``, ``E``)."""
    if not character or character in " \t":
        return BLANK
    if big or not (character.isalnum() or character == "_"):
        return PUNCTUATION
    scripts = (number for number, (first, last) in enumerate(_SCRIPTS, 1) if first <= ord(character) <= last)
    return WORD + next(scripts, 0)


def joins(character: str) -> bool:
    """Returns whether a character stands on the one before it, as accents do."""
    return bool(unicodedata.combining(character)) or character in "\ufe0f\u200d"


@dataclass(slots=True, frozen=True)
class TextBuffer:
    """At least one line."""

    lines: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> TextBuffer:
        return cls(tuple(text.split("\n")))

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def last(self) -> int:
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
        return self.on((row, self.indent(row)))

    def indent(self, row: int) -> int:
        line = self.lines[row]
        return len(line) - len(line.lstrip(" \t"))

    def between(self, start: Place, end: Place) -> str:
        if start[0] == end[0]:
            return self.lines[start[0]][start[1] : end[1]]
        first, last = self.lines[start[0]][start[1] :], self.lines[end[0]][: end[1]]
        return "\n".join([first, *self.lines[start[0] + 1 : end[0]], last])

    def replaced(self, start: Place, end: Place, new: str) -> TextBuffer:
        """With ``new`` in place of what lies between the two."""
        around = f"{self.lines[start[0]][: start[1]]}{new}{self.lines[end[0]][end[1] :]}"
        return TextBuffer((*self.lines[: start[0]], *around.split("\n"), *self.lines[end[0] + 1 :]))

    def with_rows(self, first: int, last: int, new: tuple[str, ...]) -> TextBuffer:
        """With ``new`` in place of the rows from ``first`` to ``last``, both included."""
        return TextBuffer((*self.lines[:first], *new, *self.lines[last + 1 :]) or ("",))

    def advanced(self, start: Place, inserted: str) -> Place:
        """The end of ``inserted`` where it begins at ``start``."""
        rows = inserted.count("\n")
        if not rows:
            return start[0], start[1] + len(inserted)
        return start[0] + rows, len(inserted) - inserted.rfind("\n") - 1


STAYED, MOVED, AT_END, NEXT_LINE = -1, 0, 2, 1
"""What a step did: nothing, because the text ends; one character; onto the end of a line; into another line."""


class Walker:
    """A place that moves by single characters. ``big``: words are what blanks separate."""

    def __init__(self, text: TextBuffer, place: Place, big: bool = False) -> None:
        self.text = text
        self.row, self.column = place
        self._big = big

    @property
    def place(self) -> Place:
        return self.row, self.column

    @property
    def kind(self) -> int:
        return kind_of(self.text.at(self.place), self._big)

    @property
    def on_empty_line(self) -> bool:
        return not self.text.lines[self.row]

    def forward(self) -> int:
        length = self.text.length(self.row)
        if self.column < length:
            self.column = self.text.after(self.place)[1]
            return AT_END if self.column == length else MOVED
        if self.row < self.text.last:
            self.row, self.column = self.row + 1, 0
            return NEXT_LINE
        return STAYED

    def back(self) -> int:
        if self.column > 0:
            self.column = self.text.on((self.row, self.column - 1))[1]
            return MOVED
        if self.row > 0:
            self.row -= 1
            self.column = self.text.length(self.row)
            return NEXT_LINE
        return STAYED

    def skip(self, kind: int, step: Callable[[], int], empty_lines: bool = False) -> bool:
        """Past all characters of a kind, past empty lines only where asked; False where the text ended."""
        while self.kind == kind and (empty_lines or not self.on_empty_line):
            if step() == STAYED:
                return False
        return True

    # Each motion leaves the walker where vim leaves its cursor and says whether that was possible.

    def next_word(self, count: int, stop_at_line_end: bool) -> bool:
        """``w``. ``stop_at_line_end``: for an operator, which does not take the line break behind the last of them."""
        for left in reversed(range(count)):
            stops = stop_at_line_end and not left
            kind, last_line = self.kind, self.row == self.text.last
            step = self.forward()
            if step == STAYED or (step >= NEXT_LINE and last_line):
                return False
            if step >= NEXT_LINE and stops:
                return True
            for run in (kind, BLANK):
                while self.kind == run and not self.on_empty_line:
                    step = self.forward()
                    if step == STAYED or (step >= NEXT_LINE and stops):
                        return True
        return True

    def word_end(self, count: int, stay: bool = False, empty_lines: bool = False) -> bool:
        """``e``. ``stay``: where a word ends already, that is its end (``cw``). ``empty_lines`` count as words."""
        for _ in range(count):
            kind = self.kind
            if self.forward() == STAYED:
                return False
            if not stay or kind in (BLANK, self.kind):
                if not self.skip(BLANK, self.forward, not empty_lines):
                    return False
                if self.kind == BLANK:
                    return True
                if not self.skip(self.kind, self.forward):
                    return False
            self.back()
            stay = False
        return True

    def word_back(self, count: int) -> bool:
        """``b``."""
        for _ in range(count):
            if self.back() == STAYED:
                return False
            if not self.skip(BLANK, self.back):
                return True
            if not self.on_empty_line:
                if not self.skip(self.kind, self.back):
                    return True
                self.forward()
        return True

    def end_back(self, count: int) -> bool:
        """``ge``."""
        for _ in range(count):
            kind = self.kind
            if self.back() == STAYED:
                return False
            if not (self.skip(kind, self.back) and self.skip(BLANK, self.back)):
                return True
        return True


def changed_lines(old: TextBuffer, new: TextBuffer) -> tuple[int, int]:
    """Returns how many lines two texts share at their beginning, and how many of the others at their end."""
    most = min(len(old.lines), len(new.lines))
    top = next((row for row in range(most) if old.lines[row] != new.lines[row]), most)
    tail = next((row for row in range(most - top) if old.lines[-1 - row] != new.lines[-1 - row]), most - top)
    return top, tail


KEPT = 200
"""Changes that can be undone, as many as without vim."""
Change = tuple[TextBuffer, Place]
"""A text that was left, and where the cursor stood when it was."""


class Undo:
    def __init__(self) -> None:
        self._past: list[Change] = []
        self._future: list[Change] = []

    def forget(self) -> None:
        self._past.clear()
        self._future.clear()

    def changed(self, before: TextBuffer, cursor: Place) -> None:
        self._past.append((before, cursor))
        del self._past[:-KEPT]
        self._future.clear()

    def step(self, now: TextBuffer, forth: bool) -> Change | None:
        """The text before the last change, or after the one that was undone, and its cursor; None without one."""
        source, other = (self._future, self._past) if forth else (self._past, self._future)
        if not source:
            return None
        text, cursor = source.pop()
        other.append((now, cursor))
        # The cursor goes where the change was made: to its own place if that is there, else to the first changed line.
        top, tail = changed_lines(now, text)
        if top - 1 <= cursor[0] <= max(len(text.lines) - tail, top):
            return text, text.within(cursor)
        return text, text.first_word(min(top, text.last))
