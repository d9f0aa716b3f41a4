"""Servers, hosts and parents that end or hang: what is told, what comes back, and that nothing is left."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from agent_tui.config import McpServer
from agent_tui.errors import AgentError, ToolError
from agent_tui.models.usage import Limits
from agent_tui.tools.mcp.asking import nobody
from agent_tui.tools.mcp.config import ProjectServers
from agent_tui.tools.mcp.transport import CLOSED, Link, was_closed
from tests.support.every import every
from tests.support.mcp_managers import call, detail, running, state, states
from tests.support.mcp_servers import SERVER, stdio
from tests.support.tool_context import make_context
from tests.support.waiting import Bell, ended
from tests.support.waiting import running as alive


@pytest.mark.usefixtures("forked_host", "forked_servers")
async def test_a_bad_server_harms_no_other(tmp_path: Path) -> None:
    servers = {
        "good": stdio(),
        "missing": McpServer(command="/nowhere/at-all"),
        "folder": stdio(cwd="not-there"),
        "broken": stdio("--complain", "the config \x1b[31mis wrong: s3cr3t-value", env={"KEY": "s3cr3t-value"}),
        "silent": McpServer(command="sleep", args=["60"], timeout=0.5),
        "chatty": McpServer(command=sys.executable, args=["-c", "print('hello'); print('{}')"], timeout=5),
        "off": stdio(enabled=False),
        "both": McpServer(command="x", url="http://x"),
        "unset": McpServer(url="http://127.0.0.1:1/${NOT_SET_ANYWHERE}"),
        "closed": McpServer(url="http://127.0.0.1:1/mcp", timeout=5),
    }
    told: dict[str, str] = {}
    async with running(tmp_path, servers) as manager:
        manager.on_failure(told.__setitem__)
        await manager.settled()
        found = states(manager)
        assert found.pop("good") == "connected" and found.pop("off") == "disabled"
        assert set(found.values()) == {"failed"}
        assert detail(manager, "missing") == "/nowhere/at-all: no such program or folder"
        assert "not-there" in detail(manager, "folder")
        assert detail(manager, "broken") == "the server exited, saying: the config is wrong: [secret]"
        assert "no answer within 0.5 s" in detail(manager, "silent")
        assert "both command and url" in detail(manager, "both")
        assert "NOT_SET_ANYWHERE is not set" in detail(manager, "unset")
        assert detail(manager, "closed")
        assert {"missing", "broken", "silent", "chatty", "closed"} <= set(told)
        assert (await call(manager, make_context(tmp_path / "p"), "mcp__good__add", a=1, b=1)).text == "2"


@pytest.mark.usefixtures("forked_host", "forked_servers")
async def test_a_slow_server_does_not_hold_up_the_others(tmp_path: Path, bell: Callable[[str], Bell]) -> None:
    go = bell("go")
    async with running(tmp_path, {"slow": stdio("--wait-for", str(go)), "fast": stdio()}) as manager:
        await manager.settled("fast")
        assert states(manager) == {"fast": "connected", "slow": "starting"}
        go.ring()
        await manager.settled()
        assert states(manager)["slow"] == "connected"


@pytest.mark.usefixtures("forked_host", "forked_servers")
async def test_a_server_killed_in_mid_call_gives_an_error_and_comes_back(tmp_path: Path) -> None:
    context = make_context(tmp_path / "project")
    async with running(tmp_path, {"test": stdio(), "other": stdio()}) as manager:
        await manager.settled()
        names = [t.schema.name for t in manager.tools()]
        with pytest.raises(ToolError, match="test failed: the server exited, saying: about to die"):
            await call(manager, context, "mcp__test__die")
        assert [t.schema.name for t in manager.tools()] == names
        await state(manager, "test", "starting")
        assert "reconnecting" in detail(manager, "test")
        # A call waits for a server that is on its way.
        assert (await call(manager, context, "mcp__test__add", a=1, b=2)).text == "3"
        assert states(manager) == {"test": "connected", "other": "connected"}
        assert (await call(manager, context, "mcp__test__add", a=1, b=1)).text == "2"


async def test_nothing_is_started_without_servers(tmp_path: Path) -> None:
    async with running(tmp_path, {"off": McpServer(command="x", enabled=False)}) as manager:
        await manager.settled()
        assert (
            manager._host.pid is None
            and manager.tools() == []
            and manager.offered(Limits(None, None, None, "unknown")) == []
        )
        with pytest.raises(AgentError, match="There are: off"):
            await manager.reconnect("nope")
        assert await manager.reconnect("off") == "off is disabled: enabled = false"


@pytest.mark.slow
@pytest.mark.usefixtures("forked_host", "forked_servers")
async def test_reconnect_starts_a_failed_server(tmp_path: Path) -> None:
    script = tmp_path / "later.py"
    async with running(tmp_path, {"later": McpServer(command=sys.executable, args=[str(script)])}) as manager:
        await manager.settled()
        assert states(manager) == {"later": "failed"}
        script.write_text(f"import runpy, sys; sys.argv = ['x']; runpy.run_path({SERVER!r}, run_name='__main__')")
        assert (await manager.reconnect("later")).startswith("later is connected")


@pytest.mark.slow
async def test_nothing_is_left_after_closing(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    async with running(tmp_path, {"bad": stdio("--stubborn", "--pid-file", str(pid_file)), "good": stdio()}) as manager:
        await manager.settled()
        host, pid = manager._host.pid, int(pid_file.read_text())
        assert host is not None and alive(pid)
    await ended(host, pid)


@pytest.mark.slow
async def test_a_killed_host_is_started_again_and_leaves_no_server_behind(
    tmp_path: Path, bell: Callable[[str], Bell]
) -> None:
    pid_file = tmp_path / "pid"
    context = make_context(tmp_path / "p")
    async with running(tmp_path, {"bad": stdio("--stubborn", "--pid-file", str(pid_file))}) as manager:
        await manager.settled()
        host, pid = manager._host.pid, int(pid_file.read_text())
        assert host is not None
        started = bell("started")
        hanging = call(manager, context, "mcp__bad__hang", started=str(started), cancelled=str(tmp_path / "c"))
        task = asyncio.create_task(hanging)
        await started.rung()
        os.kill(host, signal.SIGKILL)
        with pytest.raises(ToolError, match="tool host exited"):
            await task
        await ended(pid)
        await state(manager, "bad", "starting")
        await manager.settled()
        assert manager._host.pid not in (None, host)
        assert (await call(manager, context, "mcp__bad__add", a=1, b=1)).text == "2"


PARENT = """
import asyncio, sys
from pathlib import Path
from agent_tui.config import McpServer, ToolsConfig
from agent_tui.tools.mcp.config import ProjectServers
from agent_tui.tools.mcp.manager import McpManager
from agent_tui.tools.starter import Starter

