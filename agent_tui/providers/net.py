"""What a provider sends, read within bounds beyond which nobody answers in good faith: its bytes, unpacked, as whole
lines, as events.

Also everything of httpx that it does not promise: methods put in the place of its own, names of events and modules.
httpx itself is not imported here.
"""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import socket
import sys
import threading
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, cast

from agent_tui.models.failure import FailureKind
from agent_tui.providers.dialects.parts import Event
from agent_tui.providers.dialects.shared import parse_event
from agent_tui.text.numbers import size
from agent_tui.urls import AddressError, parse_url, read_address

LINE_LIMIT = 32_000_000
"""Bytes of one line of a stream, one frame, or one JSON body: a picture in base64 fits, the largest known are 20 MB."""

BODY_LIMIT = 64_000_000
"""Bytes of a whole stream, unpacked, beyond what the answer asked for may take."""

ERROR_LIMIT = 65_536
"""Bytes read of the body that comes with an error status; what the status says is said whatever the body is."""

EVENT_LINES = 1_000_000
"""Lines of one event without a blank line behind it, at most; see ``EVENT_WORK``."""

EVENT_WORK = 20_000_000_000
"""Lines times bytes of one event: the client library copies an event again for each of its lines, which at this
product takes seconds."""

PIECE = 65_536
"""Bytes that are unpacked at a time."""


class BoundError(Exception):
    """A bound was reached; the text says which, for the user, in whole sentences."""

    kind: FailureKind = "invalid_request"
    again: bool | None = None
    """See ``Failure.again``."""
    way: str = "Try again, or choose another model with /model."
    """What to do about it, where nothing of the answer has arrived."""


class RedirectError(BoundError):
    """The server sent the request on to another address. Nothing was sent there."""

    way = "Set api_base to the right address if you trust it."

    def __init__(self, asked: str, target: str) -> None:
        self.asked, self.target = origin(asked), origin(target, asked)
        super().__init__(
            f"{self.asked} redirects to {self.target}. Redirects are not followed: neither key nor conversation was "
            "sent there."
        )


def origin(url: str, base: str = "") -> str:
    """Scheme, host and port of a URL for people to read, a relative one taken from ``base``."""
    try:
        return (parse_url(base, login=True).joined(url) if base else parse_url(url, login=True)).origin
    except AddressError:
        return "an address that cannot be read"


_NEARBY = (".local", ".lan", ".home.arpa", ".localhost", "host.docker.internal")
"""Ends of the names of machines in the same house."""


def is_nearby(url: str | None) -> bool:
    """Returns whether a URL points at this machine or at one of its own network: nobody sells what is served there."""
    found = read_address(url)
    if found is None or found.loopback:
        return found is not None
    try:
        return ipaddress.ip_address(found.host).is_private
    except ValueError:
        return "." not in found.host or found.host.endswith(_NEARBY)


class Unpacker:
    """Unpacks ``Content-Encoding: gzip`` or ``deflate`` piece by piece: no input makes it hold more than ``PIECE``
    bytes of output at once. Raises BoundError for another encoding, which was not asked for."""

    ACCEPTED = "gzip, deflate"

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise BoundError(f"The answer uses a compression that was not requested ({name[:40]!r}).")
        self._packed = name not in ("", "identity")
        self._zlib: zlib._Decompress | None = zlib.decompressobj(47) if "gzip" in name else None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces that ``data`` unpacks to. Raises BoundError where it is not what it is said to be."""
        if not self._packed:
            yield data
            return
        try:
            while data:
                if self._zlib is None:
                    # Deflate comes with and without zlib's own header.
                    self._zlib = zlib.decompressobj(15 if data[0] & 0x0F == 8 else -15)
                if self._zlib.eof:
                    # Gzip files may be strung together; anything else behind the end is no part of the body.
                    if not data.startswith(b"\x1f"):
                        return
                    self._zlib = zlib.decompressobj(47)
                piece = self._zlib.decompress(data, PIECE)
                data = self._zlib.unused_data if self._zlib.eof else self._zlib.unconsumed_tail
                if piece:
                    yield piece
        except zlib.error as error:
            raise BoundError(f"Cannot decompress the answer ({error}).") from error


class LineBuffer:
    """Gives bytes on as whole lines, at a cost that is linear in their length. A line longer than ``limit`` bytes is
    a BoundError."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self.size = 0
        """Bytes of the line that is not whole yet."""

    def feed(self, data: bytes) -> bytes:
        """All lines that are whole now, with their ends (``\\n``, ``\\r`` or both); empty while there is none."""
        whole = b""
        if cut := max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1:
            whole = self.close() + data[:cut]
        elif data and self._pieces and self._pieces[-1].endswith(b"\r"):
            # The carriage return was an end after all.
            whole = self.close()
        if rest := data[cut:]:
            self._pieces.append(rest)
            self.size += len(rest)
            if self.size > self._limit:
                self._pieces.clear()
                raise BoundError(f"One line of the answer is longer than {size(self._limit)}; reading stopped.")
        return whole

    def close(self) -> bytes:
        """Returns the rest: a last line without an end."""
        rest = b"".join(self._pieces)
        self._pieces.clear()
        self.size = 0
        return rest


