"""The pictures of a transcript on a terminal that can hold them: sent once, when they are seen and not before."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

from rich.color import Color, ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from agent_tui.models.image_headers import base64_size, base64_type
from agent_tui.models.messages import AttachmentPart
from agent_tui.records import dataclass
from agent_tui.text.clean import drawable
from agent_tui.ui.flow.layout import MAX_PROSE, Decoration, Flow, Line, cells_in
from agent_tui.ui.flow.paint import Piece
from agent_tui.ui.flow.palette import Palette
from agent_tui.ui.terminal.passing import through_tmux
from agent_tui.ui.terminal.pictures import (
    ENDING,
    FEW_NUMBER,
    MOST_COLUMNS,
    NUMBER,
    Writes,
    cell,
    dropping,
    placing,
    sending,
)
from agent_tui.ui.transcript.blocks import Block
from agent_tui.ui.transcript.parts import picture_line

MOST_ROWS = 12
"""Lines of the screen that a picture may take."""
WIDEST = min(MAX_PROSE, MOST_COLUMNS)
KEPT = 48
"""Pictures that the terminal is asked to keep; more than are ever seen at once."""
SLICE = 16_384
"""Characters that are sent before keys and frames get their turn."""
PAUSE = 0.005
"""Seconds for them."""
_LEVELS = (0, 95, 135, 175, 215, 255)
"""How much of red, green and blue the colours of a palette of 256 have."""
MOST_PIXELS = 1_000_000
"""Pixels of a picture that is sent. Terminals with very fine cells scale it up."""

State: TypeAlias = Literal["unseen", "asked", "shown", "failed"]
Box: TypeAlias = tuple[int, int]
"""Columns and rows."""


_NO_COLOR = Color.default()


class HasAlbum(Protocol):
    album: Album | None
    """Where pictures are kept; None where the text holds none."""
    opening: str
    """How a picture is shown on a screen of its own; empty where it is not."""


@dataclass(slots=True, eq=False)
class Picture:
    """An image of the transcript."""

    part: AttachmentPart
    size: tuple[int, int] | None
    """In pixels; None where it is no image that is shown."""
    state: State = "unseen"
    problem: str = ""
    """Why it cannot be shown."""
    number: int = 0
    color: Color = _NO_COLOR
    box: Box = (0, 0)
    """It covered this where it was laid out last."""
    placed: Box = (0, 0)
    piece: Piece | None = None


class PictureLine(Line):
    """A line of the screen that a picture covers."""

    __slots__ = ("picture",)

    picture: Picture


@dataclass(eq=False)
class Album:
    """Knows which pictures the terminal holds."""

    _terminal: Writes
    _cell: tuple[int, int]
    """The size of a cell in pixels."""
    _system: ColorSystem
    """How the terminal is told colours: a picture's number travels as one."""
    _in_tmux: bool
    _begin: Callable[[Callable[[], Coroutine[Any, Any, None]]], object]
    """Starts work beside the keys."""
    _changed: Callable[[], None]
    """Called when the lines of a picture are to be drawn anew."""
    _pictures: dict[int, Picture] = field(default_factory=dict)
    _held: OrderedDict[int, Picture] = field(default_factory=OrderedDict)
    _todo: deque[Picture] = field(default_factory=deque)
    _works: bool = False
    _sending: Picture | None = None
    _time: int = 0

    def picture(self, part: AttachmentPart) -> Picture:
        """The picture of an attachment, the same each time."""
        found = self._pictures.get(id(part))
        if found is None:
            size = base64_size(part.data or "") if base64_type(part.data or "") is not None else None
            found = self._pictures[id(part)] = Picture(part, size)
        return found

    def box(self, size: tuple[int, int], room: int) -> Box:
        """The columns and rows that an image of so many pixels covers, of ``room`` columns: never more than it has
        pixels for, and in its own shape."""
        columns, rows = size[0] / self._cell[0], size[1] / self._cell[1]
        share = min(1.0, min(room, WIDEST) / columns, MOST_ROWS / rows)
        return max(1, min(room, WIDEST, round(columns * share))), max(1, min(MOST_ROWS, round(rows * share)))

    def look(self, lines: Iterable[Line]) -> None:
        """These lines are on the screen: what they show is sent where the terminal does not have it."""
        seen = dict.fromkeys(line.picture for line in lines if isinstance(line, PictureLine))
        for picture in seen:
            if picture.state == "unseen":
                picture.state = "asked"
                self._todo.append(picture)
            elif picture.state == "shown":
                self._held.move_to_end(picture.number)
                if picture.placed != picture.box and picture not in self._todo:
                    self._todo.append(picture)
        if self._todo and not self._works:
            self._works = True
            self._begin(self._work)

    def forget(self) -> None:
        """The terminal may have lost them: all are sent again, when they are seen."""
        self._drop_all()
        self._changed()

    def close(self) -> None:
        """Lets the terminal forget all of them; nothing is sent afterwards."""
        self._drop_all()
        self._pictures.clear()

    def _drop_all(self) -> None:
        """Lets the terminal forget them, and sends no more of what was begun."""
        self._time += 1
        self._todo.clear()
        if self._sending is not None:
            self._write(ENDING)
            self._write(dropping(self._sending.number))
            self._sending = None
        for picture in self._pictures.values():
            if picture.state == "asked":
                picture.state = "unseen"
        while self._held:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        number, picture = self._held.popitem(last=False)
        self._write(dropping(number))
        if picture.state == "shown":
            picture.state = "unseen"
        self._forget_lines(picture)

    async def _work(self) -> None:
        try:
            while self._todo:
                picture = self._todo.popleft()
                if picture.state == "shown":
                    if picture.number in self._held:
                        picture.placed = picture.box
                        self._write(placing(picture.number, *picture.box))
                elif picture.size is not None:
                    await self._send(picture, picture.size)
        finally:
            self._works = False

    async def _send(self, picture: Picture, size: tuple[int, int]) -> None:
        from agent_tui.tools.files.pictures import PictureError, preview

        time = self._time
        columns, rows = self.box(size, WIDEST)
        width, height = columns * self._cell[0], rows * self._cell[1]
        share = min(1.0, (MOST_PIXELS / (width * height)) ** 0.5)
        try:
            made = await asyncio.to_thread(preview, picture.part, int(width * share), int(height * share))
        except PictureError as error:
            picture.state, picture.problem = "failed", str(error)
            self._redraw(picture)
            return
        if time != self._time:
            return
        picture.number, picture.color = self._next()
        picture.placed = picture.box
        self._sending = picture
        waiting = 0
        for sequence in sending(picture.number, made.data, *picture.box):
            if waiting >= SLICE:
                await asyncio.sleep(PAUSE)
                if time != self._time:
                    return
                waiting = 0
            self._write(sequence)
            waiting += len(sequence)
        self._sending = None
        picture.state = "shown"
        self._held[picture.number] = picture
        while len(self._held) > KEPT:
            self._drop_oldest()
        self._redraw(picture)

    @staticmethod
    def _forget_lines(picture: Picture) -> None:
        if picture.piece is not None:
            picture.piece.forget()

    def _redraw(self, picture: Picture) -> None:
        self._forget_lines(picture)
        self._changed()

    def _write(self, sequence: str) -> None:
        self._terminal.write_to_terminal(through_tmux(sequence) if self._in_tmux else sequence)

    def _next(self) -> tuple[int, Color]:
        """A number that is free, and the colour that tells it."""
        while True:
            if self._system == ColorSystem.TRUECOLOR:
                red, green, blue = secrets.token_bytes(3)
                number = red << 16 | green << 8 | blue
            else:
                # Those of the palette's 6 × 6 × 6 that are no grey: whoever makes them fewer finds the same one.
                red, green, blue = (_LEVELS[secrets.randbelow(6)] for _ in range(3))
                number = 16 + 36 * _LEVELS.index(red) + 6 * _LEVELS.index(green) + _LEVELS.index(blue)
                if red == green == blue:
                    continue
            color = Color.from_rgb(red, green, blue)
            if number not in (0, NUMBER, FEW_NUMBER) and number not in self._held:
                return number, color


