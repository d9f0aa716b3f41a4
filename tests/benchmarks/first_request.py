"""How long a request takes to reach the wire, and what a burst of chunks costs: called directly and through LiteLLM.

``python tests/benchmarks/first_request.py [--json] [--runs N] [--chunks N] [--without-litellm]``. Figures are medians;
the clock of the loopback server and of this process is the same. Progress goes to stderr.

* whole: ``agent-tui -p hello`` as a process of its own, from its start to its end, beside ``import httpx`` and
  ``import litellm`` in a bare interpreter of the same run;
* request: from that process's start until its request has arrived;
* cold: from making a client until a first request, made at once, has arrived; warm: later requests;
* burst: chunks served at once, from calling ``stream`` to the last text, with the CPU time of this process (and of the
  worker, through LiteLLM) and the worker's memory after it; raw is parsing the bytes alone.

The server is a thread of this process, so that its work is in the CPU time of a burst.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from agent_tui.models.requests import Delta, Finished, ModelSpec  # noqa: E402
from agent_tui.providers.client import ModelClient  # noqa: E402
from tests.support.loopback import Loopback, anthropic_events, chat_stream, sse  # noqa: E402
from tests.support.model_calls import KEY, make_request  # noqa: E402

WORDS = ("The ", "quick ", "**brown** ", "fox\n\n", "- jumps ", "over `code` ", "and ", "runs. ")
Via = Literal["auto", "litellm"]
TICK = os.sysconf("SC_CLK_TCK")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def seconds(command: list[str], environment: dict[str, str] | None = None) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=environment)
    return time.monotonic() - began


def whole_process(server: Loopback, runs: int, ways: list[Via]) -> dict[str, Any]:
    """``agent-tui -p hello`` from start to end, and until its request arrived."""
    server.serve("/v1/chat/completions", chat_stream(["hello"]))
    result: dict[str, Any] = {}
    for via in ways:
        with tempfile.TemporaryDirectory() as home:
            config = Path(home, "config.toml")
            config.write_text(
                f'default_model = "m"\n[models.m]\nmodel = "openai/local"\napi_base = "{server.url}/v1"\n'
                f'context_window = 128000\nvia = "{via}"\n'
            )
            environment = {**os.environ, "AGENT_TUI_HOME": home, "PYTHONPATH": str(ROOT)}
            command = [sys.executable, "-m", "agent_tui", "--config", str(config), "-p", "hello"]
            ends, arrivals = [], []
            for number in range(runs + 1):
                before, began = len(server.requests), time.monotonic()
                took = seconds(command, environment)
                if number:  # the first one writes byte code and the database
                    ends.append(took)
                    arrivals.append(server.requests[before].at - began)
                    say(f"-p hello, {via}: request after {arrivals[-1]:.2f} s, end after {took:.2f} s")
        result[via] = {"end_s": statistics.median(ends), "request_s": statistics.median(arrivals)}
    bare = {"python": "pass", "httpx": "import httpx"} | ({"litellm": "import litellm"} if "litellm" in ways else {})
    for name, code in bare.items():
        result[f"import_{name}_s"] = statistics.median(seconds([sys.executable, "-c", code]) for _ in range(runs))
    return result


async def to_the_wire(client: ModelClient, server: Loopback, spec: ModelSpec) -> float:
    """Seconds from the call to the request's arrival."""
    before = len(server.requests)
    began = time.monotonic()
    async for item in client.stream(make_request(spec)):
        assert not hasattr(item, "failure"), item
    return server.requests[before].at - began


async def first_requests(server: Loopback, runs: int, ways: list[Via]) -> dict[str, Any]:
    """A new worker each time: a call made at once, then the median of ten more."""
    server.serve("/v1/chat/completions", chat_stream(["ok"]))
    server.serve("/v1/messages", sse(anthropic_events(["ok"]), named=True))
    result: dict[str, Any] = {}
    for via in ways:
        specs = {
            "openai": ModelSpec("o", "openai/local", api_base=server.url, via=via),
            "anthropic": ModelSpec("a", "anthropic/claude-sonnet-4-6", api_base=server.url, api_key=KEY, via=via),
        }
        for name, spec in specs.items():
            cold, warm = [], []
            for _ in range(runs):
                client = ModelClient()
                cold.append(await to_the_wire(client, server, spec))
                warm.append(statistics.median([await to_the_wire(client, server, spec) for _ in range(10)]))
                await client.close()
                say(f"{name}, {via}: cold {cold[-1]:.2f} s, warm {warm[-1] * 1e3:.1f} ms")
            result[f"{name}, {via}"] = {"cold_s": statistics.median(cold), "warm_ms": statistics.median(warm) * 1e3}
    return result


