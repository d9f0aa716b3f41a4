"""Breaking text into lines of a number of cells, as ranges of characters so that nothing of the text is lost."""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells

_WIDE = (
    "\u1100-\u11ff\u2e80-\u303f\u3040-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff"
)
_CLOSING = "、。，．！？）」』】〉》：；"
_TOKEN = re.compile(rf"[{_WIDE}][{_CLOSING}]*\s*|[^\s{_WIDE}]+\s*|\s+")


def wrap(text: str, width: int) -> list[tuple[int, int]]:
    """Ranges of characters, one a line, broken at spaces (and between ideographs); words longer than a line are cut.
    ``\\n`` ends a line. Spaces at a break belong to the line before it, which may thus be wider than ``width``."""
    return [piece for start, end in _lines(text) for piece in _wrap_line(text, start, end, max(1, width))]


def chop(text: str, width: int) -> list[tuple[int, int]]:
    """Ranges of characters that fill each line up to ``width`` cells: for code, where spaces are no place to break."""
    out: list[tuple[int, int]] = []
    for start, end in _lines(text):
        line = text[start:end]
        if line.isascii():
            out += [(k, min(k + width, end)) for k in range(start, end, width)] or [(start, end)]
        else:
            _chop_into(out, line, start, width)
    return out


def _lines(text: str) -> list[tuple[int, int]]:
    if "\n" not in text:
        return [(0, len(text))]
    out = []
    start = 0
    for line in text.split("\n"):
        out.append((start, start + len(line)))
        start += len(line) + 1
    return out


def _chop_into(out: list[tuple[int, int]], line: str, start: int, width: int) -> None:
    if cell_len(line) <= width:
        out.append((start, start + len(line)))
        return
    for part in chop_cells(line, width):
        out.append((start, start + len(part)))
        start += len(part)


def _wrap_line(text: str, start: int, end: int, width: int) -> list[tuple[int, int]]:
    line = text[start:end]
    if (len(line) if line.isascii() else cell_len(line)) <= width:
        return [(start, end)]
    out: list[tuple[int, int]] = []
    begin, used = start, 0
    for match in _TOKEN.finditer(text, start, end):
        word = match.group()
        bare = word.rstrip()
        size = len(bare) if bare.isascii() else cell_len(bare)
        at = match.start()
        if used + size > width:
            if at > begin and used:
                out.append((begin, at))
                begin, used = at, 0
            if size > width:
                parts = chop_cells(bare, width)
                for part in parts[:-1]:
                    out.append((begin, at + len(part)))
                    at += len(part)
                    begin = at
                used = cell_len(parts[-1]) + len(word) - len(bare)
                continue
        used += size + len(word) - len(bare)
    out.append((begin, end))
    return out
