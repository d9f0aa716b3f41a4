"""The row of the terminal in which a line is typed, changed with letters and backspaces alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TextIO

from rich.cells import cell_len

from agent_tui import door
from agent_tui.plain.line import hangs
from agent_tui.plain.proposing import beginning
from agent_tui.text.clean import blanked

WIDTH = 80
LEAST = 20
"""Cells that are left for the text beside a prompt; of a longer prompt the text begins in the next row."""


def width_of(out: TextIO) -> int:
    """Cells of a row of the terminal."""
    try:
        return os.get_terminal_size(out.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


class Row:
    """Shows a line with its prompt. A line that is longer than a row goes on in the next one, and a row that is full
    stays as it is: where something before it changes, the whole is written anew below."""

    def __init__(self, out: TextIO, width: Callable[[], int]) -> None:
        self._out = out
        self._width = width
        self.shown = False
        self._before = ""  # the text of the rows above
        self._row = ""
        self._at = 0

    def show(self, prompt: str, text: str, at: int) -> None:
        """Shows the text, the next letter at ``at``. A line that is not shown begins where the terminal's cursor is:
        at the beginning of a row. Raises OSError where the terminal is gone."""
        prompt, text = blanked(prompt), blanked(text)
        width = max(4, self._width() - 1)  # the last cell stays free: what a terminal does behind it differs
        above, lead = self._lead(prompt, width)
        if not self.shown:
            self._begin(above)
        elif not text.startswith(self._before) or at < len(self._before) or cell_len(self._row) > width:
            self._write(0, "\n", 0)
            self._begin(above)
        while True:
            base = len(self._before)
            first = "" if base else lead
            end = base + _fitting(text[base:], width - cell_len(first))
            row = first + text[base:end]
            self._paint(row, len(first) + min(at, end) - base)
            if at <= end:
                break
            self._write(0, "\n", 0)
            self._before, self._row, self._at = text[:end], "", 0
        self._out.flush()

    def leave(self, prompt: str, text: str) -> None:
        """The line is over, or has to make room: it is shown to its end, and the next row begins."""
        if self.shown:
            self.show(prompt, text, len(text))
            self._write(0, "\n", 0)
            self._out.flush()
            self.shown = False

    def make_room(self) -> None:
        """Something else is to be written: the next row begins."""
        if self.shown:
            self.shown = False
            self._write(0, "\n", 0)

    def _begin(self, above: str) -> None:
        self.shown = True
        self._before, self._row, self._at = "", "", 0
        if above:
            self._write(0, f"{above}\n", 0)

    @staticmethod
    def _lead(prompt: str, width: int) -> tuple[str, str]:
        """What of a prompt stands in rows of its own, and what before the text."""
        return (prompt, "") if cell_len(prompt) > max(0, width - LEAST) and len(prompt) > 6 else ("", prompt)

    def _paint(self, row: str, at: int) -> None:
        """Makes the row what it has to be, writing as little as can be."""
        if row == self._row and at <= self._at:
            self._write(cell_len(row[at : self._at]), "", 0)
        elif row == self._row:
            self._write(0, row[self._at : at], 0)
        else:
            begin = min(len(beginning([row, self._row])), self._at)
            while begin and (hangs(row, begin) or hangs(self._row, begin)):
                begin -= 1  # what is written on a letter is written with it
            blank = max(0, cell_len(self._row) - cell_len(row))
            back, after = cell_len(self._row[begin : self._at]), cell_len(row[at:]) + blank
            self._write(back, row[begin:] + " " * blank, after)
        self._row, self._at = row, at

    def _write(self, back: int, text: str, after: int) -> None:
        door.step(self._out, back, text, after)


def _fitting(text: str, width: int) -> int:
    """Characters of a text that fit into so many cells, at least one."""
    taken = 0
    for count, character in enumerate(text):
        taken += cell_len(character)
        if taken > width and count:
            return count
    return len(text)