def prepare(request: Any) -> None:
    """Asks only for encodings that can be unpacked piece by piece. A header that was signed stays."""
    if "accept-encoding" not in request.headers.get("authorization", "").lower():
        request.headers["accept-encoding"] = Unpacker.ACCEPTED


def redirect(response: Any) -> RedirectError | None:
    """The error for a response that leads elsewhere."""
    target = response.headers.get("location")
    if response.status_code not in (301, 302, 303, 307, 308) or not target:
        return None
    return RedirectError(str(response.request.url), target)


async def body(response: Any, limit: int = BODY_LIMIT) -> AsyncIterator[bytes]:
    """The body of an unread response, unpacked, in small pieces, at most ``limit`` bytes. Raises BoundError for more.
    With an error status it simply ends at ``ERROR_LIMIT``: the status must be told, not our limit."""
    failed = response.status_code >= 400
    got = 0
    try:
        unpacker = Unpacker(response.headers.get("content-encoding", ""))
        async for raw in response.aiter_raw():
            for piece in unpacker.feed(raw):
                got += len(piece)
                if failed and got >= ERROR_LIMIT:
                    yield piece[: len(piece) - (got - ERROR_LIMIT)]
                    return
                if got > limit:
                    raise BoundError(f"The answer is longer than {size(limit)}; reading stopped.")
                yield piece
    except BoundError:
        if not failed:
            raise
    finally:
        await response.aclose()


def guard_body(response: Any, limit: int = BODY_LIMIT) -> None:
    """Makes every way of reading ``response`` go through ``body``."""

    async def aiter_bytes(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        async for piece in body(response, limit):
            yield piece

    response.aiter_bytes = aiter_bytes


def note_openings(request: Any) -> list[str]:
    """A list that is filled when a connection is opened for a request, and stays empty when it takes a kept one."""
    opened: list[str] = []

    async def trace(event: str, info: Any) -> None:
        if ".connect_" in event:
            opened.append(event)

    request.extensions["trace"] = trace
    return opened


def import_httpx() -> ModuleType:
    """httpx, imported where it is not yet, without its command line: that takes three times as long as the rest."""
    # Where this name cannot be imported, httpx goes without (httpx/__init__.py).
    sys.modules.setdefault("httpx._main", cast("ModuleType", None))
    for name in ("anyio._backends._asyncio", "httpcore._async.connection"):
        importlib.import_module(name)  # what a first connection imports
    return importlib.import_module("httpx")


def look_names_up_apart(loop: asyncio.AbstractEventLoop) -> None:
    """Has a loop look names of hosts up in threads that the end of the program does not wait for: that cannot be broken
    off, and takes half a minute where a name server is silent. Idempotent."""
    if "getaddrinfo" in vars(loop):
        return

    async def getaddrinfo(host: Any, port: Any, **how: Any) -> Any:
        answer: asyncio.Future[Any] = loop.create_future()

        def settle(found: Any, error: Exception | None) -> None:
            if answer.done():
                return  # nobody waits any more
            if error is None:
                answer.set_result(found)
            else:
                answer.set_exception(error)

        def look_up() -> None:
            found, failed = None, None
            try:
                found = socket.getaddrinfo(host, port, **how)
            except Exception as error:
                failed = error
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, found, failed)

        threading.Thread(target=look_up, name="look-up of a name", daemon=True).start()
        return await answer

    vars(loop)["getaddrinfo"] = getaddrinfo


