"""Servers that ask for a sign-in: signing in, staying so, what goes wrong, and where the token is."""

from __future__ import annotations

import asyncio
import json
import stat
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from agent_tui.config import McpServer
from agent_tui.errors import AgentError
from agent_tui.tools.mcp import oauth, protocol
from agent_tui.tools.mcp.host import Host
from agent_tui.tools.mcp.manager import McpManager
from agent_tui.tools.mcp.oauth import SignIn
from agent_tui.tools.mcp.tokens import Tokens
from tests.support.forms import one_of
from tests.support.lazily import LazyModule
from tests.support.mcp_managers import call, detail, running, states
from tests.support.tool_context import make_context
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from tests.support.oauth_server import OAuthServer

sign_ins = LazyModule("tests.support.oauth_server")

pytestmark = pytest.mark.usefixtures("forked_host", "home")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    return tmp_path / "home"


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[OAuthServer]:
    with sign_ins.oauth_server(sse=getattr(request, "param", "") == "sse") as made:
        yield made


def docs(server: OAuthServer, path: str = "mcp", **fields: object) -> dict[str, McpServer]:
    return {"docs": McpServer(url=f"{server.url}/{path}", timeout=PATIENCE, **fields)}  # type: ignore[arg-type]


async def sign_in(manager: McpManager, browser: Callable[[str], Awaitable[object]] | None = None) -> str:
    """Signs in with a browser that opens what it is told to."""
    browser = browser or sign_ins.browse
    tasks: list[asyncio.Future[object]] = []
    try:
        return await manager.sign_in("docs", lambda address: tasks.append(asyncio.ensure_future(browser(address))))
    finally:
        for task in tasks:
            await asyncio.wait([task])


def kept(home: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((home / "data" / "mcp-tokens.json").read_text())
    return found


@pytest.mark.quick
@pytest.mark.versions
@pytest.mark.parametrize(
    ("server", "path", "kind"),
    one_of([("mcp", "mcp", ""), ("mcp", "mcp", "http"), ("sse", "sse", "sse"), ("sse", "sse", "")]),
    indirect=["server"],
)
async def test_signing_in_and_out(
    server: OAuthServer, tmp_path: Path, home: Path, path: str, kind: Literal["http", "sse", ""]
) -> None:
    context = make_context(tmp_path / "project")
    async with running(tmp_path, docs(server, path, type=kind)) as manager:
        await manager.settled()
        assert states(manager) == {"docs": "failed"}
        assert detail(manager, "docs").startswith("it asks you to sign in: /mcp login docs")
        assert "POST /register" not in server.asked

        said = await sign_in(manager)
        assert said == f"docs is connected: 2 tools; the token is kept in {home / 'data' / 'mcp-tokens.json'}"
        assert (await call(manager, context, "mcp__docs__add", a=20, b=3)).text == "23"
        assert stat.S_IMODE((home / "data" / "mcp-tokens.json").stat().st_mode) == 0o600

        said = await manager.sign_out("docs")
        assert said == "Signed out of docs: its token is revoked and forgotten."
        assert states(manager) == {"docs": "failed"}
        assert kept(home) == {} and not server.access
        assert await manager.sign_out("docs") == "You are not signed in to docs."


@pytest.mark.slow
async def test_a_sign_in_holds_over_a_restart_and_is_refreshed(server: OAuthServer, tmp_path: Path) -> None:
    context = make_context(tmp_path / "project")
    server.seconds = 0
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        await sign_in(manager)
        assert server.refreshed, "a token whose time is over is not sent"
    server.seconds = 3600
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        assert states(manager) == {"docs": "connected"}, detail(manager, "docs")
        before = server.refreshed
        assert (await call(manager, context, "mcp__docs__add", a=1, b=1)).text == "2"
        assert server.refreshed == before
        server.revoke_access()
        assert (await call(manager, context, "mcp__docs__add", a=2, b=2)).text == "4"
        assert server.refreshed == before + 1
        answers = await asyncio.gather(*(call(manager, context, "mcp__docs__add", a=n, b=0) for n in range(5)))
        assert [answer.text for answer in answers] == ["0", "1", "2", "3", "4"]


@pytest.mark.slow
async def test_two_programs_refresh_once(server: OAuthServer, tmp_path: Path) -> None:
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        await sign_in(manager)
    server.revoke_access()
    async with running(tmp_path, docs(server)) as one, running(tmp_path, docs(server)) as other:
        await asyncio.gather(one.settled(), other.settled())
        assert states(one) == states(other) == {"docs": "connected"}
    assert server.refreshed == 1


@pytest.mark.slow
async def test_a_refresh_that_is_refused_asks_for_a_new_sign_in(
    server: OAuthServer, tmp_path: Path, home: Path
) -> None:
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        await sign_in(manager)
        server.access.clear()
        server.refresh.clear()
        await manager.reconnect("docs")
        assert detail(manager, "docs").startswith("it asks you to sign in: /mcp login docs")
        assert "access-" not in json.dumps(kept(home))
        await sign_in(manager)
        assert states(manager) == {"docs": "connected"}
    assert len(server.clients) == 1, "the client is the one that was registered before"


@pytest.mark.slow
async def test_a_refresh_that_fails_for_now_keeps_the_sign_in(server: OAuthServer, tmp_path: Path) -> None:
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        await sign_in(manager)
        server.revoke_access()
        server.answers["/token"] = 503, {}, b"busy"
        await manager.reconnect("docs")
        assert detail(manager, "docs") == "its token cannot be refreshed now (HTTP 503)"
        del server.answers["/token"]
        assert (await manager.reconnect("docs")).startswith("docs is connected")


async def test_an_address_is_pasted_where_the_browser_is_elsewhere(server: OAuthServer, tmp_path: Path) -> None:
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        with pytest.raises(AgentError, match="No sign-in to docs waits"):
            await manager.paste("docs", "http://127.0.0.1:1/callback?code=1")

        async def elsewhere(address: str) -> None:
            ended = await sign_ins.browse_elsewhere(address)
            with pytest.raises(AgentError, match="That is not where the browser ended"):
                await manager.paste("docs", address)
            await manager.paste("docs", f"  {ended}\n")

        assert (await sign_in(manager, elsewhere)).startswith("docs is connected")


@pytest.mark.slow
async def test_a_sign_in_that_goes_wrong_is_one_line(server: OAuthServer, tmp_path: Path, home: Path) -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"denies": True}, "the sign-in was refused: You said no"),
        ({"changes": {"state": "mine"}}, "the answer is one to another sign-in (wrong state)"),
        ({"changes": {"iss": "https://elsewhere.example"}}, "iss mismatch"),
        ({"changes": {"code": "none"}}, "Token exchange failed"),
        ({"wild": "\n\x1b]0;"}, "what it gave is no token"),
    ]
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        for changes, why in wrong:
            for name, value in changes.items():
                setattr(server, name, value)
            with pytest.raises(AgentError) as failed:
                await sign_in(manager)
            said = str(failed.value)
            assert why in said and "\n" not in said and "\x1b" not in said and len(said) < 400
            assert not any(token in said for token in server.given)
            assert not (home / "data" / "mcp-tokens.json").exists()
            for name in changes:
                setattr(server, name, {"denies": False, "changes": {}, "wild": ""}[name])
        assert (await sign_in(manager)).startswith("docs is connected")


