"""The worker as a process: killed, hung, slow, garbled, orphaned, idle. Most of it without LiteLLM, so it is quick."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.errors import WorkerError
from agent_tui.models.calibration import KINDS
from agent_tui.models.requests import Delta, Failed, ModelSpec
from agent_tui.providers.client import ModelClient
from agent_tui.providers.dialects.litellm import LibraryCall
from agent_tui.providers.worker.client import WorkerClient
from tests.support.agents import words_only
from tests.support.loopback import Loopback, Reply, chat_events, sse
from tests.support.model_calls import HELLO_WORLD, make_request, run_python
from tests.support.waiting import ended, running

ROOT = Path(__file__).resolve().parents[3]
ECHO = f"""
import json, sys
for line in sys.stdin.buffer:
    message = json.loads(line)
    if message["op"] == "count":
        counts = {{"counts": [[1, *[0] * {len(KINDS) - 1}]] * len(message["v"]["texts"])}}
        print(json.dumps({{"op": "counts", "id": message["id"], "v": counts}}), flush=True)
    if message["op"] == "ping":
        print('{{"op":"pong","id":0,"v":{{}}}}', flush=True)
"""


CALL = LibraryCall("acompletion", {"model": "openai/x", "messages": []})


def fake(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.mark.quick
@pytest.mark.versions
async def test_it_starts_at_first_use_and_counts() -> None:
    states: list[str] = []
    client = WorkerClient(on_state=states.append)
    assert client.state == "stopped"
    assert await client.count(["hello world"]) == [HELLO_WORLD]
    assert states == ["ready"], "counting does not need LiteLLM"
    await client.close()
    assert states[-1] == "stopped"


@pytest.mark.slow
@pytest.mark.quick
@pytest.mark.versions
async def test_describing_models_does_not_load_litellm_and_preparing_one_does() -> None:
    states: list[str] = []
    loading = asyncio.Event()

    def note(state: str) -> None:
        states.append(state)
        if state == "litellm_loading":
            loading.set()

    client = ModelClient(on_state=note)
    spec = ModelSpec("mine", "openai/local", api_base="http://127.0.0.1:9", context_window=1000, via="litellm")
    info = await client.describe(spec)
    assert info.limits.window == 1000
    assert not client.running
    assert await client.count(["hello world"]) == [HELLO_WORLD]
    assert client.running and states == ["ready"]
    await client.prepare(spec)
    await asyncio.wait_for(loading.wait(), 30)
    await client.close()


@pytest.mark.slow
@pytest.mark.quick
@pytest.mark.versions
async def test_what_is_pending_fails_when_it_is_killed_and_the_next_use_restarts_it() -> None:
    client = WorkerClient()
    await client.count(["a"])
    first = client.pid
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    pending = asyncio.create_task(client.count(["b"]))
    events = asyncio.create_task(anext(client.events(CALL)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    os.kill(first, signal.SIGKILL)
    for waiting in (pending, events):
        with pytest.raises(WorkerError):
            await waiting
    assert await client.count(["hello world"]) == [HELLO_WORLD]
    assert client.pid != first
    await client.close()


@pytest.mark.slow
async def test_a_stream_cut_by_the_workers_death_keeps_its_deltas(server: Loopback) -> None:
    server.serve("/v1/chat/completions", Reply([sse(chat_events(["begun"], None, done=False))], hang=True))
    client = ModelClient()
    spec = ModelSpec("local", "openai/x", api_base=server.url, via="litellm")
    items, killed = [], False
    async for item in client.stream(make_request(spec)):
        items.append(item)
        if isinstance(item, Delta) and not killed and client.worker.pid is not None:
            os.kill(client.worker.pid, signal.SIGKILL)
            killed = True
    assert killed and next(i.text for i in items if isinstance(i, Delta)) == "begun"
    end = items[-1]
    assert isinstance(end, Failed) and (end.failure.kind, end.failure.retryable) == ("worker", True)
    await client.close()


@pytest.mark.slow
async def test_a_hung_worker_is_killed_and_replaced() -> None:
    client = WorkerClient(hang_timeout=3.0)
    await client.count(["warm"])
    first = client.pid
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(WorkerError):
        await client.count(["never"])
    await ended(first)
    assert await client.count(["hello world"]) == [HELLO_WORLD]
    await client.close()


@pytest.mark.quick
async def test_a_worker_that_says_nothing_at_the_start_is_given_up() -> None:
    client = WorkerClient(command=fake("import time; time.sleep(600)"), start_timeout=0.4, hang_timeout=0.4)
    with pytest.raises(WorkerError):
        await client.count(["a"])
    await client.close()


async def test_one_that_nobody_asks_ends_and_the_next_use_starts_another() -> None:
    client = WorkerClient(idle=0.05)
    states: list[str] = []
    stopped = asyncio.Event()

    def note(state: str) -> None:
        states.append(state)
        if state == "stopped":
            stopped.set()

    client.on_state = note
    assert await client.count(["hello world"]) == [HELLO_WORLD]
    first = client.pid
    assert first is not None
    async with asyncio.timeout(10):
        await stopped.wait()
    assert not client.running and client.pid is None
    await ended(first)
    assert await client.count(["hello world"]) == [HELLO_WORLD]
    assert states == ["ready", "stopped", "ready"]
    await client.close()


async def test_one_that_has_litellm_or_is_asked_something_is_not_ended() -> None:
    loaded = '{"op":"state","id":0,"v":{"state":"litellm_ready"}}'
    client = WorkerClient(command=fake(f"print({loaded!r}, flush=True)" + ECHO))
    assert await client.count(["a"]) == [words_only(1)]
    client._retire()
    assert client.running
    client.state = "ready"
    client._pending[99] = asyncio.Queue()
    client._retire()
    assert client.running
    client._pending.clear()
    await client.close()


async def test_a_slow_start_blocks_nobody() -> None:
    ready = '{"op":"state","id":0,"v":{"state":"ready"}}'
    slow = f"import sys; sys.stdin.buffer.readline()\nprint({ready!r}, flush=True)" + ECHO
    client = WorkerClient(command=fake(slow))
    waiting = asyncio.create_task(client.count(["a"]))
    await asyncio.sleep(0)
    states: list[str] = [client.state]
    assert not waiting.done()
    assert await client.count(["b", "c"]) == [words_only(1)] * 2
    assert [*states, client.state] == ["stopped", "ready"]
    waiting.cancel()
    await client.close()


async def test_garbage_on_the_pipe_is_ignored() -> None:
    garbage = b'\xff\x00garbage\n{\n[1]\n"x"\n{"id":99,"op":"preparing","v":{}}\n{"id":1,"op":"delta",\n'
    garbage += b"x" * 100_000 + b"\n"
    code = f"import sys; sys.stdout.buffer.write({garbage!r}); sys.stdout.buffer.flush()\n"
    client = WorkerClient(command=fake(code + ECHO))
    assert await client.count(["a"]) == [words_only(1)]
    await client.close()


@pytest.mark.slow
async def test_garbage_to_the_worker_is_ignored() -> None:
    client = WorkerClient()
    await client.count(["a"])
    assert client._pipe is not None
    client._pipe.write(b'\xff\xfe{]\n\n[]\n42\n{"id": 5}\n')
    assert await client.count(["hello world"]) == [HELLO_WORLD]
    await client.close()


@pytest.mark.quick
async def test_a_worker_that_cannot_start_is_an_error_not_a_crash() -> None:
    client = WorkerClient(command=("/no/such/program",))
    with pytest.raises(WorkerError):
        await client.count(["a"])
    with pytest.raises(WorkerError):
        await anext(client.events(CALL))
    await client.close()


async def test_a_worker_that_dies_at_once_fails_each_use() -> None:
    client = WorkerClient(command=fake("raise SystemExit(3)"))
    for _ in range(2):
        with pytest.raises(WorkerError):
            await client.count(["a"])
    await client.close()


async def test_nothing_is_left_after_closing() -> None:
    client = WorkerClient()
    await client.count(["a"])
    pid = client.pid
    assert pid is not None
    await client.close()
    assert not running(pid)
    with pytest.raises(WorkerError):
        await client.count(["a"])


@pytest.mark.quick
@pytest.mark.versions
async def test_what_libraries_print_does_not_reach_the_pipe() -> None:
    noisy = (
        "import os, sys; sys.path.append(sys.argv.pop())\n"
        "from agent_tui.providers.worker import serve as worker\n"
        "original = worker.count_all\n"
        "def loud(texts):\n"
        "    print('printed'); os.write(1, b'raw\\n'); os.write(2, b'err\\n'); os.system('echo child')\n"
        "    return original(texts)\n"
        "worker.count_all = loud\n"
        "worker.main()\n"
    )
    lines: list[bytes] = []
    client = WorkerClient(command=(sys.executable, "-c", noisy, str(ROOT)))
    original = client._line

    def heard(data: bytes) -> None:
        lines.append(data)
        original(data)

    client._line = heard  # type: ignore[method-assign]
    assert await client.count(["hello world"]) == [HELLO_WORLD]
    await client.close()
    assert lines
    assert all(line.startswith(b'{"') for line in lines)


def test_it_does_not_import_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "tiktoken.py").write_text("raise SystemExit('imported from the project')")
    code = (
        "import asyncio, sys; sys.path.append(sys.argv.pop())\n"
        "from agent_tui.providers.worker.client import WorkerClient\n"
        "async def main():\n"
        "    client = WorkerClient(); print(await client.count(['hello world'])); await client.close()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(ROOT)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{[HELLO_WORLD]}\n", done.stderr


async def test_no_orphan_when_the_parent_is_killed() -> None:
    code = (
        "import asyncio, os, signal, sys; sys.path.append(sys.argv.pop())\n"
        "from agent_tui.providers.worker.client import WorkerClient\n"
        "async def main():\n"
        "    client = WorkerClient(); await client.count(['a']); print(client.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    done = await asyncio.to_thread(run_python, code, str(ROOT))
    assert done.returncode == -signal.SIGKILL
    await ended(int(done.stdout))


def test_the_client_imports_nothing_heavy() -> None:
    code = (
        "import asyncio, sys; sys.path.append(sys.argv.pop())\n"
        "from agent_tui.providers.client import ModelClient\n"
        "import agent_tui.providers.local_servers\n"
        "async def main():\n"
        "    client = ModelClient(); await client.count(['a']); await client.close()\n"
        "asyncio.run(main())\n"
        "heavy = {'litellm', 'tiktoken', 'httpx', 'pydantic', 'openai', 'mcp', 'aiohttp', 'textual'}\n"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))\n"
    )
    done = run_python(code, str(ROOT))
    assert done.stdout.strip() == "[]", done.stderr
