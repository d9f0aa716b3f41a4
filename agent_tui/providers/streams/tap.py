"""Lets us see the provider's own bytes beside what LiteLLM makes of them.

LiteLLM (seen in 1.105–1.109) loses parts of what providers stream: redacted blocks on Bedrock, details-only chunks
of OpenRouter, the order of interleaved thinking, message ids of the Responses API, usage in vendor fields. All its
streaming calls, and those of the OpenAI SDK below it, read an ``httpx.Response``; this is the one place where a copy
of those bytes is taken. Nothing changes for LiteLLM, and without a listener nothing happens at all.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

from agent_tui.providers.net import guard as http_guard
from agent_tui.providers.net import httpx_private
from agent_tui.providers.net.bounds import BODY_LIMIT, BoundError, LineBuffer
from agent_tui.providers.streams.decode import Decoder, Event, EventStreamDecoder, FrameBuffer, decoder_for

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


def install() -> None:
    """Put the tap and its guard into httpx. Idempotent."""
    httpx_private.replace_send(_tapped, _guarded)


def _tapped(original: Any) -> Any:
    async def send(self: Any, request: Any, *, stream: bool = False, **kwargs: Any) -> Any:
        http_guard.prepare(request)
        tap = _listener.get()
        kwargs["follow_redirects"] = False
        response = await original(self, request, stream=True, **kwargs)
        try:
            if (leads := http_guard.redirect(response)) is not None:
                if tap is not None:
                    tap.broken = leads
                raise leads
            if tap is not None and response.status_code == 200:
                _copy(response, tap)
            else:
                http_guard.guard_body(response)
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
        if (leads := http_guard.redirect(response)) is not None:
            response.close()
            raise leads
        return response

    return send


def _copy(response: Any, tap: Tap) -> None:
    """Shadow ``aiter_bytes``, which every other way of reading a response goes through."""
    tap.begin(response.headers.get("content-type", ""))

    async def bounded() -> AsyncIterator[bytes]:
        try:
            async for data in http_guard.body(response, tap.limit):
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

    httpx_private.replace_body(response, aiter_bytes)


def _below(tap: Tap, data: bytes) -> bytes:
    """What LiteLLM gets of whole lines."""
    return b"".join(_json_line(line) for line in data.split(b"\n")) if tap.json_lines and data else data


def _json_line(line: bytes) -> bytes:
    payload = line.strip().removeprefix(b"data:").strip()
    return payload + b"\n" if payload.startswith(b"{") else b""
