"""One GET, in a thread, to an address that was checked. Loaded with the first fetch: HTTP and TLS take their time."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
import time
import urllib.request
import zlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import quote

from agent_tui.errors import ToolError
from agent_tui.records import dataclass
from agent_tui.tools.children.process import Stop
from agent_tui.urls import Url, is_public, parse_url

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_BYTES = 5_000_000
NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True, frozen=True)
class Response:
    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    complete: bool


def get(url: Url, seconds: float, stop: Stop, user_agent: str, others: Mapping[str, str] = NONE) -> Response:
    """Fetches ``url`` without following redirects; ``others`` are headers. At most 5 MB and ``seconds`` in all.

    A public name must lead to public addresses only, and the connection goes to the address that was checked: a name
    that answers differently the second time gains nothing. Raises ToolError for all that goes wrong on the way.
    """
    deadline = time.monotonic() + seconds
    try:
        connection = _connection(url, seconds)
        with contextlib.closing(connection), _ended_after(connection, seconds):
            headers = {"User-Agent": user_agent, "Accept": "text/markdown, text/html;q=0.9, */*;q=0.5", **others}
            target = url.text if _proxy(url) and url.scheme == "http" else url.target
            quoted = target if target.isascii() else quote(target, safe="/?&=%+,;:@!$'()*~#[]")
            connection.request("GET", quoted, headers={**headers, "Accept-Encoding": "gzip, identity"})
            response = connection.getresponse()
            body, complete = _body(connection, response, deadline, stop)
            found = {name.lower(): value for name, value in response.getheaders()}
            return Response(response.status, response.reason, found, body, complete)
    except ssl.SSLError as error:
        raise ToolError(f"{url.host}: the secure connection failed: {error.reason or error}.") from None
    except TimeoutError:
        raise ToolError(f"{url.host} did not answer within {seconds:g} s.") from None
    except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
        raise ToolError(f"{url.host} cannot be fetched: {error or type(error).__name__}.") from None


@contextlib.contextmanager
def _ended_after(connection: http.client.HTTPConnection, seconds: float) -> Iterator[None]:
    """Ends what the connection is doing when the time is over: a server that sends a byte of its head now and then
    would keep every single read within the limit. Raises TimeoutError then."""
    over = threading.Event()

    def end() -> None:
        over.set()
        if (open_socket := connection.sock) is not None:
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException):
        if over.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()


def _connection(url: Url, seconds: float) -> http.client.HTTPConnection:
    proxy = _proxy(url)
    if proxy is not None:
        way = (proxy.host, proxy.written_port or 80)
        if url.scheme == "http":
            return http.client.HTTPConnection(*way, timeout=seconds)
        tunnelled = http.client.HTTPSConnection(*way, timeout=seconds)
        tunnelled.set_tunnel(url.host, url.port)
        return tunnelled
    address = _checked_address(url)

    def connect(to: tuple[str, int], timeout: float, source: object = None) -> socket.socket:
        return socket.create_connection((address, to[1]), timeout)

    cls: Callable[..., http.client.HTTPConnection]
    cls = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = cls(url.host, url.port, timeout=seconds)
    # The address is ours to choose here, while the certificate and the Host header stay the name's.
    connection._create_connection = connect  # type: ignore[attr-defined]
    return connection


def _checked_address(url: Url) -> str:
    try:
        found = socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolError(f"{url.host} cannot be found: {error}.") from None
    addresses = [str(item[4][0]) for item in found]
    if url.public:
        for address in addresses:
            if not is_public(ipaddress.ip_address(address.partition("%")[0])):
                raise ToolError(
                    f"{url.host} leads to the private address {address} and was not fetched. "
                    "Fetch that address itself if you mean it; the user is then asked."
                )
    return addresses[0]


def _proxy(url: Url) -> Url | None:
    """The proxy the environment names for a public URL."""
    if not url.public or urllib.request.proxy_bypass(url.host):
        return None
    value = urllib.request.getproxies().get(url.scheme)
    if not value:
        return None
    return parse_url(value if "//" in value else f"http://{value}", login=True)


def _body(
    connection: http.client.HTTPConnection, response: http.client.HTTPResponse, deadline: float, stop: Stop
) -> tuple[bytes, bool]:
    inflate = zlib.decompressobj(31) if response.getheader("Content-Encoding", "").lower() == "gzip" else None
    body = b""
    while len(body) < MAX_BYTES:
        left = deadline - time.monotonic()
        if left <= 0 or stop.is_set():
            raise TimeoutError
        if connection.sock is not None:
            connection.sock.settimeout(left)
        chunk = response.read1(1 << 16)
        if not chunk:
            return body + (inflate.flush() if inflate else b""), True
        body += inflate.decompress(chunk, MAX_BYTES + 1 - len(body)) if inflate else chunk
    return body[:MAX_BYTES], False
