"""What is selected in visual mode, and how much that is when it is repeated elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent_tui.ui.vim.commands import Command
from agent_tui.ui.vim.objects import Span, grown, span_of
from agent_tui.ui.vim.operators import Done, Kept, join, operate
from agent_tui.ui.vim.text import Place, Text
from agent_tui.ui.vim.words import Walker

OPERATOR_OF = {
    **dict.fromkeys(("x", "delete", "X", "D"), "d"),
    **dict.fromkeys(("s", "S", "C", "R"), "c"),
    "Y": "y",
    "u": "gu",
    "U": "gU",
    "~": "g~",
}
"""Keys of visual mode and the operators they stand for."""

AS_LINES = frozenset("XDSCRY<>")
"""Those that take whole lines, whatever is selected of them."""


def selected(text: Text, anchor: Place, cursor: Place, lines: bool) -> Span:
    """From the one to the other, the character under either included, at the end of a line the line break."""
    start, end = min(anchor, cursor), max(anchor, cursor)
    if lines:
        above = cursor[0] < anchor[0]
        return Span(cursor if above else (start[0], 0), (end[0], text.length(end[0])), lines=True)
    if not text.at(end):
        return Span(start, (end[0] + 1, 0) if end[0] < text.last else end)
    return Span(start, text.after(end))


@dataclass(slots=True, frozen=True)
class Extent:
    """So many lines below, and so many characters: on the one line, or of the last."""

    rows: int
    characters: int
    lines: bool


def extent_of(text: Text, anchor: Place, cursor: Place, lines: bool) -> Extent:
    start, end = min(anchor, cursor), max(anchor, cursor)
    rows = end[0] - start[0]
    return Extent(rows, end[1] + 1 if rows else end[1] - start[1] + 1, lines)


def span_again(text: Text, cursor: Place, extent: Extent) -> Span:
    """As much from the cursor on, as far as there is."""
    row = min(cursor[0] + extent.rows, text.last)
    if extent.lines:
        return Span(cursor, (row, text.length(row)), lines=True)
    column = extent.characters if extent.rows else cursor[1] + extent.characters
    return Span(cursor, max(cursor, (row, min(column, text.length(row)))))


def on_selected(text: Text, span: Span, command: Command, kept: Kept | None) -> Done | None:
    """A command on what is selected; None where it has nothing to do. ``kept`` is what ``p`` would put."""
    key = command.key
    if key in ("p", "P"):
        done = put_over(text, span, kept, command.count or 1) if kept is not None else None
        return replace(done, kept=None) if done is not None and key == "P" else done
    if key in ("J", "gJ"):
        last = min(span.end[0], text.last) - (span.end[1] == 0 and span.end[0] > span.start[0] and not span.lines)
        return join(text, span.start[0], last - span.start[0] + 1, key == "J")
    if key == "r":
        start = (span.start[0], 0) if span.lines else span.start
        end = (span.end[0], text.length(span.end[0])) if span.lines else span.end
        new = "".join("\n" if c == "\n" else command.argument for c in text.between(start, end))
        return Done(text.replaced(start, end, new), start, start)
    return operate(OPERATOR_OF.get(key, key), text, span, command.count or 1)


def object_selected(
    text: Text, anchor: Place, cursor: Place, lines: bool, key: str, count: int
) -> tuple[Place, Place, bool] | None:
    """Anchor and cursor when an object (``iw``) was asked for, and whether that is whole lines; None where there is
    none. What goes backwards is left alone."""
    around, kind = key[0] == "a", key[1]
    if cursor < anchor:
        return None
    if anchor == cursor:
        span = span_of(kind, around, text, cursor, count)
        if span is not None and span.lines and lines and span.start[0] == span.end[0]:
            span = grown(kind, around, text, span.start, (span.end[0], 1), count)
    else:
        span = grown(kind, around, text, anchor, cursor, count)
    if span is None or (span.start >= span.end and not span.lines and span.last is None):
        return None
    last = Walker(text, (span.end[0], 0) if span.lines else span.last or span.end)
    if not span.lines and span.last is None:
        last.back()
    return span.start, text.within(last.place, past_end=True), span.lines


def put_over(text: Text, span: Span, kept: Kept, count: int) -> Done:
    """What is kept in place of what is selected, which is kept then."""
    if span.lines:
        gone = Kept("\n".join(text.lines[span.start[0] : span.end[0] + 1]), lines=True)
        separator = "\n" if kept.lines else ""
        rows = tuple(separator.join([kept.text] * count).split("\n"))
        new = text.with_rows(span.start[0], span.end[0], rows)
        row = span.start[0]
        return Done(new, new.first_word(row) if kept.lines else (row, 0), span.start, gone)
    taken = Kept(text.between(span.start, span.end)) if span.start != span.end else None
    if kept.lines:
        body = "\n".join([kept.text] * count)
        new = text.replaced(span.start, span.end, f"\n{body}\n")
        return Done(new, new.first_word(span.start[0] + 1), span.start, taken)
    inserted = kept.text * count
    new = text.replaced(span.start, span.end, inserted)
    return Done(new, _last_of(new, span.start, inserted), span.start, taken)


def _last_of(text: Text, start: Place, inserted: str) -> Place:
    """The last character of what was put on one line, the first of what was put on several."""
    if "\n" in inserted:
        return text.on(start)
    return text.on((start[0], start[1] + max(0, len(inserted) - 1)))