_ELSEWHERE = "https://elsewhere.example/"
METADATA, RESOURCE = "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"


LIES: list[tuple[str, dict[str, object], str]] = [
    (METADATA, {"issuer": "https://elsewhere.example"}, "issuer mismatch"),
    (METADATA, {"authorization_endpoint": "http://elsewhere.example/authorize"}, "that is not https: http://else"),
    (METADATA, {"authorization_endpoint": "https://you@elsewhere.example/"}, "user name"),
    (METADATA, {"token_endpoint": "http://169.254.169.254/token"}, "that is not https: http://169.254.169.254"),
    (METADATA, {"registration_endpoint": "http://elsewhere.example/"}, "that is not https"),
    (METADATA, {"padding": "x" * 2_000_000}, "longer than"),
    (RESOURCE, {"resource": _ELSEWHERE, "authorization_servers": [_ELSEWHERE]}, "does not match"),
]


@pytest.mark.slow
async def test_metadata_that_lies_is_one_line(server: OAuthServer, tmp_path: Path) -> None:
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        for path, changes, why in LIES:
            server.answers = {path: server.metadata(**changes)}
            with pytest.raises(AgentError) as failed:
                await sign_in(manager)
            assert why in str(failed.value) and "\n" not in str(failed.value) and len(str(failed.value)) < 400


@pytest.mark.slow
async def test_a_page_that_is_no_page_is_never_shown(server: OAuthServer, tmp_path: Path) -> None:
    shown: list[str] = []
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        for address in ("javascript:alert(1)", "file:///etc/passwd", "data:text/html,x"):
            server.answers[METADATA] = server.metadata(authorization_endpoint=address)
            server.answers["/.well-known/openid-configuration"] = server.answers[METADATA]
            server.answers["/register"] = 404, {}, b""
            with pytest.raises(AgentError):
                await manager.sign_in("docs", shown.append)
    assert shown == []


