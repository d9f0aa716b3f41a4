"""Bytes of a streamed answer to the provider's own events: server-sent events, AWS event streams, JSON lines.

All decoders are incremental: they take pieces cut anywhere and give back whole events.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

Event: TypeAlias = dict[str, Any]
_SSE_STARTS = (b"data:", b"event:", b":", b"id:", b"retry:")
_PRELUDE = 12
_MAX_FRAME = 32 * 1024 * 1024


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
        self._rest = b""
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[Event]:
        self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            yield from self._line(line)

    def close(self) -> Iterator[Event]:
        line, self._rest = self._rest, b""
        yield from self._line(line)
        self._data = []

    def _line(self, raw: bytes) -> Iterator[Event]:
        line = raw.decode("utf-8", "replace").rstrip("\r").removeprefix("\ufeff")
        if not line:
            self._data = []
        elif line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
            event = _loads("\n".join(self._data))
            if event is not None:
                self._data = []
                yield event
        elif line.startswith("{") and (event := _loads(line)) is not None:
            yield event


class JsonLinesDecoder:
    """One JSON object a line."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Event]:
        self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            if (event := _loads(line.decode("utf-8", "replace"))) is not None:
                yield event

    def close(self) -> Iterator[Event]:
        rest, self._rest = self._rest, b""
        if (event := _loads(rest.decode("utf-8", "replace"))) is not None:
            yield event


class WholeDecoder:
    """A body that is one JSON object: a server that does not stream. Its event comes when the body ends; lines that
    are objects themselves count as JSON lines."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[Event]:
        self._pieces.append(data)
        return iter(())

    def close(self) -> Iterator[Event]:
        text, self._pieces = b"".join(self._pieces).decode("utf-8", "replace"), []
        if (whole := _loads(text)) is not None:
            yield whole
            return
        for line in text.splitlines():
            if (event := _loads(line)) is not None:
                yield event


class EventStreamDecoder:
    """AWS event streams (``application/vnd.amazon.eventstream``). An event is ``{event type: payload}``; the
    ``bytes`` payloads of the invoke API, which wrap another provider's events, come out unwrapped."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Event]:
        self._rest += data
        while len(self._rest) >= _PRELUDE:
            total = int.from_bytes(self._rest[:4], "big")
            if not _PRELUDE + 4 <= total <= _MAX_FRAME:
                self._rest = b""
                return
            if len(self._rest) < total:
                return
            frame, self._rest = self._rest[:total], self._rest[total:]
            if (event := _frame(frame)) is not None:
                yield event

    def close(self) -> Iterator[Event]:
        self._rest = b""
        return iter(())


def _frame(frame: bytes) -> Event | None:
    headers_length = int.from_bytes(frame[4:8], "big")
    headers = _headers(frame[_PRELUDE : _PRELUDE + headers_length])
    payload = _loads(frame[_PRELUDE + headers_length : -4].decode("utf-8", "replace")) or {}
    if (problem := headers.get(":exception-type") or headers.get(":error-code")) is not None:
        return {"error": {"type": problem, "message": str(payload.get("message", ""))}}
    if isinstance(wrapped := payload.get("bytes"), str):
        return _loads(base64.b64decode(wrapped).decode("utf-8", "replace"))
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
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
