"""What operators do to a region of the text, how a motion or a selection becomes a region, and what registers keep."""

from __future__ import annotations

from dataclasses import replace

from agent_tui.records import dataclass
from agent_tui.ui.vim.commands import VimCommand
from agent_tui.ui.vim.motions import Move
from agent_tui.ui.vim.objects import Span, grown, span_of
from agent_tui.ui.vim.text import Place, TextBuffer, Walker

INDENT = 4
"""Blanks that ``>`` and ``<`` move by: those of the prompt's Tab."""


@dataclass(slots=True, frozen=True)
class Kept:
    """The content of a register; ``lines``: whole lines, put above or below the cursor's."""

    text: str
    lines: bool = False

    def __str__(self) -> str:
        return self.text + "\n" * self.lines


@dataclass(slots=True, frozen=True)
class Done:
    """The text afterwards; ``before`` is where undo puts the cursor. ``kept`` goes into a register."""

    text: TextBuffer
    cursor: Place
    before: Place
    kept: Kept | None = None
    inserting: bool = False


def span_by_motion(text: TextBuffer, cursor: Place, move: Move, operator: str) -> Span:
    """The region between the cursor and where a motion led, with vim's exceptions for several lines."""
    start, end = min(cursor, move.to), max(cursor, move.to)
    if move.reach == "lines":
        return Span(start, end, lines=True)
    if move.reach == "inclusive":
        span = Span(start, text.after(end))
    else:
        span = span_of_lines(text, Span(start, end))
    return for_operator(text, span, operator)


def for_operator(text: TextBuffer, span: Span, operator: str) -> Span:
    """The region an operator works on: lines of which a deletion leaves nothing but blanks go whole."""
    start, end = span.start, span.end
    indented = start[1] <= text.indent(start[0])
    gone = operator == "d" and end[0] > start[0] and indented and not text.lines[end[0]][end[1] :].strip(" \t")
    return replace(span, lines=True) if gone else span


def span_of_lines(text: TextBuffer, span: Span) -> Span:
    """Lets a region that ends at the beginning of a line end with the line before; it becomes whole lines if nothing
    but blanks stands before its start."""
    if span.lines or span.end[1] or span.end[0] == span.start[0]:
        return span
    row = span.end[0] - 1
    whole = span.start[1] <= text.indent(span.start[0])
    return Span(span.start, (row, text.length(row)), lines=whole)


def operate(operator: str, text: TextBuffer, span: Span, times: int = 1) -> Done | None:
    """Carries an operator out; None where it has nothing to work on. ``times``: how often ``>`` shifts."""
    match operator:
        case "y":
            return Done(text, text.on(span.start), span.start, _kept(text, span))
        case "d":
            return _delete(text, span) if text.lines != ("",) else None
        case "c":
            return _change(text, span)
        case ">" | "<":
            return _shift(text, span, times if operator == ">" else -times)
        case _:
            start, end = _ends(text, span)
            left = text.replaced(start, end, recased(text.between(start, end), operator))
            return Done(left, left.on(span.start), span.start)


def _ends(text: TextBuffer, span: Span) -> tuple[Place, Place]:
    """The first place of a region and the one behind its last, also where it is whole lines."""
    if span.lines:
        return (span.start[0], 0), (span.end[0], text.length(span.end[0]))
    return span.start, span.end


def _kept(text: TextBuffer, span: Span) -> Kept:
    return Kept(text.between(*_ends(text, span)), span.lines)


def _delete(text: TextBuffer, span: Span) -> Done | None:
    kept = _kept(text, span)
    if span.lines:
        left = text.with_rows(span.start[0], span.end[0], ())
        return Done(left, left.first_word(min(span.start[0], left.last)), span.start, kept)
    if span.start == span.end:
        return None
    left = text.replaced(span.start, span.end, "")
    return Done(left, left.on(span.start), span.start, kept)


def _change(text: TextBuffer, span: Span) -> Done:
    kept = _kept(text, span)
    if span.lines:
        left = text.with_rows(span.start[0], span.end[0], ("",))
        return Done(left, (span.start[0], 0), span.start, kept if str(text) else None, inserting=True)
    left = text.replaced(span.start, span.end, "")
    return Done(left, span.start, span.start, kept if kept.text else None, inserting=True)


def _shift(text: TextBuffer, span: Span, by: int) -> Done:
    rows = []
    for line in text.lines[span.start[0] : span.end[0] + 1]:
        bare = line.lstrip(" \t")
        width = len(line.removesuffix(bare).expandtabs(8)) + by * INDENT
        rows.append(" " * width + bare if line else line)
    left = text.with_rows(span.start[0], span.end[0], tuple(rows))
    return Done(left, left.first_word(span.start[0]), span.start)


def recased(text: str, operator: str) -> str:
    """Lower (``gu``), upper (``gU``) or the other case (``g~``), character by character so that none is added."""
    change = {"gu": str.lower, "gU": str.upper, "g~": str.swapcase}[operator]
    return "".join(new if len(new := change(character)) == 1 else character for character in text)


def put(text: TextBuffer, cursor: Place, kept: Kept, after: bool, count: int) -> Done:
    """``p`` and ``P``."""
    if kept.lines:
        row = cursor[0] + after
        rows = (*kept.text.split("\n"),) * count
        new = text.with_rows(row, row - 1, rows)
        return Done(new, new.first_word(row), cursor)
    place = text.after(cursor) if after and text.lines[cursor[0]] else cursor
    inserted = kept.text * count
    new = text.replaced(place, place, inserted)
    return Done(new, _last_of(new, place, inserted), cursor)


