"""Signing in to an MCP server by OAuth, with the SDK's client: discovery, registration, PKCE, and refreshing tokens.

Two things are done here that the SDK's client does in one: ``Bearer`` goes with the requests of a connection and never
asks anybody; ``SignIn`` is what a user began. What a server says of where to sign in is not believed: each address is
checked before it is asked or shown, documents are bounded, and no error repeats what could be a token.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthRegistrationError
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth, union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from agent_tui.config import McpServer
from agent_tui.errors import AgentError, ToolError
from agent_tui.providers import net
from agent_tui.providers.net import Unpacker
from agent_tui.providers.secrets import redact
from agent_tui.text.clean import plain_line
from agent_tui.tools.mcp.config import may_sign_in
from agent_tui.tools.mcp.tokens import Tokens
from agent_tui.urls import parse_url

log = logging.getLogger("agent_tui.host")
logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL + 1)  # it logs answers with tokens in them

ANSWERS = 60.0
"""Seconds that the servers get for their part before, and after, the user's."""
PERSON = 600.0
"""Seconds that the user gets to sign in."""
DOCUMENT = 1_000_000
"""Bytes of one answer during a sign-in."""
REQUEST = 32_000
"""Bytes of what a browser asks when it comes back."""
REASON, SCOPE = 300, 1_000
_NOT_KEPT = {"scopes_supported", "ui_locales_supported"}
"""Lists of the metadata that may be long and are of no use once there is a token."""

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "agent-tui", "version": "1"},
    },
}
_ACCEPT = {"Accept": "application/json, text/event-stream", "Accept-Encoding": Unpacker.ACCEPTED}


M = TypeVar("M", bound=BaseModel)


class SignInError(AgentError):
    """Signing in failed, or a sign-in can no longer be used; the text says why."""


def identity(name: str, server: McpServer) -> str:
    """What a sign-in is kept under: another address of the same name must not get its token."""
    return f"{name} {server.url}"


def checked_address(address: str, server_url: str) -> str:
    """Returns an address that a server names for its sign-in. Raises SignInError for one that nobody should be sent to:
    anything but https, unless it is where the server itself is, and a private network that the server is not in."""
    try:
        url, own = parse_url(address), parse_url(server_url)
    except ToolError as error:
        raise SignInError(f"it names a wrong address for the sign-in: {error}") from error
    same = (url.scheme, url.host, url.port) == (own.scheme, own.host, own.port)
    loopback = url.loopback and own.loopback
    if url.scheme != "https" and not (same or loopback):
        raise SignInError(f"it names an address for the sign-in that is not https: {url.scheme}://{url.host}")
    if own.public and not url.public:
        raise SignInError(f"it names an address for the sign-in in a private network: {url.host}")
    return url.text


def _read(model: type[M], value: object) -> M | None:
    """What was kept, without a word of what it says where that cannot be read."""
    try:
        return None if value is None else model.model_validate(value)
    except ValidationError:
        log.warning("A kept %s cannot be read", model.__name__)
        return None


def _configured_client(server: McpServer) -> OAuthClientInformationFull | None:
    """The client that was registered by hand."""
    if not server.client_id or server.client_id.startswith("https://"):
        return None
    return OAuthClientInformationFull(
        client_id=server.client_id,
        client_secret=server.client_secret or None,
        token_endpoint_auth_method="client_secret_post" if server.client_secret else "none",
    )


