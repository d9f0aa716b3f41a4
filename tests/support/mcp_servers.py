"""How tests start the MCP server ``mcp_server.py``: as a process of its own, or forked from a nursery."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agent_tui.config import McpServer
from tests.support.nursery import stand_in

SERVER = str(Path(__file__).with_name("mcp_server.py"))
ASKING = str(Path(__file__).with_name("mcp_asking.py"))
HOSTILE = str(Path(__file__).with_name("mcp_hostile.py"))
"""A server that asks, and one that means ill."""
PREPARE_SERVER = (
    "import uvicorn, mcp.server.mcpserver, mcp.server.stdio, mcp.shared.exceptions, mcp_types\n"
    "import anyio._backends._asyncio, rich.console, rich.logging"
)

_nurseries: list[str] = []


@contextlib.contextmanager
def servers_from(address: str) -> Iterator[None]:
    """Servers that are configured meanwhile come from the nursery at that address."""
    _nurseries.append(address)
    try:
        yield
    finally:
        _nurseries.pop()


def own(*arguments: str, script: str = SERVER, **fields: object) -> McpServer:
    """A server that is a process of its own, for tests of what becomes of it."""
    return replace(McpServer(command=sys.executable, args=[script, *arguments]), **fields)  # type: ignore[arg-type]


def stdio(*arguments: str, script: str = SERVER, **fields: object) -> McpServer:
    """The server with these arguments; ``fields`` of its configuration are replaced."""
    if not _nurseries:
        return own(*arguments, script=script, **fields)
    command, *rest = stand_in(_nurseries[-1], script, *arguments)
    return replace(McpServer(command=command, args=rest), **fields)  # type: ignore[arg-type]
