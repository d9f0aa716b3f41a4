"""Amazon Bedrock, which LiteLLM calls: its record, AWS's event streams, and the events of its Converse API."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from agent_tui.models.usage import TokenUsage
from agent_tui.providers.dialects.record import Dialect, ImageLimits, Source
from agent_tui.providers.dialects.shared import (
    Event,
    StreamReader,
    as_arguments,
    integer,
    mapping,
    number,
    parse_event,
    usage_of,
    with_hour,
)

RECORDS = (
    Dialect(
        "bedrock",
        credentials_elsewhere=True,
        call_ids="plain",
        cache="markers",
        merging=True,
        thinking_blocks=True,
        guessed_reasoning=True,
        limits=("maxTokens", "inferenceConfig.maxTokens", "additionalModelRequestFields.max_tokens"),
        # 3.75 MB before base64.
        images=ImageLimits(
            5_000_000,
            8_000,
            count=20,
            source=Source("docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html", "2026-11-21"),
        ),
    ),
)


_PRELUDE = 12
_MAX_FRAME = 24 * 1024 * 1024
"""AWS says 16 MB; its own client takes 24."""


def _frame_end(data: bytes, start: int) -> int | None:
    """Returns where the frame ends that begins at a place, which may be behind what has come; None where none can
    begin so."""
    total = int.from_bytes(data[start : start + 4], "big")
    return start + total if _PRELUDE + 4 <= total <= _MAX_FRAME else None


class FrameBuffer:
    """Gives the bytes of an AWS event stream on as whole frames, at a cost that is linear in their length. A frame
    longer than any can be ends the stream: what follows cannot be understood."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._wanted = _PRELUDE
        self._lost = False

    def feed(self, data: bytes) -> bytes:
        self._pieces.append(data)
        self._size += len(data)
        if self._lost:
            return self.close()
        if self._size < self._wanted:
            return b""
        held = self.close()
        end: int | None = 0
        whole = 0
        while len(held) - whole >= _PRELUDE and (end := _frame_end(held, whole)) is not None and end <= len(held):
            whole = end
        self._lost = end is None
        if self._lost:
            return held
        rest = held[whole:]
        self._pieces, self._size = [rest], len(rest)
        self._wanted = int.from_bytes(rest[:4], "big") if len(rest) >= _PRELUDE else _PRELUDE
        return held[:whole]

    def close(self) -> bytes:
        rest = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        return rest


class EventStreamDecoder:
    """AWS event streams (``application/vnd.amazon.eventstream``). An event is ``{event type: payload}``; the
    ``bytes`` payloads of the invoke API, which wrap another provider's events, come out unwrapped."""

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yields the events of whole frames; one that was cut off is none."""
        start = 0
        while (end := _frame_end(data, start)) is not None and end <= len(data):
            if (event := _frame(data[start:end])) is not None:
                yield event
            start = end

    def close(self) -> Iterator[Event]:
        return iter(())


def _frame(frame: bytes) -> Event | None:
    headers_end = _PRELUDE + int.from_bytes(frame[4:8], "big")
    headers = _headers(frame[_PRELUDE:headers_end])
    payload = parse_event(frame[headers_end:-4].decode("utf-8", "replace")) or {}
    if (problem := headers.get(":exception-type") or headers.get(":error-code")) is not None:
        return {"error": {"type": problem, "message": str(payload.get("message", ""))}}
    if isinstance(wrapped := payload.get("bytes"), str):
        try:
            return parse_event(base64.b64decode(wrapped).decode("utf-8", "replace"))
        except ValueError:
            return None
    kind = headers.get(":event-type")
    return {kind: payload} if kind else None


def _headers(data: bytes) -> dict[str, str]:
    """String headers of a frame. Layout: name length, name, type (7 = string), value length (2 bytes), value."""
    found: dict[str, str] = {}
    at = 0
    while at + 1 < len(data):
        named = at + 1 + data[at]
        if data[named : named + 1] != b"\x07":
            return found
        end = named + 3 + int.from_bytes(data[named + 1 : named + 3], "big")
        name, value = data[at + 1 : named], data[named + 3 : end]
        found[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        at = end
    return found


_CONVERSE = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}
)


class ConverseStream(StreamReader):
    """Bedrock's Converse events, kept in the same form as Anthropic's blocks."""

    @staticmethod
    def knows(event: Event) -> bool:
        return (len(event) == 1 and next(iter(event)) in _CONVERSE) or ("stopReason" in event and "output" in event)

    def event(self, event: Event) -> None:
        if "stopReason" in event:
            for one in _streamed(event):
                self.event(one)
            return
        kind, body = next(iter(event.items()))
        index = int(body.get("contentBlockIndex", 0)) if isinstance(body, dict) else 0
        if kind == "contentBlockStart":
            tool = (body.get("start") or {}).get("toolUse")
            if tool:
                self.out.call(index, tool.get("toolUseId"), str(tool.get("name") or ""))
        elif kind == "contentBlockDelta":
            self._delta(index, body.get("delta") or {})
        elif kind == "contentBlockStop":
            self.out.close(index)
        elif kind == "messageStop":
            self.out.ends(body.get("stopReason") or "unknown")
        elif kind == "metadata":
            self.out.report(body.get("usage"))

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        if "text" in delta:
            self.out.add(index, "text", delta["text"] or "")
        elif "toolUse" in delta:
            self.out.add(index, "tool_call", as_arguments(delta["toolUse"].get("input")))
        elif "reasoningContent" in delta:
            block = delta["reasoningContent"] or {}
            known = self.out.metadata_of(index) or {}
            if "text" in block:
                self.out.add(index, "reasoning", block["text"] or "")
            if block.get("signature"):
                signature = str(known.get("signature") or "") + block["signature"]
                self.out.add(index, "reasoning", "", {"type": "thinking", "signature": signature})
            if redacted := block.get("redactedContent") or block.get("data"):
                data = str(known.get("data") or "") + redacted
                self.out.add(index, "reasoning", "", {"type": "redacted_thinking", "data": data})


def _streamed(answer: Event) -> Iterator[Event]:
    """A whole answer, of a server that does not stream, as the events of one that does."""
    for index, block in enumerate(answer["output"]["message"]["content"]):
        place: Event = {"contentBlockIndex": index}
        delta = block
        if "toolUse" in block:
            yield {"contentBlockStart": {**place, "start": block}}
            delta = {"toolUse": {"input": as_arguments(block["toolUse"].get("input"))}}
        elif thought := (block.get("reasoningContent") or {}).get("reasoningText"):
            delta = {"reasoningContent": thought}
        yield {"contentBlockDelta": {**place, "delta": delta}}
        yield {"contentBlockStop": place}
    yield {"messageStop": answer}
    yield {"metadata": answer}


def read_usage(raw: Mapping[str, Any]) -> TokenUsage:
    """Bedrock: as Anthropic, other names. A total of input and output alone says that the cache is in the input."""
    read, write = integer(raw.get("cacheReadInputTokens")), integer(raw.get("cacheWriteInputTokens"))
    fresh, output, cached = number(raw.get("inputTokens")), number(raw.get("outputTokens")), (read or 0) + (write or 0)
    included = cached > 0 and integer(raw.get("totalTokens")) == fresh + output and max(read or 0, write or 0) <= fresh
    usage = usage_of(fresh if included else fresh + cached, output, None, read, write)
    details = raw.get("cacheDetails")
    rows = [mapping(row) for row in details] if isinstance(details, list) else []
    hour = sum(number(row.get("inputTokens")) for row in rows if row.get("ttl") == "1h")
    return with_hour(usage, hour if rows else None)