@pytest.mark.slow
async def test_a_server_that_redirects_or_refuses_for_ever_is_one_line(server: OAuthServer, tmp_path: Path) -> None:
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        server.answers[METADATA] = 302, {"location": METADATA}, b""
        server.answers["/.well-known/openid-configuration"] = server.answers[METADATA]
        server.answers["/register"] = 404, {}, b""
        with pytest.raises(AgentError, match="it lets no program register itself"):
            await sign_in(manager)
        assert len(server.asked) < 40
        server.answers = {"/mcp": (401, {}, b"")}
        with pytest.raises(AgentError, match="it refuses the token that its own sign-in gave"):
            await sign_in(manager)
        server.answers = {"/mcp": (200, {"content-type": "application/json"}, b"{}")}
        with pytest.raises(AgentError, match="needs no sign-in"):
            await sign_in(manager)


@pytest.mark.slow
async def test_rights_that_a_call_needed_are_asked_for_by_the_next_sign_in(server: OAuthServer, tmp_path: Path) -> None:
    context = make_context(tmp_path / "project")
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        await sign_in(manager)
        challenge = 'Bearer error="insufficient_scope", scope="write:all"'
        server.answers["/mcp"] = 403, {"www-authenticate": challenge}, b""
        with pytest.raises(AgentError, match="it wants more rights than you gave it: sign in again with /mcp login"):
            await call(manager, context, "mcp__docs__add", a=1, b=1)
        server.answers.clear()
        for client in server.clients.values():
            client.scope = "write:all"
        assert server.scopes == []
        await sign_in(manager)
        assert server.scopes == ["write:all"]
        assert (await call(manager, context, "mcp__docs__add", a=1, b=1)).text == "2"
        await sign_in(manager)
        assert server.scopes == ["write:all"], "what was granted is not given up"


async def test_nobody_is_waited_for_for_ever(
    server: OAuthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth, "PERSON", 0.0)
    shown: list[str] = []
    with pytest.raises(AgentError, match="nobody signed in in time"):
        await SignIn(Tokens(tmp_path), "docs", docs(server)["docs"], shown.append).run()
    assert len(shown) == 1
    monkeypatch.setattr(oauth, "ANSWERS", 0.0)
    with pytest.raises(AgentError, match="its sign-in did not answer in time"):
        await SignIn(Tokens(tmp_path), "docs", docs(server)["docs"], shown.append).run()


async def test_what_the_browser_sends_is_bounded(server: OAuthServer, tmp_path: Path) -> None:
    async def knock(address: str) -> None:
        port = int(address.partition("redirect_uri=http%3A%2F%2F127.0.0.1%3A")[2].partition("%2F")[0])
        for asked in (
            b"POST /callback?code=1&state=2 HTTP/1.1\r\n\r\n",
            b"GET /other?code=1 HTTP/1.1\r\n\r\n",
            b"GET /callback HTTP/1.1\r\n\r\n",
            b"GET /callback?" + b"&".join(b"a=%d" % n for n in range(999)) + b" HTTP/1.1\r\n\r\n",
            b"\xff\x00 nonsense\r\n\r\n",
            b"x" * 100_000,
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked)
            assert b"200 OK" not in await _rest(reader)
            writer.close()
        await sign_ins.browse(address)

    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        assert (await sign_in(manager, knock)).startswith("docs is connected")


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


@pytest.mark.slow
async def test_a_new_sign_in_takes_the_place_of_one_that_waits(server: OAuthServer, tmp_path: Path) -> None:
    async with running(tmp_path, docs(server)) as manager:
        await manager.settled()
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        first = asyncio.create_task(manager.sign_in("docs", address.set_result))
        await address
        assert (await sign_in(manager)).startswith("docs is connected")
        with pytest.raises(AgentError, match="cancelled"):
            await first


@pytest.mark.slow
async def test_a_client_that_was_registered_by_hand(server: OAuthServer, tmp_path: Path, home: Path) -> None:
    from mcp.shared.auth import OAuthClientInformationFull
    from pydantic import AnyUrl

    from tests.support.loopback import closed_port

    port = closed_port()
    servers = docs(server, client_id="ours", client_secret="known-to-both", callback_port=port)
    async with running(tmp_path, servers) as manager:
        await manager.settled()
        server.clients["ours"] = OAuthClientInformationFull(
            client_id="ours",
            client_secret="known-to-both",
            redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
            token_endpoint_auth_method="client_secret_post",
        )
        assert (await sign_in(manager)).startswith("docs is connected")
        assert len(server.clients) == 1
        assert "known-to-both" not in json.dumps(kept(home)), "it stands in the configuration alone"
        assert await manager.sign_out("docs") == "Signed out of docs: its token is revoked and forgotten."


