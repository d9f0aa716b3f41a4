"""A line that is typed: the keys a terminal sends, what they do to the line, its completion, the row that shows it."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TextIO

from rich.cells import cell_len

from agent_tui import terminal_output
from agent_tui.history import Recall
from agent_tui.text.clean import blanked

UNDONE = 200
"""Changes of a line that can be taken back."""


class _Was(NamedTuple):
    text: str
    at: int


def hangs(text: str, at: int) -> bool:
    """Returns whether a character is written on the one before it, and takes no cell of its own."""
    return at < len(text) and text[at].isprintable() and not cell_len(text[at])


class LineEditor:
    """Keys that change the line, with the meaning they have in a shell. ``past`` are earlier lines, the newest last."""

    def __init__(self, past: Sequence[str]) -> None:
        self.text = ""
        self.at = 0
        self._past = list(past)
        self._recall = Recall(self._past)
        self._cut = ""
        self._was: list[_Was] = []
        self.searched: str | None = None
        """The letters that an earlier line is looked for with; None while none is."""
        self._before = _Was("", 0)
        self._found = 0

    def put(self, text: str, at: int | None = None) -> None:
        """Lets ``text`` be the line."""
        if text != self.text:
            self._was = [*self._was[1 - UNDONE :], _Was(self.text, self.at)]
        self.text, self.at = text, len(text) if at is None else at

    def clear(self) -> None:
        """A new line begins."""
        self.text, self.at = "", 0
        self.searched = None
        self._recall.leave()
        self._was.clear()

    def remember(self, text: str) -> None:
        """A line that was sent, or not, and can be had again."""
        self._recall.end()
        if text.strip() and self._past[-1:] != [text]:
            self._past.append(text)

    def insert(self, text: str) -> None:
        if text and self.searched is not None:
            self._search(self.searched + text, len(self._past) - 1)
        elif text:
            self.put(self.text[: self.at] + text + self.text[self.at :], self.at + len(text))

    # What is looked for

    def _search(self, letters: str, newest: int) -> None:
        """Shows the newest line, from ``newest`` on, with the letters in it."""
        self.searched = letters
        for at in range(newest, -1, -1) if letters else ():
            if (found := self._past[at].lower().find(letters.lower())) >= 0:
                self._found = at
                self.put(self._past[at], found)
                return

    def _search_key(self, name: str) -> bool:
        """Returns whether a key belongs to the search."""
        if name == "search" and self.searched is None:
            self._before, self.searched = _Was(self.text, self.at), ""
            self._found = len(self._past)
        elif self.searched is None:
            return False
        elif name == "search":
            self._search(self.searched, self._found - 1)
        elif name == "back":
            self._search(self.searched[:-1], len(self._past) - 1)
        elif name in ("cancel", "interrupt"):
            self.searched = None
            self.put(*self._before)
        else:
            self.searched = None
            return False
        return True

    # Keys

    def press(self, name: str) -> None:
        """A key that is no letter; one that means nothing to a line does nothing."""
        if self._search_key(name):
            return
        text, at = self.text, self.at
        match name:
            case "left" | "right" | "word left" | "word right" | "home" | "end":
                self.at = self._goal(name)
            case "back" | "delete" | "word back" | "word delete" | "cut left" | "cut right":
                goal = self._goal(_TOWARDS[name])
                self._take(min(at, goal), max(at, goal), cut=name not in ("back", "delete"))
            case "paste":
                self.insert(self._cut)
            case "swap" if len(text) > 1 and at:
                end = min(at + 1, len(text))
                self.put(text[: end - 2] + text[end - 1] + text[end - 2] + text[end:], end)
            case "undo" if self._was:
                self.text, self.at = self._was.pop()
            case "up" | "down":
                recalled = self._recall.older(text) if name == "up" else self._recall.newer(text)
                if recalled is not None:
                    self.put(recalled)

    def _goal(self, name: str) -> int:
        """Returns where a key that moves goes to; a letter goes with what is written on it."""
        text, at = self.text, self.at
        match name:
            case "left":
                at = max(0, at - 1)
                while at and hangs(text, at):
                    at -= 1
                return at
            case "right":
                at = min(len(text), at + 1)
                while hangs(text, at):
                    at += 1
                return at
            case "word left":
                found = re.search(r"\S+\s*\Z", text[:at])
                return found.start() if found else 0
            case "word right":
                found = re.match(r"\s*\S+", text[at:])
                return at + found.end() if found else len(text)
        return 0 if name == "home" else len(text)

    def _take(self, begin: int, end: int, cut: bool = False) -> None:
        if begin < end:
            if cut:
                self._cut = self.text[begin:end]
            self.put(self.text[:begin] + self.text[end:], begin)


_TOWARDS = {
    "back": "left",
    "delete": "right",
    "word back": "word left",
    "word delete": "word right",
    "cut left": "home",
    "cut right": "end",
}
"""Where the keys that take something away take it."""

_SEQUENCE = re.compile(r"\x1b(?:\[(\d*)(?:;(\d+))?([@-~])|O[\d;]*([@-~])|(.))", re.DOTALL)
_UNICODE = re.compile(r"\x1b\[(\d+)(?:;(\d+))?(?:;([\d:]+))?u")
_FINALS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
_NUMBERED = {"1": "home", "3": "delete", "4": "end", "7": "home", "8": "end"}
_ALT = {"b": "word left", "f": "word right", "d": "word delete", "\x7f": "word back", "\x08": "word back"}
_WITH_CTRL = {"/": "\x1f", "-": "\x1f", "\x7f": "\x17", "\r": "\r"}
"""Keys that are no letters, as they are with Ctrl."""
_CONTROLS = {
    "\n": "enter",
    "\r": "enter",
    "\t": "tab",
    "\x7f": "back",
    "\x08": "back",
    "\x01": "home",
    "\x02": "left",
    "\x03": "interrupt",
    "\x04": "leave",
    "\x05": "end",
    "\x06": "right",
    "\x07": "cancel",
    "\x0b": "cut right",
    "\x0c": "again",
    "\x0e": "down",
    "\x10": "up",
    "\x12": "search",
    "\x14": "swap",
    "\x15": "cut left",
    "\x17": "word back",
    "\x19": "paste",
    "\x1a": "suspend",
    "\x1c": "quit",
    "\x1f": "undo",
}


def meaning_of(sequence: str) -> tuple[str, str]:
    """What a key that was pressed writes, and its name where it writes nothing; both empty where it means nothing to a
    line."""
    if (match := _UNICODE.fullmatch(sequence)) is not None:
        code, held, text = int(match[1]), int(match[2] or 1) - 1, match[3]
        if text:
            return "".join(chr(int(letter)) for letter in text.split(":")), ""
        sequence = _as_before(code, held)
    if len(sequence) == 1:
        return "", _CONTROLS.get(sequence, "")
    return "", _named(match) if (match := _SEQUENCE.fullmatch(sequence)) is not None else ""


def _as_before(code: int, held: int) -> str:
    """A key of kitty's protocol as a terminal without it sends it."""
    ctrl, alt = held & 4, held & 2
    if code > 127 or held & ~7:
        return ""
    letter = chr(code & 0x1F) if ctrl and 64 <= code < 127 else _WITH_CTRL.get(chr(code), "") if ctrl else chr(code)
    return f"\x1b{letter}" if alt and letter else letter


