"""Commands in the background under every sandbox there is here: held as others are, and kept with what they need."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import SandboxConfig
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin.bash import BashTool, JobsTool
from agent_tui.tools.children.jobs import PORTS, Jobs
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.network import session_network
from agent_tui.tools.sandbox.processes import descendants
from tests.support import sandbox_world as world
from tests.support.tool_context import make_context
from tests.support.waiting import PATIENCE

SERVER = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print("port", server.getsockname()[1], "open", flush=True)
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


@pytest.fixture
def context(sandbox: Sandbox, base: Path, held: Jobs) -> ToolContext:
    world.make_repository(base / "project")
    jail = Jail(SandboxConfig(), base / "project", base / "cache", sandbox=sandbox)
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
    assert "[sandbox: /usr/x: not allowed here" in said and ".envrc removed" in said
    assert not (context.root / ".envrc").exists() and "exit code 1]" in said


async def test_a_server_is_reached_as_far_as_the_network_is_open(context: ToolContext) -> None:
    (context.root / "server.py").write_text(SERVER)
    command = f"exec {sys.executable} -I server.py"
    shares = context.jail is not None and context.jail.shares()
    assert PORTS["sandbox" if shares else "itself"] in await start(context, "true") and PORTS["itself"] in await start(
        replace(context, domain="look"), "true"
    )
    assert context.jobs is not None
    opened = await start(replace(context, network="allow"), command)
    assert PORTS["itself"] not in opened and PORTS["sandbox"] not in opened
    job = context.jobs.all()[-1]
    while "open" not in job.info.last_line:
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


REACH = """
import socket, sys
try:
    print(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5).recv(10).decode())
except OSError:
    print("not reached")
"""
ABSTRACT = """
import socket
server = socket.socket(socket.AF_UNIX)
server.bind("\\0agent-tui-test")
server.listen()
print("port", 0, "open", flush=True)
server.accept()
"""


async def serving(context: ToolContext, code: str = SERVER) -> int:
    """Starts a server in the background; its port, once it listens."""
    if context.jail is None or not context.jail.has_ports():
        pytest.skip("no ports here")
    (context.root / "server.py").write_text(code)
    assert context.jobs is not None
    await start(context, f"exec {sys.executable} -I server.py")
    job = context.jobs.all()[-1]
    while "open" not in job.info.last_line:
        assert not await job.ended(0.02), job.look()
    return int(job.info.last_line.split()[1])


async def reached(context: ToolContext, port: int) -> str:
    (context.root / "reach.py").write_text(REACH)
    return (await BashTool().run({"command": f"{sys.executable} -I reach.py {port}"}, context)).text


async def test_a_server_is_there_for_later_commands_and_for_nobody_else(context: ToolContext, base: Path) -> None:
    port = await serving(context)
    assert await reached(replace(context, domain="look"), port) == "not reached"
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", port)
    other = Jail(SandboxConfig(), base / "project", base / "other")
    assert context.jail is not None
    other.sandbox = context.jail.sandbox
    assert await reached(replace(context, jail=other), port) == "not reached"
    if not context.jail.shares():
        pytest.skip("nothing is shared here")
    assert await reached(replace(context, network="deny"), port) == "served"


async def test_where_nothing_is_shared_every_command_has_its_own(context: ToolContext) -> None:
    assert context.jail is not None and context.jail.sandbox is not None
    context.jail.sandbox = replace(context.jail.sandbox, shares=False)
    assert PORTS["itself"] in await start(context, "true")
    assert await reached(context, await serving(context)) == "not reached"


async def test_ports_that_are_switched_off_are_not_shared(context: ToolContext) -> None:
    assert context.jail is not None
    context.jail.config = SandboxConfig(loopback="deny")
    assert PORTS["itself"] in await start(context, "true")


async def test_the_shared_network_gives_a_command_nothing_to_change_it_with(context: ToolContext) -> None:
    """Whoever made it owns it: a command has neither rights in it nor a descriptor that leads back."""
    said = (await BashTool().run({"command": "grep CapEff /proc/self/status; ls /proc/self/fd | wc -l"}, context)).text
    rights, descriptors = said.splitlines()
    assert int(rights.split()[1], 16) & (1 << 12 | 1 << 13 | 1 << 21) == 0
    assert descriptors == "4"  # three, and the one that ls reads the folder by


async def test_sockets_without_a_file_stay_in_the_session(context: ToolContext) -> None:
    jail = context.jail
    assert jail is not None and jail.sandbox is not None and jail.sandbox.backend is not None
    if not jail.sandbox.backend.own_tmp:
        pytest.skip("unix sockets are refused altogether")
    await serving(context, ABSTRACT)
    with socket.socket(socket.AF_UNIX) as one, pytest.raises(ConnectionRefusedError):
        one.connect("\0agent-tui-test")


def _open() -> set[Path]:
    return {fd for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_shared_network_is_kept_by_nothing_that_runs() -> None:
    """So it cannot outlive the program, however that ends."""
    before = _open()
    children = set(descendants(os.getpid()))
    network = session_network()
    if network is None:
        pytest.skip("this system has none")
    assert set(descendants(os.getpid())) <= children
    opened = [fd.readlink().name for fd in _open() - before]
    assert any(name.startswith("net:") for name in opened)
    assert not any(os.get_inheritable(fd) for fd in network._fds)
    del network
    assert _open() <= before
