"""Pictures as sixels (DEC's way, of the VT340): six rows at a time, one colour after the other, drawn over the text."""

from __future__ import annotations

import re
from collections.abc import Sequence

ROWS = 6
"""Rows of pixels in a band."""
_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)
_MARKS = bytes((value & 63) + 63 for value in range(256))
"""The character for each set of the six pixels of a column."""


def encoded(width: int, height: int, palette: Sequence[tuple[int, int, int]], pixels: bytes) -> str:
    """The sequence that draws a picture where the cursor stands. ``pixels`` are ``width`` × ``height`` numbers of
    colours in ``palette``, row by row. Takes time, about a second for a million pixels of a photo: call in a thread."""
    colors = "".join(
        f"#{n};2;{_share(red)};{_share(green)};{_share(blue)}" for n, (red, green, blue) in enumerate(palette)
    )
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


def _share(value: int) -> int:
    return (value * 100 + 127) // 255
