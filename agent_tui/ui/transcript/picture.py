"""Images in the transcript: as pictures where the terminal can hold them, else as one line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from agent_tui.models.messages import AttachmentPart, base64_size
from agent_tui.text.clean import drawable
from agent_tui.ui.flow.lines import Decoration, Flow, Line, bounded
from agent_tui.ui.flow.palette import Palette
from agent_tui.ui.flow.piece import Piece
from agent_tui.ui.terminal.kitty import cell
from agent_tui.ui.transcript.album import WIDEST, Album, HasAlbum, Picture, PictureLine
from agent_tui.ui.transcript.blocks import Block
from agent_tui.ui.transcript.parts import picture_line


class Pictured(Flow):
    """The rows that a picture covers: placeholders once the terminal has it, before that as much room."""

    __slots__ = ("album", "picture")

    def __init__(self, album: Album, picture: Picture, *, first: Decoration, fill: str) -> None:
        super().__init__(first=first, fill=fill, silent=True)
        self.album = album
        self.picture = picture

    def lay(self, row: int, width: int, palette: Palette) -> list[Line]:
        first, picture = bounded(self.first, width), self.picture
        margin = [(text, palette(f"{self.fill} {style}")) for text, style in first]
        indent = sum(len(text) for text, _ in first)
        assert picture.size is not None
        columns, rows = picture.box = self.album.box(picture.size, max(1, width - indent - 1))
        fill = palette(self.fill)
        color = Style(color=picture.color, bgcolor=fill.bgcolor)
        lines: list[Line] = []
        for y in range(rows):
            line = PictureLine(row, "", list(margin), [-1] * len(margin), fill)
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
            piece = Piece(partial(self._rows, album, picture), rows=album.box(picture.size, WIDEST)[1])
            picture.pieces = [piece]
            out.append(piece)
        return out

    def _rows(self, album: Album, picture: Picture) -> list[Flow]:
        if picture.state == "failed":
            return self._line(picture.part, f" is not shown: {picture.problem}")
        return [Pictured(album, picture, first=self._margin, fill=self._fill)]

    def _line(self, part: AttachmentPart, problem: str) -> list[Flow]:
        name = f"{drawable(part.name)} ({drawable(part.media_type)})".replace("\n", " ⏎ ")
        more = "" if problem else more_of(part, self._tools)
        if more:
            return picture_line(f"{name}{more}", key_of(part), self._margin, self._fill)
        return [Flow(f"+ {name}{problem}"[:500], base="muted", first=self._margin, fill=self._fill)]


def key_of(part: AttachmentPart) -> str:
    """What a picture of this conversation is called between its line and what shows it."""
    return f"#{id(part)}"


def more_of(part: AttachmentPart, tools: HasAlbum) -> str:
    """What stands behind a picture's name where it is opened by it; nothing where it is not."""
    if not tools.opening:
        return ""
    size = base64_size(part.data or "")
    return f" · {size[0]} × {size[1]} · {tools.opening}" if size is not None else f" · {tools.opening}"
