"""Servers that break the protocol: the call fails, the entry is left out, the server stays."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.config import McpServer
from agent_tui.errors import ToolError
from agent_tui.tools.mcp.connection import CallFailed, Connection
from agent_tui.tools.mcp.protocol import ServerChange
from tests.support.mcp_managers import call, detail, running, states
from tests.support.starting import may_start
from tests.support.tool_context import make_context
from tests.support.waiting import PATIENCE
from tests.tools.mcp.mcp_faulty import RESULTS

FAULTY = str(Path(__file__).with_name("mcp_faulty.py"))


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


@pytest.mark.forms(1)
@pytest.mark.usefixtures("forked_host")
async def test_what_breaks_the_protocol_is_the_fault_of_that_answer_alone(tmp_path: Path, server: McpServer) -> None:
    context = make_context(tmp_path / "p")
    async with running(tmp_path, {"faulty": server}) as manager:
        await manager.settled()
        assert states(manager) == {"faulty": "connected"}, detail(manager, "faulty")
        named = {tool.schema.name for tool in manager.tools()}
        assert named >= {f"mcp__faulty__{name}" for name in ("good", "nonsense", "refuse", *RESULTS)}
        left_out = "one without a name (invalid), bad_schema (invalid), one without a name (invalid)"
        count = len(RESULTS) + 3
        assert detail(manager, "faulty") == f"{count} tools; left out: research (runs only as a task), {left_out}"
        with pytest.raises(ToolError, match=r"too many today \(code 'E_LIMIT'\)"):
            await call(manager, context, "mcp__faulty__refuse")
        with pytest.raises(ToolError):
            await call(manager, context, "mcp__faulty__nonsense")
        assert (await call(manager, context, "mcp__faulty__good")).text == "fine"
        for name, text in PASSED_ON.items():
            result = await call(manager, context, f"mcp__faulty__{name}")
            assert (name, result.text, result.is_error) == (name, text, False)
        assert states(manager) == {"faulty": "connected"}


MISFIT = "[The result does not fit the output schema that the server gave"
STRUCTURED = '{\n "count": 2\n}'
PASSED_ON = {
    "empty_schema": "ran",
    "no_schema": "ran",
    "beside": f"Two.\n{STRUCTURED}",
    "twice": '{"count": 2}',
    "alone": STRUCTURED,
    "no_content": STRUCTURED,
    "misfit": f"Some.\n{MISFIT}: 'some' is not of type 'integer']\n{{\n \"count\": \"some\"\n}}",
    "unstructured": f"Plain.\n{MISFIT}: Tool unstructured has an output schema but did not return structured content]",
    "no_object": "[1, 2]",
    "unknown_part": '[a part of the unknown type \'video\']\n{"type": "video", "url": "v"}\nSeen.',
    "as_text": "Just text.",
    "broken_part": '[a part that cannot be read]\n{"type": "text"}\n[a part that cannot be read]\nnull\nRest.',
}


class Strange:
    """A client whose answers the SDK let through, and which have nothing that is read in them."""

    async def answer(self, *_: object, **__: object) -> object:
        return object()

    call_tool = read_resource = get_prompt = answer


async def test_a_result_that_cannot_be_read_is_a_failure_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: McpServer
) -> None:
    told: asyncio.Queue[ServerChange] = asyncio.Queue()
    looked: list[object] = []
    connection = Connection("one", server, told.put_nowait, may_start(server, tmp_path))
    try:
        async with asyncio.timeout(PATIENCE):
            while (await told.get()).state == "starting":
                continue
        strange = Strange()
        monkeypatch.setattr(connection, "_client", strange)
        monkeypatch.setattr(connection, "_verify", looked.append)
        for ask in (connection.call("a", {}, looked.append), connection.read("x:y"), connection.prompt("p", {})):
            with pytest.raises(CallFailed, match="The MCP server one failed: AttributeError"):
                await ask
        assert looked == [strange] * 3
    finally:
        monkeypatch.undo()
        await connection.close()
