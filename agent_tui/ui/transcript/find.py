"""Finding text in everything, folded parts included, without laying anything out."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

from agent_tui.models.messages import Message, ReasoningPart, SummaryPart, TextPart, ToolCallPart, ToolResultPart
from agent_tui.ui.transcript.document import Document
from agent_tui.ui.transcript.entry import Entry, blocks_of
from agent_tui.ui.transcript.selection import rows_text

_MARKUP = str.maketrans("", "", "*_~`\\")


class Match(NamedTuple):
    """Where it is: entry, block of the entry, piece of the opened block, row of the piece, character."""

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
    """Searches from the newest entry backwards, as many entries at a time as it is told to."""

    def __init__(self, document: Document, query: str) -> None:
        self.query = query
        self.pattern = re.compile(re.escape(query), re.IGNORECASE)
        self.matches: list[Match] = []
        self.position = -1
        self._document = document
        self._next = len(document.entries) - 1
        # What a source must contain to be looked at closely; its markup may stand in the middle of a word.
        self._words = [word.lower().translate(_MARKUP) for word in query.split()]

    @property
    def complete(self) -> bool:
        return self._next < 0

    @property
    def state(self) -> FindState:
        return FindState(self.query, self.position + 1, len(self.matches), self.complete)

    @property
    def current(self) -> Match | None:
        return self.matches[self.position] if 0 <= self.position < len(self.matches) else None

    def step(self) -> int:
        """Searches one more entry; how much text that was, in characters."""
        entry = self._document.entries[self._next]
        self._next -= 1
        size, found = self._search(entry)
        if found:
            self.matches[:0] = found
            if self.position >= 0:
                self.position += len(found)
        return size

    def again(self, entry: Entry) -> None:
        """The entry changed: searches it once more."""
        if entry.index <= self._next:
            return
        low = bisect_left(self.matches, (entry.index,))
        high = bisect_left(self.matches, (entry.index + 1,))
        _, found = self._search(entry)
        self.matches[low:high] = found
        if self.position >= high:
            self.position += len(found) - (high - low)
        self.position = min(self.position, len(self.matches) - 1)

    def _search(self, entry: Entry) -> tuple[int, list[Match]]:
        text = self._raw(entry)
        if text is not None:
            lowered = text.lower().translate(_MARKUP)
            if not all(word in lowered for word in self._words):
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
                    out += [Match(entry.index, number, place, row, m.start()) for m in self.pattern.finditer(line)]
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
            else:
                out.append(f"{part.name} {part.path} {part.media_type}")
        out += [message.note or "", "Thought for min s characters Thinking Pasted lines what was pasted"]
        out.append("Interrupted. The answer failed.")
        return out
