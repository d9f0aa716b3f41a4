"""The answer of one call as it streams: deltas become the parts of a message."""

from __future__ import annotations

import time
from collections.abc import Callable

from agent_tui.context.tokens import char_tokens
from agent_tui.models.messages import Message, ReasoningPart, SearchPart, TextPart, ToolCallPart, new_id
from agent_tui.models.requests import Delta


class StreamProcessor:
    """Builds ``message`` from deltas. ``prefix`` is the fingerprint of everything sent before this answer; each
    reasoning part remembers it. ``clock`` gives seconds."""

    def __init__(self, message: Message, prefix: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.message = message
        self.prefix = prefix
        self.tokens = 0.0
        """How long the answer is so far by the character rule, before the family's factor."""
        self._clock = clock
        self._since = 0.0
        self._dirty: set[int] = set()
        self._pieces: dict[int, list[str]] = {}
        self.interrupted = False
        """What is there came of an attempt that broke off: the next delta begins the answer anew."""

    def is_call_after(self, delta: Delta, most: int) -> bool:
        """Returns whether a delta begins another call after so many."""
        parts = [] if self.interrupted else self.message.parts
        begins = delta.kind == "tool_call" and delta.index == len(parts) >= most
        return begins and sum(isinstance(part, ToolCallPart) for part in parts) >= most

    def interrupt(self) -> None:
        """The answer broke off and is asked for again. What came of it stands until something comes anew."""
        self._end_reasoning()
        self.interrupted = True

    def apply(self, delta: Delta) -> None:
        """Adds a delta. Raises ValueError when its index skips a part or its kind is not the part's."""
        if self.interrupted:
            self.interrupted, self.tokens = False, 0.0
            self.message.parts.clear()
            self._pieces.clear()
            self._dirty.clear()
        parts = self.message.parts
        if delta.index == len(parts):
            self._end_reasoning()
            self._since = self._clock()
            parts.append(self._new_part(delta))
        elif delta.index > len(parts):
            raise ValueError(f"delta for part {delta.index} of {len(parts)}")
        part = parts[delta.index]
        if isinstance(part, TextPart) and delta.kind == "reasoning":
            self.take_dirty()
            part = parts[delta.index] = ReasoningPart(part.text, prefix=self.prefix)
        if part.type != delta.kind:
            raise ValueError(f"{delta.kind} delta for a {part.type} part")
        if delta.text:
            self.tokens += char_tokens(delta.text)
            self._pieces.setdefault(delta.index, []).append(delta.text)
        if isinstance(part, ToolCallPart):
            part.call_id = delta.call_id or part.call_id
            part.name = delta.name or part.name
        if delta.metadata is not None:
            part.provider_metadata = delta.metadata
        self._dirty.add(delta.index)
        if delta.closed and delta.index == len(parts) - 1:
            self._end_reasoning()

    def _end_reasoning(self) -> None:
        """The newest part is complete; where it is a thought, its time is taken."""
        part = self.message.parts[-1] if self.message.parts else None
        if isinstance(part, ReasoningPart) and part.seconds is None:
            part.seconds = round(self._clock() - self._since, 3)
            self._dirty.add(len(self.message.parts) - 1)

    def _new_part(self, delta: Delta) -> TextPart | ReasoningPart | ToolCallPart | SearchPart:
        if delta.kind == "text":
            return TextPart("")
        if delta.kind == "reasoning":
            return ReasoningPart("", prefix=self.prefix)
        return SearchPart() if delta.kind == "search" else ToolCallPart(delta.call_id or "", delta.name or "", "")

    def take_dirty(self) -> set[int]:
        """Joins the pieces received so far into the parts and returns the indexes to flush."""
        self.join()
        dirty, self._dirty = self._dirty, set()
        return dirty

    def join(self) -> None:
        """Joins the pieces received so far into the parts."""
        for index, pieces in self._pieces.items():
            match part := self.message.parts[index]:
                case ToolCallPart():
                    part.arguments += "".join(pieces)
                case TextPart() | ReasoningPart():
                    part.text += "".join(pieces)
        self._pieces.clear()

    def finish(self) -> None:
        """Settles the message: no part without content, and every tool call with an id of its own."""
        self._end_reasoning()
        self.take_dirty()
        said = (TextPart, ReasoningPart)
        self.message.parts = [p for p in self.message.parts if p.provider_metadata or not isinstance(p, said) or p.text]
        seen: set[str] = set()
        for call in self.message.tool_calls:
            if not call.call_id or call.call_id in seen:
                call.call_id = new_id("call")
            seen.add(call.call_id)
