"""The model's list of what it has to do, drawn as a checklist under its call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from agent_tui.commands.tool_words import Item
from agent_tui.text.clean import drawable_output
from agent_tui.ui.flow.lines import Flow
from agent_tui.ui.flow.piece import Piece

SHORT = 7
"""Items a closed list shows: what is done last, what is being done, what comes next."""

_MARKS = {"completed": ("✓", "ok", "muted"), "in_progress": ("▶", "running", "strong"), "pending": ("○", "muted", "")}


def pieces_of(items: Sequence[Item], is_open: bool) -> list[Piece]:
    """The list, or the part of it around what is being done."""
    start, end = (0, len(items)) if is_open else _window(items)
    out = [Piece(partial(_line, item)) for item in items[start:end]]
    hidden = len(items) - (end - start)
    return [*out, Piece(partial(_more, hidden))] if hidden else out


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