async def main():
    folder = Path(sys.argv[-1]).parent
    starter = Starter(folder, folder / "bytecode", lambda files: [], lambda: True)
    server = McpServer(command=sys.executable, args=sys.argv[1:])
    manager = McpManager({"test": server}, ToolsConfig(), folder, ProjectServers(), starter=lambda: starter)
    manager.start(lambda: None)
    await manager.settled()
    heavy = {"mcp", "mcp_types", "litellm", "tiktoken", "openai", "httpx", "httpx2", "textual", "pydantic"}
    print(manager._host.pid, manager.servers(), sorted(heavy & set(sys.modules)), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_killed_parent_leaves_nothing_behind_and_never_imports_mcp(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, SERVER, "--stubborn", "--pid-file", str(pid_file), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        said = (await process.stdout.readline()).decode()
        assert "'connected'" in said and said.rstrip().endswith("[]"), said
        host, pid = int(said.split()[0]), int(pid_file.read_text())
        process.kill()
        await process.wait()
        await ended(host, pid)


@every("words", CLOSED)
def test_a_death_is_told_in_one_way_whatever_the_sdk_saw_first(words: str) -> None:
    import mcp.client.streamable_http
    import mcp.shared.jsonrpc_dispatcher

    sources = [inspect.getsource(mcp.client.streamable_http), inspect.getsource(mcp.shared.jsonrpc_dispatcher)]
    assert any(f'"{words}' in text for text in sources), "the SDK says it in other words now"
    error = MCPError(CONNECTION_CLOSED, f"{words}it broke" if words.endswith(" ") else words)
    assert was_closed(error) and not was_closed(MCPError(-32603, words))
    link = Link("web", McpServer(url="http://127.0.0.1:1/mcp"), lambda: None, sse=False, ask=nobody)
    assert link.reason(error) == "the connection ended"


def test_a_servers_own_words_are_not_its_death() -> None:
    assert not was_closed(MCPError(CONNECTION_CLOSED, "SSE stream ended, said the server"))
    assert not was_closed(MCPError(CONNECTION_CLOSED, "database closed"))


@pytest.mark.usefixtures("forked_host", "forked_servers")
async def test_a_server_that_hangs_while_it_starts_can_be_given_up(tmp_path: Path, bell: Callable[[str], Bell]) -> None:
    begun, never = bell("begun"), bell("never")
    async with running(tmp_path, {"slow": stdio("--pid-file", str(begun), "--wait-for", str(never))}) as manager:
        await begun.rung()
        manager.reload({}, ProjectServers())
        await manager.settled()
        assert manager.servers() == []
        manager.reload({"slow": stdio(), "other": stdio()}, ProjectServers())
        await manager.settled()
        assert states(manager) == {"slow": "connected", "other": "connected"}
