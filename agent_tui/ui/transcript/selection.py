"""Selected text: logical rows, not screen lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from textual.geometry import Offset
from textual.selection import Selection

from agent_tui.ui.flow.lines import Flow
from agent_tui.ui.flow.paint import key, unkey
from agent_tui.ui.flow.piece import Piece
from agent_tui.ui.transcript.document import Document

_WORD = re.compile(r"\w+|[^\w\s]+|\s+")


def selected_text(document: Document, selection: Selection) -> str:
    """The text of a selection: paragraphs unwrapped, code without decoration, list markers kept."""
    if not document.entries:
        return ""
    start = selection.start or Offset(0, 0)
    end = selection.end or Offset(1 << 30, key(len(document.entries), 0, 0) - 1)
    out: list[str] = []
    for index in range(max(0, unkey(start.y)[0]), min(unkey(end.y)[0] + 1, len(document.entries))):
        for number, piece in enumerate(document.pieces(index)):
            low, high = key(index, number, 0), key(index, number + 1, 0) - 1
            if high >= start.y and low <= end.y:
                _take(out, piece, low, start, end)
    return "\n".join(out).strip("\n")


def rows_text(flows: list[Flow]) -> Iterator[tuple[int, str]]:
    """Number and text of the rows that can be copied."""
    return ((row, flow.text) for row, flow in enumerate(flows) if not flow.silent)


def _take(out: list[str], piece: Piece, low: int, start: Offset, end: Offset) -> None:
    glue = piece.glue
    for row, flow in enumerate(piece.flows()):
        y = low + row
        if flow.silent or y < start.y or y > end.y:
            continue
        begin = max(0, start.x) if y == start.y else 0
        stop = max(0, end.x) if y == end.y else len(flow.text)
        text = flow.text[begin:stop]
        if glue is not None and out:
            out[-1] += glue + text
        else:
            out.append(flow.lead + text if begin == 0 and flow.lead and text else text)
        glue = None


def word_at(text: str, at: int) -> tuple[int, int]:
    """The range of the word at a character."""
    for match in _WORD.finditer(text):
        if match.end() > at:
            return match.span()
    return 0, len(text)
