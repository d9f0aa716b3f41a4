"""Text in the cells of a terminal, where one character takes none, one or two."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size


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
