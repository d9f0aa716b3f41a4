"""Calls straight to a provider's HTTP API: the connections (one pool for the program's life, no redirects, nothing read
without a bound), the address, the request as the provider's record says, and the provider's own count of one."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import Counting, ModelInfo, ModelRequest, ModelSpec, Target
from agent_tui.providers import net
from agent_tui.providers.catalog import dialect_of, near_url, resolve_key, variable_base, wire_of
from agent_tui.providers.dialects.chat import WIRE as CHAT
from agent_tui.providers.dialects.outgoing import OutgoingRequest, extra_headers
from agent_tui.providers.dialects.record import Dialect, ExactCount
from agent_tui.providers.failure_lines import words_of
from agent_tui.providers.net import BoundError, Tap, Unpacker, is_of_httpx
from agent_tui.providers.request import build_call
from agent_tui.providers.secrets import redact
from agent_tui.records import dataclass
from agent_tui.text.strict_json import write_json
from agent_tui.urls import AddressError, Url, is_loopback, parse_url

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

    async def client(self, url: str) -> httpx.AsyncClient:
        """The client for a URL. One that never speaks TLS is quicker to make, so those are kept apart, and this machine
        is never asked for through a proxy. Raises NetworkSettingsError."""
        net.look_names_up_apart(asyncio.get_running_loop())
        kind = url.startswith("https:"), is_loopback(url)
        if kind not in self._clients:
            # httpx is imported, and certificates are read, for the first one.
            made = await asyncio.to_thread(_client, *kind)
            self._clients.setdefault(kind, made)
        return self._clients[kind]

    async def warm(self, url: str | None) -> None:
        """Has imported and made what a first call to an address (None: a provider's own) needs. Opens no connection."""
        # What is wrong with the settings is told by the call.
        with suppress(NetworkSettingsError):
            await self.client(url or "https://")

    @asynccontextmanager
    async def post(self, url: str, headers: dict[str, str], content: bytes | None) -> AsyncIterator[httpx.Response]:
        """The response to a POST (to a GET where there is no content), its head read; ``net.body`` reads on. Leaving
        the context closes what is not read to its end. Raises HttpError, RedirectError and what httpx raises."""
        sent = {"accept-encoding": Unpacker.ACCEPTED, "content-type": "application/json", **headers}
        response = await self._send(url, sent, content)
        try:
            if (elsewhere := net.redirect(response)) is not None:
                raise elsewhere
            if not response.is_success:
                raise await _error(response)
            yield response
        finally:
            await response.aclose()

    async def _send(self, url: str, headers: dict[str, str], content: bytes | None) -> httpx.Response:
        """The response, its head read. A kept connection that turns out to be closed is no failure of the server's: the
        request goes out again, until it fails on a new one."""
        client = await self.client(url)
        httpx = net.import_httpx()
        for kept in range(KEPT, -1, -1):
            request = client.build_request("GET" if content is None else "POST", url, headers=headers, content=content)
            opened = net.note_openings(request)
            try:
                return await client.send(request, stream=True)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                if opened or not kept:
                    raise
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()


def _client(secure: bool, near: bool) -> Any:
    """An ``httpx.AsyncClient``."""
    httpx = net.import_httpx()
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
            f"{_set(_PROXIES)} names a SOCKS proxy. Install the Python package socksio for agent-tui, or use an "
            "HTTP proxy."
        ) from error
    except OSError as error:
        raise NetworkSettingsError(f"Cannot read the certificates that {_set(_CERTIFICATES)} names.") from error
    except (ValueError, httpx.InvalidURL) as error:
        # Not in its own words: a proxy's address may hold a password.
        raise NetworkSettingsError(f"{_set(_PROXIES)} is not a valid proxy address.") from error


def _set(names: Sequence[str]) -> str:
    """Those of some environment variables that are set, for people to read."""
    found = [name for name in names if os.environ.get(name) or os.environ.get(name.lower())]
    return " or ".join(found or names)


async def _error(response: httpx.Response) -> HttpError:
    text = b"".join([piece async for piece in net.body(response)]).decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = text
    return HttpError(response.status_code, dict(response.headers), body)


class NoAddressError(Exception):
    """There is no address, or none that can be called. The message is for the user."""


def url_of(spec: ModelSpec, target: Target) -> str:
    """Returns the URL of a streaming call. Raises NoAddressError."""
    dialect, wire = dialect_of(target.provider), wire_of(target)
    if wire is None:
        raise NoAddressError(f"{dialect.name} can only be called through LiteLLM.")
    root = _root(spec, dialect)
    path, query = wire.url(root.path, spec, target, dialect)
    return replace(root, path=path, query=root.query if query is None else query, fragment="").text


def _root(spec: ModelSpec, dialect: Dialect) -> Url:
    root = (spec.api_base or variable_base(dialect) or dialect.base or "").strip()
    if not root:
        raise NoAddressError(
            f"{dialect.name} has no default address: set api_base of the model"
            + (f", or {dialect.base_variables[0]}." if dialect.base_variables else ".")
        )
    if "://" not in root and (dialect.local or is_loopback(f"http://{root}")):
        root = near_url(root, dialect)
    try:
        return parse_url(root.rstrip("/"), login=True)
    except AddressError as error:
        where = "api_base of the model" if spec.api_base else " or ".join(dialect.base_variables)
        raise NoAddressError(
            f"{where} is not the address of an API. {error} Write it as https://HOST/PATH or http://…."
        ) from None


