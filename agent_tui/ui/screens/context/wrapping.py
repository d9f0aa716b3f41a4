"""Words in lines of a width: nothing is cut off."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len, chop_cells

LEAST = 8
BETWEEN = " · "


def wrapped(text: str, width: int) -> list[str]:
    """Text in lines of at most ``width`` cells (at least ``LEAST``): broken between its parts, which `` · `` divides,
    where they fit a line, else between words."""
    width = max(LEAST, width)
    lines = [""]
    for between, piece in _pieces(text, width):
        joined = f"{lines[-1]}{between}{piece}" if lines[-1] else piece
        if cell_len(joined) <= width:
            lines[-1] = joined
            continue
        first, *more = chop_cells(piece, width) or [""]
        if lines[-1]:
            lines.append(first)
        else:
            lines[-1] = first
        lines += more
    return lines


def _pieces(text: str, width: int) -> Iterator[tuple[str, str]]:
    for part in text.split(BETWEEN):
        if cell_len(part) <= width:
            yield BETWEEN, part
            continue
        for number, word in enumerate(part.split()):
            yield " " if number else BETWEEN, word
