"""One picture on a screen of its own. What is drawn over the text is put there when everything else stands and taken
away before anything else comes; nothing of it is sent while the conversation is in view."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import ClassVar, TypeAlias

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from agent_tui.engine.terminal import Way, place_in_tmux, redraw_tmux
from agent_tui.models.messages import AttachmentPart
from agent_tui.paths import in_project
from agent_tui.records import dataclass
from agent_tui.text.cells import shorten
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import size
from agent_tui.tools.files.pictures import Dots, PictureError, Rgb, Size, dots, preview
from agent_tui.ui.safety import Guarded
from agent_tui.ui.terminal import pictures as kitty
from agent_tui.ui.terminal.pictures import FEW_NUMBER, FEW_RGB, NUMBER, Overlay, Place, encoded, showing
from agent_tui.ui.theme import Paint, Piece, paint_of, strip_of
from agent_tui.ui.widgets.drawn_lines import Lines

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
    """What a terminal draws pictures with. ``cell`` is in pixels, wide and high; ``colors`` and ``largest`` (pixels)
    are a sixel picture's. ``wrapped``: through tmux, which has ``few_colors`` or all."""

    way: Way
    cell: Size
    wrapped: bool = False
    colors: int = COLORS
    largest: Size = SIXELS
    few_colors: bool = False


@dataclass(slots=True, frozen=True)
class Drawing:
    """Over ``box`` cells: a sequence that draws from the cursor on, or lines of cells, of which some need a sequence
    before. ``number`` is kitty's. ``was`` is the image's size."""

    box: Box
    was: Size
    sequence: str = ""
    lines: Sequence[Strip] = ()
    number: int = 0


def drawing(part: AttachmentPart, canvas: Canvas, room: Box, background: Rgb) -> Drawing:
    """The picture as large as it is, or as fits into ``room``. Takes up to a second: call in a thread. Raises
    PictureError."""
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
    number, rgb = (
        (FEW_NUMBER, FEW_RGB) if canvas.few_colors else (NUMBER, (NUMBER >> 16, NUMBER >> 8 & 255, NUMBER & 255))
    )
    style = Style(color=Color.from_rgb(*rgb))
    lines = [Strip([Segment(kitty.cell(y, x), style) for x in range(columns)], columns) for y in range(rows)]
    return Drawing((columns, rows), made.was, "".join(kitty.sending(number, made.data, columns, rows)), lines, number)


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
    lower = _row(made, top + 1) if top + 1 < height else [background] * width
    segments = [
        Segment(UPPER * len(list(cells)), Style(color=Color.from_rgb(*above), bgcolor=Color.from_rgb(*below)))
        for (above, below), cells in groupby(zip(_row(made, top), lower, strict=True))
    ]
    return Strip(segments, width)


def _row(made: Dots, y: int) -> list[Rgb]:
    width = made.size[0]
    row = made.pixels[3 * y * width : 3 * (y + 1) * width]
    return list(zip(row[0::3], row[1::3], row[2::3], strict=True))


BELOW = ("ctrl+o", "ctrl+t", "ctrl+f", "ctrl+p", "ctrl+up", "ctrl+down")
"""Keys of the conversation, which is not in view."""
KEYS = "Esc back"
TURN = "← → other pictures"
DOCTOR = "in coarse blocks: /doctor"
"""Where there is no room to say why."""


