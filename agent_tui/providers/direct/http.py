"""The connection of direct calls: one pool for the worker's life, no redirects, nothing read without a bound."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from agent_tui.providers.failures.error_body import words_of
from agent_tui.providers.net import guard as http_guard
from agent_tui.providers.net import httpx_private
from agent_tui.providers.net.addresses import is_loopback
from agent_tui.providers.net.bounds import Unpacker

if TYPE_CHECKING:
    import httpx

CONNECT_TIMEOUT = 20.0
"""Seconds a connection may take; silence after that is the caller's to judge."""

KEEP_ALIVE = 120.0
"""Seconds a connection is kept for the next step: tools run in between."""


KEPT = 16
"""Connections that are kept at most."""


_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class NetworkSettingsError(Exception):
    """Proxies or certificates of the environment that cannot be used. The message is for the user."""


class HttpError(Exception):
    """A status that is no success. ``body`` is the parsed error where it is JSON, else its text; ``message`` is what
    the server says in it."""

    def __init__(self, status: int, headers: dict[str, str], body: Any) -> None:
        self.message = words_of(body) or f"HTTP {status}"
        super().__init__(self.message)
        self.status_code = status
        self.headers = headers
        self.body = body


class Connections:
    """Keeps connections between calls. Proxies and certificates come from the environment (``HTTPS_PROXY``,
    ``NO_PROXY``, ``SSL_CERT_FILE``)."""

    def __init__(self) -> None:
        self._clients: dict[tuple[bool, bool], httpx.AsyncClient] = {}

    def client(self, url: str) -> httpx.AsyncClient:
        """The client for a URL. One that never speaks TLS is quicker to make, so those are kept apart, and this machine
        is never asked for through a proxy. Raises NetworkSettingsError."""
        secure, near = urlsplit(url).scheme == "https", is_loopback(url)
        known = self._clients.get((secure, near))
        if known is None or known.is_closed:
            known = self._clients[secure, near] = _client(secure, near)
        return known

    def warm(self, url: str | None) -> None:
        """Has imported and made what a first call to an address (None: a provider's own) needs. Opens no connection."""
        # What is wrong with the settings is told by the call.
        with suppress(NetworkSettingsError):
            self.client(url or "https://")

    @asynccontextmanager
    async def post(self, url: str, headers: dict[str, str], content: bytes) -> AsyncIterator[httpx.Response]:
        """The response to a POST, its head read; ``net.guard.body`` reads on. Leaving the context closes what is not
        read to its end. Raises HttpError, RedirectError and what httpx raises."""
        sent = {"accept-encoding": Unpacker.ACCEPTED, "content-type": "application/json", **headers}
        response = await self._send(url, sent, content)
        try:
            if (elsewhere := http_guard.redirect(response)) is not None:
                raise elsewhere
            if not response.is_success:
                raise await _error(response)
            yield response
        finally:
            await response.aclose()

    async def _send(self, url: str, headers: dict[str, str], content: bytes) -> httpx.Response:
        """The response, its head read. A kept connection that turns out to be closed is no failure of the server's: the
        request goes out again, until it fails on a new one."""
        import httpx

        client = self.client(url)
        for kept in range(KEPT, -1, -1):
            request = client.build_request("POST", url, headers=headers, content=content)
            opened = httpx_private.note_openings(request)
            try:
                return await client.send(request, stream=True)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                if opened or not kept:
                    raise
        raise AssertionError("unreachable")

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()


def _client(secure: bool, near: bool) -> httpx.AsyncClient:
    import httpx

    limits = httpx.Limits(max_connections=64, max_keepalive_connections=KEPT, keepalive_expiry=KEEP_ALIVE)
    verify = secure or (not near and bool(getproxies().keys() & {"http", "all"}))
    try:
        return httpx.AsyncClient(
            verify=verify,
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT, pool=CONNECT_TIMEOUT),
            limits=limits,
            follow_redirects=False,
            # Given a transport, httpx looks for no proxies.
            transport=httpx.AsyncHTTPTransport(verify=verify, limits=limits) if near else None,
        )
    except ImportError as error:
        raise NetworkSettingsError(
            f"{_set(_PROXIES)} names a SOCKS proxy, which needs the Python package socksio: install it where agent-tui "
            "runs, or name an HTTP proxy."
        ) from error
    except OSError as error:
        raise NetworkSettingsError(f"The certificates that {_set(_CERTIFICATES)} names cannot be read.") from error
    except (ValueError, httpx.InvalidURL) as error:
        # Not in its own words: a proxy's address may hold a password.
        raise NetworkSettingsError(f"What {_set(_PROXIES)} says of proxies cannot be understood.") from error


def _set(names: Sequence[str]) -> str:
    """Those of some environment variables that are set, for people to read."""
    found = [name for name in names if os.environ.get(name) or os.environ.get(name.lower())]
    return " or ".join(found or names)


async def _error(response: httpx.Response) -> HttpError:
    text = b"".join([piece async for piece in http_guard.body(response)]).decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = text
    return HttpError(response.status_code, dict(response.headers), body)
