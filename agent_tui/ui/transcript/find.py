"""Finding text in everything, folded parts included, without laying anything out."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from textual.geometry import Offset
from textual.selection import Selection

from agent_tui.models.messages import (
    Message,
    ReasoningPart,
    SearchPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.search import search_text
from agent_tui.records import dataclass
from agent_tui.text.search import fold, spans
from agent_tui.ui.flow.layout import Flow
from agent_tui.ui.flow.paint import Piece, key, unkey
from agent_tui.ui.transcript.document import Document
from agent_tui.ui.transcript.entry import Entry, blocks_of

_WORD = re.compile(r"\w+|[^\w\s]+|\s+")


def selected_text(document: Document, selection: Selection) -> str:
    """The text of a selection: paragraphs unwrapped, code without decoration, list markers kept; the signs of a diff
    where lines that were removed are among it, else the code alone."""
    if not document.entries:
        return ""
    start = selection.start or Offset(0, 0)
    end = selection.end or Offset(1 << 30, key(len(document.entries), 0, 0) - 1)
    out: list[tuple[str, str]] = []
    for index in range(max(0, unkey(start.y)[0]), min(unkey(end.y)[0] + 1, len(document.entries))):
        for number, piece in enumerate(document.pieces(index)):
            low, high = key(index, number, 0), key(index, number + 1, 0) - 1
            if high >= start.y and low <= end.y:
                _take(out, piece, low, start, end)
    signs = {"+", " "} if all(lead != "-" for lead, _ in out) else set()
    return "\n".join(text if lead in signs else lead + text for lead, text in out).strip("\n")


def rows_text(flows: list[Flow]) -> Iterator[tuple[int, str]]:
    """Number and text of the rows that can be copied."""
    return ((row, flow.text) for row, flow in enumerate(flows) if not flow.silent)


def _take(out: list[tuple[str, str]], piece: Piece, low: int, start: Offset, end: Offset) -> None:
    glue = piece.glue
    for row, flow in enumerate(piece.flows()):
        y = low + row
        if flow.silent or y < start.y or y > end.y:
            continue
        begin = max(0, start.x) if y == start.y else 0
        stop = max(0, end.x) if y == end.y else len(flow.text)
        text = flow.text[begin:stop]
        if glue is not None and out:
            lead, before = out[-1]
            out[-1] = (lead, before + glue + text)
        else:
            out.append((flow.lead if begin == 0 and (text or len(flow.lead) == 1) else "", text))
        glue = None


def word_at(text: str, at: int) -> tuple[int, int]:
    """The range of the word at a character."""
    for match in _WORD.finditer(text):
        if match.end() > at:
            return match.span()
    return 0, len(text)


_MARKUP = str.maketrans("", "", "*_~`\\")


class Match(NamedTuple):
    """The place of a match: entry, block of the entry, piece of the opened block, row of the piece, character."""

    entry: int
    block: int
    piece: int
    row: int
    start: int


@dataclass(frozen=True, slots=True)
class FindState:
    """``current`` counts from 1; 0 when there is none. ``complete`` is False while older entries are still searched."""

    query: str
    current: int
    total: int
    complete: bool


class Finder:
    """Searches from the newest entry backwards, as many entries at a time as it is told to. With ``words`` it looks for
    each of these, folded, instead of the query as it is; with ``begin`` it starts at that entry, with ``since`` at that
    place, onwards from there and then backwards."""

    def __init__(
        self,
        document: Document,
        query: str,
        words: Sequence[str] = (),
        begin: int | None = None,
        since: Match | None = None,
    ) -> None:
        self.query = query
        self.begin = begin
        self.since = since
        self.matches: list[Match] = []
        self.position = -1
        self._document = document
        self._pattern = re.compile(re.escape(query), re.IGNORECASE)
        self._any = list(words)
        # What a source must contain to be looked at closely; its markup may stand in the middle of a word.
        self._words = [word.lower().translate(_MARKUP) for word in words or query.split()]
        count = len(document.entries)
        onwards = range(0) if since is None else range(since.entry, count)
        back = range((count if since is None else since.entry) - 1, -1, -1)
        self._order = chain([] if begin is None else [begin], (i for i in chain(onwards, back) if i != begin))
        self._left = count
        self._searched = bytearray(count)

    @property
    def complete(self) -> bool:
        return self._left == 0

    @property
    def state(self) -> FindState:
        return FindState(self.query, self.position + 1, len(self.matches), self.complete)

    @property
    def current(self) -> Match | None:
        return self.matches[self.position] if 0 <= self.position < len(self.matches) else None

    def first(self) -> int:
        """The match to show first: in the entry it began at the row with most of them, else the next one from the place
        it began at, or the last before it, else the newest. -1 while that is not known."""
        if self.since is not None:
            at = bisect_left(self.matches, self.since)
            return at if at < len(self.matches) else at - 1 if self.complete else -1
        mine = [match for match in self.matches if match.entry == self.begin]
        if not mine:
            return len(self.matches) - 1
        rows = Counter(match[:4] for match in mine)
        best = max(mine, key=lambda match: (rows[match[:4]], -mine.index(match)))
        return self.matches.index(best)

    def step(self) -> int:
        """Searches one more entry; how much text that was, in characters."""
        index = next(self._order)
        self._left -= 1
        self._searched[index] = True
        size, found = self._search(self._document.entries[index])
        if found:
            at = bisect_left(self.matches, (index,))
            self.matches[at:at] = found
            if self.position >= at:
                self.position += len(found)
        return size

    def again(self, entry: Entry) -> None:
        """The entry changed: searches it once more."""
        if entry.index < len(self._searched) and not self._searched[entry.index]:
            return
        low = bisect_left(self.matches, (entry.index,))
        high = bisect_left(self.matches, (entry.index + 1,))
        _, found = self._search(entry)
        self.matches[low:high] = found
        if self.position >= high:
            self.position += len(found) - (high - low)
        self.position = min(self.position, len(self.matches) - 1)

    def places(self, text: str) -> list[tuple[int, int]]:
        """Returns where the searched text is in a row of the transcript: ranges of characters."""
        if self._any:
            return spans(text, self._any)
        return [match.span() for match in self._pattern.finditer(text)]

    def _search(self, entry: Entry) -> tuple[int, list[Match]]:
        text = self._raw(entry)
        if text is not None:
            lowered = (fold(text) if self._any else text.lower()).translate(_MARKUP)
            if not (any if self._any else all)(word in lowered for word in self._words):
                return len(text) // 8, []
        blocks = entry.blocks
        if blocks is None:
            assert entry.message is not None
            blocks = blocks_of(entry.message, self._document.tools)
        out = []
        size = 0
        for number, block in enumerate(blocks):
            for place, piece in enumerate(block.pieces(True)):
                size += piece.chars
                for row, line in rows_text(piece.flows()):
                    out += [Match(entry.index, number, place, row, start) for start, _ in self.places(line)]
        return size + 200, out

    def _raw(self, entry: Entry) -> str | None:
        """The source text of a complete message; None where that is not all that is shown."""
        message = entry.message
        if message is None or entry.live:
            return None
        return "\n".join(self._parts(message))

    def _parts(self, message: Message) -> list[str]:
        out = []
        for part in message.parts:
            if isinstance(part, (TextPart, ReasoningPart, SummaryPart, ToolResultPart)):
                out.append(part.text)
                if isinstance(part, ToolResultPart):
                    out.append(f"{part.name} {part.display}")
            elif isinstance(part, ToolCallPart):
                out.append(f"{part.name} {part.arguments}")
                result = self._document.tools.results.get(part.call_id)
                if result is not None:
                    out.append(f"{result.text} {result.display}")
            elif isinstance(part, SearchPart):
                out.append(search_text(part))
            else:
                out.append(f"{part.name} {part.path} {part.media_type}")
        out += [message.note or "", "Thought for min s characters Thinking Pasted lines what was pasted"]
        out.append("Interrupted. The answer failed.")
        return out