class _Kept:
    """What is kept of one server, as the SDK asks for it. With a ``redirect`` a sign-in begins anew, with the client
    that is registered for it, if there is one."""

    def __init__(self, tokens: Tokens, name: str, server: McpServer, redirect: str = "") -> None:
        self._tokens, self._key, self._redirect = tokens, identity(name, server), redirect
        self._server = server
        self.provider: OAuthClientProvider | None = None
        self.where = ""

    async def load(self) -> dict[str, Any]:
        return await self._tokens.get(self._key)

    async def get_tokens(self) -> OAuthToken | None:
        if self._redirect:
            return None
        return _read(OAuthToken, (await self.load()).get("tokens"))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if (own := _configured_client(self._server)) is not None:
            return own
        found = await self.load()
        if self._redirect not in ("", found.get("redirect")):
            return None
        return _read(OAuthClientInformationFull, found.get("client"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keeps the tokens, and all that it takes to refresh them after a restart, but for what is configured."""
        if not re.fullmatch(r"[\x21-\x7e]{1,65536}", tokens.access_token):
            raise SignInError("what it gave is no token")
        assert self.provider is not None, "the provider is set before anything is kept"
        context = self.provider.context
        kept: dict[str, Any] = {"tokens": tokens.model_dump(mode="json", exclude_none=True)}
        if tokens.expires_in is not None:
            kept["expires_at"] = time.time() + min(max(tokens.expires_in, 0), 10**9)
        for name, value in (
            ("client", context.client_info if _configured_client(self._server) is None else None),
            ("metadata", context.oauth_metadata),
            ("resource", context.protected_resource_metadata),
        ):
            if value is not None:
                kept[name] = value.model_dump(mode="json", exclude_none=True, exclude=_NOT_KEPT)
        # Who refreshes is alone already.
        lock: AbstractAsyncContextManager[None] = self._tokens.alone() if self._redirect else nullcontext()
        async with lock:
            before = await self.load()
            kept |= {"redirect": self._redirect or before.get("redirect", ""), "wanted": before.get("wanted", "")}
            self.where = await self._tokens.put(self._key, kept)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """It is kept with the first token: a registration alone is of no use."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        return self._tokens.alone()

    async def want(self, scope: str) -> None:
        """Sign-ins ask for these rights, too, from now on."""
        async with self.alone():
            found = await self.load()
            both = union_scopes(str(found.get("wanted", "")), scope) or ""
            await self._tokens.put(self._key, {**found, "wanted": both if len(both) <= SCOPE else scope})

    async def forget_tokens(self) -> None:
        """A refresh was refused: what is left is whom the server knows us as."""
        found = await self.load()
        if found:
            await self._tokens.put(self._key, {k: v for k, v in found.items() if k not in ("tokens", "expires_at")})


def _provider(cls: type[OAuthClientProvider], server: McpServer, kept: _Kept, redirect: str, **more: Any) -> Any:
    client_id = server.client_id
    made = cls(
        server.url or "",
        OAuthClientMetadata(
            client_name="agent-tui", redirect_uris=[AnyUrl(redirect)], token_endpoint_auth_method="none"
        ),
        kept,
        client_metadata_url=client_id if client_id.startswith("https://") else None,
        **more,
    )
    kept.provider = made
    return made


class Bearer(OAuthClientProvider):
    """Sends the token that is kept with each request, and refreshes it when its time is over or the server says so.
    Where that does not help the server's refusal is the answer; nobody is asked here."""

    kept: _Kept
    problem = ""
    """Why the token that is kept cannot be used, where that is not the server's refusal."""
    wanted = ""
    """The rights that a refused request needed beyond those of the sign-in."""
    _refused = ""

    @classmethod
    def of(cls, tokens: Tokens, name: str, server: McpServer) -> Bearer:
        kept = _Kept(tokens, name, server)
        made: Bearer = _provider(cls, server, kept, "http://127.0.0.1/callback")
        made.kept = kept
        return made

    @property
    def secrets(self) -> list[str]:
        """What must not be repeated by anybody."""
        tokens, client = self.context.current_tokens, self.context.client_info
        found = [tokens.access_token, tokens.refresh_token] if tokens is not None else []
        return [text for text in (*found, client.client_secret if client is not None else "") if text]

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        for _ in range(2):
            self.problem = ""
            try:
                if not self._initialized:
                    await self._initialize()
                if self.context.current_tokens is not None and not self._usable():
                    async with self.kept.alone():
                        await self._initialize()  # another program may have refreshed it
                        if not self._usable() and self.context.can_refresh_token():
                            checked_address(self._get_token_endpoint(), self.context.server_url)
                            response = yield await self._refresh_token()
                            await self._take_refreshed(response)
            except AgentError as error:
                self.problem = str(error)
                raise
            sent = ""
            if self.context.current_tokens is not None and self._usable():
                sent = self.context.current_tokens.access_token
                self._add_auth_header(request)
            response = yield request
            if response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope":
                self.wanted = plain_line(extract_scope_from_www_auth(response) or "", SCOPE)
                await self.kept.want(self.wanted)
            if response.status_code != 401 or not sent:
                return
            self._refused = sent

    def _usable(self) -> bool:
        tokens = self.context.current_tokens
        return tokens is not None and tokens.access_token != self._refused and self.context.is_token_valid()

    async def _initialize(self) -> None:
        await super()._initialize()
        found = await self.kept.load()
        context = self.context
        context.token_expiry_time = found.get("expires_at")
        context.oauth_metadata = _read(OAuthMetadata, found.get("metadata"))
        context.protected_resource_metadata = _read(ProtectedResourceMetadata, found.get("resource"))

    async def _take_refreshed(self, response: httpx2.Response) -> None:
        if response.status_code >= 500 or response.status_code == 429:
            raise SignInError(f"its token cannot be refreshed now (HTTP {response.status_code})")
        if not await self._handle_refresh_response(response):
            log.warning("The token of %s was not refreshed: HTTP %s", self.context.server_url, response.status_code)
            await self.kept.forget_tokens()


class _Asking(OAuthClientProvider):
    """Asks for the rights that a request needed since, too."""

    wanted = ""

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        metadata = self.context.client_metadata
        metadata.scope = union_scopes(metadata.scope, self.wanted)
        return await super()._perform_authorization_code_grant()


class SignIn:
    """One sign-in, from its beginning to its end. ``show`` gets the address that the user has to open."""

    def __init__(self, tokens: Tokens, name: str, server: McpServer, show: Callable[[str], None]) -> None:
        self._tokens, self._name, self._server, self._show = tokens, name, server, show
        self._came: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self._redirect = ""
        self._shown = False
        self._made: OAuthClientProvider | None = None

    async def run(self) -> str:
        """Signs in, and returns where the token is kept. Raises SignInError."""
        server = self._server
        if not may_sign_in(server):
            raise SignInError(
                "its headers give an Authorization already"
                if server.url
                else f"{self._name} has no sign-in: it has no url"
            )
        listening = await self._listen()
        try:
            async with asyncio.timeout(ANSWERS) as limit:
                return await self._sign_in(limit)
        except TimeoutError as error:
            said = "nobody signed in in time" if self._shown else "its sign-in did not answer in time"
            raise SignInError(said) from error
        except (SignInError, asyncio.CancelledError):
            raise
        except Exception as error:
            raise SignInError(_why(error, self._secrets())) from error
        finally:
            listening.close()

    def _secrets(self) -> list[str]:
        client = self._made.context.client_info if self._made is not None else None
        return [s for s in (self._server.client_secret, client.client_secret if client else "") if s]

    async def _sign_in(self, limit: asyncio.Timeout) -> str:
        server, url = self._server, self._server.url or ""

        async def show(address: str) -> None:
            self._show(checked_address(address, url))
            self._shown = True
            limit.reschedule(asyncio.get_running_loop().time() + PERSON)

        async def answer() -> AuthorizationCodeResult:
            result = await self._came
            self._shown = False
            limit.reschedule(asyncio.get_running_loop().time() + ANSWERS)
            return result

        async def look(request: httpx2.Request) -> None:
            if request.url != url:
                checked_address(str(request.url), url)

        async def bound(response: httpx2.Response) -> None:
            net.guard_body(response, DOCUMENT)

        kept = _Kept(self._tokens, self._name, server, self._redirect)
        auth = self._made = _provider(
            _Asking, server, kept, self._redirect, redirect_handler=show, callback_handler=answer
        )
        auth.wanted = str((await kept.load()).get("wanted", ""))
        headers = {**_ACCEPT, **server.headers}
        async with httpx2.AsyncClient(headers=headers, timeout=ANSWERS) as client:
            client.event_hooks = {"request": [look], "response": [bound]}
            asked = [client.build_request("GET", url)]
            if server.type != "sse":
                asked.insert(0, client.build_request("POST", url, json=_INITIALIZE))
            for request in asked:
                response = await client.send(request, auth=auth, stream=True, follow_redirects=False)
                await response.aclose()
                if kept.where:
                    break
        if not kept.where:
            raise SignInError(f"{self._name} needs no sign-in")
        if response.status_code in (401, 403):
            raise SignInError(f"it refuses the token that its own sign-in gave (HTTP {response.status_code})")
        return kept.where

    # The way back

    def take(self, address: str) -> None:
        """Takes the address that the browser ended on, as it is pasted. Raises SignInError where it is another one."""
        query = address.strip().partition("?")[2]
        if not self._take(query):
            raise SignInError(f"That is not where the browser ended: that address begins with {self._redirect}?")

    def _take(self, query: str) -> bool:
        """Returns whether the words of an address are an answer to a sign-in."""
        try:
            said = {name: values[0] for name, values in parse_qs(query, max_num_fields=50).items()}
        except ValueError:
            return False
        if "code" not in said and "error" not in said:
            return False
        if not self._came.done():
            if "error" in said:
                why = plain_line(said.get("error_description") or said["error"], REASON)
                self._came.set_exception(SignInError(f"the sign-in was refused: {why}"))
            else:
                result = AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))
                self._came.set_result(result)
        return True

    async def _listen(self) -> asyncio.Server:
        """Waits for the browser on this machine, where it was registered before, if that port is free."""
        wanted = self._server.callback_port
        with suppress(ValueError):
            kept = (await self._tokens.get(identity(self._name, self._server))).get("redirect", "")
            earlier = parse_url(str(kept)).port if kept else 0
        for port in dict.fromkeys((wanted,) if wanted else (earlier, 0)):
            try:
                listening = await asyncio.start_server(self._browser, "127.0.0.1", port, limit=REQUEST)
            except OSError as error:
                if port:
                    continue
                raise SignInError(f"no port can be opened for the browser: {error.strerror or error}") from error
            self._redirect = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/callback"
            return listening
        raise SignInError(f"port {wanted} is taken (callback_port)")

    async def _browser(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        status, said = "404 Not Found", "Not found."
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(ANSWERS):
                head = await reader.readuntil(b"\r\n\r\n")
                method, _, target = head.decode("ascii", "replace").partition("\r\n")[0].partition(" ")
                path, _, query = target.partition(" ")[0].partition("?")
                if method == "GET" and path == "/callback" and self._take(query):
                    status, said = "200 OK", "Back to agent-tui: it says how this ended. You can close this page."
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n"
                    f"Content-Length: {len(said)}\r\nConnection: close\r\n\r\n{said}".encode()
                )
                await writer.drain()
        writer.close()


