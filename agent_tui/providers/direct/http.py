"""The connection of direct calls: one pool for the worker's life, no redirects, nothing read without a bound."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

if TYPE_CHECKING:
    import httpx

CONNECT_TIMEOUT = 20.0
"""Seconds a connection may take; silence after that is the caller's to judge."""

ERROR_BYTES = 64 * 1024
"""Of an error's body, that much is read."""

MAX_INFLATED = 1024 * 1024
"""Bytes one piece of a compressed body may become at a time; what is left waits for the next piece."""


class HttpError(Exception):
    """A status that is no success. ``body`` is the parsed error where it is JSON, else its text."""

    def __init__(self, status: int, headers: dict[str, str], body: Any, text: str) -> None:
        super().__init__(text or f"HTTP {status}")
        self.status_code = status
        self.headers = headers
        self.body = body
        self.message = text or f"HTTP {status}"


class RedirectError(Exception):
    """The server wants the request, with the key in it, sent elsewhere; that is never done by itself."""

    def __init__(self, status: int, here: str, there: str) -> None:
        self.redirected = (here, there)
        super().__init__(f"{here} redirects to {there} (HTTP {status}); the key and the conversation were not sent on")


class EncodingError(Exception):
    """A compressed body in a form that was not asked for."""


class Connections:
    """Keeps connections between calls. Proxies and certificates come from the environment (``HTTPS_PROXY``,
    ``NO_PROXY``, ``SSL_CERT_FILE``)."""

    def __init__(self) -> None:
        self._clients: dict[bool, httpx.AsyncClient] = {}

    def client(self, url: str) -> httpx.AsyncClient:
        """The client for a URL. One that never speaks TLS is quicker to make, so those are kept apart."""
        import httpx

        secure = urlsplit(url).scheme == "https"
        known = self._clients.get(secure)
        if known is None or known.is_closed:
            timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT, pool=CONNECT_TIMEOUT)
            limits = httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=120)
            speaks_tls = secure or _http_proxy() is not None
            known = self._clients[secure] = httpx.AsyncClient(
                verify=speaks_tls, timeout=timeout, limits=limits, follow_redirects=False
            )
        return known

    def warm(self, url: str | None) -> None:
        """Has imported and made what a first call to an address (None: a provider's own) needs. Opens no connection."""
        self.client(url or "https://")

    @asynccontextmanager
    async def post(self, url: str, headers: dict[str, str], body: bytes) -> AsyncIterator[httpx.Response]:
        """The response to a POST, its head read. Leaving the context closes what is not read to its end. Raises
        HttpError, RedirectError and what httpx raises."""
        sent = {"accept-encoding": "identity", "content-type": "application/json", **headers}
        async with self.client(url).stream("POST", url, headers=sent, content=body) as response:
            if response.is_redirect or 300 <= response.status_code < 400:
                there = urljoin(url, response.headers.get("location", ""))
                raise RedirectError(response.status_code, _origin(url), _origin(there))
            if not response.is_success:
                raise await _error(response)
            yield response

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()


async def pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body as it arrives. None was asked for compressed; gzip and deflate are undone all the same, a bounded piece
    at a time. Raises EncodingError for other codings."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("", "identity"):
        async for data in response.aiter_raw():
            yield data
        return
    if coding not in ("gzip", "deflate", "x-gzip"):
        raise EncodingError(f"the answer is compressed with {coding[:40]!r}, which was not asked for")
    inflate = zlib.decompressobj(47 if "gzip" in coding else zlib.MAX_WBITS)
    async for data in response.aiter_raw():
        while data:
            yield inflate.decompress(data, MAX_INFLATED)
            data = inflate.unconsumed_tail


async def _error(response: httpx.Response) -> HttpError:
    import json

    kept = b""
    async for data in pieces(response):
        kept += data[: ERROR_BYTES - len(kept)]
        if len(kept) >= ERROR_BYTES:
            break
    text = kept.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except ValueError:
        body = text
    return HttpError(response.status_code, dict(response.headers), body, text)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _http_proxy() -> str | None:
    from urllib.request import getproxies

    return getproxies().get("http")
