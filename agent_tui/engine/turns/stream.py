"""The answer of one call as it streams: deltas become the parts of a message, which is in the store from the first."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from agent_tui.engine.conversation import Conversation
from agent_tui.errors import StoreError, StoreLockedError
from agent_tui.models.messages import Message, ReasoningPart, SearchPart, TextPart, ToolCallPart, new_id
from agent_tui.models.requests import Delta
from agent_tui.models.steps import Step

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.25


class StreamProcessor:
    """Builds ``message`` from deltas. ``prefix`` is the fingerprint of everything sent before this answer; each
    reasoning part remembers it. ``clock`` gives seconds."""

    def __init__(self, message: Message, prefix: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.message = message
        self.prefix = prefix
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
            self.interrupted = False
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


class StoredDraft:
    """Keeps the draft of an answer in the store: at once when it is new, then at most every quarter second, with a
    timer for the rest. A store that cannot be written ends the task that made this (``lost`` says why); one that is
    locked is written a little later."""

    def __init__(self, conversation: Conversation, processor: StreamProcessor, step: Step) -> None:
        self._conversation, self._processor, self._step = conversation, processor, step
        self._task = asyncio.current_task()
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0
        self.is_stored = False
        self.lost: StoreError | None = None

    def store(self) -> None:
        """What came is stored now or soon. Raises StoreError."""
        message, since = self._processor.message, time.monotonic() - self._last
        if not self.is_stored:
            self._processor.take_dirty()
            self._conversation.keep(message)
            self._step.message_id = message.id
            self._conversation.save_step(self._step)
            self.is_stored = True
            self._flush()
        elif since >= FLUSH_SECONDS:
            self._flush()
        else:
            self._flush_in(FLUSH_SECONDS - since)

    def finish(self) -> None:
        """The message is as it stays; nothing is stored for it by itself any more."""
        self.close()
        if self.is_stored:
            self._conversation.finish(self._processor.message)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def has_ended_task(self) -> bool:
        """Returns whether it was only the timer that ended the task, and not the user as well."""
        return self.lost is not None and self._task is not None and self._task.uncancel() == 0

    def _flush(self) -> None:
        """Writes what changed. Raises StoreError, but not for a lock: then it is tried again in a moment."""
        self.close()
        self._last = time.monotonic()
        dirty = self._processor.take_dirty()
        try:
            if dirty:
                self._conversation.flush(self._processor.message, dirty)
            else:
                self._conversation.save()
        except StoreLockedError as error:
            log.info("Flushed later: %s", error)
            self._flush_in(FLUSH_SECONDS)

    def _flush_in(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._flush_late)

    def _flush_late(self) -> None:
        """The timer's flush: nobody waits for it, so an error ends the stream."""
        self._timer = None
        try:
            self._flush()
        except StoreError as error:
            self.lost = error
            if self._task is not None:
                self._task.cancel()
