"""Pictures in the text of a terminal, by the protocol of kitty, and how large its cells are.

Of the protocol (sw.kovidgoyal.net/kitty/graphics-protocol) what a scrolling text needs is used. A picture is sent once
and gets a number. Where it is to be seen stand placeholders: a character with the number as its colour and its row and
column as marks above it. To everything in between that is text: it scrolls and can be covered.
"""

from __future__ import annotations

import base64
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Protocol

from agent_tui.engine.graphics import REPLY, Replies

USUAL = (10, 20)
"""Pixels of a cell, wide and high, where the terminal does not say."""
_LEAST, _MOST = 4, 100
"""Pixels of a cell's side that are believed."""


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
    cell = width // columns, height // rows
    return cell if min(cell) >= _LEAST and max(cell) <= _MOST else otherwise


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


def sending(number: int, png: bytes, columns: int, rows: int) -> Iterator[str]:
    """The sequences that send a picture and say over how many cells its placeholders are spread, without an answer."""
    data = base64.b64encode(png).decode()
    keys = f"a=T,U=1,i={number},p=1,f=100,t=d,q=2,c={columns},r={rows},"
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


NUMBER = 0x61_67_74
"""The number of the picture that a screen of its own shows: there is never a second."""
FEW_NUMBER, FEW_RGB = 67, (95, 135, 175)
"""The same where a number has to be one of the 256 colours, and that colour."""


class Writes(Protocol):
    def write_to_terminal(self, sequence: str) -> None:
        """Sends a control sequence of ours; nothing happens without a terminal."""


def hears_pictures(heard: Callable[[Replies], object]) -> Callable[[str], None]:
    """Returns who is told the terminal's reports; ``heard`` is called with all replies once the last is in."""
    replies = Replies()

    def listen(report: str) -> None:
        if (reply := REPLY.fullmatch(report)) is not None and replies.take(reply):
            heard(replies)

    return listen
