"""Drawing lines: coloured pieces of foreign text become strips of an exact width."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.cells import cell_len, set_cell_size
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


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Text in exactly ``width`` cells, cut with ``…`` or padded; ``right`` aligns it to the right."""
    if width <= 0:
        return ""
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, width - 1) + "…"
    blank = " " * (width - size)
    return blank + text if right else text + blank


def shorten(text: str, width: int) -> str:
    """Text in at most ``width`` cells, cut with ``…``."""
    return text if cell_len(text) <= width else fit(text, width)


def strip_of(pieces: Iterable[Piece], width: int, base: Style) -> Strip:
    """One line of exactly ``width`` cells; ``base`` shows where a piece says nothing."""
    line = Strip([Segment(text, style) for text, style in pieces if text])
    return line.adjust_cell_length(width, Style()).apply_style(base)


def width_of(pieces: Iterable[Piece]) -> int:
    return sum(cell_len(text) for text, _ in pieces)
