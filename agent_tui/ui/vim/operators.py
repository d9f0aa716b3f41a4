"""What operators do to a region of the text, and how a motion becomes a region."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent_tui.ui.vim.motions import Move
from agent_tui.ui.vim.objects import Span
from agent_tui.ui.vim.text import Place, Text

INDENT = 4
"""Blanks that ``>`` and ``<`` move by: those of the prompt's Tab."""


@dataclass(slots=True, frozen=True)
class Kept:
    """What a register holds; ``lines``: whole lines, put above or below the cursor's."""

    text: str
    lines: bool = False


@dataclass(slots=True, frozen=True)
class Done:
    """The text afterwards; ``before`` is where undo puts the cursor. ``kept`` goes into a register."""

    text: Text
    cursor: Place
    before: Place
    kept: Kept | None = None
    inserting: bool = False


def span_by_motion(text: Text, cursor: Place, move: Move, operator: str) -> Span:
    """What lies between the cursor and where a motion led, with vim's two exceptions for motions over several lines."""
    start, end = min(cursor, move.to), max(cursor, move.to)
    if move.reach == "lines":
        return Span(start, end, lines=True)
    if move.reach == "inclusive":
        span = Span(start, text.after(end))
    else:
        span = span_of_lines(text, Span(start, end))
    return for_operator(text, span, operator)


def for_operator(text: Text, span: Span, operator: str) -> Span:
    """Where a deletion leaves nothing but blanks of its lines, they go whole."""
    return replace(span, lines=True) if operator == "d" and _is_of_lines(text, span) else span


def span_of_lines(text: Text, span: Span) -> Span:
    """What ends at the beginning of a line ends at the end of the one before; it is whole lines if it begins so."""
    if span.lines or span.end[1] or span.end[0] == span.start[0]:
        return span
    row = span.end[0] - 1
    whole = span.start[1] <= text.indent(span.start[0])
    return Span(span.start, (row, text.length(row)), lines=whole)


def _is_of_lines(text: Text, span: Span) -> bool:
    """Whether nothing but blanks is left of several lines without it."""
    start, end = span.start, span.end
    indented = start[1] <= text.indent(start[0])
    return end[0] > start[0] and indented and not text.lines[end[0]][end[1] :].strip(" \t")


def operate(operator: str, text: Text, span: Span, times: int = 1) -> Done | None:
    """Carries an operator out; None where it has nothing to work on. ``times``: how often ``>`` shifts."""
    if operator == "y":
        return Done(text, text.on(span.start), span.start, _kept(text, span))
    if operator == "d":
        return _delete(text, span) if any(text.lines) or len(text.lines) > 1 else None
    if operator == "c":
        return _change(text, span)
    if operator in "><":
        return _shift(text, span, times if operator == ">" else -times)
    return _case(operator, text, span)


def _kept(text: Text, span: Span) -> Kept:
    if span.lines:
        return Kept("\n".join(text.lines[span.start[0] : span.end[0] + 1]), lines=True)
    return Kept(text.between(span.start, span.end))


def _delete(text: Text, span: Span) -> Done | None:
    kept = _kept(text, span)
    if span.lines:
        left = text.with_rows(span.start[0], span.end[0], ())
        return Done(left, left.first_word(min(span.start[0], left.last)), span.start, kept)
    if span.start == span.end:
        return None
    left = text.replaced(span.start, span.end, "")
    return Done(left, left.on(span.start), span.start, kept)


def _change(text: Text, span: Span) -> Done:
    kept = _kept(text, span)
    if span.lines:
        left = text.with_rows(span.start[0], span.end[0], ("",))
        return Done(left, (span.start[0], 0), span.start, kept if str(text) else None, inserting=True)
    left = text.replaced(span.start, span.end, "")
    return Done(left, span.start, span.start, kept if kept.text else None, inserting=True)


def _shift(text: Text, span: Span, by: int) -> Done:
    rows = tuple(_shifted(line, by) for line in text.lines[span.start[0] : span.end[0] + 1])
    left = text.with_rows(span.start[0], span.end[0], rows)
    return Done(left, left.first_word(span.start[0]), span.start)


def _shifted(line: str, by: int) -> str:
    if not line:
        return line
    bare = line.lstrip(" \t")
    width = len(line[: len(line) - len(bare)].expandtabs(8))
    return " " * max(0, width + by * INDENT) + bare


def _case(operator: str, text: Text, span: Span) -> Done:
    start, end = span.start, span.end
    if span.lines:
        start, end = (start[0], 0), (end[0], text.length(end[0]))
    left = text.replaced(start, end, recased(text.between(start, end), operator))
    return Done(left, left.on(span.start), span.start)


def recased(text: str, operator: str) -> str:
    """Lower (``gu``), upper (``gU``) or the other case (``g~``), character by character so that none is added."""
    change = {"gu": str.lower, "gU": str.upper, "g~": str.swapcase}[operator]
    return "".join(new if len(new := change(character)) == 1 else character for character in text)


def put(text: Text, cursor: Place, kept: Kept, after: bool, count: int) -> Done:
    """``p`` and ``P``."""
    if kept.lines:
        row = cursor[0] + after
        rows = (*kept.text.split("\n"),) * count
        new = text.with_rows(row, row - 1, rows)
        return Done(new, new.first_word(row), cursor)
    place = text.after(cursor) if after and text.lines[cursor[0]] else cursor
    inserted = kept.text * count
    new = text.replaced(place, place, inserted)
    if "\n" in inserted:
        return Done(new, new.on(place), cursor)
    end = place[1] + len(inserted)
    return Done(new, new.on((place[0], max(place[1], end - 1))), cursor)


def join(text: Text, row: int, rows: int, spaces: bool) -> Done | None:
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


def overwrite(text: Text, cursor: Place, character: str, count: int) -> Done | None:
    """``r``: nothing where there are not so many characters."""
    end = cursor
    for _ in range(count):
        following = text.after(end)
        if following == end:
            return None
        end = following
    new = text.replaced(cursor, end, character * count)
    return Done(new, new.on((cursor[0], cursor[1] + count - 1)), cursor)


def toggle(text: Text, cursor: Place, count: int) -> Done | None:
    """``~``."""
    end = cursor
    for _ in range(min(count, text.length(cursor[0]))):
        end = text.after(end)
    if end == cursor:
        return None
    new = text.replaced(cursor, end, recased(text.between(cursor, end), "g~"))
    return Done(new, new.on(end), cursor)
