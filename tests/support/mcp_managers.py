"""A manager with the MCP servers of a test: what it says of them, and calls of their tools."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from agent_tui.config import McpServer, ToolsConfig
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.mcp.config import ProjectServers
from agent_tui.tools.mcp.manager import McpManager
from agent_tui.tools.registry import ToolRegistry
from tests.support.mcp_servers import SERVER, stdio
from tests.support.starting import accepting


@asynccontextmanager
async def running(
    root: Path,
    servers: dict[str, McpServer],
    config: ToolsConfig | None = None,
    changed: Callable[[], None] = lambda: None,
) -> AsyncIterator[McpManager]:
    manager = McpManager(servers, config or ToolsConfig(), root, ProjectServers(), starter=lambda: accepting(root))
    manager.start(changed)
    try:
        async with asyncio.timeout(60):
            yield manager
    finally:
        await manager.close()


def states(manager: McpManager) -> dict[str, str]:
    return {name: state for name, state, _ in manager.servers()}


def detail(manager: McpManager, name: str) -> str:
    return next(detail for n, _, detail in manager.servers() if n == name)


async def call(manager: McpManager, context: ToolContext, name: str, /, **arguments: object) -> ToolOutcome:
    tool = ToolRegistry([], manager.tools).get(name)
    return await tool.run(arguments, context)


async def state(manager: McpManager, name: str, *wanted: str) -> None:
    """Waits until the tool host has told that a server is in one of these states."""
    while states(manager)[name] not in wanted:
        told = asyncio.Event()
        manager._waiters.append(told)
        await told.wait()


async def known(manager: McpManager, tool: str) -> None:
    """Waits until the tool host has told of a tool."""
    while not any(t.schema.name == tool for t in manager.tools()):
        told = asyncio.Event()
        manager._waiters.append(told)
        await told.wait()


class Changes:
    """What a manager calls when its tools change."""

    def __init__(self) -> None:
        self.count = 0
        self._news = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        self._news.set()

    async def tool(self, manager: McpManager, name: str) -> None:
        """Waits until there is a tool."""
        while not any(t.schema.name == name for t in manager.tools()):
            self._news.clear()
            await self._news.wait()


async def serve_http(port: int = 0, *more: str, script: str = SERVER) -> tuple[asyncio.subprocess.Process, int]:
    """A server and its port. The socket listens before the server runs: who connects waits, nobody is refused."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        server = stdio("--http", "0", *more, script=script)
        process = await asyncio.create_subprocess_exec(
            *(server.command or "", *server.args),
            stdin=listening.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return process, listening.getsockname()[1]
