"""One question to an HTTP server with the standard library alone: bounded in bytes and time, no redirects followed."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from agent_tui.providers.net.addresses import is_loopback

LIMIT = 4_000_000
"""Bytes of an answer: a list of thousands of models."""

TIMEOUT = 20.0


class _Stay(urllib.request.HTTPRedirectHandler):
    """The key belongs to the address that was given."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def ask(
    url: str, data: bytes | None, headers: Mapping[str, str], timeout: float = TIMEOUT, proxies: bool = False
) -> tuple[int, bytes]:
    """Status and body (at most ``LIMIT`` bytes) of a GET, or of a POST where there are data. Blocks for at most
    ``timeout`` seconds in all, a server that sends a byte now and then included. Raises OSError."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise OSError(f"not an HTTP address: {url}")
    handlers: list[urllib.request.BaseHandler] = [_Stay()]
    if not proxies or is_loopback(url):
        handlers.append(urllib.request.ProxyHandler({}))
    watch = _Watch(timeout)
    opener = urllib.request.build_opener(*handlers, *watch.handlers())
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    try:
        with watch:
            try:
                answer = opener.open(request, timeout=timeout)
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                body = answer.read(LIMIT)
                status = int(answer.status)
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"the answer is no HTTP: {type(error).__name__}") from error
    if watch.over:
        raise TimeoutError(f"no whole answer within {timeout:g} s")
    return status, body


def parsed(data: bytes) -> Any:
    """The JSON of a body; None where it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


class _Watch:
    """Ends the connections made through ``handlers`` when the time is over, whatever they are doing."""

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._sockets: list[socket.socket] = []

    def handlers(self) -> list[urllib.request.BaseHandler]:
        sockets = self._sockets

        class Plain(http.client.HTTPConnection):
            def connect(self) -> None:
                super().connect()
                sockets.append(self.sock)

        class Secure(http.client.HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                sockets.append(self.sock)

        class PlainHandler(urllib.request.HTTPHandler):
            def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(Plain, req)

        class SecureHandler(urllib.request.HTTPSHandler):
            def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(Secure, req)

        return [PlainHandler(), SecureHandler()]

    def _end(self) -> None:
        self.over = True
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *exc: object) -> None:
        self._timer.cancel()
