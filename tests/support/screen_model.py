"""A terminal, as far as programs on the whole screen need one: what its bytes put into which cell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(
    r"\x1b\[(?P<arguments>[?<>=]?[\d;:]*)(?P<between>[ -/]*)(?P<final>[@-~])"
    r"|\x1b\](?P<osc>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b(?P<short>[ -/]*[0-~])"
    r"|(?P<control>[\x00-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x1f\x7f]+)"
)
EMPTY = " "


@dataclass(frozen=True, slots=True)
class Cell:
    """A character and how it looks. The second cell of a wide character holds an empty text."""

    text: str = EMPTY
    look: str = ""
    link: str = ""


class ScreenModel:
    """Takes bytes and holds cells. It fails on what it does not know, so that no test passes by not understanding."""

    def __init__(self, width: int, height: int, wraps: bool = False) -> None:
        """``wraps``: nobody turns line wrap off, and still no row is written beyond its end."""
        self.width, self.height = width, height
        self.rows: list[list[Cell]] = []
        self.moves = 0
        """How often rows were moved."""
        self.synchronized = False
        self._rest = ""
        self._wrap = not wraps
        self._look = self._link = ""
        self._clear()

    def _clear(self) -> None:
        self.rows = [self._blank() for _ in range(self.height)]
        self.x = self.y = 0
        self._top, self._bottom = 0, self.height - 1

    def _blank(self) -> list[Cell]:
        return [Cell(EMPTY, self._look)] * self.width

    def resize(self, width: int, height: int) -> None:
        """Another size: as terminals do, it keeps what fits, and moves it about in ways nobody can rely on."""
        kept = [row[:width] + [Cell("~")] * (width - len(row)) for row in self.rows[-height:]]
        self.width, self.height = width, height
        self.rows = kept + [[Cell("~")] * width for _ in range(height - len(kept))]
        self.x = self.y = 0
        self._top, self._bottom = 0, height - 1

    def text(self) -> list[str]:
        """The characters, row by row."""
        return ["".join(cell.text for cell in row) for row in self.rows]

    def feed(self, data: str) -> None:
        """What the program wrote; a sequence may go on in the next call."""
        data = self._rest + data
        at = 0
        while at < len(data):
            token = _TOKEN.match(data, at)
            if token is None:
                assert data[at] == "\x1b" and len(data) - at < 4_000, repr(data[at : at + 40])
                break
            at = token.end()
            self._take(token)
        self._rest = data[at:]

    def _take(self, token: re.Match[str]) -> None:
        if (text := token["text"]) is not None:
            self._print(text)
        elif token["final"] is not None:
            self._sequence(token["arguments"], token["between"], token["final"])
        elif (osc := token["osc"]) is not None:
            number, _, rest = osc.partition(";")
            if number == "8":
                self._link = rest.partition(";")[2]
        elif token["short"] is not None:
            assert token["short"] in ("M", "7", "8", "=", ">"), token[0]
            if token["short"] == "M":
                self._up()
        else:
            self._control(token["control"])

    def _control(self, character: str) -> None:
        assert character in "\r\n\x07", (character, self.y, self.x, self.rows[self.y][: self.x])
        if character == "\n":
            if self.y == self._bottom:
                self._scroll(1)
            else:
                self.y = min(self.y + 1, self.height - 1)
        if character in "\r\n":  # a terminal's line discipline makes both of a new line
            self.x = 0

    def _up(self) -> None:
        if self.y == self._top:
            self._scroll(-1)
        else:
            self.y = max(0, self.y - 1)

    def _scroll(self, by: int) -> None:
        self.moves += 1
        if by > 0:
            del self.rows[self._top]
            self.rows.insert(self._bottom, self._blank())
        else:
            del self.rows[self._bottom]
            self.rows.insert(self._top, self._blank())

    def _print(self, text: str) -> None:
        assert not self._wrap, "written with line wrap on"
        row = self.rows[self.y]
        for begin, end, size in _graphemes(text):
            if size == 0:
                if self.x:
                    before = row[self.x - 1]
                    row[self.x - 1] = Cell(before.text + text[begin:end], before.look, before.link)
                continue
            # What is too wide goes into the last cell: a program does not know at once of a smaller terminal.
            self.x = min(self.x, self.width - size)
            row[self.x] = Cell(text[begin:end], self._look, self._link)
            for k in range(1, size):
                row[self.x + k] = Cell("", self._look, self._link)
            self.x += size

    def _sequence(self, arguments: str, between: str, final: str) -> None:
        match between, final:
            case "", "H":
                y, x = _numbers(arguments, (1, 1))
                self.y, self.x = min(y, self.height) - 1, min(x, self.width) - 1
            case "", "m" if not arguments.startswith((">", "?")):
                self._look = "" if arguments in ("", "0") else arguments
            case "", "r":
                top, bottom = _numbers(arguments, (1, self.height))
                bottom = min(bottom, self.height)
                if top < bottom:
                    self._top, self._bottom = top - 1, bottom - 1
                    self.x = self.y = 0
            case "", "J" if arguments == "2":
                self.rows = [self._blank() for _ in range(self.height)]
            case "", "h" | "l":
                self._mode(arguments, final == "h")
            case ("$", "p") | ("", "u" | "t" | "n" | "c" | "q" | "m"):
                pass  # questions, the keyboard, titles
            case _:
                raise AssertionError(f"unknown: CSI {arguments}{between}{final}")

    def _mode(self, mode: str, on: bool) -> None:
        if mode == "?2026":
            assert on != self.synchronized, "frames within frames"
            self.synchronized = on
        elif mode == "?7":
            self._wrap = on
        elif mode == "?1049":
            self._clear()


def _numbers(arguments: str, default: tuple[int, int]) -> tuple[int, int]:
    first, _, second = arguments.partition(";")
    return int(first or default[0]), int(second or default[1])


@lru_cache(4096)
def _graphemes(text: str) -> list[tuple[int, int, int]]:
    from rich.cells import split_graphemes  # not in the oldest version that the program runs with

    return split_graphemes(text)[0]
