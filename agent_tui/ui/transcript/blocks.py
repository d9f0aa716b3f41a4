"""The blocks of a message on the screen: each turns one part into pieces and knows how it folds."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial

from rich.cells import cell_len

from agent_tui.commands.tool_words import Item
from agent_tui.text.clean import drawable, drawable_output, newlines
from agent_tui.ui.flow.lines import Decoration, Flow, Wrap, cap_line
from agent_tui.ui.flow.paint import Piece
from agent_tui.ui.markdown.flows import code_flows, markdown_flows
from agent_tui.ui.markdown.splitter import Chunk, Splitter

MARGIN: Decoration = (("  ", ""),)
PLAIN_ROWS = 100
"""Lines of plain text in one piece."""


class Block:
    """One part of an entry. ``key`` names it within the entry; ``foldable`` ones have a header that opens them."""

    key = ""
    foldable = False
    gap = 1

    @abstractmethod
    def pieces(self, is_open: bool) -> list[Piece]:
        """Returns the pieces that are on the screen. The header first where there is one."""

    @property
    def default_open(self) -> bool | None:
        """True when it is open unless the user said otherwise; None: as all of its kind are."""
        return None


class GrowingBlock(Block):
    """A block of which more may stream in."""

    @abstractmethod
    def append(self, text: str) -> None:
        """More of it."""


def plain_pieces(
    text: str,
    margin: Decoration,
    *,
    style: str = "",
    fill: str = "",
    wrap: Wrap = "word",
    gap: int = 0,
    gap_margin: Decoration = (),
    wide: bool = False,
    hang: bool = False,
) -> list[Piece]:
    """Pieces of a text that is no Markdown: every line as it is. ``hang``: a line of two columns goes on below the
    second one."""
    lines = drawable(newlines(text)).split("\n")
    out = []
    for at in range(0, len(lines), PLAIN_ROWS):
        part = lines[at : at + PLAIN_ROWS]
        make = partial(_plain, part, margin, style, fill, wrap, wide, hang)
        chars = sum(min(len(line), 100_000) for line in part)
        out.append(Piece(make, gap=0 if at else gap, gap_margin=gap_margin, chars=chars, rows=len(part)))
    return out


def _plain(
    lines: Sequence[str], margin: Decoration, style: str, fill: str, wrap: Wrap, wide: bool, hang: bool = False
) -> list[Flow]:
    return [
        Flow(
            cap_line(line).expandtabs(4),
            base=style,
            first=margin,
            rest=(*margin, (" " * _second_column(line), "")) if hang else None,
            fill=fill,
            wrap=wrap,
            wide=wide,
        )
        for line in lines
    ]


_COLUMNS = re.compile(r" *\S(?:[^ ]| (?! ))* {2,}(?=\S)")
MOST_HANG = 30
"""Cells of a first column, above which what goes on stands where the line began."""


def _second_column(line: str) -> int:
    """Returns where the second of two columns begins, set apart by more than one blank; else where the line begins."""
    begins = len(line) - len(line.lstrip(" "))
    found = _COLUMNS.match(line)
    return min(begins, MOST_HANG) if found is None or found.end() > MOST_HANG else cell_len(found[0])


class MarkdownBody:
    """Markdown that may still grow. Chunks that are done become pieces once; only the open rest is made again."""

    def __init__(self, text: str = "", margin: Decoration = MARGIN, base: str = "", complete: bool = True) -> None:
        self.margin = margin
        self.base = base
        self.complete = complete
        self._parts: list[str] = [text] if text else []
        self._pending: list[str] = [text] if text else []
        self.length = len(text)
        self._splitter: Splitter | None = None
        self._frozen: list[Piece] = []
        self._used = 0
        self._copy: list[str] = []
        self._finished = False
        self._open: list[Piece] | None = None

    @property
    def text(self) -> str:
        """The source so far."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def append(self, text: str) -> None:
        self._parts.append(text)
        self._pending.append(text)
        self.length += len(text)
        self._open = None

    def finish(self) -> None:
        """The text is complete."""
        if not self.complete:
            self.complete = True
            self._open = None

    def pieces(self, gap: int, gap_margin: Decoration = ()) -> list[Piece]:
        """All pieces; the first one has ``gap`` empty rows before it."""
        if self._splitter is None:
            self._splitter = Splitter()
        splitter = self._splitter
        if self._open is None:
            if self._pending:
                splitter.feed("".join(self._pending))
                self._pending = []
            if self.complete and not self._finished:
                self._finished = True
                splitter.finish()
                if splitter.references:
                    self._frozen, self._used = [], 0
            references = "\n".join(splitter.references)
            for chunk in splitter.done[self._used :]:
                if chunk.code:
                    self._copy = [chunk.source] if chunk.first else self._copy
                    if not chunk.first:
                        self._copy.append(chunk.source)
                self._frozen.append(self._piece(chunk, references, gap, gap_margin, not self._frozen))
            self._used = len(splitter.done)
            self._open = []
            if not self._finished:
                for chunk in splitter.rest():
                    first = not self._frozen and not self._open
                    self._open.append(self._piece(chunk, references, gap, gap_margin, first))
            else:
                splitter.done = []
                self._used = 0
        return [*self._frozen, *self._open]

    def _piece(self, chunk: Chunk, references: str, gap: int, gap_margin: Decoration, first: bool) -> Piece:
        if chunk.code:
            make = partial(self._code, chunk, self._copy if self._copy[:1] == [chunk.source] else [chunk.source])
        elif chunk.plain:
            make = partial(_plain, (chunk.source,), self.margin, "faint", "", "word", False)
        else:
            make = partial(markdown_flows, chunk.source, self.margin, self.base, references, chunk.number)
        rows = chunk.source.count("\n") + 1 + (1 if chunk.code and chunk.first else 0)
        chars = len(chunk.source)
        if first:
            return Piece(make, gap=gap, gap_margin=gap_margin, chars=chars, rows=rows)
        return Piece(make, gap=chunk.gap, gap_margin=self.margin, chars=chars, rows=rows, glue=chunk.glue)

    def _code(self, chunk: Chunk, copy: list[str]) -> list[Flow]:
        return code_flows(chunk.source, chunk.language, self.margin, first=chunk.first, copy=copy)


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
