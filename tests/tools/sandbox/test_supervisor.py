"""Nothing a command started outlives it, its supervisor or whoever started both."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.children.process import ProcessGroup
from agent_tui.tools.sandbox.policy import free
from agent_tui.tools.sandbox.processes import descendants
from agent_tui.tools.sandbox.start import FOLDER, starter
from tests.support.every import every
from tests.support.forms import one_of
from tests.support.waiting import ended

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

LEAVERS = {
    "background": "sleep {n} & echo ready; wait",
    "nohup": "nohup sleep {n} > /dev/null 2>&1 & echo ready; wait",
    "setsid": "setsid sleep {n} & echo ready; wait",
    "orphan": "(setsid sleep {n} &); echo ready; sleep {n}",
    "double fork": "{py} -c 'import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
    "time.sleep({n})' & echo ready; sleep {n}",
    "deaf": "trap '' TERM HUP INT QUIT; setsid sh -c \"trap '' TERM HUP; sleep {n}; sleep {n}\" & "
    "echo ready; sleep {n}",
    "without environment": "env -i setsid sleep {n} & echo ready; sleep {n}",
    "many": "for i in $(seq 40); do setsid sleep {n} & done; echo ready; wait",
}

PARENT = """
import asyncio, os, sys
from pathlib import Path
from agent_tui.tools.children.process import ProcessGroup
from agent_tui.tools.sandbox.policy import free

async def main():
    groups = []
    for script in sys.argv[1:]:
        group = await ProcessGroup.start(free(["bash", "-c", script], os.environ), Path.cwd())
        while b"ready" not in await group.read():
            pass
        groups.append(group)
    print(*(group.pid for group in groups), flush=True)
    await groups[0].wait()