def is_of_httpx(error: BaseException) -> bool:
    """Returns whether httpx raised it, without importing httpx."""
    return type(error).__module__.startswith("httpx")


def unreached(url: str, error: BaseException) -> str:
    """Returns why no connection to the host of an address came about, in one line."""
    found = read_address(url)
    host = found.place if found is not None else "its host"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, socket.gaierror):
            return f"host not found: {host}"
        if isinstance(cause, ConnectionRefusedError):
            return f"{host} refuses the connection"
        cause = cause.__cause__ or cause.__context__
    return f"{host} cannot be reached: {error}"


_MANY_LINES, _MANY_SIZE = 200, 1_000_000
"""Lines, and characters in them, of one event's data where it has more than one line."""


class SseDecoder:
    """Server-sent events whose data are JSON objects. A data line that is a whole object counts at once, without
    waiting for the blank line, so that nothing downstream can be ahead. Comments are skipped. ``done``: the server said
    ``[DONE]``."""

    def __init__(self) -> None:
        self.done = False
        self._lines = self._bytes = 0
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events of whole lines. Raises BoundError for an event without an end."""
        for raw in data.splitlines():
            line = raw.decode("utf-8", "replace").removeprefix("\ufeff")
            if not raw:
                self._lines = self._bytes = 0
            else:
                self._lines = lines = self._lines + 1
                self._bytes += len(raw)
                if lines > EVENT_LINES or lines * self._bytes > EVENT_WORK:
                    raise BoundError(f"One event of the answer has more than {lines:,} lines; reading stopped.")
            if not line:
                self._data = []
            elif line.startswith("data:"):
                self._data.append(line[5:].removeprefix(" "))
                self.done = self.done or line[5:].strip() == "[DONE]"
                if (event := self._whole()) is not None:
                    self._data = []
                    yield event
            elif line.startswith("{") and (event := parse_event(line)) is not None:
                yield event

    def close(self) -> Iterable[Event]:
        return ()

    def _whole(self) -> Event | None:
        """The event, once its data are whole. One in several lines is tried with each of them: it has to be small."""
        if len(self._data) == 1:
            return parse_event(self._data[0])
        if len(self._data) > _MANY_LINES or sum(map(len, self._data)) > _MANY_SIZE:
            raise BoundError("One event of the answer is spread over too many lines; reading stopped.")
        joined = "\n".join(self._data)
        return parse_event(joined) if joined.rstrip().endswith("}") else None


class JsonDecoder:
    """One JSON object a line. ``whole``: the body is said to be one value, of a server that does not stream; its event
    (its events, where it is a list of them) comes when the body ends, and only where it is none its lines count."""

    def __init__(self, whole: bool) -> None:
        self._whole = whole
        self._pieces: list[bytes] = []
        self.size = 0
        """Bytes of the body that are held."""

    def feed(self, data: bytes) -> Iterable[Event]:
        if not self._whole:
            return _objects(data)
        self._pieces.append(data)
        self.size += len(data)
        if self.size > LINE_LIMIT:
            self._pieces.clear()
            raise BoundError(f"The answer is one body of more than {size(LINE_LIMIT)}; reading stopped.")
        return ()

    def close(self) -> Iterable[Event]:
        data, self._pieces = b"".join(self._pieces), []
        text = data.decode("utf-8", "replace").strip("\ufeff \t\r\n")
        # Google's API sends a list of its events where it is not asked for anything else.
        event = parse_event(f'{{"events": {text}}}' if text.startswith("[") else text)
        if event is None:
            return _objects(data)
        return [one for one in event["events"] if isinstance(one, dict)] if text.startswith("[") else [event]


def _objects(lines: bytes) -> Iterator[Event]:
    for line in lines.split(b"\n"):
        if (event := parse_event(line.decode("utf-8", "replace"))) is not None:
            yield event


HUGE = 500_000
"""Bytes from which on reading a line takes longer than a turn on the loop may."""
_SNIFF = 16
_KEPT = 4_000
"""Bytes of a body's beginning that are kept, to say what came where it is no answer."""
_BLANK = b"\xef\xbb\xbf \t\r\n"
_SSE_STARTS = (b"data:", b"event:", b":", b"id:", b"retry:")


