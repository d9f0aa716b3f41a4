"""The stacked bar: which part of it is whose."""

from __future__ import annotations

from collections.abc import Iterator

from agent_tui.models.context import ContextUsage
from agent_tui.models.rows import MESSAGES, ROW_KINDS
from agent_tui.text.numbers import largest_remainder

LIMIT = "limit"


def segments(usage: ContextUsage) -> Iterator[tuple[str, int]]:
    """Row ids with their tokens, from left to right. Messages are one segment, and each kind of them that has a colour
    of its own another."""
    for row in usage.rows:
        if row.id != MESSAGES.id:
            yield row.id, row.tokens
            continue
        own = [
            (kind.id, child.tokens) for child in row.children if (kind := ROW_KINDS.get(child.id)) and not kind.drawn
        ]
        yield row.id, row.tokens - sum(tokens for _, tokens in own)
        yield from own


def bar_cells(usage: ContextUsage, width: int) -> list[tuple[str, int]]:
    """(row id, ``free``, ``limit`` or ``reserve``; cells) from left to right, ``width`` cells in all. What has tokens
    has a cell. The limit is one cell between free and reserve."""
    parts = [(name, tokens) for name, tokens in segments(usage) if tokens > 0]
    if usage.window is not None and usage.free is not None and usage.reserve is not None:
        if usage.over:
            parts += [(LIMIT, 0), ("reserve", max(0, usage.window - usage.total))]
        else:
            parts += [("free", usage.free), (LIMIT, 0), ("reserve", usage.reserve)]
    marks = sum(1 for name, _ in parts if name == LIMIT)
    room = max(0, width - marks)
    cells = largest_remainder(room, [tokens for _, tokens in parts])
    for i, (_, tokens) in enumerate(parts):
        if tokens > 0 and cells[i] == 0 and room > len(parts):
            largest = max(range(len(cells)), key=cells.__getitem__)
            cells[largest] -= 1
            cells[i] += 1
    return [(name, 1 if name == LIMIT else n) for (name, _), n in zip(parts, cells, strict=True)]
