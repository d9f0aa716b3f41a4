"""The text that is edited, as lines, and places in it, which move by words. Each change gives a new text; undo keeps
the old ones."""

from __future__ import annotations

import unicodedata

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
    """Returns whether a character stands on the one before it, as accents do."""
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
        """Returns how many blanks the row begins with."""
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


STAYED, MOVED, AT_END, NEXT_LINE = -1, 0, 2, 1
"""What a step did: nothing, because the text ends; one character; onto the end of a line; into another line."""


class Walker:
    """A place that moves by single characters. ``big``: words are what blanks separate."""

    def __init__(self, text: Text, place: Place, big: bool = False) -> None:
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
        return self.column == 0 and not self.text.lines[self.row]

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
            self.row, self.column = self.text.on((self.row, self.column - 1))
            return MOVED
        if self.row > 0:
            self.row -= 1
            self.column = self.text.length(self.row)
            return NEXT_LINE
        return STAYED

    def skip(self, kind: int, forward: bool) -> bool:
        """Past all characters of a kind; False where the text ended."""
        while self.kind == kind:
            if (self.forward() if forward else self.back()) == STAYED:
                return False
        return True

    # Each motion leaves the walker where vim leaves its cursor and says whether that was possible.

    def next_word(self, count: int, stop_at_line_end: bool) -> bool:
        """``w``. ``stop_at_line_end``: for an operator, which does not take the line break behind the last of them."""
        while count > 0:
            count -= 1
            stops = stop_at_line_end and count == 0
            kind, last_line = self.kind, self.row == self.text.last
            step = self.forward()
            if step == STAYED or (step >= 1 and last_line):
                return False
            if step >= 1 and stops:
                return True
            if kind != BLANK:
                while self.kind == kind:
                    step = self.forward()
                    if step == STAYED or (step >= 1 and stops):
                        return True
            while self.kind == BLANK and not self.on_empty_line:
                last_line = self.row == self.text.last
                step = self.forward()
                if step == STAYED or (step >= 1 and (last_line or stops)):
                    return True
        return True

    def word_end(self, count: int, stay: bool = False, empty_lines: bool = False) -> bool:
        """``e``. ``stay``: where a word ends already, that is its end (``cw``). ``empty_lines`` count as words."""
        while count > 0:
            count -= 1
            kind = self.kind
            if self.forward() == STAYED:
                return False
            if self.kind == kind and kind != BLANK:
                if not self.skip(kind, forward=True):
                    return False
            elif not stay or kind == BLANK:
                while self.kind == BLANK:
                    if empty_lines and self.on_empty_line:
                        return True
                    if self.forward() == STAYED:
                        return False
                if not self.skip(self.kind, forward=True):
                    return False
            self.back()
            stay = False
        return True

    def word_back(self, count: int) -> bool:
        """``b``."""
        while count > 0:
            count -= 1
            if self.back() == STAYED:
                return False
            while self.kind == BLANK:
                if self.on_empty_line:
                    break
                if self.back() == STAYED:
                    return True
            else:
                if not self.skip(self.kind, forward=False):
                    return True
                self.forward()
        return True

    def end_back(self, count: int) -> bool:
        """``ge``."""
        while count > 0:
            count -= 1
            kind = self.kind
            if self.back() == STAYED:
                return False
            if kind != BLANK:
                while self.kind == kind:
                    if self.back() == STAYED:
                        return True
            while self.kind == BLANK and not self.on_empty_line:
                if self.back() == STAYED:
                    return True
        return True


KEPT = 200
"""Changes that can be undone, as many as without vim."""


@dataclass(slots=True, frozen=True)
class Change:
    """A text that was left, and where the cursor stood when it was."""

    text: Text
    cursor: Place


class Undo:
    """Two stacks of texts."""

    def __init__(self) -> None:
        self._past: list[Change] = []
        self._future: list[Change] = []

    def forget(self) -> None:
        self._past.clear()
        self._future.clear()

    def changed(self, before: Text, cursor: Place) -> None:
        """A change was made to ``before``."""
        self._past.append(Change(before, cursor))
        del self._past[:-KEPT]
        self._future.clear()

    def back(self, now: Text) -> tuple[Text, Place] | None:
        """The text before the last change; None where there was none."""
        return self._step(self._past, self._future, now)

    def forth(self, now: Text) -> tuple[Text, Place] | None:
        return self._step(self._future, self._past, now)

    @staticmethod
    def _step(source: list[Change], other: list[Change], now: Text) -> tuple[Text, Place] | None:
        if not source:
            return None
        change = source.pop()
        other.append(Change(now, change.cursor))
        return change.text, _place(now, change.text, change.cursor)


def _place(old: Text, new: Text, cursor: Place) -> Place:
    """Returns the place at which the change was made: the cursor's own place if it lies there, else the first line that
    is another."""
    shared = zip(old.lines, new.lines, strict=False)
    top = next((row for row, (one, two) in enumerate(shared) if one != two), min(len(old.lines), len(new.lines)))
    tail = 0
    while tail < min(len(old.lines), len(new.lines)) - top and old.lines[-1 - tail] == new.lines[-1 - tail]:
        tail += 1
    bottom = len(new.lines) - tail
    if top - 1 <= cursor[0] <= max(bottom, top):
        return new.within(cursor)
    return new.first_word(min(top, new.last))
