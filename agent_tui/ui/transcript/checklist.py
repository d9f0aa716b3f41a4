"""The model's list of what it has to do, drawn as a checklist under its call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from agent_tui.models.messages import ToolResultPart
from agent_tui.text.clean import drawable_output
from agent_tui.ui.flow.lines import Flow
from agent_tui.ui.flow.piece import Piece

SHORT = 7
"""Items a closed list shows: what is done last, what is being done, what comes next."""

_MARKS = {"completed": ("✓", "ok", "muted"), "in_progress": ("▶", "running", "strong"), "pending": ("○", "muted", "")}

Item = tuple[str, str]
"""Text and status."""


def items_of(result: ToolResultPart | None) -> list[Item]:
    """The items of a result that is a list; none for every other result."""
    display: dict[str, Any] = (result.display if result is not None and not result.is_error else None) or {}
    items = display.get("items")
    if display.get("kind") != "list" or not isinstance(items, list):
        return []
    found = [(item.get("text"), item.get("status")) for item in items if isinstance(item, dict)]
    return [(text, status) for text, status in found if isinstance(text, str) and status in _MARKS]


def pieces_of(items: Sequence[Item], is_open: bool) -> list[Piece]:
    """The list, or the part of it around what is being done."""
    start, end = (0, len(items)) if is_open else _window(items)
    out = [Piece(partial(_line, item)) for item in items[start:end]]
    hidden = len(items) - (end - start)
    return [*out, Piece(partial(_more, hidden))] if hidden else out


def progress(items: Sequence[Item]) -> str:
    """How much is done, for the line of the call."""
    return f"{sum(status == 'completed' for _, status in items)} of {len(items)} done"


def _window(items: Sequence[Item]) -> tuple[int, int]:
    if len(items) <= SHORT + 1:
        return 0, len(items)
    current = next((i for i, (_, status) in enumerate(items) if status != "completed"), len(items))
    start = max(0, min(current - 2, len(items) - SHORT))
    return start, start + SHORT


def _line(item: Item) -> list[Flow]:
    mark, color, base = _MARKS[item[1]]
    text = drawable_output(item[0]).replace("\n", " ")
    return [Flow(text[:1000], base=base, first=(("    ", ""), (f"{mark} ", color)), rest=(("      ", ""),))]


def _more(hidden: int) -> list[Flow]:
    return [Flow(first=(("      ", ""), (f"… {hidden} more", "faint")), silent=True)]