async def burst(server: Loopback, runs: int, chunks: int, via: Via) -> dict[str, Any]:
    texts = [WORDS[i % len(WORDS)] for i in range(chunks)]
    body = chat_stream(texts)
    server.serve("/v1/chat/completions", body)
    spec = ModelSpec("o", "openai/local", api_base=server.url, via=via)
    client = ModelClient()
    whole, client_cpu, worker_cpu = [], [], []
    async for _ in client.stream(make_request(spec)):
        pass
    pid = client.worker.pid
    for _ in range(runs):
        began, cpu, worker, last = time.perf_counter(), time.process_time(), _cpu(pid), 0.0
        text: list[str] = []
        async for item in client.stream(make_request(spec)):
            if isinstance(item, Delta) and item.text:
                text.append(item.text)
                last = time.perf_counter()
            assert not hasattr(item, "failure"), item
        assert isinstance(item, Finished)
        assert "".join(text) == "".join(texts)
        whole.append(last - began)
        client_cpu.append(time.process_time() - cpu)
        worker_cpu.append(_cpu(pid) - worker)
        say(f"burst, {via}: {whole[-1]:.2f} s")
    memory = _memory(pid)
    await client.close()
    raw = statistics.median(_raw(body) for _ in range(runs))
    total, used = statistics.median(whole), statistics.median(client_cpu) + statistics.median(worker_cpu)
    return {
        "chunks": chunks,
        "bytes": len(body),
        "call_to_last_text_s": total,
        "cpu_per_chunk_us": used / chunks * 1e6,
        "raw_parse_per_chunk_us": raw / chunks * 1e6,
        "ratio_to_raw": used / raw,
        "worker_mb": memory,
    }


def _cpu(pid: int | None) -> float:
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def _memory(pid: int | None) -> float:
    if pid is None:
        return 0.0
    line = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _raw(body: bytes) -> float:
    began = time.perf_counter()
    text = []
    for line in body.split(b"\n"):
        if line.startswith(b"data: {"):
            choices = json.loads(line[6:])["choices"]
            if choices:
                text.append(choices[0]["delta"].get("content") or "")
    "".join(text)
    return time.perf_counter() - began


async def measure(runs: int, chunks: int, ways: list[Via]) -> dict[str, Any]:
    with Loopback() as server:
        whole = await asyncio.to_thread(whole_process, server, runs, ways)
    with Loopback() as server:
        first = await first_requests(server, runs, ways)
    with Loopback() as server:
        bursts = {via: await burst(server, runs, chunks, via) for via in ways}
    return {"whole": whole, "first_request": first, "burst": bursts}


def main() -> None:
    parser = argparse.ArgumentParser(description="Latency of requests and cost of chunks, direct and through LiteLLM.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--chunks", type=int, default=5000)
    parser.add_argument("--without-litellm", action="store_true", help="direct calls only: much quicker")
    options = parser.parse_args()
    ways: list[Via] = ["auto"] if options.without_litellm else ["auto", "litellm"]
    result = asyncio.run(measure(options.runs, options.chunks, ways))
    if options.json:
        print(json.dumps(result))
        return
    whole = result["whole"]
    for via in ways:
        ratio = whole[via]["end_s"] / whole["import_httpx_s"]
        print(
            f"-p hello, {via}: request after {whole[via]['request_s']:.2f} s, end after {whole[via]['end_s']:.2f} s",
            end="",
        )
        print(f" (x {ratio:.1f} of importing httpx", end="")
        if "import_litellm_s" in whole:
            print(f", x {whole[via]['end_s'] / whole['import_litellm_s']:.2f} of importing LiteLLM", end="")
        print(")")
    for name, row in result["first_request"].items():
        print(f"{name}: on the wire {row['cold_s']:.2f} s after a cold start, {row['warm_ms']:.1f} ms when warm")
    for via, b in result["burst"].items():
        print(
            f"burst of {b['chunks']}, {via}: {b['call_to_last_text_s']:.2f} s, {b['cpu_per_chunk_us']:.0f} µs of CPU",
            end="",
        )
        print(f" a chunk (raw parsing {b['raw_parse_per_chunk_us']:.1f}), worker {b['worker_mb']:.0f} MB")


if __name__ == "__main__":
    main()
