"""Cuts a growing Markdown text into chunks that will never change again, and an open rest.

A chunk is a top-level block (each item of a top-level list by itself, code in runs of lines, huge paragraphs in parts).
Where it is cut depends on the text alone, not on how it arrived: streaming gives the same chunks as loading.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent_tui.records import dataclass
from agent_tui.text.clean import drawable, newlines
from agent_tui.ui.flow.layout import MAX_LINE, MAX_TEXT, hidden
from agent_tui.ui.markdown.flows import language_of, parser

if TYPE_CHECKING:
    from markdown_it.token import Token

CODE_LINES = 100
"""Lines of one chunk of code."""
LONG, LONGEST = 4_000, 6_000
"""A paragraph of more than LONGEST characters is cut at the first space after LONG of them."""
WINDOW = 64_000
"""Characters parsed at once."""
_SPACE = re.compile(r"\s")
_LIST = ("bullet_list_open", "ordered_list_open")


@dataclass(slots=True)
class MarkdownPiece:
    """A piece of the text."""

    source: str
    """The Markdown; of code its lines."""
    gap: int = 1
    """The empty rows before it."""
    code: bool = False
    language: str = ""
    first: bool = True
    """It has the label of its code."""
    plain: bool = False
    number: int | None = None
    """That of an ordered list's item."""
    glue: str | None = None
    """Stood where the paragraph was cut of which this is the rest."""


class Splitter:
    """Feed it text; ``done`` only grows, ``rest()`` is what follows for now."""

    def __init__(self) -> None:
        self.done: list[MarkdownPiece] = []
        self.references: list[str] = []
        self._tail = ""
        self._fence: _Fence | None = None
        self._gap: int | None = 0
        self._number: int | None = None
        self._next: int | None = None
        self._glue: str | None = None
        self._line = 0
        self._shown = 0
        self._hidden = 0
        self._return = False

    def feed(self, text: str) -> None:
        """Adds text to the end."""
        if self._return:
            text = "\r" + text
        self._return = text.endswith("\r")
        text = self._cap(drawable(newlines(text[:-1] if self._return else text)))
        for at in range(0, len(text), WINDOW):
            self._tail += text[at : at + WINDOW]
            self._advance()

    def finish(self) -> None:
        """No more text comes: the rest is done too."""
        if self._return:
            self._return = False
            self.feed("\n")
        self._tail += self._end_line()
        if self._fence is None:
            self._define(_tops(self._tail), self._tail.split("\n"), None)
        self.done += self.rest()
        self._tail, self._fence = "", None
        if self._hidden:
            self.done.append(MarkdownPiece(hidden(self._hidden).strip(), plain=True))

    def rest(self) -> list[MarkdownPiece]:
        """Chunks of the text that is still open."""
        if self._fence is not None:
            lines = self._fence.lines + ([self._fence.strip(self._tail)] if self._tail else [])
            if self._tail and self._fence.closes(self._tail):
                lines.pop()
            return [self._fence.chunk(lines)] if lines or not self._fence.parts else []
        kept = self.done, self._gap, self._number, self._glue
        self.done = []
        lines = self._tail.split("\n")
        for token in _tops(self._tail):
            self._emit(token, lines)
        made, (self.done, self._gap, self._number, self._glue) = self.done, kept
        return made

    def _cap(self, text: str) -> str:
        room = MAX_TEXT - self._shown
        if len(text) > room:
            self._hidden += len(text) - room
            text = text[:room]
        self._shown += len(text)
        if self._line + len(text) <= MAX_LINE:
            at = text.rfind("\n")
            self._line = len(text) - at - 1 if at >= 0 else self._line + len(text)
            return text
        out = []
        for k, line in enumerate(text.split("\n")):
            if k:
                out.append(self._end_line() + "\n")
            out.append(line[: max(0, MAX_LINE - self._line)])
            self._line += len(line)
        return "".join(out)

    def _end_line(self) -> str:
        over, self._line = self._line - MAX_LINE, 0
        return hidden(over) if over > 0 else ""

    def _advance(self) -> None:
        while self._in_fence(self._fence) if self._fence is not None else self._freeze():
            pass

    def _freeze(self) -> bool:
        """Takes what is complete from the tail. True when something was taken and more may follow."""
        end = self._tail.rfind("\n") + 1
        if end == 0 and len(self._tail) <= LONGEST:
            return False
        tokens = _tops(self._tail[:end] if end else self._tail)
        if not tokens:
            return False
        lines = self._tail.split("\n")
        last = tokens[-1]
        self._define(tokens, lines, last.start)
        for token in tokens[:-1]:
            self._emit(token, lines)
        if last.kind in _LIST and len(last.items) > 1:
            begin = last.items[-1][0]
            self._emit(_Top(last.kind, last.start, begin, last.token, last.items[:-1]), lines)
            self._gap, self._number = _gap(lines, begin), self._next
            self._take(lines, begin)
            return False
        if last.kind == "fence":
            fence = self._fence_of(last, lines)
            if len(lines) - last.start - 2 > CODE_LINES and not fence.closes(lines[last.end - 1]):
                self._take(lines, last.start + 1)
                self._fence = fence
                return True
        if last.kind == "paragraph_open":
            text = "\n".join(lines[last.start :])
            if len(text) > LONGEST:
                self._tail = self._cut(text)
                return True
        self._take(lines, last.start)
        return False

    def _fence_of(self, top: _Top, lines: list[str]) -> _Fence:
        return _Fence(lines[top.start], top.token, 1 if self._gap is None else self._gap)

    def _take(self, lines: list[str], line: int) -> None:
        if line:
            self._tail = "\n".join(lines[line:])

    def _in_fence(self, fence: _Fence) -> bool:
        """Takes whole lines from the tail into the open fence. True when the fence was closed."""
        *lines, self._tail = self._tail.split("\n")
        for k, line in enumerate(lines):
            if fence.closes(line):
                self._add(fence.chunk(fence.lines))
                self._tail = "\n".join([*lines[k + 1 :], self._tail])
                self._fence, self._gap = None, None
                return True
            fence.lines.append(fence.strip(line))
            if len(fence.lines) > CODE_LINES:
                self._add(fence.chunk(fence.lines[:CODE_LINES]))
                del fence.lines[:CODE_LINES]
                fence.parts += 1
        return False

    def _emit(self, top: _Top, lines: list[str]) -> None:
        if top.kind == "fence":
            fence = self._fence_of(top, lines)
            code = top.token.content.removesuffix("\n").split("\n")
            for at in range(0, len(code), CODE_LINES):
                self._add(fence.chunk(code[at : at + CODE_LINES]))
                fence.parts += 1
        elif top.kind in _LIST:
            number = self._number
            if number is None and top.kind == "ordered_list_open":
                number = int(top.token.attrs.get("start", 1))
            for start, end in top.items:
                if start != top.items[0][0]:
                    self._gap = _gap(lines, start)
                self._add(MarkdownPiece(_source(lines, start, end), number=number))
                if number is not None:
                    number += 1
            self._next = number
        else:
            text = _source(lines, top.start, top.end)
            while top.kind == "paragraph_open" and len(text) > LONGEST:
                text = self._cut(text)
            self._add(MarkdownPiece(text))
        self._gap = self._number = None

    def _cut(self, text: str) -> str:
        """Takes the first part of a huge paragraph; the rest of it."""
        found = _SPACE.search(text, LONG, LONGEST)
        cut = found.end() if found else LONGEST
        self._add(MarkdownPiece(text[:cut].rstrip()))
        self._gap, self._glue = 0, " " if found else ""
        return text[cut:]

    def _add(self, chunk: MarkdownPiece) -> None:
        chunk.glue, self._glue = self._glue, None
        if not (chunk.code and not chunk.first) and self._gap is not None:
            chunk.gap = self._gap
        self._gap = None
        self.done.append(chunk)

    def _define(self, tops: list[_Top], lines: list[str], end: int | None) -> None:
        """Keeps the link definitions among ``lines``: the only lines that no block covers."""
        at = 0
        for start, stop in [*((top.start, top.end) for top in tops), (len(lines), 0)]:
            self.references += filter(str.strip, lines[at : start if end is None else min(start, end)])
            at = stop


