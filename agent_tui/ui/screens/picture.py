"""One picture on a screen of its own, as well as the terminal can: from placeholders, or in coarse blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
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

from agent_tui.models.messages import AttachmentPart
from agent_tui.paths import in_project
from agent_tui.records import dataclass
from agent_tui.text.cells import shorten
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import size
from agent_tui.tools.files.pictures import Dots, PictureError, Rgb, Size, dots, preview
from agent_tui.ui.safety import Guarded
from agent_tui.ui.terminal import pictures as kitty
from agent_tui.ui.terminal.passing import through_tmux
from agent_tui.ui.terminal.pictures import FEW_NUMBER, FEW_RGB, NUMBER, Writes
from agent_tui.ui.theme import Paint, Piece, paint_of, strip_of
from agent_tui.ui.widgets.drawn_lines import Lines

MOST_PIXELS = 800_000
"""Pixels of a picture that is sent; the terminal makes it larger."""
MOST_BYTES = 700_000
"""Of an image file: a slow line should not be busy for long."""
UPPER = "▀"
Box: TypeAlias = tuple[int, int]
"""Columns and rows."""


@dataclass(slots=True, frozen=True)
class Canvas:
    """What a terminal draws pictures with: placeholders where it ``holds`` them, of cells of so many pixels, wide and
    high; else coarse blocks. ``wrapped``: through tmux. ``few_colors``: a number has to be one of 256 colours."""

    holds: bool
    cell: Size
    wrapped: bool = False
    few_colors: bool = False


@dataclass(slots=True, frozen=True)
class PictureDrawing:
    """Lines of cells; ``sequences`` send the terminal what their placeholders stand for. ``was`` is the image's
    size."""

    lines: Sequence[Strip]
    was: Size
    sequences: Sequence[str] = ()

    @property
    def box(self) -> Box:
        return self.lines[0].cell_length, len(self.lines)


def drawing(part: AttachmentPart, canvas: Canvas, room: Box, background: Rgb) -> PictureDrawing:
    """The picture as large as it is, or as fits into ``room``. Takes up to a second: call in a thread. Raises
    PictureError."""
    return _placeholders(part, canvas, room) if canvas.holds else _blocks(part, room, background)


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


def number_of(canvas: Canvas) -> int:
    """The picture's number at the terminal."""
    return FEW_NUMBER if canvas.few_colors else NUMBER


def _placeholders(part: AttachmentPart, canvas: Canvas, room: Box) -> PictureDrawing:
    room = min(room[0], kitty.MOST_COLUMNS), min(room[1], kitty.MOST_COLUMNS)
    made = preview(part, *_pixels(canvas, room), MOST_BYTES)
    columns, rows = _covered(made.was, canvas, room)
    rgb = FEW_RGB if canvas.few_colors else (NUMBER >> 16, NUMBER >> 8 & 255, NUMBER & 255)
    style = Style(color=Color.from_rgb(*rgb))
    # Each cell is a segment of its own, so that nothing parts a placeholder from the marks above it.
    lines = [Strip([Segment(kitty.cell(y, x), style) for x in range(columns)], columns) for y in range(rows)]
    return PictureDrawing(lines, made.was, list(kitty.sending(number_of(canvas), made.data, columns, rows)))


def _blocks(part: AttachmentPart, room: Box, background: Rgb) -> PictureDrawing:
    """Two dots in each cell, one above the other."""
    made = dots(part, room[0], room[1] * 2, background)
    lines = [_line(made, top, background) for top in range(0, made.size[1], 2)]
    return PictureDrawing(lines, made.was)


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
VIEWER = "o opens it in a viewer"
DOCTOR = "in coarse blocks: /doctor"
"""Where there is no room to say why."""