def _named(match: re.Match[str]) -> str:
    number, modifier, final, single, alt = match.groups()
    if alt is not None:
        return _ALT.get(alt, "")
    if single is not None:
        return _FINALS.get(single, "")
    name = _NUMBERED.get(number, "") if final == "~" else _FINALS.get(final, "")
    if name in ("left", "right") and modifier in ("3", "5", "7"):
        return f"word {name}"
    return name


Completes = Callable[[str], Awaitable[Sequence[str]]]
"""What a line can be completed to, each a whole line."""

SHOWN = 40
"""Proposals that are said."""


async def propose(line: LineEditor, completes: Completes) -> str:
    """Completes the line as far as there is one way to; where there are several, returns what is said of them. A line
    that has changed meanwhile stays as it is."""
    text, at = line.text, line.at
    found = list(await completes(text)) if at == len(text) else []
    if (line.text, line.at) != (text, at) or not found:
        return ""
    common = beginning(found)
    if len(found) == 1 or (len(common) > len(text) and common.lower().startswith(text.lower())):
        name = len(found) == 1 and common.startswith("/") and " " not in common
        line.put(f"{common} " if name else common)
        return ""
    more = f", and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return f"Completions: {', '.join(each.strip() for each in found[:SHOWN])}{more}"


def beginning(texts: Sequence[str]) -> str:
    """Returns the beginning that all of the texts share."""
    first, last = min(texts), max(texts)
    same = next((at for at, letter in enumerate(first) if last[at : at + 1] != letter), len(first))
    return first[:same]


WIDTH = 80
LEAST = 20
"""Cells that are left for the text beside a prompt; of a longer prompt the text begins in the next row."""


def width_of(out: TextIO) -> int:
    """Cells of a row of the terminal."""
    try:
        return os.get_terminal_size(out.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


class InputRow:
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
        """Returns the part of a prompt that stands in rows of its own, and the part before the text."""
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
        terminal_output.step(self._out, back, text, after)


def _fitting(text: str, width: int) -> int:
    """Characters of a text that fit into so many cells, at least one."""
    taken = 0
    for count, character in enumerate(text):
        taken += cell_len(character)
        if taken > width and count:
            return count
    return len(text)