@dataclass(slots=True)
class _Top:
    kind: str
    start: int
    end: int
    token: Token
    items: list[tuple[int, int]]


class _Fence:
    """A code block whose end has not come."""

    def __init__(self, line: str, token: Token, gap: int) -> None:
        self.mark = token.markup
        self.indent = len(line) - len(line.lstrip(" "))
        self.language = language_of(token.info)
        self.gap = gap
        self.lines: list[str] = []
        self.parts = 0

    def closes(self, line: str) -> bool:
        bare = line.strip(" \t")
        return len(bare) >= len(self.mark) and not bare.strip(self.mark[0]) and len(line) - len(line.lstrip(" ")) < 4

    def strip(self, line: str) -> str:
        return line[min(self.indent, len(line) - len(line.lstrip(" "))) :]

    def chunk(self, lines: list[str]) -> MarkdownPiece:
        first = self.parts == 0
        return MarkdownPiece("\n".join(lines), self.gap if first else 0, True, self.language, first)


def _tops(source: str) -> list[_Top]:
    out: list[_Top] = []
    for token in parser(True).parse(source):
        if token.map is None:
            continue
        if token.level == 0 and token.nesting >= 0:
            out.append(_Top(token.type, token.map[0], token.map[1], token, []))
        elif token.level == 1 and token.type == "list_item_open":
            out[-1].items.append((token.map[0], token.map[1]))
    return out


def _source(lines: list[str], start: int, end: int) -> str:
    while end > start and not lines[end - 1].strip():
        end -= 1
    return "\n".join(lines[start:end])


def _gap(lines: list[str], start: int) -> int:
    return 0 if start and lines[start - 1].strip() else 1
