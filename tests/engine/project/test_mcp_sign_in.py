"""``/mcp login``: what the user sees of a sign-in, in the chat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_tui.commands import registry
from agent_tui.commands.info import Info
from agent_tui.config import McpServer, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.extensions import Extensions
from agent_tui.errors import AgentError
from agent_tui.models.events import Notice
from agent_tui.tools.mcp.manager import McpManager
from tests.support.agents import Recorder, parts_for, running
from tests.support.lazily import LazyModule
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from tests.support.oauth_server import OAuthServer

sign_ins = LazyModule("tests.support.oauth_server")

pytestmark = pytest.mark.usefixtures("forked_host")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OAuthServer]:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    with sign_ins.oauth_server() as made:
        yield made


@asynccontextmanager
async def started(tmp_path: Path, server: OAuthServer) -> AsyncIterator[tuple[Agent, Recorder]]:
    project = tmp_path / "project"
    project.mkdir()
    settings = Settings(permissions=PermissionsConfig(mode="auto"))
    settings.mcp = {"docs": McpServer(url=f"{server.url}/mcp", timeout=PATIENCE), "local": McpServer(command="/none")}
    parts = parts_for(tmp_path / "home", project, script="", settings=settings)
    extensions = Extensions(
        settings, parts.paths, parts.permissions.files, project, parts.trust, home=tmp_path / "home"
    )
    parts.extensions, parts.extra_tools = extensions, extensions.tools
    async with asyncio.timeout(60), running(parts) as (agent, recorder):
        await extensions.mcp.settled()
        yield agent, recorder


def notices(recorder: Recorder) -> list[tuple[str, str]]:
    return [(notice.level, notice.text) for notice in recorder.of(Notice) if "MCP server docs" in notice.text]


async def info(agent: Agent, line: str) -> Info:
    result = await registry.run(agent, line)
    assert isinstance(result, Info)
    return result


@pytest.mark.forms(1)
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_sign_in_in_the_chat(tmp_path: Path, server: OAuthServer, elsewhere: bool) -> None:
    async with started(tmp_path, server) as (agent, recorder):
        assert notices(recorder)[0][1].startswith("MCP server docs: it asks you to sign in: /mcp login docs")
        keys = {row.key: row.keys for row in (await info(agent, "/mcp")).rows}
        assert keys == {"docs": ("r", "s", "o"), "local": ("r",)}

        shown = await info(agent, "/mcp login docs")
        address = shown.rows[0].text
        assert shown.sections[0].title == "Open this address in a browser:"
        assert address.startswith(f"{server.url}/authorize?")
        assert await registry.run(agent, "/mcp address docs") == registry.Copy(address, "the address")
        if elsewhere:
            ended = await sign_ins.browse_elsewhere(address)
            assert isinstance(await registry.run(agent, f"/mcp login docs {ended}"), registry.Text)
        else:
            assert "You can close this page" in await sign_ins.browse(address)
        await recorder.until(lambda: len(notices(recorder)) > 1)
        level, text = notices(recorder)[1]
        assert level == "info" and text.startswith("MCP server docs is connected: 2 tools; the token is kept in ")
        assert "mcp__docs__add" in {name for name, *_ in agent.project.tools()}

        gone = await registry.run(agent, "/mcp logout docs")
        assert isinstance(gone, registry.Text) and gone.text.startswith("Signed out of docs")


async def test_the_end_of_a_sign_in_leaves_the_address_of_a_later_one(
    tmp_path: Path, server: OAuthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[asyncio.Event] = []

    async def sign_in(self: McpManager, name: str, show: Callable[[str], None]) -> str:
        ended = asyncio.Event()
        begun.append(ended)
        show(f"https://docs.example/{len(begun)}")
        await ended.wait()
        return "docs is connected"

    monkeypatch.setattr(McpManager, "sign_in", sign_in)
    async with started(tmp_path, server) as (agent, recorder):
        for number in (1, 2):
            assert await agent.project.mcp_sign_in("docs") == f"https://docs.example/{number}"
        begun[0].set()
        await recorder.until(lambda: len(notices(recorder)) == 2)
        assert agent.project.sign_in_addresses == {"docs": "https://docs.example/2"}
        begun[1].set()
        await recorder.until(lambda: len(notices(recorder)) == 3)
        assert agent.project.sign_in_addresses == {}


@pytest.mark.forms(2)
@pytest.mark.parametrize("ended", ["failed", "closed", "closed at once"])
async def test_a_sign_in_that_ends_without_an_address_is_not_waited_for(
    tmp_path: Path, server: OAuthServer, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    begun = asyncio.Event()

    async def sign_in(self: McpManager, name: str, show: Callable[[str], None]) -> str:
        begun.set()
        if ended == "failed":
            raise RuntimeError("a bug")
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(McpManager, "sign_in", sign_in)
    async with started(tmp_path, server) as (agent, _):
        asked = asyncio.ensure_future(registry.run(agent, "/mcp login docs"))
        await (asyncio.sleep(0) if ended == "closed at once" else begun.wait())
        if ended != "failed":
            await agent.events.close()
        with pytest.raises(AgentError, match="MCP server docs: the sign-in ended before there was an address"):
            await asked


async def test_who_no_longer_waits_for_the_address_ends_the_sign_in(
    tmp_path: Path, server: OAuthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def sign_in(self: McpManager, name: str, show: Callable[[str], None]) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    monkeypatch.setattr(McpManager, "sign_in", sign_in)
    async with started(tmp_path, server) as (agent, recorder):
        asked = asyncio.ensure_future(registry.run(agent, "/mcp login docs"))
        await begun.wait()
        asked.cancel()
        await ended.wait()
        assert asked.cancelled() and len(notices(recorder)) == 1


async def test_a_sign_in_that_fails_is_one_line(tmp_path: Path, server: OAuthServer) -> None:
    async with started(tmp_path, server) as (agent, recorder):
        with pytest.raises(AgentError, match="local has no sign-in: it has no url"):
            await registry.run(agent, "/mcp login local")
        server.denies = True
        await sign_ins.browse((await info(agent, "/mcp login docs")).rows[0].text)
        await recorder.until(lambda: len(notices(recorder)) > 1)
        assert notices(recorder)[1] == ("warning", "MCP server docs: the sign-in was refused: You said no")
        assert agent.project.sign_in_addresses == {}
        server.answers["/register"] = 403, {}, b"<html>no</html>"
        (tmp_path / "home" / "data" / "mcp-tokens.json").unlink(missing_ok=True)
        with pytest.raises(AgentError, match=r"it lets no program register itself \(HTTP 403\)"):
            await registry.run(agent, "/mcp login docs")
