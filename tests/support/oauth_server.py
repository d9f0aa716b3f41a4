"""An MCP server that asks for a sign-in, with its authorization server on the official SDK, both on one loopback port;
and the browser of a user who agrees to whatever the page asks."""

from __future__ import annotations

import json
import logging
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

Scope = dict[str, Any]


class OAuthServer(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """What a test may change: ``denies`` every user,
    ``seconds`` that a token lasts, ``answers`` for paths in the place of the true ones (status, headers, body),
    ``changes`` to the query of the way back, ``wild`` tokens. ``given`` are all tokens there ever were, ``asked`` the
    requests that came, ``scopes`` those of the newest sign-in, ``sent`` the bodies of the requests that ``answers`` has
    an answer for, each with its authorization."""

    def __init__(self, port: int) -> None:
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self.denies = False
        self.seconds: int | None = 3600
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.changes: dict[str, str] = {}
        self.wild = ""
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.given: list[str] = []
        self.asked: list[str] = []
        self.sent: list[tuple[str, str]] = []
        self.refreshed = 0
        self.scopes: list[str] = []

    # What the SDK asks

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        back, self.scopes = str(params.redirect_uri), params.scopes or []
        if self.denies:
            said = {"error": "access_denied", "error_description": "You said \x1b[31mno", "state": params.state}
        else:
            code = secrets.token_urlsafe(20)
            self.codes[code] = AuthorizationCode(
                code=code,
                scopes=params.scopes or [],
                expires_at=2e9,
                client_id=client.client_id,
                code_challenge=params.code_challenge,
                redirect_uri=params.redirect_uri,
                redirect_uri_provided_explicitly=True,
                resource=params.resource,
            )
            said = {"code": code, "state": params.state}
        return construct_redirect_uri(back, **{**said, **self.changes})

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._give(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refresh[refresh_token.token]
        self.refreshed += 1
        return self._give(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.clear()
        self.refresh.clear()

    def _give(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access{self.wild}-{secrets.token_urlsafe(20)}", f"refresh-{secrets.token_urlsafe(20)}"
        self.access[access] = AccessToken(token=access, client_id=client, scopes=scopes, resource=resource)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes, resource=resource)
        self.given += [access, refresh]
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.seconds)

    # What a test does

    def revoke_access(self) -> None:
        """The tokens end before their time; who refreshes gets new ones."""
        self.access.clear()

    def metadata(self, **changes: object) -> tuple[int, dict[str, str], bytes]:
        """Metadata of the authorization server with something else in it."""
        true = {
            "issuer": f"{self.url}/",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
        return 200, {"content-type": "application/json"}, json.dumps({**true, **changes}).encode()

    # The server

    def app(self, sse: bool) -> Any:
        server = MCPServer(
            "signed",
            auth_server_provider=self,
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(self.url),
                resource_server_url=AnyHttpUrl(f"{self.url}/{'sse' if sse else 'mcp'}"),
                client_registration_options=ClientRegistrationOptions(enabled=True),
                revocation_options=RevocationOptions(enabled=True),
                validate_token_resource=False,
            ),
        )

        @server.tool()
        def add(a: int, b: int) -> str:
            """Adds two numbers."""
            return str(a + b)

        @server.tool()
        def repeat(ctx: Context) -> str:
            """Says what it was sent."""
            assert ctx.headers is not None
            return ctx.headers["authorization"]

        inner = server.sse_app() if sse else server.streamable_http_app()

        async def app(scope: Scope, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.asked.append(f"{scope['method']} {scope['path']}")
                if (answer := self.answers.get(scope["path"])) is not None:
                    said = dict(scope["headers"]).get(b"authorization", b"").decode()
                    self.sent.append(((await receive()).get("body", b"").decode(), said))
                    status, headers, body = answer
                    listed = [(name.encode(), value.encode()) for name, value in headers.items()]
                    await send({"type": "http.response.start", "status": status, "headers": listed})
                    await send({"type": "http.response.body", "body": body})
                    return
            await inner(scope, receive, send)

        return app


class _Uvicorn(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def oauth_server(*, sse: bool = False) -> Iterator[OAuthServer]:
    """Listens before it runs: who connects waits."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = OAuthServer(listening.getsockname()[1])
        before = logging.root.level, logging.root.handlers[:]
        app = made.app(sse)
        logging.root.level, logging.root.handlers[:] = before  # the SDK's server sets up the log of its process
        runner = _Uvicorn(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=0))
        thread = threading.Thread(target=lambda: runner.run(sockets=[listening]), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            runner.should_exit = True
            thread.join(10)


async def browse(address: str) -> str:
    """Opens an address as a browser does that is on this machine; returns what the last page says."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        return (await browser.get(address)).text


async def browse_elsewhere(address: str) -> str:
    """The same on another machine: returns the address that it ends on and cannot open."""
    async with httpx2.AsyncClient() as browser:
        return (await browser.get(address)).headers["location"]
