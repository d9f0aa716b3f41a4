"""Reads the provider's own bytes as events, also beside what LiteLLM makes of them.

LiteLLM (seen in 1.105–1.109) loses parts of what providers stream: redacted blocks on Bedrock, details-only chunks
of OpenRouter, the order of interleaved thinking, message ids of the Responses API, usage in vendor fields. All its
streaming calls, and those of the OpenAI SDK below it, read an ``httpx.Response``; this is the one place where a copy
of those bytes is taken. Nothing changes for LiteLLM, and without a listener nothing happens at all.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol

from agent_tui.providers import net
from agent_tui.providers.dialects.decoding import Event
from agent_tui.providers.net import BODY_LIMIT, LINE_LIMIT, BoundError, EventBound, LineBuffer
from agent_tui.text.numbers import size

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


_SNIFF = 16
_KEPT = 4_000
"""Bytes of a body's beginning that are kept, to say what came where it is no answer."""

_STREAM_STARTS = (b":", b"data:", b"event:", b"id:", b"retry:")


class Tap:
    """Events of one model call, in order, as the provider sent them. ``take`` empties the queue.

    ``on_data`` is called whenever bytes have arrived: LiteLLM gives nothing for what it drops, for minutes on end.
    ``json_lines``: LiteLLM gets the events as bare JSON lines instead of the bytes themselves. Its Cohere v2 reader
    (1.105–1.109) parses every line of the stream as JSON and fails on ``event:`` and ``data:``.
    ``limit`` is how many bytes the body may have, unpacked. ``broken`` is the bound that was reached, if any: LiteLLM
    wraps what is raised below it beyond recognition.

    Whoever reads on below gets whole lines (or frames) only: what the client libraries do with pieces of a line takes
    the square of its length.
    """

    def __init__(self, json_lines: bool = False, limit: int = BODY_LIMIT) -> None:
        self.seen = False
        self.json_lines = json_lines
        self.limit = limit
        self.broken: BoundError | None = None
        self.on_data: Callable[[], None] | None = None
        self._decoder: Decoder | None = None
        self._frames: LineBuffer | FrameBuffer | None = None
        self._events: deque[Event] = deque()
        self._head = b""
        self._content_type = ""
        self._start = b""
        self._ended = False
        self._body: AsyncIterator[bytes] | None = None

    def begin(self, content_type: str) -> None:
        """A response starts; a later one (a retry) replaces one that brought no event."""
        self._content_type = content_type.lower()
        self._decoder, self._frames, self._head = None, None, b""
        self._start, self._ended = b"", False

    def feed(self, data: bytes) -> bytes:
        """Takes bytes of the body; gives those to read on with below. Raises BoundError, which is kept."""
        try:
            return self._feed(data)
        except BoundError as error:
            self.broken = error
            raise

    def _feed(self, data: bytes) -> bytes:
        if len(self._start) < _KEPT:
            self._start += data[: _KEPT - len(self._start)]
        if self._frames is None:
            self._head += data
            if len(self._head) < _SNIFF and "stream" not in self._content_type:
                return b""
            data, self._head = self._head, b""
            self._decoder = decoder_for(self._content_type, data)
            self._frames = FrameBuffer() if isinstance(self._decoder, EventStreamDecoder) else LineBuffer()
        if self._decoder is None:
            return data
        whole = self._frames.feed(data)
        self._decode(self._decoder.feed(whole) if whole else ())
        return whole

    def close(self) -> bytes:
        """The body ended: what is still buffered is the last event, and is given to be read below."""
        self._ended = True
        if self._decoder is None or self._frames is None:
            rest, self._head = self._head, b""
            return rest
        rest = self._frames.close()
        try:
            if rest:
                self._decode(self._decoder.feed(rest))
            self._decode(self._decoder.close())
        except BoundError as error:
            self.broken = error
        return rest

    def no_answer(self) -> tuple[str, bytes] | None:
        """Content type and beginning of a body that came to its end and is no stream of events; None for one that is,
        and for one without a word. Only worth asking where nothing of an answer was found in it."""
        start = self._start.lstrip(b"\xef\xbb\xbf \t\r\n")
        if not self._ended or not start or start.startswith(_STREAM_STARTS):
            return None
        return None if isinstance(self._decoder, EventStreamDecoder) else (self._content_type, self._start)

    def _decode(self, events: Iterable[Event]) -> None:
        for event in events:
            self.seen = True
            self._events.append(event)

    def watch(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Remembers the body that is being read, for ``drain``."""
        self._body = body
        return body

    async def drain(self) -> None:
        """Reads what is left of the body after LiteLLM gave up on it. Raises what the network raises."""
        body, self._body = self._body, None
        if body is not None:
            async for data in body:
                self.feed(data)
                if self.on_data is not None:
                    self.on_data()
        self.close()

    def take(self) -> Iterator[Event]:
        while self._events:
            yield self._events.popleft()


_listener: ContextVar[Tap | None] = ContextVar("provider_tap", default=None)


@contextlib.contextmanager
def listen(tap: Tap) -> Iterator[None]:
    """Responses that are requested inside this context (and task) are copied into ``tap``."""
    token = _listener.set(tap)
    try:
        yield
    finally:
        _listener.reset(token)


def install_tap() -> None:
    """Put the tap and its guard into httpx. Idempotent."""
    net.replace_send(_tapped, _guarded)


def _tapped(original: Any) -> Any:
    async def send(self: Any, request: Any, *, stream: bool = False, **kwargs: Any) -> Any:
        net.prepare(request)
        tap = _listener.get()
        kwargs["follow_redirects"] = False
        response = await original(self, request, stream=True, **kwargs)
        try:
            if (leads := net.redirect(response)) is not None:
                if tap is not None:
                    tap.broken = leads
                raise leads
            if tap is not None and response.status_code == 200:
                _copy(response, tap)
            else:
                net.guard_body(response)
            if not stream:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response

    return send


def _guarded(blocking: Any) -> Any:
    def send(self: Any, request: Any, **kwargs: Any) -> Any:
        response = blocking(self, request, **{**kwargs, "follow_redirects": False})
        if (leads := net.redirect(response)) is not None:
            response.close()
            raise leads
        return response

    return send


def _copy(response: Any, tap: Tap) -> None:
    """Shadow ``aiter_bytes``, which every other way of reading a response goes through."""
    tap.begin(response.headers.get("content-type", ""))

    async def bounded() -> AsyncIterator[bytes]:
        try:
            async for data in net.body(response, tap.limit):
                yield data
        except BoundError as error:
            tap.broken = error
            raise

    async def aiter_bytes(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        async for data in tap.watch(bounded()):
            data = tap.feed(data)
            if tap.on_data is not None:
                tap.on_data()
            if data := _below(tap, data):
                yield data
        if last := _below(tap, tap.close()):
            yield last

    net.replace_body(response, aiter_bytes)


def _below(tap: Tap, data: bytes) -> bytes:
    """Returns whole lines as LiteLLM gets them."""
    return b"".join(_json_line(line) for line in data.split(b"\n")) if tap.json_lines and data else data


def _json_line(line: bytes) -> bytes:
    payload = line.strip().removeprefix(b"data:").strip()
    return payload + b"\n" if payload.startswith(b"{") else b""