async def sign_out(tokens: Tokens, name: str, server: McpServer) -> str:
    """Forgets a sign-in and has its server revoke it, where that has an address for it; returns a line, empty where
    nothing was kept. Raises AgentError where the token stays."""
    key, url = identity(name, server), server.url or ""
    async with tokens.alone():
        found = await tokens.get(key)
        if not await tokens.drop(key):
            return ""
    metadata, kept = _read(OAuthMetadata, found.get("metadata")), _read(OAuthToken, found.get("tokens"))
    client = _configured_client(server) or _read(OAuthClientInformationFull, found.get("client"))
    if metadata is None or metadata.revocation_endpoint is None or kept is None:
        return "its token is forgotten"
    data = {"token": kept.refresh_token or kept.access_token}
    auth: httpx2.BasicAuth | None = None
    if client is not None:
        data["client_id"] = client.client_id
        if client.client_secret and client.token_endpoint_auth_method == "client_secret_basic":
            auth = httpx2.BasicAuth(quote(client.client_id, safe=""), quote(client.client_secret, safe=""))
        elif client.client_secret:
            data["client_secret"] = client.client_secret
    revoked = False
    try:
        address = checked_address(str(metadata.revocation_endpoint), url)
        async with httpx2.AsyncClient(timeout=ANSWERS, auth=auth) as asking:
            # Servers on the SDK for Python want the field even where it is empty, others refuse an empty one.
            for form in (data, {"client_secret": "", **data}):
                async with asking.stream("POST", address, data=form) as answer:
                    revoked = answer.status_code == 200
                if answer.status_code != 400:
                    break
    except (httpx2.HTTPError, SignInError) as error:
        log.warning("The token of %s was not revoked: %s", name, type(error).__name__)
    return "its token is revoked and forgotten" if revoked else "its token is forgotten; the server did not revoke it"


def _why(error: BaseException, secrets: list[str]) -> str:
    """Why the SDK gave up, in one line, without what could be a token."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    said = str(error)
    if said.startswith("State parameter mismatch"):
        return "the answer is one to another sign-in (wrong state)"
    if said.startswith(("Invalid token response", "Invalid registration response")):
        return "what it gave is no token" if "token" in said[:20] else "its registration answers what is none"
    if isinstance(error, OAuthRegistrationError):
        code = re.search(r"\d{3}", said)
        return (
            f"it lets no program register itself{f' (HTTP {code[0]})' if code else ''}; set its client_id, or an "
            "Authorization in its headers"
        )
    if isinstance(error, httpx2.ConnectError):
        return net.unreached(str(error.request.url), error)
    if net.is_of_httpx(error):
        return f"{type(error).__name__}: {plain_line(said, REASON)}"
    return plain_line(redact(said, secrets), REASON) or type(error).__name__