class Pictured(Flow):
    """The rows that a picture covers: placeholders once the terminal has it, before that as much room."""

    __slots__ = ("album", "picture")

    def __init__(self, album: Album, picture: Picture, *, first: Decoration, fill: str) -> None:
        super().__init__(first=first, fill=fill, silent=True)
        self.album = album
        self.picture = picture

    def lay(self, row: int, width: int, palette: Palette) -> list[Line]:
        (first, _), picture = self.leads(width), self.picture
        margin = [(text, palette(f"{self.fill} {style}")) for text, style in first]
        indent = cells_in(first)
        assert picture.size is not None
        columns, rows = picture.box = self.album.box(picture.size, max(1, width - indent - 1))
        fill = palette(self.fill)
        color = Style(color=picture.color, bgcolor=fill.bgcolor)
        lines: list[Line] = []
        for y in range(rows):
            line = PictureLine(row, "", fill, [(*piece, -1) for piece in margin])
            line.actions = ((indent, indent + columns, ("picture", key_of(picture.part))),)
            line.picture = picture
            if picture.state == "shown":
                # Each cell is a segment of its own, so that nothing parts a placeholder from the marks above it.
                cells = [(cell(y, x), color) for x in range(columns)]
                segments = [*margin, *cells, (" " * (width - indent - columns), fill)]
                line.strip = Strip([Segment(text, style) for text, style in segments], width)
            lines.append(line)
        return lines


