"""MCP servers at an address."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from agent_tui.config import McpServer
from agent_tui.errors import ToolError
from tests.support.mcp_managers import Changes, call, detail, running, serve_http, state, states
from tests.support.tool_context import make_context
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("forked_host", "forked_servers")


@pytest.mark.slow
async def test_streamable_http(tmp_path: Path) -> None:
    server, port = await serve_http()
    changes = Changes()
    context = make_context(tmp_path / "project")
    try:
        web = McpServer(url=f"http://127.0.0.1:{port}/mcp", timeout=PATIENCE)
        async with running(tmp_path, {"web": web}, changed=changes) as manager:
            await manager.settled()
            assert states(manager) == {"web": "connected"}
            assert (await call(manager, context, "mcp__web__add", a=20, b=3)).text == "23"
            await call(manager, context, "mcp__web__grow")
            await changes.tool(manager, "mcp__web__extra")
            # Whether the answer's stream or the connection is seen to end first is the system's choice.
            with pytest.raises(ToolError, match="web failed"):
                await call(manager, context, "mcp__web__die")
            await server.wait()
            await state(manager, "web", "starting", "failed")
            server, _ = await serve_http(port)
            await manager.reconnect("web")
            assert (await call(manager, context, "mcp__web__add", a=1, b=1)).text == "2"
    finally:
        if server.returncode is None:
            server.kill()
        await server.wait()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sse", ""])
async def test_the_older_sse_is_spoken_where_it_is_named_or_all_a_server_knows(
    tmp_path: Path, kind: Literal["sse", ""]
) -> None:
    server, port = await serve_http(0, "--sse")
    changes = Changes()
    context = make_context(tmp_path / "project")
    try:
        web = McpServer(url=f"http://127.0.0.1:{port}/sse", type=kind, timeout=PATIENCE)
        async with running(tmp_path, {"web": web}, changed=changes) as manager:
            await manager.settled()
            assert states(manager) == {"web": "connected"}, detail(manager, "web")
            assert (await call(manager, context, "mcp__web__add", a=20, b=3)).text == "23"
            await call(manager, context, "mcp__web__grow")
            await changes.tool(manager, "mcp__web__extra")
            server.kill()
            await state(manager, "web", "starting", "failed")
            await server.wait()
            server, _ = await serve_http(port, "--sse")
            await manager.reconnect("web")
            assert (await call(manager, context, "mcp__web__add", a=1, b=1)).text == "2"
    finally:
        if server.returncode is None:
            server.kill()
        await server.wait()


@pytest.mark.forms(1)
@pytest.mark.parametrize("kind", ["sse", "http"])
async def test_an_address_that_speaks_otherwise_is_a_failed_server(
    tmp_path: Path, kind: Literal["sse", "http"]
) -> None:
    server, port = await serve_http(0, *(["--sse"] if kind == "http" else []))
    try:
        wrong = McpServer(url=f"http://127.0.0.1:{port}/{'mcp' if kind == 'sse' else 'sse'}", type=kind, timeout=10)
        async with running(tmp_path, {"web": wrong}) as manager:
            await manager.settled()
            assert states(manager) == {"web": "failed"}
            assert "it answered HTTP 40" in detail(manager, "web")
    finally:
        server.kill()
        await server.wait()


async def test_http_refusals_are_said_in_words(tmp_path: Path) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.append(1)
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    asked: list[int] = []
    listening = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server = McpServer(url=f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "Bearer wrong"}, timeout=10)
    try:
        async with running(tmp_path, {"web": server}) as manager:
            await manager.settled()
            assert states(manager) == {"web": "failed"} and asked
            assert "needs authorization (HTTP 401)" in detail(manager, "web")
    finally:
        listening.close()
