"""Bytes of a streamed answer to the provider's own events: server-sent events, AWS event streams, JSON lines.

All decoders are incremental: they take pieces cut anywhere and give back whole events.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

from agent_tui.providers.net.bounds import LINE_LIMIT, BoundError, EventBound, LineBuffer
from agent_tui.text.numbers import size

Event: TypeAlias = dict[str, Any]
_SSE_STARTS = (b"data:", b"event:", b":", b"id:", b"retry:")
_PRELUDE = 12
_MAX_FRAME = 24 * 1024 * 1024
"""AWS says 16 MB; its own client takes 24."""
_MANY_LINES, _MANY_SIZE = 200, 1_000_000
"""Lines, and characters in them, of one event's data where it has more than one line."""
_DIGITS = 100


class Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[Event]: ...

    def close(self) -> Iterator[Event]: ...


def decoder_for(content_type: str, first: bytes) -> Decoder | None:
    """The decoder for a body that begins with ``first``; None where it is not a stream of events."""
    if "vnd.amazon.eventstream" in content_type:
        return EventStreamDecoder()
    head = first.lstrip(b"\xef\xbb\xbf \t\r\n")
    if "event-stream" in content_type or head.startswith(_SSE_STARTS):
        return SseDecoder()
    if content_type.startswith("application/json") and head.startswith(b"{"):
        return WholeDecoder()
    if "ndjson" in content_type or (head.startswith(b"{") and b"\n" in head.rstrip()):
        return JsonLinesDecoder()
    return None


class SseDecoder:
    """Server-sent events whose data are JSON objects. A data line that is a whole object counts at once, without
    waiting for the blank line, so that nothing downstream can be ahead. Comments and ``[DONE]`` are skipped."""

    def __init__(self) -> None:
        self._lines = LineBuffer()
        self._bound = EventBound()
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[Event]:
        for line in self._lines.feed(data).splitlines():
            yield from self._line(line)

    def close(self) -> Iterator[Event]:
        if rest := self._lines.close():
            yield from self._line(rest)
        self._data = []

    def _line(self, raw: bytes) -> Iterator[Event]:
        self._bound.line(len(raw))
        line = raw.decode("utf-8", "replace").removeprefix("\ufeff")
        if not line:
            self._data = []
        elif line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
            event = self._whole()
            if event is not None:
                self._data = []
                yield event
        elif line.startswith("{") and (event := _loads(line)) is not None:
            yield event

    def _whole(self) -> Event | None:
        """The event, once its data are whole. One in several lines is tried with each of them: it has to be small."""
        if len(self._data) == 1:
            return _loads(self._data[0])
        if len(self._data) > _MANY_LINES or sum(map(len, self._data)) > _MANY_SIZE:
            raise BoundError("One event of the answer is spread over too many lines; it was not read on.")
        joined = "\n".join(self._data)
        return _loads(joined) if joined.rstrip().endswith("}") else None


class JsonLinesDecoder:
    """One JSON object a line."""

    def __init__(self) -> None:
        self._lines = LineBuffer()

    def feed(self, data: bytes) -> Iterator[Event]:
        for line in self._lines.feed(data).split(b"\n"):
            if (event := _loads(line.decode("utf-8", "replace"))) is not None:
                yield event

    def close(self) -> Iterator[Event]:
        if (event := _loads(self._lines.close().decode("utf-8", "replace"))) is not None:
            yield event


class WholeDecoder:
    """A body that is one JSON object: a server that does not stream. Its event comes when the body ends; lines that
    are objects themselves count as JSON lines."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Event]:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > LINE_LIMIT:
            self._pieces.clear()
            raise BoundError(f"The answer is one body of more than {size(LINE_LIMIT)}; it was not read on.")
        return iter(())

    def close(self) -> Iterator[Event]:
        text, self._pieces = b"".join(self._pieces).decode("utf-8", "replace"), []
        if (whole := _loads(text)) is not None:
            yield whole
            return
        for line in text.splitlines():
            if (event := _loads(line)) is not None:
                yield event


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
        held = b"".join(self._pieces)
        end = 0
        while len(held) - end >= _PRELUDE:
            total = int.from_bytes(held[end : end + 4], "big")
            self._lost = not _PRELUDE + 4 <= total <= _MAX_FRAME
            if self._lost or len(held) - end < total:
                break
            end += total
        if self._lost:
            end = len(held)
        rest = held[end:]
        self._pieces, self._size = [rest] if rest else [], len(rest)
        self._wanted = int.from_bytes(rest[:4], "big") if len(rest) >= _PRELUDE else _PRELUDE
        return held[:end]

    def close(self) -> bytes:
        rest = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        return rest


class EventStreamDecoder:
    """AWS event streams (``application/vnd.amazon.eventstream``). An event is ``{event type: payload}``; the
    ``bytes`` payloads of the invoke API, which wrap another provider's events, come out unwrapped."""

    def __init__(self) -> None:
        self._frames = FrameBuffer()

    def feed(self, data: bytes) -> Iterator[Event]:
        whole = self._frames.feed(data)
        at = 0
        while len(whole) - at >= _PRELUDE:
            total = int.from_bytes(whole[at : at + 4], "big")
            if not _PRELUDE + 4 <= total <= _MAX_FRAME:
                return
            if (event := _frame(whole[at : at + total])) is not None:
                yield event
            at += total

    def close(self) -> Iterator[Event]:
        self._frames = FrameBuffer()
        return iter(())


def _frame(frame: bytes) -> Event | None:
    headers_length = int.from_bytes(frame[4:8], "big")
    headers = _headers(frame[_PRELUDE : _PRELUDE + headers_length])
    payload = _loads(frame[_PRELUDE + headers_length : -4].decode("utf-8", "replace")) or {}
    if (problem := headers.get(":exception-type") or headers.get(":error-code")) is not None:
        return {"error": {"type": problem, "message": str(payload.get("message", ""))}}
    if isinstance(wrapped := payload.get("bytes"), str):
        try:
            return _loads(base64.b64decode(wrapped).decode("utf-8", "replace"))
        except ValueError:
            return None
    kind = headers.get(":event-type")
    return {kind: payload} if kind else None


def _headers(data: bytes) -> dict[str, str]:
    """String headers of a frame. Layout: name length, name, type (7 = string), value length (2 bytes), value."""
    found: dict[str, str] = {}
    at = 0
    while at + 1 < len(data):
        size = data[at]
        name = data[at + 1 : at + 1 + size].decode("utf-8", "replace")
        at += 1 + size
        if at >= len(data) or data[at] != 7:
            return found
        length = int.from_bytes(data[at + 1 : at + 3], "big")
        found[name] = data[at + 3 : at + 3 + length].decode("utf-8", "replace")
        at += 3 + length
    return found


def _loads(text: str) -> Event | None:
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
