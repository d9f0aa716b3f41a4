"""Commands in the background under every sandbox there is here: held as others are, and kept with what they need."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import SandboxConfig
from agent_tui.tools.background.jobs import Jobs
from agent_tui.tools.background.starting import UNREACHABLE
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.builtin.jobs import JobsTool
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from tests.support import sandbox_world as world
from tests.support.tool_context import make_context
from tests.support.waiting import PATIENCE

SERVER = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print("port", server.getsockname()[1], flush=True)
client = server.accept()[0]
client.sendall(b"served")
client.close()
"""


@pytest.fixture
def base() -> Iterator[Path]:
    base = Path("/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}"
    base.mkdir()
    yield base.resolve()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
async def held() -> AsyncIterator[Jobs]:
    jobs = Jobs()
    yield jobs
    await jobs.close()


@pytest.fixture(params=["bubblewrap", "Landlock"])
def context(request: pytest.FixtureRequest, base: Path, held: Jobs) -> ToolContext:
    backend = world.available(base).get(request.param, "not on this system")
    if isinstance(backend, str):
        pytest.skip(backend)
    world.make_repository(base / "project")
    jail = Jail(SandboxConfig(), base / "project", base / "cache")
    jail.sandbox = Sandbox(backend, frozenset(("look", "work")))
    return replace(make_context(base / "project"), jail=jail, domain="work", jobs=held)


async def start(context: ToolContext, command: str) -> str:
    return (await BashTool().run({"command": command, "background": True}, context)).text


async def until(context: ToolContext, word: str) -> str:
    """The output of the first one, once ``word`` is in it."""
    said = ""
    async with asyncio.timeout(PATIENCE):
        while word not in said:
            said += (await JobsTool().run({"id": "b1", "wait": 0.02}, context)).text
    return said


async def test_it_is_held_and_what_it_may_not_is_undone_and_said(context: ToolContext) -> None:
    await start(context, "touch /usr/x; echo evil > .envrc; echo $TMPDIR; env | grep -c API_KEY; exit 1")
    said = (await JobsTool().run({"id": "b1", "wait": PATIENCE}, context)).text
    assert "[sandbox: /usr/x: not allowed here" in said and ".envrc taken away again" in said
    assert not (context.root / ".envrc").exists() and "exit code 1]" in said


async def test_a_server_is_reached_as_far_as_the_network_is_open(context: ToolContext) -> None:
    (context.root / "server.py").write_text(SERVER)
    command = f"exec {sys.executable} -I server.py"
    assert UNREACHABLE in await start(context, "true") and UNREACHABLE in await start(
        replace(context, domain="look"), "true"
    )
    assert context.jobs is not None
    opened = await start(replace(context, network="allow"), command)
    assert UNREACHABLE not in opened
    job = context.jobs.all()[-1]
    while "port" not in job.info.last_line:
        assert not await job.ended(0.02), job.look()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(job.info.last_line.split()[1]))
    assert await reader.read() == b"served"
    writer.close()


async def test_one_that_is_kept_keeps_its_temporary_files_until_it_ends(context: ToolContext, held: Jobs) -> None:
    os.mkfifo(context.root / "hold")
    await start(context, "touch $TMPDIR/mine; echo made; cat hold")
    await until(context, "made")
    jail = context.jail
    assert jail is not None
    mine = jail.policy().temporary / "mine"
    held.keep("b1")
    (left,) = await held.close()
    jail.close()
    assert mine.exists()
    os.kill(left.pid, signal.SIGTERM)
    await asyncio.to_thread(os.waitpid, left.pid, 0)  # it is this process that let it go and goes on
    jail.close()
    assert not mine.exists() and list(jail.policy().scratch.glob("held-*")) == []
