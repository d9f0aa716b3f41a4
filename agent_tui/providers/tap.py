"""Lets us see the provider's own bytes beside what LiteLLM makes of them.

LiteLLM (seen in 1.105–1.109) loses parts of what providers stream: redacted blocks on Bedrock, details-only chunks
of OpenRouter, the order of interleaved thinking, message ids of the Responses API, usage in vendor fields. All its
streaming calls, and those of the OpenAI SDK below it, read an ``httpx.Response``; this is the one place where a copy
of those bytes is taken. Nothing changes for LiteLLM, and without a listener nothing happens at all.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any

from agent_tui.providers.decode import Decoder, Event, decoder_for

_SNIFF = 16


class Tap:
    """Events of one model call, in order, as the provider sent them. ``take`` empties the queue.

    ``on_data`` is called whenever bytes have arrived: LiteLLM gives nothing for what it drops, for minutes on end.
    ``json_lines``: LiteLLM gets the events as bare JSON lines instead of the bytes themselves. Its Cohere v2 reader
    (1.105–1.109) parses every line of the stream as JSON and fails on ``event:`` and ``data:``.
    """

    def __init__(self, json_lines: bool = False) -> None:
        self.seen = False
        self.json_lines = json_lines
        self.on_data: Callable[[], None] | None = None
        self._decoder: Decoder | None = None
        self._events: deque[Event] = deque()
        self._head = b""
        self._content_type = ""
        self._body: AsyncIterator[bytes] | None = None

    def begin(self, content_type: str) -> None:
        """A response starts; a later one (a retry) replaces one that brought no event."""
        self._content_type = content_type.lower()
        self._decoder, self._head = None, b""

    def feed(self, data: bytes) -> None:
        if self._decoder is None:
            self._head += data
            if len(self._head) < _SNIFF and "stream" not in self._content_type:
                return
            self._decoder = decoder_for(self._content_type, self._head)
            if self._decoder is None:
                return
            data, self._head = self._head, b""
        for event in self._decoder.feed(data):
            self.seen = True
            self._events.append(event)

    def close(self) -> None:
        """The body ended: what is still buffered is the last event."""
        if self._decoder is not None:
            for event in self._decoder.close():
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
    """Put the tap into httpx. Idempotent."""
    import httpx

    if getattr(httpx.AsyncClient.send, "_tapped", False):
        return
    original = httpx.AsyncClient.send

    async def send(self: httpx.AsyncClient, request: httpx.Request, **kwargs: Any) -> httpx.Response:
        response = await original(self, request, **kwargs)
        tap = _listener.get()
        if tap is not None and response.status_code == 200 and not response.is_stream_consumed:
            _copy(response, tap)
        return response

    send._tapped = True  # type: ignore[attr-defined]
    httpx.AsyncClient.send = send  # type: ignore[method-assign]


def _copy(response: Any, tap: Tap) -> None:
    """Shadow ``aiter_bytes``, which every other way of reading a response goes through."""
    original = response.aiter_bytes
    tap.begin(response.headers.get("content-type", ""))

    async def aiter_bytes(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        rest = b""
        async for data in tap.watch(original(chunk_size)):
            tap.feed(data)
            if tap.on_data is not None:
                tap.on_data()
            if tap.json_lines:
                *lines, rest = (rest + data).split(b"\n")
                data = b"".join(_json_line(line) for line in lines)
            if data:
                yield data
        tap.close()
        if rest and (last := _json_line(rest)):
            yield last

    response.aiter_bytes = aiter_bytes


def _json_line(line: bytes) -> bytes:
    payload = line.strip().removeprefix(b"data:").strip()
    return payload + b"\n" if payload.startswith(b"{") else b""
