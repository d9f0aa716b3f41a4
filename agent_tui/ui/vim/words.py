"""Motions by words: a walker that steps through the text as vim does, ends of lines included."""

from __future__ import annotations

from agent_tui.ui.vim.text import BLANK, Place, Text, kind_of

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
