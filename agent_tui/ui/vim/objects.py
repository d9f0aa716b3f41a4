"""Text objects: what ``iw``, ``a"``, ``i(`` … stand for around a cursor."""

from __future__ import annotations

import re

from agent_tui.records import dataclass
from agent_tui.ui.vim.motions import partner
from agent_tui.ui.vim.text import AT_END, BLANK, MOVED, STAYED, Place, TextBuffer, Walker, kind_of

QUOTES = "\"'`"
BLOCKS = {"(": "()", ")": "()", "b": "()", "[": "[]", "]": "[]", "{": "{}", "}": "{}", "B": "{}", "<": "<>", ">": "<>"}
OBJECTS = frozenset({"w", "W", "p", *QUOTES, *BLOCKS})


@dataclass(slots=True, frozen=True)
class Span:
    """From ``start`` up to ``end``, which is not part of it; ``lines``: all lines of both, whole. ``last``: where a
    selection ends, if that is not the character before ``end``."""

    start: Place
    end: Place
    lines: bool = False
    last: Place | None = None


def span_of(key: str, around: bool, text: TextBuffer, cursor: Place, count: int = 1) -> Span | None:
    """The object of that key; None where there is none. ``around``: the form with ``a``."""
    if key in "wW":
        return _words(text, cursor, key == "W", around, count)
    if key in QUOTES:
        return _quoted(text, cursor, key, around, count)
    if key == "p":
        return _paragraphs(text, cursor[0], around, count)
    return _block(text, cursor, BLOCKS[key], around, count)


def _words(text: TextBuffer, cursor: Place, big: bool, around: bool, count: int) -> Span | None:
    walker = Walker(text, cursor, big)
    start = _run_start(text, cursor, big)
    walker.row, walker.column = start
    before_too = False
    if (walker.kind == BLANK) == around:
        if not walker.word_end(1, stay=True, empty_lines=True):
            return None
    else:
        if not text.lines[start[0]]:
            return Span(start, start)
        if around:
            walker.next_word(1, stop_at_line_end=True)
            walker.back()
            if not text.at(walker.place):
                walker.back()
        else:
            _to_run_end(walker)
        before_too = around
    inclusive = _more_words(walker, around, count - 1)
    if inclusive is None:
        return None
    if before_too and (walker.kind != BLANK or (walker.column == 0 and not inclusive)):
        start = _blanks_before(text, start, big)
    return _to(start, walker, inclusive)


def _to(start: Place, walker: Walker, inclusive: bool) -> Span:
    """Up to where the walker stands, the character there included or not."""
    end = walker.text.after(walker.place) if inclusive else walker.place
    return Span(start, end, last=walker.place if inclusive else None)


def _run_start(text: TextBuffer, place: Place, big: bool) -> Place:
    """Returns where the word or the blanks begin that ``place`` is in."""
    walker = Walker(text, place, big)
    kind = walker.kind
    while walker.column > 0:
        following = walker.place
        walker.back()
        if walker.kind != kind:
            return following
    return walker.place


def _to_run_end(walker: Walker) -> None:
    """Onto the last character of the word or the blanks, on this line."""
    kind = walker.kind
    while walker.forward() == MOVED:
        if walker.kind != kind:
            break
    walker.back()


def _more_words(walker: Walker, around: bool, count: int) -> bool | None:
    """Goes on over ``count`` more words. Whether the character there belongs to them; None: there are not so many."""
    inclusive = True
    for _ in range(count):
        inclusive = True
        step = walker.forward()
        if step == AT_END:
            step = walker.forward()
        if step == STAYED:
            return None
        if (walker.kind == BLANK) == around:
            if not walker.word_end(1, stay=True, empty_lines=True):
                return None
        elif not around:
            inclusive = not walker.on_empty_line
            _to_run_end(walker)
        elif not walker.next_word(1, stop_at_line_end=True):
            return None
        elif walker.back() != MOVED or not walker.text.at(walker.place):
            inclusive = walker.column > 0
            walker.back()
    return inclusive


def _blanks_before(text: TextBuffer, start: Place, big: bool) -> Place:
    """Returns where the blanks before ``start`` begin; ``start`` itself where they are the line's indent."""
    if start[1] == 0 or kind_of(text.at(text.on((start[0], start[1] - 1))), big) != BLANK:
        return start
    blanks = _run_start(text, (start[0], start[1] - 1), big)
    return blanks if blanks[1] > 0 else start


