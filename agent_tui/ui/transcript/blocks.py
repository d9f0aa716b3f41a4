"""The blocks of a message on the screen: each turns one part into pieces and knows how it folds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from agent_tui.commands.tool_words import Item
from agent_tui.text.clean import drawable, drawable_output, newlines
from agent_tui.ui.flow.layout import MAX_LINE, Decoration, Flow, Wrap, shown_line
from agent_tui.ui.flow.paint import Piece
from agent_tui.ui.markdown.flows import code_flows, markdown_flows
from agent_tui.ui.markdown.splitter import MarkdownPiece, Splitter

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
    wide: bool = False,
) -> list[Piece]:
    """Pieces of a text that is no Markdown: every line as it is."""

    def flows(lines: Sequence[str]) -> list[Flow]:
        return [Flow(shown_line(line), base=style, first=margin, fill=fill, wrap=wrap, wide=wide) for line in lines]

    return pieces_of_lines(drawable(newlines(text)).split("\n"), flows, gap)


def pieces_of_lines(lines: Sequence[str], flows: Callable[[Sequence[str]], list[Flow]], gap: int = 0) -> list[Piece]:
    """Returns pieces of so many lines that laying one out takes no time."""
    out = []
    for at in range(0, len(lines), PLAIN_ROWS):
        part = lines[at : at + PLAIN_ROWS]
        chars = sum(min(len(line), MAX_LINE) for line in part)
        out.append(Piece(partial(flows, part), gap=0 if at else gap, chars=chars, rows=len(part)))
    return out


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

    def pieces(self, gap: int) -> list[Piece]:
        """All pieces; the first one has ``gap`` empty rows before it."""
        if self._open is None:
            self._open = self._split(gap)
        return [*self._frozen, *self._open]

    def _split(self, gap: int) -> list[Piece]:
        """Takes what has come since; returns the pieces of what is still open."""
        splitter = self._splitter = self._splitter or Splitter()
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
            if chunk.code and chunk.first:
                self._copy = []
            if chunk.code:
                self._copy.append(chunk.source)
            self._frozen.append(self._piece(chunk, references, chunk.gap if self._frozen else gap))
        self._used = len(splitter.done)
        if self._finished:
            splitter.done, self._used = [], 0
            return []
        rest = [self._piece(chunk, references, chunk.gap) for chunk in splitter.rest()]
        if rest and not self._frozen:
            rest[0].gap, rest[0].glue = gap, None
        return rest

    def _piece(self, chunk: MarkdownPiece, references: str, gap: int) -> Piece:
        rows = chunk.source.count("\n") + 1
        if chunk.code:
            rows += chunk.first
            copy = self._copy if self._copy[:1] == [chunk.source] else [chunk.source]
            make = partial(code_flows, chunk.source, chunk.language, self.margin, first=chunk.first, copy=copy)
        elif chunk.plain:
            make = partial(_faint, chunk.source, self.margin)
        else:
            make = partial(markdown_flows, chunk.source, self.margin, self.base, references, chunk.number)
        glue = chunk.glue
        return Piece(make, gap=gap, margin=self.margin, chars=len(chunk.source), rows=rows, glue=glue)


def _faint(text: str, margin: Decoration) -> list[Flow]:
    return [Flow(text, base="faint", first=margin)]


SHORT = 7
"""Items a closed list shows: what is done last, what is being done, what comes next."""

_MARKS = {"completed": ("✓", "ok", "muted"), "in_progress": ("▶", "running", "strong"), "pending": ("○", "muted", "")}


def pieces_of(items: Sequence[Item], is_open: bool) -> list[Piece]:
    """The list, or the part of it around what is being done."""
    start, end = 0, len(items)
    if not is_open and end > SHORT + 1:
        current = next((i for i, (_, status) in enumerate(items) if status != "completed"), end)
        start = max(0, min(current - 2, end - SHORT))
        end = start + SHORT
    out = [Piece(partial(_line, item)) for item in items[start:end]]
    hidden = len(items) - (end - start)
    return [*out, Piece(partial(_more, hidden))] if hidden else out


def _line(item: Item) -> list[Flow]:
    mark, color, base = _MARKS[item[1]]
    text = drawable_output(item[0]).replace("\n", " ")
    return [Flow(text[:1000], base=base, first=(("    ", ""), (f"{mark} ", color)), rest=(("      ", ""),))]


def _more(hidden: int) -> list[Flow]:
    return [Flow(first=(("      ", ""), (f"… {hidden} more", "faint")), silent=True)]
