"""Who may come in, over real connections: the address, the host asked for and the page's origin decide."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError, web

from agent_tui.errors import AgentError
from agent_tui.serve.chat import ServedChat
from agent_tui.serve.server import ASSETS, MOST_CELLS, ChatServer, Gate, is_loopback
from tests.support.every import every
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.quick


class Site(NamedTuple):
    base: str
    host: str
    token: str
    client: ClientSession
    chat: ServedChat

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.client.get(self.base + path, headers=headers) as answer:
            return answer.status, (await answer.read()).decode("utf-8", "replace")

    def socket(self, token: str = "", **headers: str) -> Any:
        address = f"{self.base}/{token or self.token}/ws?width=80&height=24"
        return self.client.ws_connect(address, headers={"Origin": self.base, **headers})


@pytest.fixture
async def site(chat: ServedChat) -> AsyncIterator[Site]:
    gate = Gate("127.0.0.1")
    runner = web.AppRunner(ChatServer(gate, chat, "t").application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host = f"127.0.0.1:{runner.addresses[0][1]}"
    async with ClientSession() as client:
        yield Site(f"http://{host}", host, gate.token, client, chat)
    await runner.cleanup()


async def test_the_page_loads_nothing_from_elsewhere(site: Site) -> None:
    async with site.client.get(f"{site.base}/{site.token}/") as answer:
        text, policy = await answer.text(), answer.headers["Content-Security-Policy"]
        assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "http" not in policy
    assert f"ws://{site.host}/{site.token}/ws" in text
    assert text.count("://") == 1
    for name in (*ASSETS, "begin.js"):
        assert (await site.get(f"/{site.token}/static/{name}"))[0] == 200
        assert f"static/{name}" in text


async def test_without_the_token_there_is_nothing(site: Site) -> None:
    wrong = site.token[:-1] + ("a" if site.token[-1] != "a" else "b")
    for token in ("", wrong, wrong.upper(), site.token + "x", "é", "%00", "..", "static"):
        for path in (f"/{token}/", f"/{token}/ws", f"/{token}/static/textual.js", f"/{token}"):
            status, text = await site.get(path)
            assert status in (400, 403) and "xterm" not in text, path
    assert (await site.get("/"))[0] == 403
    with pytest.raises(WSServerHandshakeError) as refused:
        await site.socket(token=wrong)
    assert refused.value.status == 403
    assert not site.chat.running


async def test_with_it_there_is_the_page_and_no_file_of_the_machine(site: Site) -> None:
    for path in ("static/", "static/../page.py", "static/%2e%2e%2fpage.py", "static//etc/passwd", "download/x", "x"):
        assert (await site.get(f"/{site.token}/{path}"))[0] in (403, 404), path
    async with site.client.post(f"{site.base}/{site.token}/") as answer:
        assert answer.status in (404, 405)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "https://[",
        "file://",
        "{base}/x",
        "http://me@{host}",
        "http://{host}@evil.example",
        "http://{host}\\@evil.example",
        "{base}#",
        "{base} {base}",
    ],
)
async def test_a_page_of_another_site_cannot_connect(site: Site, origin: str) -> None:
    origin = origin.format(base=site.base, host=site.host)
    with pytest.raises(WSServerHandshakeError) as refused:
        await site.socket(Origin=origin)
    assert refused.value.status == 403
    assert (await site.get(f"/{site.token}/", Origin=origin))[0] == 403
    assert not site.chat.running


async def test_a_connection_names_its_page(site: Site) -> None:
    with pytest.raises(WSServerHandshakeError) as refused:
        await site.client.ws_connect(f"{site.base}/{site.token}/ws")
    assert refused.value.status == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "[",
        "",
        "me@localhost",
        "me:pw@127.0.0.1:80",
        "localhost:80@evil.example",
        "evil.example\\@localhost",
        "localhost/x",
        "localhost?",
        "localhost#@evil.example",
    ],
)
async def test_a_name_that_was_made_to_point_here_is_refused(site: Site, host: str) -> None:
    status, _ = await site.get(f"/{site.token}/", Host=host)
    assert status in (400, 403)
    with pytest.raises(WSServerHandshakeError):
        await site.socket(Host=host, Origin=f"http://{host}")
    assert not site.chat.running


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1:9000", "[::1]:9000"])
async def test_a_tunnel_may_have_another_port(site: Site, host: str) -> None:
    assert (await site.get(f"/{site.token}/", Host=host))[0] == 200
    async with site.socket(Host=host, Origin=f"http://{host}") as socket:
        assert await said(socket, "told")


async def said(socket: ClientWebSocketResponse, text: str) -> str:
    """The end of what came until ``text`` was in it."""
    found = ""
    async with asyncio.timeout(PATIENCE):
        while text not in found:
            message = await socket.receive()
            assert message.type is WSMsgType.BINARY, message
            found = found[-10_000:] + message.data.decode()
    return found


async def test_a_page_types_and_resizes_and_no_more(site: Site) -> None:
    async with site.socket() as socket:
        await said(socket, "told")
        await socket.send_json(["stdin", "hello é"])
        await said(socket, "typed hello é")
        await socket.send_json(["resize", {"width": 10**9, "height": 7}])
        assert f'"width": {MOST_CELLS}, "height": 7' in await said(socket, "height")
        await socket.send_json(["ping", "5"])
        assert json.loads((await socket.receive()).data) == ["pong", "5"]
    for wrong in (
        '["quit"]',
        '["attach", {}]',
        '{"type": "quit"}',
        "x",
        "[]",
        '["resize", {"width": -1, "height": 2}]',
    ):
        async with site.socket() as socket:
            await said(socket, "meta")
            await socket.send_str(wrong)
            async with asyncio.timeout(PATIENCE):
                while (message := await socket.receive()).type is WSMsgType.BINARY:
                    assert b'"quit"' not in message.data
            assert message.type is WSMsgType.CLOSE, wrong
    assert site.chat.running


async def test_a_page_that_does_not_read_holds_nothing_up(site: Site) -> None:
    async with site.socket() as slow:
        await said(slow, "told")
        await slow.send_json(["stdin", "much"])
        # It reads nothing more. The next one gets the chat, which was not kept waiting.
        async with site.socket() as quick:
            await said(quick, "all of it")
            await quick.send_json(["stdin", "still there"])
            await said(quick, "typed still there")


def test_which_hosts_are_of_this_machine_alone() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.2", "example.com"))
    assert len({Gate("127.0.0.1").token for _ in range(3)}) == 3
    assert len(Gate("127.0.0.1").token) >= 43


@every("host", ["me@localhost", "localhost:80", "localhost/x", "a b", "", "http://localhost", "[::1"])
def test_what_is_no_host_is_not_listened_on(host: str) -> None:
    with pytest.raises(AgentError, match="--host takes"):
        Gate(host)
