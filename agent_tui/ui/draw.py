"""Drawing lines: coloured pieces of foreign text become strips of an exact width."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from agent_tui.ui.theme import Paint

if TYPE_CHECKING:
    from textual.app import App

Piece: TypeAlias = tuple[str, Style]


def paint_of(app: App[Any]) -> Paint:
    """The styles of the theme in force."""
    variables = app.theme_variables
    known: Paint | None = getattr(app, "_drawing_paint", None)
    if known is None or known.variables is not variables:
        known = Paint(variables)
        setattr(app, "_drawing_paint", known)  # noqa: B010
    return known


def strip_of(pieces: Iterable[Piece], width: int, base: Style) -> Strip:
    """One line of exactly ``width`` cells; ``base`` shows where a piece says nothing."""
    line = Strip([Segment(text, style) for text, style in pieces if text])
    return line.adjust_cell_length(width, Style()).apply_style(base)


def width_of(pieces: Iterable[Piece]) -> int:
    return sum(cell_len(text) for text, _ in pieces)
