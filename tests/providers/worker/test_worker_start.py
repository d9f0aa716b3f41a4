"""The worker that is started before everything else: handed over once, and never left behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.providers.worker import start
from agent_tui.providers.worker.client import WorkerClient
from tests.support.model_calls import HELLO_WORLD, run_python
from tests.support.waiting import ended


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    left = start.take_early(start.COMMAND)
    if left is not None:
        left.kill()
        left.wait()


@pytest.mark.slow
@pytest.mark.quick
@pytest.mark.versions
async def test_the_early_worker_is_the_one_that_is_used(tmp_path: Path) -> None:
    start.start_early(tmp_path / "log")
    early = start._early
    assert early is not None
    client = WorkerClient()
    assert await client.count(["hello world"]) == [HELLO_WORLD]
    assert client.pid == early.pid
    await client.close()
    other = WorkerClient()
    assert await other.count(["hello world"]) == [HELLO_WORLD], "it is handed over once; the next is a new one"
    assert other.pid != early.pid
    await other.close()


@pytest.mark.slow
async def test_one_that_died_meanwhile_is_replaced(tmp_path: Path) -> None:
    start.start_early(tmp_path / "log")
    early = start._early
    assert early is not None
    early.kill()
    await asyncio.to_thread(early.wait)
    client = WorkerClient()
    assert await client.count(["hello world"]) == [HELLO_WORLD]
    assert client.pid != early.pid
    await client.close()


async def test_it_ends_with_a_program_that_never_used_it(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from agent_tui.providers.worker import start\n"
        "start.start_early(Path(sys.argv[1])); print(start._early.pid)"
    )
    done = await asyncio.to_thread(run_python, code, str(tmp_path / "log"))
    assert done.returncode == 0
    await ended(int(done.stdout))


def test_starting_it_imports_next_to_nothing() -> None:
    code = (
        "import json, sys; before = set(sys.modules); import agent_tui.providers.worker.start\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = run_python(code)
    ours = [name for name in json.loads(done.stdout) if name.startswith("agent_tui")]
    assert ours == [
        "agent_tui",
        "agent_tui.pipes",
        "agent_tui.pipes.start",
        "agent_tui.providers",
        "agent_tui.providers.worker",
        "agent_tui.providers.worker.start",
    ]
    assert not {"asyncio", "pydantic", "textual", "httpx"} & set(json.loads(done.stdout))
