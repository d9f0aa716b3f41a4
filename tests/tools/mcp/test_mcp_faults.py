"""Servers that break the protocol: the call fails, the entry is left out, the server stays."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.config import McpServer
from agent_tui.errors import ToolError
from tests.support.mcp_managers import call, detail, running, states
from tests.support.tool_context import make_context

FAULTY = str(Path(__file__).parents[2] / "support" / "mcp_faulty.py")


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> Iterator[McpServer]:
    if request.param == "stdio":
        yield McpServer(command=sys.executable, args=[FAULTY])
        return
    with subprocess.Popen([sys.executable, FAULTY, "--http"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield McpServer(url=f"http://127.0.0.1:{port}/mcp")
        process.kill()


@pytest.mark.usefixtures("forked_host")
async def test_what_breaks_the_protocol_is_the_fault_of_that_answer_alone(tmp_path: Path, server: McpServer) -> None:
    context = make_context(tmp_path / "p")
    async with running(tmp_path, {"faulty": server}) as manager:
        await manager.settled()
        assert states(manager) == {"faulty": "connected"}, detail(manager, "faulty")
        assert [tool.schema.name for tool in manager.tools()][:3] == [
            f"mcp__faulty__{name}" for name in ("good", "nonsense", "refuse")
        ]
        assert (
            detail(manager, "faulty")
            == "3 tools; left out, not valid: one without a name, bad_schema, one without a name"
        )
        with pytest.raises(ToolError, match=r"too many today \(code 'E_LIMIT'\)"):
            await call(manager, context, "mcp__faulty__refuse")
        with pytest.raises(ToolError):
            await call(manager, context, "mcp__faulty__nonsense")
        assert (await call(manager, context, "mcp__faulty__good")).text == "fine"
        assert states(manager) == {"faulty": "connected"}