class Room(Widget):
    """Empty cells, or those that a picture is made of, in the middle."""

    DEFAULT_CSS = "Room { height: 1fr; background: $background; }"

    def __init__(self) -> None:
        super().__init__()
        self.drawn: Drawing | None = None
        self.words = ""

    def show(self, drawn: Drawing | None, words: str = "") -> None:
        """A picture of cells, or a line of words, or nothing."""
        self.drawn, self.words = drawn, words
        self.refresh()

    def place_of(self, drawn: Drawing) -> tuple[int, int]:
        """Returns where the picture begins, counted from the room's own corner."""
        return max(0, (self.size.width - drawn.box[0]) // 2), max(0, (self.size.height - drawn.box[1]) // 2)

    def render_line(self, y: int) -> Strip:
        width, style = self.size.width, self.rich_style
        if self.drawn is not None and self.drawn.lines:
            left, top = self.place_of(self.drawn)
            if 0 <= y - top < len(self.drawn.lines):
                line = Strip.join([Strip.blank(left, style), self.drawn.lines[y - top]])
                return line.adjust_cell_length(width, style)
        elif self.words and y == self.size.height // 2:
            text = shorten(self.words, max(1, width - 2))
            left = (width - cell_len(text)) // 2
            return strip_of([(" " * left, Style()), (text, paint_of(self.app)("muted"))], width, style)
        return Strip.blank(width, style)


class Caption(Lines):
    """The lines that say what the picture is and what can be done with it."""

    def __init__(self, told: Callable[[], tuple[str, Sequence[str]]]) -> None:
        super().__init__(height=2)
        self._told = told

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        what, keys = self._told()
        room = max(1, width - 2)
        whole = what if y == 0 else next((text for text in keys if cell_len(text) <= room), keys[-1])
        return [(f" {shorten(whole, room)}", paint("foreground" if y == 0 else "muted"))]


class PictureScreen(Guarded, Screen[None]):
    """Shows ``parts``, one at a time, first number ``index``. ``canvas`` tells what can be drawn with, and is told
    whether the size is another one; ``why`` is said where that is only blocks; ``root`` is the project."""

    DEFAULT_CSS = "PictureScreen { background: $background; layout: vertical; overflow: hidden; }"
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Back", show=False),
        Binding("left,up,k,p", "turn(-1)", "Previous picture", show=False),
        Binding("right,down,j,n,space", "turn(1)", "Next picture", show=False),
        *(Binding(key, "nothing", show=False) for key in BELOW),
    ]

    def __init__(
        self,
        overlay: Overlay,
        canvas: Callable[[bool], Canvas],
        parts: Sequence[AttachmentPart],
        index: int,
        root: Path,
        why: str = "",
    ) -> None:
        super().__init__()
        self.parts = parts
        self.index = index
        self._overlay = overlay
        self._canvas = canvas
        self._root = root
        self._why = why
        self._room = Room()
        self._caption = Caption(self._told)
        self._was: tuple[int, int] | None = None
        self._wanted = self._done = 0
        self._sized = (0, 0)
        self._works = False

    def compose(self) -> ComposeResult:
        yield self._room
        yield self._caption

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.again())
        self.app.app_suspend_signal.subscribe(self, lambda _: self.wipe())
        self.watch(self.app, "app_focus", self._looked_at, init=False)

    def _looked_at(self, focus: bool) -> None:
        """Another window of tmux may have been in view, which leaves nothing of what it does not know."""
        if focus and self._canvas(False).wrapped:
            self.again()

    def again(self) -> None:
        """Draws it anew: another one, another size, or the terminal was somebody else's."""
        self.wipe()
        self._room.show(None)
        self._wanted += 1
        if not self._works:
            self._works = True
            self.run_worker(self._work(), exit_on_error=False)

    def wipe(self) -> None:
        if self._overlay.wipe():
            self.app.screen.refresh()
            if self._canvas(False).wrapped:
                self.app.call_after_refresh(redraw_tmux)

    on_resize = on_screen_resume = again
    on_screen_suspend = on_unmount = wipe

    async def _work(self) -> None:
        """One at a time, however fast the keys are."""
        try:
            while self._done != self._wanted and self.is_attached:
                room = self._room.size
                if not room.width or not room.height:
                    return
                turn, part, canvas = self._wanted, self.parts[self.index], self._canvas(room != self._sized)
                self._sized = room
                color = self._room.background_colors[1]
                drawn, words, off = None, "", (0, 0)
                try:
                    drawn = await asyncio.to_thread(drawing, part, canvas, (room.width, room.height), color.rgb)
                    if canvas.wrapped:
                        off = await asyncio.to_thread(place_in_tmux)
                except PictureError as error:
                    words = f"Cannot be shown: {error}"
                if turn == self._wanted:
                    self._done = turn
                    self.call_after_refresh(self._put, turn, drawn, words, off)
        finally:
            self._works = False

    def _put(self, turn: int, drawn: Drawing | None, words: str, off: tuple[int, int]) -> None:
        """The empty screen stands: now the picture."""
        if turn != self._wanted or not self.is_current:
            return
        self._was = drawn.was if drawn is not None else None
        self._caption.refresh()
        if drawn is not None and drawn.sequence:
            left, top = self._room.place_of(drawn)
            x, y = self._room.region.offset
            # Where cells stand for it, they go as any others do.
            rows = 0 if drawn.lines else drawn.box[1]
            place = Place(x + left, y + top, drawn.box[0], rows, off)
            self._overlay.put(drawn.sequence, place, drawn.number)
        self._room.show(drawn, words)

    def _told(self) -> tuple[str, Sequence[str]]:
        part = self.parts[self.index]
        path = in_project(part.path, self._root) if part.path else ""
        facts = (
            one_line(part.name, 200),
            one_line(path, 200) if path not in part.name else "",
            f"{self._was[0]} × {self._was[1]}" if self._was is not None else "",
            one_line(part.media_type, 60),
            size(len(part.data or "") * 3 // 4),
            f"{self.index + 1} of {len(self.parts)}" if len(self.parts) > 1 else "",
        )
        keys = " · ".join([TURN, KEYS] if len(self.parts) > 1 else [KEYS])
        short = [f"{keys} · {why}" for why in (self._why, self._why.partition("; ")[0], DOCTOR)] if self._why else []
        return " · ".join(filter(None, facts)), [*short, keys]

    def action_turn(self, by: int) -> None:
        index = min(max(0, self.index + by), len(self.parts) - 1)
        if index != self.index:
            self.index, self._was = index, None
            self._caption.refresh()
            self.again()

    def action_close(self) -> None:
        self.wipe()
        self.dismiss()

    def action_nothing(self) -> None:
        """Does nothing: a key of the conversation has no use here."""

    def on_click(self) -> None:
        self.action_close()