def join(text: TextBuffer, row: int, rows: int, spaces: bool) -> Done | None:
    """``J`` and ``gJ``: so many rows become one."""
    if row == text.last:
        return None
    last = min(row + max(rows, 2) - 1, text.last)
    line, column = text.lines[row], 0
    for more in text.lines[row + 1 : last + 1]:
        if not spaces:
            column, line = len(line), line + more
            continue
        bare = more.lstrip(" \t")
        gap = " " if bare and bare[0] != ")" and line and line[-1] not in " \t" else ""
        column, line = len(line), line + gap + bare
    new = text.with_rows(row, last, (line,))
    return Done(new, new.on((row, column)), (row, 0))


def _past(text: TextBuffer, place: Place, count: int) -> Place:
    """Behind so many characters, or at the end of the line."""
    for _ in range(count):
        place = text.after(place)
    return place


def overwrite(text: TextBuffer, cursor: Place, character: str, count: int) -> Done | None:
    """``r``: nothing where there are not so many characters."""
    end = _past(text, cursor, count)
    if end == _past(text, cursor, count - 1):
        return None
    new = text.replaced(cursor, end, character * count)
    return Done(new, new.on((cursor[0], cursor[1] + count - 1)), cursor)


def toggle(text: TextBuffer, cursor: Place, count: int) -> Done | None:
    """``~``."""
    end = _past(text, cursor, min(count, text.length(cursor[0])))
    if end == cursor:
        return None
    new = text.replaced(cursor, end, recased(text.between(cursor, end), "g~"))
    return Done(new, new.on(end), cursor)


CLIPBOARD = frozenset("+*")
NOWHERE = "_"


class Registers:
    """The unnamed one, ``0`` for what was yanked, and those with a letter. The clipboard's are not kept here."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    def get(self, name: str) -> Kept | None:
        return self._kept.get(name.lower())

    def keep(self, kept: Kept, name: str, yanked: bool) -> None:
        if name == NOWHERE:
            return
        if name.isalpha() and name.isupper() and (before := self.get(name)) is not None:
            lines = before.lines or kept.lines
            kept = Kept(f"{before.text}{chr(10) if lines else ''}{kept.text}", lines)
        self._kept[""] = kept
        if name.isalpha():
            self._kept[name.lower()] = kept
        elif yanked and not name:
            self._kept["0"] = kept


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


def selected(text: TextBuffer, anchor: Place, cursor: Place, lines: bool) -> Span:
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


def extent_of(text: TextBuffer, anchor: Place, cursor: Place, lines: bool) -> Extent:
    start, end = min(anchor, cursor), max(anchor, cursor)
    rows = end[0] - start[0]
    return Extent(rows, end[1] + 1 if rows else end[1] - start[1] + 1, lines)


def span_again(text: TextBuffer, cursor: Place, extent: Extent) -> Span:
    """As much from the cursor on, as far as there is."""
    row = min(cursor[0] + extent.rows, text.last)
    if extent.lines:
        return Span(cursor, (row, text.length(row)), lines=True)
    column = extent.characters if extent.rows else cursor[1] + extent.characters
    return Span(cursor, max(cursor, (row, min(column, text.length(row)))))


def on_selected(text: TextBuffer, span: Span, command: VimCommand, kept: Kept | None) -> Done | None:
    """A command on what is selected; None where it has nothing to do. ``kept`` is what ``p`` would put."""
    key = command.key
    if key in ("p", "P"):
        done = put_over(text, span, kept, command.count or 1) if kept is not None else None
        return replace(done, kept=None) if done is not None and key == "P" else done
    if key in ("J", "gJ"):
        last = min(span.end[0], text.last) - (span.end[1] == 0 and span.end[0] > span.start[0] and not span.lines)
        return join(text, span.start[0], last - span.start[0] + 1, key == "J")
    if key == "r":
        start, end = _ends(text, span)
        new = "".join("\n" if c == "\n" else command.argument for c in text.between(start, end))
        return Done(text.replaced(start, end, new), start, start)
    return operate(OPERATOR_OF.get(key, key), text, span, command.count or 1)


def object_selected(
    text: TextBuffer, anchor: Place, cursor: Place, lines: bool, key: str, count: int
) -> tuple[Place, Place, bool] | None:
    """Anchor and cursor for an object (``iw``), and whether it is whole lines; None without one, or going backwards."""
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


def put_over(text: TextBuffer, span: Span, kept: Kept, count: int) -> Done:
    """Puts what is kept, ``count`` times, in place of what is selected, which is kept then."""
    body, row = ("\n" if kept.lines else "").join([kept.text] * count), span.start[0]
    if span.lines:
        new = text.with_rows(row, span.end[0], tuple(body.split("\n")))
        return Done(new, new.first_word(row) if kept.lines else (row, 0), span.start, _kept(text, span))
    taken = _kept(text, span) if span.start != span.end else None
    new = text.replaced(span.start, span.end, f"\n{body}\n" if kept.lines else body)
    cursor = new.first_word(row + 1) if kept.lines else _last_of(new, span.start, body)
    return Done(new, cursor, span.start, taken)


def _last_of(text: TextBuffer, start: Place, inserted: str) -> Place:
    """The last character of what was put on one line, the first of what was put on several."""
    if "\n" in inserted:
        return text.on(start)
    return text.on((start[0], start[1] + max(0, len(inserted) - 1)))