class PictureBlock(Block):
    """The images of a message or of a tool's answer. ``named``: something above them names them already."""

    key = "pictures"

    def __init__(
        self, parts: Sequence[AttachmentPart], tools: HasAlbum, margin: Decoration, fill: str = "", named: bool = False
    ) -> None:
        self.parts = parts
        self._tools = tools
        self._margin = margin
        self._fill = fill
        self._named = named

    def pieces(self, is_open: bool) -> list[Piece]:
        out: list[Piece] = []
        album = self._tools.album
        for part in self.parts:
            picture = album.picture(part) if album is not None else None
            if album is None or picture is None or picture.size is None:
                if not self._named:
                    out.append(Piece(partial(self._line, part, "")))
                continue
            picture.piece = Piece(partial(self._rows, album, picture), rows=album.box(picture.size, WIDEST)[1])
            out.append(picture.piece)
        return out

    def _rows(self, album: Album, picture: Picture) -> list[Flow]:
        if picture.state == "failed":
            return self._line(picture.part, f": cannot be shown ({picture.problem})")
        return [Pictured(album, picture, first=self._margin, fill=self._fill)]

    def _line(self, part: AttachmentPart, problem: str) -> list[Flow]:
        name = f"{drawable(part.name)} ({drawable(part.media_type)})".replace("\n", " ⏎ ")
        if more := "" if problem else more_of(part, self._tools):
            return picture_line(f"{name}{more}", key_of(part), self._margin, self._fill)
        return [Flow(f"+ {name}{problem}"[:500], base="muted", first=self._margin, fill=self._fill)]


def key_of(part: AttachmentPart) -> str:
    """Returns the key of a picture of this conversation, by which its line and what shows it both call it."""
    return f"#{id(part)}"


def more_of(part: AttachmentPart, tools: HasAlbum) -> str:
    """Returns the words behind a picture's name where it is opened by it; nothing where it is not."""
    if not tools.opening:
        return ""
    size = base64_size(part.data or "")
    return f" · {size[0]} × {size[1]} · {tools.opening}" if size is not None else f" · {tools.opening}"