asyncio.run(main())
"""


@pytest.fixture
def number() -> Iterator[str]:
    """A number of seconds nobody else sleeps, to find processes by. What is left is killed in the end."""
    unique = str(10_000 + uuid.uuid4().int % 10**9)
    yield unique
    for pid in sleeping(unique):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def sleeping(number: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                if number in line and (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                    found.append(int(entry.name))
    return found


def spawned(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


async def gone(number: str) -> None:
    """Waits until nothing with the number runs."""
    while pids := sleeping(number):
        await ended(*pids)


def script(leaver: str, number: str) -> str:
    return LEAVERS[leaver].format(n=number, py=sys.executable)


@pytest.mark.quick
@pytest.mark.parametrize("leaver", LEAVERS)
async def test_the_end_of_a_command_ends_all_of_it(leaver: str, number: str, tmp_path: Path) -> None:
    group = await ProcessGroup.start(free(["bash", "-c", script(leaver, number)], os.environ), tmp_path)
    assert await group.read() == b"ready\n"
    assert sleeping(number)
    await group.end()
    assert sleeping(number) == [] and not group.alive()
    group.close()


@pytest.mark.parametrize("number_of_signal", one_of(["SIGKILL", "SIGHUP", "SIGQUIT", "SIGSEGV"]))
async def test_the_death_of_the_program_ends_all_of_it(number_of_signal: str, number: str, tmp_path: Path) -> None:
    scripts = [script(leaver, number) for leaver in ("setsid", "orphan", "double fork", "deaf", "many")]
    parent = spawned([sys.executable, "-c", PARENT, *scripts], tmp_path)
    assert parent.stdout is not None
    pids = [int(pid) for pid in (await asyncio.to_thread(parent.stdout.readline)).split()]
    assert len(pids) == len(scripts) and sleeping(number)
    parent.send_signal(signal.Signals[number_of_signal])
    await asyncio.to_thread(parent.communicate)
    await gone(number)
    assert not any(Path(f"/proc/{pid}").exists() and descendants(pid) for pid in pids)


KILLERS = {
    "the supervisor": "kill -9 $PPID",
    "the one behind it": "kill -9 $(ps -o ppid= -p $PPID)",
    "both at once": "kill -9 $(ps -o ppid= -p $PPID) $PPID",
    "the supervisor, stopped first": "kill -STOP $PPID; kill -9 $PPID",
}


KILLED = list(product(KILLERS, ["double fork", "setsid", "orphan", "deaf", "without environment", "many"]))


@pytest.mark.forms(1)
@pytest.mark.parametrize(("killer", "leaver"), one_of(KILLED, every=5))
async def test_a_command_that_kills_who_stands_over_it_ends_all_of_itself(
    leaver: str, killer: str, number: str, tmp_path: Path
) -> None:
    if (killer, leaver) == ("both at once", "without environment"):
        pytest.skip("not promised: nothing is left to find it by")
    started = script(leaver, number).replace("echo ready;", "")
    waits = f"until grep -qzx {number} /proc/[0-9]*/cmdline 2> /dev/null; do :; done"
    line = f"({started}) & {waits}; echo ready; {KILLERS[killer]}; sleep {number}"
    group = await ProcessGroup.start(free(["bash", "-c", line], os.environ), tmp_path)
    # The shell may have said by then what it saw killed.
    assert (await group.read()).startswith(b"ready\n")
    assert await group.settled(20)
    await gone(number)
    await group.end()
    group.close()


@pytest.mark.quick
async def test_the_death_of_the_supervisor_ends_the_command(number: str, tmp_path: Path) -> None:
    group = await ProcessGroup.start(free(["bash", "-c", f"echo ready; exec sleep {number}"], os.environ), tmp_path)
    assert await group.read() == b"ready\n"
    os.kill(group.pid, signal.SIGKILL)
    assert await group.wait() == -signal.SIGKILL
    await gone(number)
    await group.end()
    group.close()


@every(
    ("command", "code"),
    [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -9 $$", -9),
        ("kill -TERM $$", -15),
        ("kill -SEGV $$", -11),
    ],
)
async def test_how_a_command_ended_is_told_truly(command: str, code: int, tmp_path: Path) -> None:
    group = await ProcessGroup.start(free(["bash", "-c", command], os.environ), tmp_path)
    assert await group.wait() == code
    await group.end()
    group.close()


async def test_commands_do_not_inherit_what_is_ours(tmp_path: Path) -> None:
    look = "ls /proc/self/fd | wc -l; trap; grep SigIgn /proc/self/status; ps -o sid= -p $$ | tr -d ' '; echo $$"
    group = await ProcessGroup.start(free(["bash", "-c", look], os.environ), tmp_path)
    output = b""
    while data := await group.read():
        output += data
    descriptors, ignored, session, pid = output.decode().split("\n")[:4]
    assert descriptors == "4"  # three, and the one that ls reads the folder by
    assert int(ignored.split()[1], 16) == 0
    assert session == pid  # a session of its own: `kill 0` stays inside
    await group.end()
    group.close()


async def test_a_command_that_kills_its_group_does_not_kill_the_supervisor(tmp_path: Path) -> None:
    group = await ProcessGroup.start(free(["bash", "-c", "echo said; kill -9 0"], os.environ), tmp_path)
    assert (await group.read(), await group.wait()) == (b"said\n", -9)
    await group.end()
    group.close()


@pytest.mark.parametrize(
    ("command", "folder"), [("/no/such/program", "."), ("true", "missing"), ("/etc/hostname", ".")]
)
async def test_what_cannot_start_is_one_line(command: str, folder: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot be started") as failed:
        await ProcessGroup.start(free([command], os.environ), tmp_path / folder)
    assert "\n" not in str(failed.value)


@pytest.mark.forms(1)
@pytest.mark.parametrize(
    ("end", "leaver"), one_of(product(["input", "SIGTERM", "parent"], ["orphan", "double fork", "deaf"]), every=4)
)
async def test_a_server_is_ended_with_all_it_started(leaver: str, end: str, number: str, tmp_path: Path) -> None:
    """As MCP servers are started: streams are the server's own, and no pipe says that the parent is gone."""
    server = f"{script(leaver, number)} & cat; kill -9 $$"
    command = starter("supervise", {"quiet": True}, ["bash", "-c", server])
    hold = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    parent = spawned([sys.executable, "-c", hold, *command], tmp_path)
    assert parent.stdin is not None and parent.stdout is not None
    assert await asyncio.to_thread(parent.stdout.readline) == b"ready\n"
    (supervisor,) = [pid for pid, above in _parents() if above == parent.pid]
    if end == "input":
        parent.stdin.close()
    elif end == "SIGTERM":
        os.kill(supervisor, signal.SIGTERM)
    else:
        parent.kill()
    await gone(number)
    parent.kill()
    with contextlib.suppress(ValueError):  # its input is closed
        await asyncio.to_thread(parent.communicate)
    await asyncio.to_thread(parent.wait)
    parent.stdout.close()


def _parents() -> list[tuple[int, int]]:
    rows = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                rows.append((int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])))
    return rows


PARENTS = "import sys; sys.path.append(sys.argv[1]); import processes; processes._parents = lambda: {}; print({})"


def test_a_shell_is_asked_to_end_before_what_it_waits_for() -> None:
    """It would begin the next command otherwise. Numbers of processes start anew: a child's may be the lower one."""
    parents = [(41, 70), (70, 80), (80, 90), (90, 1), (5, 2)]
    code = PARENTS.format(parents, "processes.descendants(1)")
    told = subprocess.run([sys.executable, "-I", "-c", code, str(FOLDER)], capture_output=True, text=True)
    assert (told.stdout, told.returncode) == ("[90, 80, 70, 41]\n", 0), told.stderr