@pytest.mark.forms(2)
@pytest.mark.parametrize(
    ("client", "status", "bodies", "authorization"),
    [
        ({}, 200, ["token=r1&client_id=a%3Ab"], ""),
        ({}, 400, ["token=r1&client_id=a%3Ab", "client_secret=&token=r1&client_id=a%3Ab"], ""),
        ({"client_secret": "s1"}, 200, ["token=r1&client_id=a%3Ab&client_secret=s1"], ""),
        (
            {"client_secret": "s/1", "token_endpoint_auth_method": "client_secret_basic"},
            200,
            ["token=r1&client_id=a%3Ab"],
            "Basic " + b64encode(b"a%3Ab:s%2F1").decode(),
        ),
    ],
)
async def test_a_client_revokes_as_it_is_registered(
    server: OAuthServer, tmp_path: Path, client: dict[str, str], status: int, bodies: list[str], authorization: str
) -> None:
    tokens, one = Tokens(tmp_path), docs(server)["docs"]
    metadata = json.loads(server.metadata(revocation_endpoint=f"{server.url}/revoke")[2])
    given = {"access_token": "a1", "refresh_token": "r1", "token_type": "Bearer"}
    kept = {"tokens": given, "metadata": metadata, "client": {"client_id": "a:b", **client}}
    await tokens.put(oauth.identity("docs", one), kept)
    server.answers["/revoke"] = status, {}, b""
    assert ("did not revoke" in await oauth.sign_out(tokens, "docs", one)) is (status != 200)
    assert server.sent == [(body, authorization) for body in bodies]


TOKEN = "access-" + "x1" * 8


class Leaky:
    """A connection whose server repeats its token in whatever it says."""

    tokens = (TOKEN,)

    async def call(self, tool: str, arguments: object, tell: Callable[[str], None]) -> protocol.ToolAnswer:
        tell(f"1/2 {TOKEN}")
        return protocol.ToolAnswer(TOKEN, images=[protocol.Image("image/png", "AAAA")])

    async def read(self, uri: str) -> protocol.Contents:
        return protocol.Contents(
            [protocol.ResourceContent(f"a:{TOKEN}", "text/plain", TOKEN), protocol.ResourceContent("b:", "", None)]
        )

    async def prompt(self, name: str, arguments: object) -> protocol.PromptAnswer:
        raise RuntimeError(TOKEN)


@pytest.mark.quick
async def test_nothing_that_a_server_says_repeats_its_token() -> None:
    lines: list[bytes] = []
    host = Host(lines.append)
    host._connections["docs"] = Leaky()  # type: ignore[assignment]
    offer = protocol.Entries(
        [protocol.ToolEntry("add", TOKEN, {"properties": {TOKEN: {"enum": ["a", TOKEN, 1]}}})],
        TOKEN,
        [protocol.ResourceEntry(f"a:{TOKEN}", TOKEN, TOKEN, "text/plain")],
        [protocol.PromptEntry("fill", TOKEN, [protocol.PromptArgument(TOKEN, True)])],
        left_out=[TOKEN],
    )
    host._report(protocol.ServerChange("docs", "connected", TOKEN, offer))
    form = {"properties": {TOKEN: {"title": TOKEN}}}
    questions = (protocol.Elicit("docs", TOKEN, form, f"https://a.example/?{TOKEN}"),)
    asking = [asyncio.create_task(host._put(question)) for question in questions]
    requests: tuple[protocol.Request, ...] = (
        protocol.CallTool("docs", "add", {}),
        protocol.ReadResource("docs", "a:"),
        protocol.FillPrompt("docs", "fill", {}),
    )
    for number, request in enumerate(requests, 1):
        await host._answer(number, request)
    await asyncio.sleep(0)
    for task in asking:
        task.cancel()
    sent = [protocol.FROM_HOST.read(line.rstrip(b"\n"))[1] for line in lines]
    assert {type(message).__name__ for message in sent} == {
        *("ServerChange", "Children", "Elicit", "Progress", "ToolAnswer", "Contents", "Refused"),
    }
    assert b"x1x1" not in b"".join(lines)
    change = sent[0]
    assert isinstance(change, protocol.ServerChange) and change.offer is not None
    assert change.offer.tools[0].schema == {"properties": {"[secret]": {"enum": ["a", "[secret]", 1]}}}
    assert (change.server, change.state, change.offer.prompts[0].arguments[0].required) == ("docs", "connected", True)


async def test_what_has_no_sign_in_says_so(server: OAuthServer, tmp_path: Path) -> None:
    servers = {
        **docs(server, headers={"Authorization": "Bearer of-mine"}),
        "local": McpServer(command="/nonexistent/server"),
    }
    async with running(tmp_path, servers) as manager:
        await manager.settled()
        assert "needs authorization (HTTP 401)" in detail(manager, "docs")
        assert not manager.may_sign_in("docs") and not manager.may_sign_in("local")
        with pytest.raises(AgentError, match="its headers give an Authorization already"):
            await sign_in(manager)
        with pytest.raises(AgentError, match="has no sign-in: it has no url"):
            await manager.sign_in("local", lambda address: None)
        with pytest.raises(AgentError, match="no MCP server"):
            await manager.sign_in("other", lambda address: None)