def grown(key: str, around: bool, text: TextBuffer, start: Place, end: Place, count: int = 1) -> Span | None:
    """The object that goes on from what is selected (``end`` is part of it), or the next larger one around it."""
    if key in "wW":
        walker = Walker(text, end, key == "W")
        inclusive = _more_words(walker, around, count)
        if inclusive is None:
            return None
        return _to(start, walker, inclusive)
    if key in QUOTES:
        inner, outer = (span_of(key, wide, text, end) for wide in (False, True))
        if inner is None or outer is None or around:
            return outer
        same = (inner.start, inner.end) == (start, text.after(end))
        return Span((inner.start[0], inner.start[1] - 1), (inner.end[0], inner.end[1] + 1)) if same else inner
    if key == "p" and start[0] == end[0] and start[1] == end[1]:
        return _paragraphs(text, end[0], around, count)
    if key == "p":
        further = _paragraphs(text, end[0] + 1, around, count) if end[0] < text.last else None
        return Span((start[0], 0), further.end, lines=True) if further is not None else None
    old = start, text.after(end)
    for level in range(1, _DEEPEST):
        span = _block(text, start, BLOCKS[key], around, level)
        if span is None or (span.start <= old[0] and span.end >= old[1] and (span.start, span.end) != old):
            return span
    return None


_DEEPEST = 100
"""Blocks in blocks that are looked through for one that is larger than what is selected."""


def _quoted(text: TextBuffer, cursor: Place, quote: str, around: bool, count: int) -> Span | None:
    row, column = cursor
    line = text.lines[row]
    pair = _quotes_at(line, column, quote)
    if pair is None:
        return None
    start, end = pair
    if around:
        end += 1
        blanks = len(line) - end - len(line[end:].lstrip())
        start = start if blanks else len(line[:start].rstrip())
        end += blanks
    elif count > 1:
        end += 1
    else:
        start += 1
    return Span((row, start), (row, end))


def _quotes_at(line: str, column: int, quote: str) -> tuple[int, int] | None:
    """The two quotes around a column, or the next ones. A backslash takes a closing quote its meaning."""
    rest = rf"(?:\\.|[^{quote}\\])*{quote}"
    if line[column : column + 1] == quote:
        pairs = ((pair.start(), pair.end() - 1) for pair in re.finditer(quote + rest, line))
        return next((pair for pair in pairs if pair[0] <= column <= pair[1]), None)
    before = [found.end() - 1 for found in re.finditer(rf"(?<!\\)(?:\\\\)*{quote}", line[:column])]
    start = before[-1] if before else line.find(quote, column)
    end = re.compile(rest).match(line, start + 1) if start >= 0 else None
    return (start, end.end() - 1) if end is not None else None


def _block(text: TextBuffer, cursor: Place, pair: str, around: bool, count: int) -> Span | None:
    opening, closing = pair[0], pair[1]
    row, column = cursor
    if opening == "{":
        column = max(column, text.indent(row))
    start = (row, column + (text.at((row, column)) == opening))
    for _ in range(count):
        found = partner(text, start, closing, opening, -1) or partner(text, start, closing, opening, 1)
        if found is None:
            return None
        start = found
    end = partner(text, start, opening, closing, 1)
    if end is None:
        return None
    if around:
        return Span(start, (end[0], end[1] + 1))
    first = (start[0], start[1] + 1)
    if first[1] >= text.length(first[0]) and first[0] < end[0]:
        first = (first[0] + 1, 0)
    alone = end[1] == 0 or (opening == "{" and end[1] <= text.indent(end[0]))
    if alone and end[0] > first[0]:
        # The closing sign stands on a line of its own, which stays as it is.
        return Span(first, (end[0], 0))
    return Span(first, max(first, end))


def _paragraphs(text: TextBuffer, row: int, around: bool, count: int) -> Span | None:
    def blank(at: int) -> bool:
        return not text.lines[at].strip(" \t")

    def run_end(at: int) -> int:
        while at < text.last and blank(at + 1) == blank(at):
            at += 1
        return at

    start = row
    while start > 0 and blank(start - 1) == blank(row):
        start -= 1
    end = run_end(row)
    began_blank = blank(row)
    for number in range(count):
        if number:
            if end == text.last:
                return None
            end = run_end(end + 1)
        if around:
            if end < text.last:
                end = run_end(end + 1)
            elif began_blank:
                return None
            else:
                while start > 0 and blank(start - 1):
                    start -= 1
    return Span((start, 0), (end, text.length(end)), lines=True)