@dataclass(slots=True, frozen=True)
class HttpCall:
    """One request. The key is in ``headers``: never log them."""

    url: str
    headers: dict[str, str]
    body: Metadata

    @property
    def content(self) -> bytes:
        return write_json(self.body).encode()


def encode(made: OutgoingRequest, spec: ModelSpec, key: str | None) -> HttpCall:
    """Returns the HTTP request of a call. Raises NoAddressError."""
    url, wire = url_of(spec, made.target), wire_of(made.target)
    assert wire is not None, "it has an address"
    return HttpCall(url, headers_of(made.target, key, extra_headers(made.arguments)), wire.body(made))


def headers_of(target: Target, key: str | None, extra: Mapping[str, str]) -> dict[str, str]:
    """Returns what every request to a provider carries; ``extra`` are the configured headers, which win."""
    dialect = dialect_of(target.provider)
    headers = {"user-agent": "agent-tui", "accept": "text/event-stream, application/json", **dialect.headers}
    if key:
        headers |= {"authorization": f"Bearer {key}"} if dialect.auth == "bearer" else {dialect.auth: key}
    return headers | {name.lower(): value for name, value in extra.items()}


async def exchange(connections: Connections, call: HttpCall, content: bytes, tap: Tap) -> None:
    """Sends a call with its ``content`` and reads its answer to the end into ``tap``. Raises what ``Connections.post``
    raises."""
    async with connections.post(call.url, call.headers, content) as response:
        tap.begin(response.headers.get("content-type", ""))
        await tap.read_all(net.body(response, tap.limit))


log = logging.getLogger(__name__)

TIMEOUT = 20.0
ANSWER_LIMIT = 16_000_000
"""Bytes of an answer that is one number, or the tokens themselves."""


async def count(request: ModelRequest, info: ModelInfo, connections: Connections) -> int | None:
    """Input tokens by the provider's count; None without an endpoint, a key, or an answer."""
    target = info.target
    wire, key = wire_of(target), resolve_key(request.spec, target.provider)
    dialect = dialect_of(target.provider)
    counts = wire is not None and wire.count is not None and dialect.counts and bool(key.value)
    if dialect.search is not None and dialect.search.uncounted and any(tool.provider for tool in request.tools):
        return None
    if wire is None or not (counts or (wire is CHAT and info.counting is not None)):
        return None
    secrets = [key.value] if key.value else []
    try:
        call = await asyncio.to_thread(lambda: encode(build_call(request, info), request.spec, key.value))
        async with asyncio.timeout(TIMEOUT):
            if wire.count is not None:
                answer = await _asked(_question(call, target, wire.count), connections)
                value = answer.get("input_tokens", answer.get("totalTokens"))
            else:
                value = await _by_its_own(call, info.counting, connections)
        return value if isinstance(value, int) and value > 0 else None
    except HttpError as error:
        log.info("Exact count refused: %s %s", error.status_code, redact(str(error), secrets)[:500])
    except (OSError, ValueError, BoundError, RecursionError, NoAddressError, NetworkSettingsError) as error:
        log.info("Exact count failed: %s", redact(str(error), secrets))
    except Exception as error:
        if not is_of_httpx(error):
            raise
        log.info("Exact count failed: %s %s", type(error).__name__, redact(str(error), secrets))
    return None


async def _asked(call: HttpCall, connections: Connections) -> Metadata:
    """The object that a question is answered with; an empty one for anything else."""
    content = await asyncio.to_thread(lambda: call.content)
    async with connections.post(call.url, call.headers, content) as response:
        answer = json.loads(b"".join([piece async for piece in net.body(response, ANSWER_LIMIT)]))
    return answer if isinstance(answer, dict) else {}


_RENDERED = ("model", "messages", "tools", "chat_template", "chat_template_kwargs", "mm_processor_kwargs")
"""What vLLM makes a prompt of (vllm/entrypoints/serve/tokenize/protocol.py)."""


async def _by_its_own(call: HttpCall, counting: Counting | None, connections: Connections) -> Any:
    """The tokens of a chat completion by the tokenizer and template of the server it is for. llama.cpp counts the very
    body; before it could, it rendered one and tokenized a text (github.com/ggml-org/llama.cpp, tools/server/README.md).
    """

    async def ask(url: str, body: Metadata) -> Metadata:
        return await _asked(replace(call, url=url, body=body), connections)

    root = re.sub(r"(?:/v1)?/chat/completions$", "", call.url)
    if counting == "tokenize":
        return (await ask(f"{root}/tokenize", {n: call.body[n] for n in _RENDERED if n in call.body})).get("count")
    body = {name: value for name, value in call.body.items() if not name.startswith("stream")}
    try:
        return (await ask(f"{call.url}/input_tokens", body)).get("input_tokens")
    except HttpError as error:
        if error.status_code != 404:
            raise
    text = (await ask(f"{root}/apply-template", body)).get("prompt")
    tokenized = await ask(f"{root}/tokenize", {"content": text, "add_special": True, "parse_special": True})
    tokens = tokenized.get("tokens")
    return len(tokens) if isinstance(text, str) and isinstance(tokens, list) else None


def _question(call: HttpCall, target: Target, endpoint: ExactCount) -> HttpCall:
    """Returns the call that asks how long ``call`` is."""
    body = endpoint.wrap({name: call.body[name] for name in endpoint.fields if name in call.body}, target)
    url = parse_url(call.url, login=True)
    return replace(call, url=replace(url, path=endpoint.path(url.path), query="").text, body=body)
