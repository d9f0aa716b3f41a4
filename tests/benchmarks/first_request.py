"""How long a request takes to reach the wire, and what a burst of chunks costs.

``python tests/benchmarks/first_request.py [--json] [--runs N] [--chunks N]``. Figures are medians; the clock of the
loopback server and of this process is the same. Progress goes to stderr.

* first request: from calling ``stream`` to the request's arrival at the server, for the first call after warming up and
  for later ones;
* burst: chunks served at once, from calling ``stream`` to the last text; per chunk, ours is the whole way less
  LiteLLM's own time for the same bytes, measured in a process that does nothing else; raw is parsing the bytes alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from agent_tui.models.requests import Delta, Finished, ModelSpec  # noqa: E402
from agent_tui.providers.client import WorkerClient  # noqa: E402
from tests.support.loopback import Loopback, anthropic_events, chat_stream, sse  # noqa: E402
from tests.support.model_calls import KEY, make_request  # noqa: E402

WORDS = ("The ", "quick ", "**brown** ", "fox\n\n", "- jumps ", "over `code` ", "and ", "runs. ")

_LITELLM_ONLY = """
import asyncio, json, sys, time
sys.path.insert(0, sys.argv[2])
from agent_tui.providers import litellm_setup
litellm = litellm_setup.load()
async def once():
    began = time.perf_counter()
    stream = await litellm.acompletion(model="openai/x", api_base=sys.argv[1] + "/v1", api_key="k", stream=True,
        messages=[{"role": "user", "content": "hi"}], stream_options={"include_usage": True}, max_retries=0)
    last = began
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            last = time.perf_counter()
    return last - began
async def main():
    await once()
    print(json.dumps([await once() for _ in range(int(sys.argv[3]))]))
asyncio.run(main())
"""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def to_the_wire(client: WorkerClient, server: Loopback, spec: ModelSpec) -> float:
    """Seconds from the call to the request's arrival."""
    before = len(server.requests)
    began = time.monotonic()
    async for item in client.stream(make_request(spec)):
        assert not hasattr(item, "failure"), item
    return server.requests[before].at - began


async def first_requests(server: Loopback, runs: int) -> dict[str, Any]:
    """A new worker each time: the first call after it says that it is ready, then the median of ten more."""
    server.serve("/v1/chat/completions", chat_stream(["ok"]))
    server.serve("/v1/messages", sse(anthropic_events(["ok"]), named=True))
    specs = {
        "openai": ModelSpec("o", "openai/local", api_base=server.url),
        "anthropic": ModelSpec("a", "anthropic/claude-sonnet-4-6", api_base=server.url, api_key=KEY),
    }
    result: dict[str, Any] = {}
    for name, spec in specs.items():
        first, later, warm = [], [], []
        for _ in range(runs):
            ready = asyncio.Event()
            began = time.monotonic()
            client = WorkerClient(on_state=lambda state, e=ready: e.set() if state == "litellm_ready" else None)  # type: ignore[misc]
            await client.start()
            await client.prepare(spec)
            await ready.wait()
            warm.append(time.monotonic() - began)
            first.append(await to_the_wire(client, server, spec))
            later.append(statistics.median([await to_the_wire(client, server, spec) for _ in range(10)]))
            await client.close()
            say(f"{name}: ready {warm[-1]:.2f} s, first {first[-1] * 1e3:.1f} ms, later {later[-1] * 1e3:.1f} ms")
        result[name] = {
            "start_to_warm_s": statistics.median(warm),
            "first_ms": statistics.median(first) * 1e3,
            "first_ms_all": [round(v * 1e3, 2) for v in first],
            "later_ms": statistics.median(later) * 1e3,
        }
    return result


async def burst(server: Loopback, runs: int, chunks: int) -> dict[str, Any]:
    texts = [WORDS[i % len(WORDS)] for i in range(chunks)]
    body = chat_stream(texts)
    server.serve("/v1/chat/completions", body)
    spec = ModelSpec("o", "openai/local", api_base=server.url)
    client = WorkerClient()
    whole, client_cpu, lines = [], [], []
    async for _ in client.stream(make_request(spec)):
        pass
    for _ in range(runs):
        began, cpu, count, last = time.perf_counter(), time.process_time(), 0, 0.0
        text: list[str] = []
        async for item in client.stream(make_request(spec)):
            count += 1
            if isinstance(item, Delta) and item.text:
                text.append(item.text)
                last = time.perf_counter()
            assert not hasattr(item, "failure"), item
        assert isinstance(item, Finished)
        assert "".join(text) == "".join(texts)
        whole.append(last - began)
        client_cpu.append(time.process_time() - cpu)
        lines.append(count)
        say(f"burst: {whole[-1]:.2f} s")
    await client.close()
    command = [sys.executable, "-c", _LITELLM_ONLY, server.url, str(ROOT), str(runs)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    alone = statistics.median(json.loads(done.stdout.strip().splitlines()[-1]))
    raw = statistics.median(_raw(body) for _ in range(runs))
    total = statistics.median(whole)
    return {
        "chunks": chunks,
        "bytes": len(body),
        "call_to_last_text_s": total,
        "per_chunk_us": total / chunks * 1e6,
        "litellm_per_chunk_us": alone / chunks * 1e6,
        "ours_per_chunk_us": (total - alone) / chunks * 1e6,
        "raw_parse_per_chunk_us": raw / chunks * 1e6,
        "ratio_to_raw": total / raw,
        "ui_process_cpu_ms": statistics.median(client_cpu) * 1e3,
        "items": statistics.median(lines),
    }


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


async def measure(runs: int, chunks: int) -> dict[str, Any]:
    with Loopback() as server:
        first = await first_requests(server, runs)
    with Loopback() as server:
        return {"first_request": first, "burst": await burst(server, runs, chunks)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Latency of requests and cost of chunks through the provider worker.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--chunks", type=int, default=5000)
    options = parser.parse_args()
    result = asyncio.run(measure(options.runs, options.chunks))
    if options.json:
        print(json.dumps(result))
        return
    for name, row in result["first_request"].items():
        print(f"{name}: first request on the wire after {row['first_ms']:.1f} ms, later ones {row['later_ms']:.1f} ms")
        print(f"{name}: worker started and warm after {row['start_to_warm_s']:.1f} s")
    b = result["burst"]
    print(f"burst of {b['chunks']}: {b['call_to_last_text_s']:.2f} s, {b['per_chunk_us']:.0f} µs a chunk:")
    print(f"  LiteLLM {b['litellm_per_chunk_us']:.0f} µs, ours {b['ours_per_chunk_us']:.0f} µs, ", end="")
    print(f"raw parsing {b['raw_parse_per_chunk_us']:.1f} µs; UI process {b['ui_process_cpu_ms']:.0f} ms CPU")


if __name__ == "__main__":
    main()
