"""The bounds on what is read of a provider, and the lines that say so: beyond these bounds nobody answers in good
faith.

The guard of what httpx reads, and everything of httpx that it does not promise: methods put in the place of its own,
names of events and modules. LiteLLM and the OpenAI SDK below it make clients of their own, so the class is the only way
to all of them. httpx itself is not imported here.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from agent_tui.models.failure import FailureKind
from agent_tui.text.clean import printable
from agent_tui.text.numbers import size

LINE_LIMIT = 32_000_000
"""Bytes of one line of a stream, one frame, or one JSON body: a picture in base64 fits, the largest known are 20 MB."""

BODY_LIMIT = 64_000_000
"""Bytes of a whole stream, unpacked, beyond what the answer asked for may take (``stream_limit``)."""

BODY_PER_TOKEN = 2_048
"""Bytes of stream for each token asked for: providers wrap every token in 200 to 700 bytes of JSON."""

ERROR_LIMIT = 65_536
"""Bytes read of the body that comes with an error status; what the status says is said whatever the body is."""

ANSWER_PER_TOKEN = 32
"""Characters of answer for each token asked for. Text has 3 to 5; only long runs of spaces come near this."""

ANSWER_SLACK = 65_536
"""Characters an answer may have whatever was asked for."""

DEFAULT_TOKENS = 131_072
"""Tokens an answer is taken to have been asked for where neither the request nor the model says: larger than any
model's usual limit."""

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


class SilenceError(BoundError):
    """The connection lives but nothing of the answer comes."""

    kind: FailureKind = "timeout"


class RedirectError(BoundError):
    """The server sent the request on to another address. Nothing was sent there."""

    def __init__(self, asked: str, target: str) -> None:
        self.asked, self.target = origin(asked), origin(target, asked)
        super().__init__(
            f"{self.asked} redirects to {self.target}. Redirects are not followed: neither key nor conversation was "
            "sent there. Set api_base to the right address if you trust it."
        )


def origin(url: str, base: str = "") -> str:
    """Scheme, host and port of a URL for people to read, a relative one taken from ``base``."""
    try:
        parts, around = urlsplit(url), urlsplit(base)
        host, scheme = parts.netloc or around.netloc, parts.scheme or around.scheme
    except ValueError:
        return "an address that cannot be read"
    shown = f"{scheme}://{host.rpartition('@')[2]}"[:200]
    return printable(shown)


def stream_limit(tokens: int) -> int:
    """Bytes a streamed answer of at most ``tokens`` tokens may have."""
    return BODY_LIMIT + BODY_PER_TOKEN * tokens


def answer_limit(tokens: int) -> int:
    """Characters an answer of at most ``tokens`` tokens may have."""
    return ANSWER_SLACK + ANSWER_PER_TOKEN * tokens


class Unpacker:
    """Unpacks ``Content-Encoding: gzip`` or ``deflate`` piece by piece: no input makes it hold more than ``PIECE``
    bytes of output at once. Raises BoundError for another encoding, which was not asked for."""

    ACCEPTED = "gzip, deflate"

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise BoundError(f"The answer is packed in a way that was not asked for ({name[:40]!r}).")
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
            raise BoundError(f"The answer cannot be unpacked ({error}).") from error


class LineBuffer:
    """Gives bytes on as whole lines, at a cost that is linear in their length. A line longer than ``limit`` bytes is
    a BoundError."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """All lines that are whole now, with their ends (``\\n``, ``\\r`` or both); empty while there is none."""
        if not data:
            return b""
        cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1
        if self._pieces and self._pieces[-1].endswith(b"\r") and not data.startswith(b"\n") and not cut:
            # The carriage return was an end after all.
            whole = self.close()
            self._add(data)
            return whole
        if not cut:
            self._add(data)
            return b""
        whole = b"".join((*self._pieces, data[:cut])) if self._pieces else data[:cut]
        self._pieces.clear()
        self._size = 0
        if cut < len(data):
            self._add(data[cut:])
        return whole

    def close(self) -> bytes:
        """Returns the rest: a last line without an end."""
        rest = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return rest

    def _add(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self._limit:
            self._pieces.clear()
            raise BoundError(f"One line of the answer is longer than {size(self._limit)}; it was not read on.")


class EventBound:
    """Counts the lines of server-sent events, so that one without an end cannot take for ever."""

    def __init__(self) -> None:
        self._lines = 0
        self._bytes = 0

    def line(self, size: int) -> None:
        """A line of ``size`` bytes; 0 ends the event. Raises BoundError."""
        if not size:
            self._lines = self._bytes = 0
            return
        self._lines += 1
        self._bytes += size
        if self._lines > EVENT_LINES or self._lines * self._bytes > EVENT_WORK:
            raise BoundError(f"One event of the answer has more than {self._lines:,} lines; it was not read on.")


def finite(value: object) -> float | None:
    """A number as a float that can be calculated with; None for anything else, NaN and infinities."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


"""Where a server listens; nobody can be called there."""


def is_loopback(url: str | None) -> bool:
    """Returns whether a URL points at this machine."""
    try:
        host = (urlsplit(url).hostname or "") if url else ""
    except ValueError:
        return False
    return host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.")


REDIRECTS = frozenset({301, 302, 303, 307, 308})


def prepare(request: Any) -> None:
    """Asks only for encodings that can be unpacked piece by piece. A header that was signed stays."""
    if "accept-encoding" not in request.headers.get("authorization", "").lower():
        request.headers["accept-encoding"] = Unpacker.ACCEPTED


def redirect(response: Any) -> RedirectError | None:
    """The error for a response that leads elsewhere."""
    target = response.headers.get("location")
    if response.status_code not in REDIRECTS or not target:
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
                    raise BoundError(f"The answer is longer than {size(limit)}; it was not read on.")
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

    replace_body(response, aiter_bytes)


OPENING = ".connect_"
"""In the names of the events of a connection that is being opened."""


def replace_send(make: Callable[[Any], Any], make_blocking: Callable[[Any], Any]) -> None:
    """Puts what is made of the two clients' own ``send`` in its place, for all clients there are and will be.
    Idempotent."""
    import httpx

    if getattr(httpx.AsyncClient.send, "_replaced", False):
        return
    send, blocking = make(httpx.AsyncClient.send), make_blocking(httpx.Client.send)
    send._replaced = True
    httpx.AsyncClient.send = send  # type: ignore[method-assign]
    httpx.Client.send = blocking  # type: ignore[method-assign]


def replace_body(response: Any, read: Callable[..., AsyncIterator[bytes]]) -> None:
    """Has one response read through ``read``: every other way of reading it goes through this method."""
    response.aiter_bytes = read


def note_openings(request: Any) -> list[str]:
    """A list that is filled when a connection is opened for a request, and stays empty when it takes a kept one."""
    opened: list[str] = []

    async def trace(event: str, info: Any) -> None:
        if OPENING in event:
            opened.append(event)

    request.extensions["trace"] = trace
    return opened


def is_of_httpx(error: BaseException) -> bool:
    """Returns whether httpx raised it, without importing httpx."""
    return type(error).__module__.startswith("httpx")