def decoder_for(content_type: str, first: bytes) -> SseDecoder | JsonDecoder | None:
    """The decoder for a body that begins with ``first``; None where it is not a stream of events."""
    head = first.lstrip(_BLANK)
    # No event and no line of a stream is a bare bracket: it is one value over several lines, whatever it is said to be.
    if head.splitlines()[:1] in ([b"{"], [b"["]):
        return JsonDecoder(whole=True)
    if "event-stream" in content_type or head.startswith(_SSE_STARTS):
        return SseDecoder()
    if head.startswith((b"{", b"[")):
        return JsonDecoder(whole=content_type.startswith("application/json") or head.startswith(b"["))
    return JsonDecoder(whole=False) if "ndjson" in content_type else None


class Tap:
    """Events of one model call, in order, as the provider sent them. ``take`` empties the queue.

    ``on_data`` is called whenever bytes have arrived. ``limit`` is how many bytes the body may have, unpacked;
    ``broken`` is the bound that was reached, if any.
    """

    def __init__(self, limit: int = BODY_LIMIT) -> None:
        self.limit = limit
        self.broken: BoundError | None = None
        self.on_data: Callable[[], None] = lambda: None
        self._events: deque[Event] = deque()
        self.begin("")

    def begin(self, content_type: str) -> None:
        """A response starts; a later one (a retry) replaces one that brought no event."""
        self._content_type = content_type.lower()
        self._decoder: SseDecoder | JsonDecoder | None = None
        self._buffer = LineBuffer()
        self._head = self._start = b""
        self._begun = self._ended = False

    def feed(self, data: bytes) -> None:
        """Takes bytes of the body. Raises BoundError, which is kept."""
        self._read(data)
        self.on_data()

    async def read_all(self, body: AsyncIterator[bytes]) -> None:
        """Takes a whole body. What ends a huge line is read in a thread, where others have their turn. Raises
        BoundError, and what the network raises."""
        async for data in body:
            await self._in_turns(partial(self._read, data))
            self.on_data()
        await self._in_turns(self.close)

    async def _in_turns(self, read: Callable[[], object]) -> None:
        held = [part.size for part in (self._buffer, self._decoder) if isinstance(part, (LineBuffer, JsonDecoder))]
        if sum(held) > HUGE:
            await asyncio.to_thread(read)
        else:
            read()

    def _read(self, data: bytes) -> None:
        try:
            self._feed(data)
        except BoundError as error:
            self.broken = error
            raise

    def _feed(self, data: bytes) -> None:
        self._start += data[: max(0, _KEPT - len(self._start))]
        if not self._begun:
            self._head += data
            if len(self._head) < _SNIFF and "stream" not in self._content_type:
                return
            data, self._head, self._begun = self._head, b"", True
            self._decoder = decoder_for(self._content_type, data)
        if self._decoder is not None:
            self._events.extend(self._decoder.feed(self._buffer.feed(data)))

    def close(self) -> None:
        """The body ended: what is still buffered is the last event."""
        self._ended = True
        if self._decoder is not None:
            try:
                self._events.extend(self._decoder.feed(self._buffer.close()))
                self._events.extend(self._decoder.close())
            except BoundError as error:
                self.broken = error

    def no_answer(self) -> tuple[str, bytes] | None:
        """Content type and beginning of a body that came to its end and is no stream of events; None for one that is,
        and for one without a word. Only worth asking where nothing of an answer was found in it."""
        start = self._start.lstrip(_BLANK)
        if not self._ended or not start or start.startswith(_SSE_STARTS):
            return None
        return self._content_type, self._start

    @property
    def done(self) -> bool:
        """The server said that nothing more comes."""
        return isinstance(self._decoder, SseDecoder) and self._decoder.done

    def take(self) -> Iterator[Event]:
        while self._events:
            yield self._events.popleft()
