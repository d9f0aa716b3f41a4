"""Parts that the readers of streams share: an answer as ordered parts, thoughts between tags, numbers of usage."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import Delta, FinishReason
from agent_tui.models.usage import TokenUsage

Event: TypeAlias = dict[str, Any]
"""One event of a provider's stream, parsed."""
_DIGITS = 100


def parse_event(text: str) -> Event | None:
    """Returns the JSON object that a text is; None for any other text."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = _parsed(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # A number of thousands of digits; what stands beside it may be right.
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < _DIGITS else 0)


Kind = Literal["text", "reasoning", "tool_call"]


class _Open:
    __slots__ = ("closed", "index", "kind", "metadata", "text")

    def __init__(self, index: int, kind: Kind) -> None:
        self.index = index
        self.kind = kind
        self.text: list[str] = []
        self.metadata: Metadata | None = None
        self.closed = False


class PartBuilder:
    """The answer so far. Parts are named by a key of the caller's choice (a block's index, an item's id) and are
    numbered when they first have something: no text and no metadata means no part."""

    def __init__(self) -> None:
        self.deltas: list[Delta] = []
        self.usage: Metadata = {}
        self.finish: FinishReason | None = None
        self.message_metadata: Metadata | None = None
        self.error: Metadata | None = None
        self.hidden_calls = False
        self.dropped: list[str] = []
        """Places of reasoning blocks in the request that the provider says it left out."""
        self._parts: dict[Hashable, _Open] = {}
        self._pending: dict[Hashable, tuple[str, str]] = {}
        self._runs = 0
        self._at_end: list[Callable[[], None]] = []

    def at_end(self, do: Callable[[], None]) -> None:
        """Has something done before the parts are closed, however the answer ends."""
        self._at_end.append(do)

    @property
    def has_tool_calls(self) -> bool:
        return any(part.kind == "tool_call" for part in self._parts.values())

    def take(self) -> list[Delta]:
        deltas, self.deltas = self.deltas, []
        return deltas

    def report(self, usage: Any) -> None:
        """Adds what the provider says of usage; what is no set of named values says nothing."""
        if isinstance(usage, Mapping):
            self.usage.update(usage)

    def has(self, key: Hashable) -> bool:
        return key in self._parts

    def text_of(self, key: Hashable) -> str:
        part = self._parts.get(key)
        return "".join(part.text) if part else ""

    def metadata_of(self, key: Hashable) -> Metadata | None:
        part = self._parts.get(key)
        return part.metadata if part else None

    def add(self, key: Hashable, kind: Kind, text: str = "", metadata: Metadata | None = None) -> None:
        """Append ``text`` and replace the metadata when given. Text after the part was closed is dropped.
        Raises TypeError for what is no text."""
        _require_text(text)
        if not text and metadata is None:
            return
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = _Open(len(self._parts), kind)
        elif part.closed:
            text = ""
            if metadata is None or metadata == part.metadata:
                return
        if text:
            part.text.append(text)
        if metadata is not None:
            part.metadata = metadata
        self.deltas.append(Delta(part.index, part.kind, text, metadata, part.closed))

    def call(self, key: Hashable, call_id: str | None, name: str, metadata: Metadata | None = None) -> None:
        """Open a tool call; without an id one is made up (some providers give none). Raises TypeError for an id or a
        name that is no text."""
        _require_text(call_id or "", name)
        if key in self._parts:
            return
        part = self._parts[key] = _Open(len(self._parts), "tool_call")
        part.metadata = metadata
        call_id = call_id or f"call_{uuid.uuid4().hex[:24]}"
        self.deltas.append(Delta(part.index, "tool_call", "", metadata, call_id=call_id, name=name))

    def amend(self, key: Hashable, call_id: str | None, name: str | None) -> None:
        """Give an open tool call the id or name that came after its first piece."""
        _require_text(call_id or "", name or "")
        part = self._parts[key]
        self.deltas.append(Delta(part.index, "tool_call", call_id=call_id, name=name))

    def close(self, key: Hashable) -> None:
        part = self._parts.get(key)
        if part is not None and not part.closed:
            part.closed = True
            self.deltas.append(Delta(part.index, part.kind, closed=True))

    def close_all(self) -> None:
        for do in self._at_end:
            do()
        for key in self._parts:
            self.close(key)

    def run(self, kind: Kind) -> Hashable:
        """The key of the newest part when it is an open one of ``kind``, else a new key after closing it: for
        protocols that have no blocks, where a change of kind is all that separates parts."""
        newest = next(reversed(self._parts), None)
        if newest is not None:
            part = self._parts[newest]
            if part.kind == kind and not part.closed:
                return newest
            if part.kind != "tool_call":
                self.close(newest)
        self._runs += 1
        return ("run", self._runs)

    def new_run(self) -> Hashable:
        self._runs += 1
        return ("run", self._runs)


def _require_text(*values: object) -> None:
    """Raises TypeError for a value that is no text: what providers send is only typed in their documentation."""
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{type(value).__name__} where text belongs")


class StreamReader:
    """Reads the events of one answer into ``out``. ``tags``: the model may write its thoughts into the text."""

    def __init__(self, out: PartBuilder, tags: bool = False) -> None:
        self.out = out

    @staticmethod
    def knows(event: Event) -> bool:
        """Says whether an event is of this API."""
        raise NotImplementedError

    def event(self, event: Event) -> None:
        raise NotImplementedError


def as_arguments(value: Any) -> str:
    """Raw argument text of a tool call, whether the provider gave text or an object."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


