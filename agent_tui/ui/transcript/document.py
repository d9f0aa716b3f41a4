"""The transcript as rows: which line is where, laying out no more than what is looked at."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from agent_tui.ui.flow.layout import Line
from agent_tui.ui.flow.paint import Piece
from agent_tui.ui.flow.palette import Palette
from agent_tui.ui.transcript.entry import Entry, Folding, Heights, Tools, blocks_of
from agent_tui.ui.transcript.tools import ToolBlock

KEPT_LINES = 4_000
"""Laid-out lines that are kept; those not looked at for longest are dropped first."""


class Cursor(NamedTuple):
    """A line's place: entry, piece of the entry, line of the piece. Stays true when things above change height."""

    entry: int
    piece: int
    line: int


class ScreenSlot(NamedTuple):
    """A line on the screen and its place."""

    cursor: Cursor
    line: Line


class Document:
    """Entries stacked on each other. Heights are estimates until a piece was laid out."""

    def __init__(self, folding: Folding, root: Path | None = None) -> None:
        self.entries: list[Entry] = []
        self.heights = Heights()
        self.tools = Tools(root or Path())
        self.folding = folding
        self.width = 80
        self.palette: Palette | None = None
        self._asked: list[Entry] = []
        self._built: set[int] = set()
        self._kept: OrderedDict[Piece, int] = OrderedDict()
        self._kept_lines = 0

    def append(self, entry: Entry) -> None:
        entry.index = len(self.entries)
        self.entries.append(entry)
        self._asked += _questions([entry])
        self.heights.append(self._guess(entry))

    def extend(self, entries: list[Entry]) -> None:
        """Adds many at once."""
        for entry in entries:
            entry.index = len(self.entries)
            self.entries.append(entry)
        self._asked += _questions(entries)
        self._estimate()

    def prepend(self, entries: list[Entry]) -> None:
        """Adds many before all others, whose numbers go up by as many."""
        count = len(entries)
        self.entries[:0] = entries
        for index, entry in enumerate(self.entries):
            entry.index = index
        self._asked[:0] = _questions(entries)
        self._built = {index + count for index in self._built}
        self._estimate()

    def resize(self, width: int) -> None:
        """All heights anew for another width."""
        if width != self.width:
            self.width = width
            self._estimate()

    def restyle(self, palette: Palette) -> None:
        """Other colours: lines are made anew, heights stay."""
        self.palette = palette
        for piece in self._kept:
            piece.forget()
        self._kept.clear()
        self._kept_lines = 0

    def refold(self) -> None:
        """Drops the pieces of all entries, because what is open by default changed."""
        for index in self._built:
            self.entries[index].pieces = None
        self._built.clear()

    def touch(self, entry: Entry) -> None:
        """The entry's content or folding changed."""
        entry.pieces = None
        self._built.discard(entry.index)

    def measure(self, entry: Entry) -> None:
        """Estimates the height of an entry that changed while nobody looks at it."""
        if entry.pieces is None:
            self.heights.set(entry.index, self._guess(entry))

    def pieces(self, index: int) -> list[Piece]:
        """The pieces of an entry, made when needed."""
        entry = self.entries[index]
        if entry.pieces is None:
            if entry.blocks is None:
                assert entry.message is not None
                entry.blocks = blocks_of(entry.message, self.tools)
            entry.after_line = self._ends_with_line(index - 1)
            entry.build(self.folding, self.width)
            self._built.add(index)
            self.heights.set(index, entry.heights.total)
        return entry.pieces or []

    def lay(self, index: int, number: int) -> list[Line]:
        """The lines of a piece; corrects the heights."""
        piece = self.pieces(index)[number]
        assert self.palette is not None
        lines = piece.lay(self.width, self.palette)
        entry = self.entries[index]
        if entry.heights[number] != len(lines):
            entry.heights.set(number, len(lines))
            self.heights.set(index, entry.heights.total)
        self._keep(piece, len(lines))
        return lines

    def offset(self, cursor: Cursor) -> int:
        """The row a place has at the moment."""
        return self.heights.before(cursor.entry) + self.entries[cursor.entry].heights.before(cursor.piece) + cursor.line

    def question(self, index: int, direction: int) -> int | None:
        """The nearest entry before (-1) or after (+1) that one in which the user says something."""
        side = bisect_left if direction < 0 else bisect_right
        at = side(self._asked, index, key=attrgetter("index")) - (direction < 0)
        # One that was withdrawn says nothing any more.
        while 0 <= at < len(self._asked) and self._asked[at].message is None:
            at += direction
        return self._asked[at].index if 0 <= at < len(self._asked) else None

    def at(self, row: int) -> Cursor:
        """The place at a row, as far as heights are known."""
        index, offset = self.heights.find(row)
        if not self.entries:
            return Cursor(0, 0, 0)
        guessed = max(1, self.heights[index])
        pieces = self.pieces(index)
        if not pieces:
            return Cursor(index, 0, 0)
        number, line = self.entries[index].heights.find(offset * self.heights[index] // guessed)
        return Cursor(index, number, min(line, max(0, len(self.lay(index, number)) - 1)))

    def last(self, rows: int) -> Cursor:
        """The place ``rows`` lines above the end."""
        return self.back(Cursor(len(self.entries), 0, 0), rows)

    def back(self, cursor: Cursor, rows: int) -> Cursor:
        """The place ``rows`` lines above, or the first."""
        index, number, line = cursor
        while line < rows:
            rows -= line
            while number == 0:
                if index == 0:
                    return Cursor(0, 0, 0)
                index -= 1
                number = len(self.pieces(index))
            number -= 1
            line = len(self.lay(index, number))
        return Cursor(index, number, line - rows)

    def lines(self, cursor: Cursor, rows: int) -> list[ScreenSlot]:
        """Up to ``rows`` lines from a place on."""
        out: list[ScreenSlot] = []
        index, number, line = cursor
        while index < len(self.entries):
            pieces = self.pieces(index)
            while number < len(pieces):
                found = self.lay(index, number)
                for k in range(line, min(len(found), line + rows - len(out))):
                    out.append(ScreenSlot(Cursor(index, number, k), found[k]))
                if len(out) >= rows:
                    return out
                number += 1
                line = 0
            index, number, line = index + 1, 0, 0
        return out

    def _guess(self, entry: Entry) -> int:
        return entry.rows + entry.chars // max(16, self.width - 4)

    def _estimate(self) -> None:
        width = max(16, self.width - 4)
        rows = [entry.rows + entry.chars // width for entry in self.entries]
        for index in self._built:
            entry = self.entries[index]
            if entry.pieces is not None:
                entry.heights.reset([piece.guess(self.width) for piece in entry.pieces])
                rows[index] = entry.heights.total
        self.heights.reset(rows)

    def _ends_with_line(self, index: int) -> bool:
        """Returns whether an entry ends with a call of which nothing but its line is seen: the next one follows it
        without a gap."""
        entry = self.entries[index] if index >= 0 else None
        if entry is None or (entry.message is not None and entry.message.status == "streaming"):
            return False
        if entry.blocks is None and entry.message is not None:
            entry.blocks = blocks_of(entry.message, self.tools)
        block = entry.blocks[-1] if entry.blocks else None
        if not isinstance(block, ToolBlock):
            return False
        block.preview = self.folding.preview
        return len(block.pieces(entry.is_open(block, self.folding))) == 1

    def _keep(self, piece: Piece, lines: int) -> None:
        old = self._kept.pop(piece, 0)
        self._kept[piece] = lines
        self._kept_lines += lines - old
        while self._kept_lines > KEPT_LINES and len(self._kept) > 64:
            dropped, count = self._kept.popitem(last=False)
            dropped.forget()
            self._kept_lines -= count


def _questions(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.message is not None and entry.message.role == "user"]