class Room(Widget):
    """Empty cells, or those that a picture is made of, in the middle."""

    DEFAULT_CSS = "Room { height: 1fr; background: $background; }"

    def __init__(self) -> None:
        super().__init__()
        self.drawn: PictureDrawing | None = None
        self.words = ""

    def show(self, drawn: PictureDrawing | None, words: str = "") -> None:
        """A picture of cells, or a line of words, or nothing."""
        self.drawn, self.words = drawn, words
        self.refresh()

    def place_of(self, drawn: PictureDrawing) -> tuple[int, int]:
        """Returns where the picture begins, counted from the room's own corner."""
        return max(0, (self.size.width - drawn.box[0]) // 2), max(0, (self.size.height - drawn.box[1]) // 2)

    def render_line(self, y: int) -> Strip:
        width, style = self.size.width, self.rich_style
        if self.drawn is not None:
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
    """Shows ``parts``, one at a time, first number ``index``. ``canvas`` tells what can be drawn with; ``why`` is said
    where that is only blocks; ``root`` is the project; ``view`` opens one in a viewer and returns what is wrong where
    it cannot; None where there can be none."""

    DEFAULT_CSS = "PictureScreen { background: $background; layout: vertical; overflow: hidden; }"
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Back", show=False),
        Binding("left,up,k,p", "turn(-1)", "Previous picture", show=False),
        Binding("right,down,j,n,space", "turn(1)", "Next picture", show=False),
        Binding("o", "view", "Open in a viewer", show=False),
        *(Binding(key, "nothing", show=False) for key in BELOW),
    ]

    def __init__(
        self,
        terminal: Writes,
        canvas: Callable[[], Canvas],
        parts: Sequence[AttachmentPart],
        index: int,
        root: Path,
        why: str = "",
        view: Callable[[AttachmentPart], Awaitable[str]] | None = None,
    ) -> None:
        super().__init__()
        self.parts = parts
        self.index = index
        self._terminal = terminal
        self._canvas = canvas
        self._root = root
        self._why = why
        self._view = view
        self._room = Room()
        self._caption = Caption(self._told)
        self._was: Size | None = None
        self._sent: Canvas | None = None
        """What the picture that the terminal holds was sent with."""
        self._wanted = self._done = 0
        self._works = False
        self._said = ""
        """What became of the last key, in place of the keys."""

    def compose(self) -> ComposeResult:
        yield self._room
        yield self._caption

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.again())

    def again(self) -> None:
        """Draws it anew: another one, another size, or the terminal was somebody else's."""
        self._room.show(None)
        self._wanted += 1
        if not self._works:
            self._works = True
            self.run_worker(self._work(), exit_on_error=False)

    def drop(self) -> None:
        """Lets the terminal forget it."""
        sent, self._sent = self._sent, None
        if sent is not None:
            self._write(kitty.dropping(number_of(sent)), sent)

    on_resize = on_screen_resume = again
    on_unmount = drop

    async def _work(self) -> None:
        """One at a time, however fast the keys are."""
        try:
            while self._done != self._wanted and self.is_attached:
                room = self._room.size
                if not room.width or not room.height:
                    return
                turn, part, canvas = self._wanted, self.parts[self.index], self._canvas()
                color = self._room.background_colors[1]
                drawn, words = None, ""
                try:
                    drawn = await asyncio.to_thread(drawing, part, canvas, (room.width, room.height), color.rgb)
                except PictureError as error:
                    words = f"Cannot be shown: {error}"
                if turn == self._wanted:
                    self._done = turn
                    self.call_after_refresh(self._put, turn, canvas, drawn, words)
        finally:
            self._works = False

    def _put(self, turn: int, canvas: Canvas, drawn: PictureDrawing | None, words: str) -> None:
        if turn != self._wanted or not self.is_current:
            return
        self.drop()
        if drawn is not None and drawn.sequences:
            self._sent = canvas
            for sequence in drawn.sequences:
                self._write(sequence, canvas)
        self._was = drawn.was if drawn is not None else None
        self._caption.refresh()
        self._room.show(drawn, words)

    def _write(self, sequence: str, canvas: Canvas) -> None:
        self._terminal.write_to_terminal(through_tmux(sequence) if canvas.wrapped else sequence)

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
        if self._said:
            return " · ".join(filter(None, facts)), [self._said]
        ways = [TURN if len(self.parts) > 1 else "", VIEWER if self._view is not None else "", KEYS]
        keys = " · ".join(filter(None, ways))
        short = [f"{keys} · {why}" for why in (self._why, self._why.partition("; ")[0], DOCTOR)] if self._why else []
        return " · ".join(filter(None, facts)), [*short, keys, KEYS]

    def action_turn(self, by: int) -> None:
        index = min(max(0, self.index + by), len(self.parts) - 1)
        if index != self.index:
            self.index, self._was, self._said = index, None, ""
            self._caption.refresh()
            self.again()

    async def action_view(self) -> None:
        if self._view is not None:
            self._said = await self._view(self.parts[self.index])
            self._caption.refresh()

    def action_close(self) -> None:
        self.drop()
        self.dismiss()

    def action_nothing(self) -> None:
        """Does nothing: a key of the conversation has no use here."""

    def on_click(self) -> None:
        self.action_close()
