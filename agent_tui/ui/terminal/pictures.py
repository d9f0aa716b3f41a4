"""Draws pictures on a terminal, by the protocol of kitty or of iTerm2 or as sixels, and asks which of them it knows.

Kitty's (sw.kovidgoyal.net/kitty/graphics-protocol) is used as far as a scrolling text can hold pictures. One is sent
once and gets a number. Where it is to be seen stand placeholders: a character with the number as its colour and its row
and column as marks above it. To everything in between that is text: it scrolls and can be covered. The older way draws
over the text at the cursor, as iTerm2's does (iterm2.com/documentation-images.html, also known to WezTerm and mintty)
and sixels do (DEC's, of the VT340: six rows at a time, one colour after the other). Such an overlay is put there once
everything else stands, and taken away without a trace.
"""

from __future__ import annotations

import base64
import re
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from agent_tui.engine.terminal import REPLY, Replies, believed
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.ui.screen_buffer import ScreenBuffer
from agent_tui.ui.terminal.passing import through_tmux

USUAL = (10, 20)
"""Pixels of a cell, wide and high, where the terminal does not say."""


def cell_size(otherwise: tuple[int, int] = USUAL) -> tuple[int, int]:
    """Pixels of a cell, wide and high, as the terminal told the system; ``otherwise`` where it did not."""
    try:
        import fcntl
        import termios

        packed = fcntl.ioctl(sys.__stdin__.fileno() if sys.__stdin__ else 0, termios.TIOCGWINSZ, bytes(8))
    except (ImportError, OSError, ValueError):
        return otherwise
    rows, columns, width, height = struct.unpack("HHHH", packed)
    if not rows or not columns:
        return otherwise
    return believed((width // columns, height // rows)) or otherwise


MARKS = (
    "\u0305\u030d\u030e\u0310\u0312\u033d\u033e\u033f\u0346\u034a\u034b\u034c\u0350\u0351\u0352\u0357\u035b"
    "\u0363\u0364\u0365\u0366\u0367\u0368\u0369\u036a\u036b\u036c\u036d\u036e\u036f\u0483\u0484\u0485\u0486"
    "\u0487\u0592\u0593\u0594\u0595\u0597\u0598\u0599\u059c\u059d\u059e\u059f\u05a0\u05a1\u05a8\u05a9\u05ab"
    "\u05ac\u05af\u05c4\u0610\u0611\u0612\u0613\u0614\u0615\u0616\u0617\u0657\u0658\u0659\u065a\u065b\u065d"
    "\u065e\u06d6\u06d7\u06d8\u06d9\u06da\u06db\u06dc\u06df\u06e0\u06e1\u06e2\u06e4\u06e7\u06e8\u06eb\u06ec"
    "\u0730\u0732\u0733\u0735\u0736\u073a\u073d\u073f\u0740\u0741\u0743\u0745\u0747\u0749\u074a\u07eb\u07ec"
    "\u07ed\u07ee\u07ef\u07f0\u07f1\u07f3\u0816\u0817\u0818\u0819\u081b\u081c\u081d\u081e\u081f\u0820\u0821"
    "\u0822"
)
"""What stands for 0, 1, 2 and so on above a placeholder: the first of the protocol's table (rowcolumn-diacritics)."""
MOST_COLUMNS = len(MARKS)
PLACEHOLDER = "\U0010eeee"
CHUNK = 4_096
"""Characters of base64 that one sequence may carry."""


def cell(row: int, column: int) -> str:
    """Returns the characters that stand for one cell of a picture; both are counted from 0, up to ``MOST_COLUMNS``."""
    return f"{PLACEHOLDER}{MARKS[row]}{MARKS[column]}"


def sending(number: int, png: bytes, columns: int, rows: int, drawn: bool = False) -> Iterator[str]:
    """The sequences that send a picture and say over how many cells it is spread, without an answer. ``drawn``: over
    the text where the cursor stands, which stays there; else where its placeholders are."""
    data = base64.b64encode(png).decode()
    keys = f"a=T,{'C=1' if drawn else 'U=1'},i={number},p=1,f=100,t=d,q=2,c={columns},r={rows},"
    for at in range(0, len(data), CHUNK):
        more = int(at + CHUNK < len(data))
        yield f"\x1b_G{keys}m={more};{data[at : at + CHUNK]}\x1b\\"
        keys = "q=2,"


def placing(number: int, columns: int, rows: int) -> str:
    """Spreads a picture that was sent over so many cells."""
    return f"\x1b_Ga=p,U=1,i={number},p=1,q=2,c={columns},r={rows}\x1b\\"


def dropping(number: int) -> str:
    """Lets the terminal forget a picture."""
    return f"\x1b_Ga=d,d=I,i={number},q=2\x1b\\"


ENDING = "\x1b_Gq=2,m=0;\x1b\\"
"""Ends a picture that was sent in part."""


def showing(name: str, image: bytes, columns: int, rows: int) -> str:
    """The sequence that draws an image file over so many cells from the cursor on, in its own shape; the cursor stays.
    The name can hold nothing that ends it: it goes as base64."""
    called = base64.b64encode(one_line(name, 100).encode()).decode()
    keys = f"name={called};size={len(image)};width={columns};height={rows};preserveAspectRatio=1;inline=1"
    return f"\x1b]1337;File={keys};doNotMoveCursor=1:{base64.b64encode(image).decode()}\x07"


ROWS = 6
"""Rows of pixels in a band."""
_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)
_MARKS = bytes((value & 63) + 63 for value in range(256))
"""The character for each set of the six pixels of a column."""


def encoded(width: int, height: int, palette: Sequence[tuple[int, int, int]], pixels: bytes) -> str:
    """The sequence that draws a picture where the cursor stands. ``pixels`` are ``width`` × ``height`` numbers of
    colours in ``palette``, row by row. Takes time, about a second for a million pixels of a photo: call in a thread."""
    shares = (";".join(str((value * 100 + 127) // 255) for value in color) for color in palette)
    colors = "".join(f"#{n};2;{share}" for n, share in enumerate(shares))
    out = [f'\x1bP0;1;0q"1;1;{width};{height}{colors}'.encode()]
    for top in range(0, height, ROWS):
        if top:
            out.append(b"-")
        out.append(_band(pixels, width, top, min(ROWS, height - top)))
    out.append(b"\x1b\\")
    return b"".join(out).decode("ascii")


def _band(pixels: bytes, width: int, top: int, rows: int) -> bytes:
    """Up to six rows: for each colour in them the columns it has pixels in."""
    lines = [pixels[(top + row) * width : (top + row + 1) * width] for row in range(rows)]
    if rows == ROWS and lines.count(lines[0]) == ROWS:
        return _alike(lines[0])
    columns: dict[int, bytearray] = {}
    for row, line in enumerate(lines):
        bit = 1 << row
        for x, color in enumerate(line):
            try:
                columns[color][x] |= bit
            except KeyError:
                columns[color] = bytearray(width)
                columns[color][x] = bit
    return b"$".join(b"#%d%b" % (color, _packed(bits)) for color, bits in columns.items())


def _alike(line: bytes) -> bytes:
    """A band of which all rows are the same, as in most of a picture of a screen."""
    out = []
    for color in set(line):
        table = bytes(63 if value == color else 0 for value in range(256))
        out.append(b"#%d%b" % (color, _packed(line.translate(table))))
    return b"$".join(out)


def _packed(bits: bytes | bytearray) -> bytes:
    """The columns up to the last that has pixels, runs of the same as their number."""
    marks = bits.rstrip(b"\0").translate(_MARKS)
    return _RUN.sub(lambda run: b"!%d%b" % (len(run[0]), run[1]), marks)


NUMBER = 0x61_67_74
"""Kitty's number of the picture that is drawn over the text: there is never a second."""


FEW_NUMBER, FEW_RGB = 67, (95, 135, 175)
"""The same where a number has to be one of the 256 colours, and that colour."""


class Place(NamedTuple):
    """Cells of the screen, counted from 0. ``off`` is what tmux has left of this program's pane, and above it."""

    x: int
    y: int
    columns: int
    rows: int
    off: tuple[int, int] = (0, 0)


class Writes(Protocol):
    def write_to_terminal(self, sequence: str) -> None:
        """Sends a control sequence of ours; nothing happens without a terminal."""


@dataclass(eq=False)
class Overlay:
    """A picture that is drawn over the text."""

    _terminal: Writes
    _buffer: ScreenBuffer
    """The terminal is thought to show this."""
    _wrapped: bool
    """For tmux, which hands it on."""
    _place: Place | None = None
    _number: int = 0

    def put(self, drawing: str, place: Place, number: int = 0) -> None:
        """Draws, with a sequence that does so from the cursor on; the cursor is where it was afterwards. ``number`` is
        kitty's, which has to be told when it is to go."""
        self.wipe()
        self._place, self._number = place, number
        self._write(f"{_at(place, 0)}{drawing}")

    def wipe(self) -> bool:
        """Takes it away, if it is there; what it stood on is unknown then and has to be drawn. Whether it was there."""
        place, self._place = self._place, None
        if place is None:
            return False
        dropped = dropping(self._number) if self._number else ""
        if self._wrapped:
            blank = "".join(f"{_at(place, row)}\x1b[{place.columns}X" for row in range(place.rows))
            self._write(f"{dropped}\x1b[0m{blank}")
            self._buffer.forget_rows(range(place.y, place.y + place.rows))
        else:
            # Konsole shows the rest of an old one below a new one until the whole screen was cleared.
            self._write(f"{dropped}\x1b[0m\x1b[2J")
            self._buffer.forget()
        return True

    def _write(self, sequence: str) -> None:
        whole = f"\x1b7{sequence}\x1b8"
        self._terminal.write_to_terminal(through_tmux(whole) if self._wrapped else whole)


def _at(place: Place, row: int) -> str:
    across, down = place.off
    return f"\x1b[{place.y + row + down + 1};{place.x + across + 1}H"


def hears_pictures(heard: Callable[[Replies], object]) -> Callable[[str], None]:
    """Returns who is told the terminal's reports; ``heard`` is called with all replies whenever the last of a round is
    in."""
    replies = Replies()

    def listen(report: str) -> None:
        if (reply := REPLY.fullmatch(report)) is not None and replies.take(reply):
            heard(replies)

    return listen
