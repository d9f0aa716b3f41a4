"""Words in lines of a width: nothing is cut off, or it is said that there is more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len, chop_cells

LEAST = 8
_BRACKETS = re.compile(r" \(.*\)")
BETWEEN = " · "


def wrapped(text: str, width: int) -> list[str]:
    """Text in lines of at most ``width`` cells (at least ``LEAST``): broken between its parts, which `` · `` divides,
    where they fit a line, else between words."""
    return joined(text.split(BETWEEN), BETWEEN, width)


def joined(parts: Iterable[str], between: str, width: int) -> list[str]:
    """The same of parts, and what stands between two in a line."""
    width = max(LEAST, width)
    lines = [""]
    for gap, piece in _pieces(parts, between, width):
        longer = f"{lines[-1]}{gap}{piece}" if lines[-1] else piece
        if cell_len(longer) <= width:
            lines[-1] = longer
            continue
        first, *more = chop_cells(piece, width) or [""]
        if lines[-1]:
            lines.append(first)
        else:
            lines[-1] = first
        lines += more
    return lines


def fitting(text: str, most: int, width: int) -> list[str]:
    """The parts of a text, which `` · `` divides, in at most ``most`` lines: each whole, without what stands in its
    brackets where there is no room for that, or left out."""
    kept: list[str] = []
    for part in text.split(BETWEEN):
        for said in dict.fromkeys((part, _BRACKETS.sub("", part))):
            if len(wrapped(BETWEEN.join([*kept, said]), width)) <= most:
                kept.append(said)
                break
    return wrapped(BETWEEN.join(kept), width) if kept else []


def shortened(lines: list[str], most: int, width: int) -> list[str]:
    """At most the first ``most`` lines of wrapped words; an ellipsis says that they go on."""
    if len(lines) <= most or most < 1:
        return lines[: max(0, most)]
    last = lines[most - 1]
    while last and cell_len(last) + 2 > width:
        last = last.rpartition(" ")[0]
    return [*lines[: most - 1], f"{last} …".lstrip()]


def _pieces(parts: Iterable[str], between: str, width: int) -> Iterator[tuple[str, str]]:
    for part in parts:
        if cell_len(part) <= width:
            yield between, part
            continue
        for number, word in enumerate(part.split()):
            yield " " if number else between, word