OPEN, CLOSE = "<think>", "</think>"
FIELD = "think_tags"
"""The ``field`` of such a reasoning part: where it goes when it is sent back."""

_BLANK_LIMIT = 64
"""Blank characters before the tag that are still its own."""


class TagSplitter:
    """Takes the text of an answer piece by piece and gives it on as parts. ``active`` False: everything is text."""

    def __init__(self, out: PartBuilder, active: bool) -> None:
        self._out = out
        self._state = "start" if active else "text"
        self._held = ""
        self._open = ""
        out.at_end(self.interrupt)

    def feed(self, text: str) -> None:
        """The next piece of text. Nothing is held back longer than a tag may still be coming."""
        if self._state == "start":
            text, self._held = self._held + text, ""
            bare = text.lstrip()
            if len(text) - len(bare) <= _BLANK_LIMIT and len(bare) < len(OPEN) and OPEN.startswith(bare):
                self._held = text
                return
            if bare.startswith(OPEN) and len(text) - len(bare) <= _BLANK_LIMIT:
                self._state = "thinking"
                self._open, text = text[: len(text) - len(bare)] + OPEN, bare[len(OPEN) :]
                self._out.add(self._out.run("reasoning"), "reasoning", "", {"field": FIELD, "open": self._open})
            else:
                self._state = "text"
        if self._state == "thinking":
            text = self._thought(self._held + text)
        if text and self._state == "text":
            self._out.add(self._out.run("text"), "text", text)

    def interrupt(self) -> None:
        """Something else than text comes, or nothing any more: what was held back is as it is."""
        held, self._held = self._held, ""
        if self._state == "thinking" and held:
            self._out.add(self._out.run("reasoning"), "reasoning", held)
        elif held:
            self._out.add(self._out.run("text"), "text", held)
        self._state = "text"

    def _thought(self, text: str) -> str:
        """Gives on what is thought; the rest, behind the closing tag, is given back."""
        self._held = ""
        thought, tag, rest = text.partition(CLOSE)
        if not tag:
            keep = next((n for n in range(min(len(CLOSE) - 1, len(text)), 0, -1) if CLOSE.startswith(text[-n:])), 0)
            thought, self._held = text[: len(text) - keep], text[len(text) - keep :]
        key = self._out.run("reasoning")
        self._out.add(key, "reasoning", thought)
        if tag:
            self._out.add(key, "reasoning", "", {"field": FIELD, "open": self._open, "close": CLOSE})
            self._out.close(key)
            self._state = "text"
        return rest


def with_tags(text: str, metadata: Mapping[str, object]) -> str:
    """Thoughts as they stood in the text they came from."""
    return f"{metadata.get('open') or ''}{text}{metadata.get('close') or ''}"


def is_tagged(metadata: Metadata | None) -> bool:
    return (metadata or {}).get("field") == FIELD


ABSURD_NUMBER = 1e15
HOUR_WRITES = "ephemeral_1h_input_tokens"
WRITES = ("ephemeral_5m_input_tokens", HOUR_WRITES)
"""Names of cache writes by how long they are kept."""


def usage_of(prompt: int, output: int, reasoning: int | None, read: int | None, write: int | None) -> TokenUsage:
    """Details that are impossible are dropped rather than believed."""
    if reasoning is not None and not 0 <= reasoning <= output:
        reasoning = None
    if read is not None and not 0 <= read <= prompt:
        read = None
    if write is not None and not 0 <= write <= prompt - (read or 0):
        write = None
    return TokenUsage(prompt, output, reasoning, read, write)


def with_hour(usage: TokenUsage, hour: Any) -> TokenUsage:
    """Returns the usage with how much of what was written to the cache is kept for an hour; unchanged where ``hour``
    cannot be that."""
    count = integer(hour)
    if count is None or not 0 <= count <= (usage.cache_write or 0):
        return usage
    return replace(usage, cache_write_1h=count)


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def finite(value: object) -> float | None:
    """A number as a float that can be calculated with; None for anything else, NaN and infinities."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def integer(value: Any) -> int | None:
    found = finite(value)
    # Nothing is counted in such numbers, and adding them up would make them worse.
    return int(found) if found is not None and abs(found) < ABSURD_NUMBER else None


def number(value: Any) -> int:
    return integer(value) or 0


def first(*values: Any) -> int | None:
    return next((found for value in values if (found := integer(value)) is not None), None)
