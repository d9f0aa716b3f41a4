"""How a picture is drawn on a screen of its own, by each way that terminals have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from agent_tui.engine.about.pictures import Way
from agent_tui.models.messages import AttachmentPart
from agent_tui.tools.files.previews import Dots, Rgb, Size, dots, preview
from agent_tui.ui.terminal import kitty
from agent_tui.ui.terminal.iterm2 import showing
from agent_tui.ui.terminal.overlay import FEW_NUMBER, FEW_RGB, NUMBER
from agent_tui.ui.terminal.sixel import encoded

MOST_PIXELS = 800_000
"""Pixels of a picture that is sent; where a protocol can, the terminal makes it larger."""
MOST_BYTES = 700_000
"""Of an image file or a sequence: tmux takes a megabyte in one piece, and a slow line should not be busy for long."""
MOST_SIXELS = 1_500_000
"""Characters of sixels: a photo of many colours has two for each of its pixels."""
_SMALLEST = 16
SIXELS = (1_000, 1_000)
"""Pixels of a sixel picture where the terminal does not say how large it may be: xterm's limit."""
COLORS = 256
UPPER = "▀"
Box: TypeAlias = tuple[int, int]
"""Columns and rows."""


@dataclass(slots=True, frozen=True)
class Canvas:
    """What a terminal draws with. ``cell`` is in pixels, wide and high; ``colors`` and ``largest`` (pixels) are what a
    sixel picture may have. ``wrapped``: through tmux, which has ``few_colors`` or all."""

    way: Way
    cell: Size
    wrapped: bool = False
    colors: int = COLORS
    largest: Size = SIXELS
    few_colors: bool = False


@dataclass(slots=True, frozen=True)
class Drawing:
    """Over ``box`` cells: a sequence that draws from the cursor on, or lines of cells, of which some need a sequence to
    be sent before. ``number`` is kitty's. ``was`` is the image's size."""

    box: Box
    was: Size
    sequence: str = ""
    lines: Sequence[Strip] = ()
    number: int = 0


def drawing(part: AttachmentPart, canvas: Canvas, room: Box, background: Rgb) -> Drawing:
    """The picture as large as it is, or as fits into ``room``. Takes time, a second at most for what terminals show:
    call in a thread. Raises PictureError."""
    if canvas.way == "sixel":
        return _sixels(part, canvas, room, background)
    if canvas.way == "inline" and canvas.wrapped:
        return _placeholders(part, canvas, room)
    if canvas.way in ("iterm2", "kitty", "inline"):
        return _file(part, canvas, room)
    return _blocks(part, room, background)


def _pixels(canvas: Canvas, room: Box) -> Size:
    """Of the room, in a number that is bounded."""
    width, height = room[0] * canvas.cell[0], room[1] * canvas.cell[1]
    share = min(1.0, (MOST_PIXELS / max(1, width * height)) ** 0.5)
    return max(1, int(width * share)), max(1, int(height * share))


def _covered(was: Size, canvas: Canvas, room: Box) -> Box:
    """The cells that an image covers: as many pixels as it has, or as fit, in its own shape."""
    wide, high = was[0] / canvas.cell[0], was[1] / canvas.cell[1]
    share = min(1.0, room[0] / wide, room[1] / high)
    return max(1, min(room[0], round(wide * share))), max(1, min(room[1], round(high * share)))


def _file(part: AttachmentPart, canvas: Canvas, room: Box) -> Drawing:
    """The terminal gets an image file and the cells to spread it over."""
    iterm2 = canvas.way == "iterm2"
    made = preview(part, *_pixels(canvas, room), MOST_BYTES, png=not iterm2)
    box = _covered(made.was, canvas, room)
    if iterm2:
        return Drawing(box, made.was, showing(part.name, made.data, *box))
    return Drawing(box, made.was, "".join(kitty.sending(NUMBER, made.data, *box, drawn=True)), number=NUMBER)


def _placeholders(part: AttachmentPart, canvas: Canvas, room: Box) -> Drawing:
    """As a text, which tmux knows to place."""
    room = min(room[0], kitty.MOST_COLUMNS), min(room[1], kitty.MOST_COLUMNS)
    made = preview(part, *_pixels(canvas, room), MOST_BYTES, png=True)
    columns, rows = _covered(made.was, canvas, room)
    number, rgb = (FEW_NUMBER, FEW_RGB) if canvas.few_colors else (NUMBER, _rgb(NUMBER))
    style = Style(color=Color.from_rgb(*rgb))
    lines = [Strip([Segment(kitty.cell(y, x), style) for x in range(columns)], columns) for y in range(rows)]
    return Drawing((columns, rows), made.was, "".join(kitty.sending(number, made.data, columns, rows)), lines, number)


def _rgb(number: int) -> Rgb:
    return number >> 16, number >> 8 & 255, number & 255


def _sixels(part: AttachmentPart, canvas: Canvas, room: Box, background: Rgb) -> Drawing:
    """Pixel for pixel; what would be too much to send becomes smaller."""
    width, height = _pixels(canvas, room)
    width, height = min(width, canvas.largest[0]), min(height, canvas.largest[1])
    most = MOST_BYTES if canvas.wrapped else MOST_SIXELS
    while True:
        made = dots(part, width, height, background, max(2, min(canvas.colors, COLORS)))
        sequence = encoded(*made.size, made.palette, made.pixels)
        if len(sequence) <= most or max(made.size) < _SMALLEST:
            break
        share = 0.9 * (most / len(sequence)) ** 0.5
        width, height = int(made.size[0] * share), int(made.size[1] * share)
    box = -(-made.size[0] // canvas.cell[0]), -(-made.size[1] // canvas.cell[1])
    return Drawing((min(box[0], room[0]), min(box[1], room[1])), made.was, sequence)


def _blocks(part: AttachmentPart, room: Box, background: Rgb) -> Drawing:
    """Two dots in each cell, one above the other."""
    made = dots(part, room[0], room[1] * 2, background)
    lines = [_line(made, top, background) for top in range(0, made.size[1], 2)]
    return Drawing((made.size[0], len(lines)), made.was, lines=lines)


def _line(made: Dots, top: int, background: Rgb) -> Strip:
    width, height = made.size
    upper = _row(made, top)
    lower = _row(made, top + 1) if top + 1 < height else [background] * width
    segments = []
    for (above, below), cells in groupby(zip(upper, lower, strict=True)):
        style = Style(color=Color.from_rgb(*above), bgcolor=Color.from_rgb(*below))
        segments.append(Segment(UPPER * len(list(cells)), style))
    return Strip(segments, width)


def _row(made: Dots, y: int) -> list[Rgb]:
    width = made.size[0]
    row = made.pixels[3 * y * width : 3 * (y + 1) * width]
    return list(zip(row[0::3], row[1::3], row[2::3], strict=True))
