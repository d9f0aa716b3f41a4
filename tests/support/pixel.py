"""Pictures: the smallest that every decoder takes, and what an output holds as sixels."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG of one pixel."""
PIXEL_BASE64 = base64.b64encode(PIXEL).decode()


_WHOLE = re.compile(r'\x1bP0;1;0q"1;1;(\d+);(\d+)([^\x1b]*)\x1b\\')
_TOKEN = re.compile(r"#(\d+)(?:;2;(\d+);(\d+);(\d+))?|!(\d+)(.)|([?-~])|([$-])")


@dataclass(frozen=True)
class Sixels:
    """``dots`` are colours as shares of a hundred, by column and row; where nothing was drawn there is none."""

    size: tuple[int, int]
    colors: int
    dots: dict[tuple[int, int], tuple[int, int, int]]


def sixels_in(seen: str) -> list[Sixels]:
    """All pictures that were drawn, in order."""
    return [_read(int(width), int(height), body) for width, height, body in _WHOLE.findall(seen)]


def _read(width: int, height: int, body: str) -> Sixels:
    palette: dict[int, tuple[int, int, int]] = {}
    dots: dict[tuple[int, int], tuple[int, int, int]] = {}
    color = x = top = at = 0
    for token in _TOKEN.finditer(body):
        assert token.start() == at, body[at : at + 20]
        at = token.end()
        number, red, green, blue, count, many, one, move = token.groups()
        if number is not None:
            color = int(number)
            if red is not None:
                palette[color] = (int(red), int(green), int(blue))
        elif move is not None:
            x, top = 0, top + (6 if move == "-" else 0)
        else:
            bits = ord(many or one) - 63
            end = x + int(count or 1)
            for place in ((column, top + row) for column in range(x, end) for row in range(6) if bits >> row & 1):
                assert place not in dots, "drawn twice"
                dots[place] = palette[color]
            x = end
    assert at == len(body)
    assert all(x < width and y < height for x, y in dots)
    return Sixels((width, height), len(palette), dots)
