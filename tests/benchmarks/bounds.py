"""What hostile answers cost: seconds, and the memory of the worker at its peak, for each bound; and whether one long
line costs in proportion to its length (1, 5, 20 MB).

Usage: python tests/benchmarks/bounds.py [--json] [CASE …]
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.models.requests import Delta, Failed, ModelSpec
from agent_tui.providers.worker.client import WorkerClient
from tests.support.loopback import Loopback, Reply, anthropic_events, chat_chunk, chat_events, chat_stream, sse
from tests.support.model_calls import KEY, make_request

PATH = "/v1/chat/completions"
MB = 1_000_000


def zeros(megabytes: int) -> bytes:
    """A gzip file that unpacks to so many megabytes of spaces."""
    return gzip.compress(b" " * MB * megabytes, 9)


def long_line(megabytes: int, key: str) -> bytes:
    chunk = chat_chunk({"content": "x" * MB * megabytes}) if key == "text" else chat_chunk({"content": "x"})
    if key == "pad":
        chunk["pad"] = "x" * MB * megabytes
    return sse([*chat_events([], None, done=False), chunk, chat_chunk({}, "stop"), "[DONE]"])


def anthropic_line(megabytes: int) -> bytes:
    events = anthropic_events(["x"])
    events[2]["pad"] = "x" * MB * megabytes
    return sse(events, named=True)


CASES: dict[str, Callable[[], Reply]] = {
    "ordinary answer": lambda: Reply(chat_stream(["hello"] * 50)),
    "line of 1 MB": lambda: Reply(long_line(1, "pad")),
    "line of 5 MB": lambda: Reply(long_line(5, "pad")),
    "line of 20 MB": lambda: Reply(long_line(20, "pad")),
    "line of 20 MB, anthropic": lambda: Reply(anthropic_line(20)),
    "line of 20 MB, all text": lambda: Reply(long_line(20, "text")),
    "line of 100 MB": lambda: Reply(long_line(100, "pad")),
    "JSON of 20 MB": lambda: Reply(
        json.dumps({"choices": [], "pad": "x" * 20 * MB}).encode(), content_type="application/json"
    ),
    "stream unpacks to 2 GB": lambda: Reply(zeros(2_000), headers={"Content-Encoding": "gzip"}),
    "error unpacks to 2 GB": lambda: Reply(zeros(2_000), 502, "text/html", {"Content-Encoding": "gzip"}),
    "error of 5 MB": lambda: Reply(b"<html>" + b"x" * 5 * MB, 502, "text/html"),
    "answer without end": lambda: Reply([sse([chat_chunk({"content": "word " * 50})] * 100)] * 2_000),
    "calls without end": lambda: Reply([sse(calls(n)) for n in range(400)]),
    "comments only": lambda: Reply([b": ping\n\n" * 10_000] * 100, hang=True),
    "no blank line": lambda: Reply([b"event: x\n" * 10_000] * 200),
    "data without end": lambda: Reply([b"data: {\n" * 10_000] * 200),
}


def calls(start: int) -> Iterator[dict[str, object]]:
    for n in range(start * 100, start * 100 + 100):
        yield chat_chunk(
            {
                "tool_calls": [
                    {"index": n, "id": f"c{n}", "type": "function", "function": {"name": "t", "arguments": ""}}
                ]
            }
        )


def peak(pid: int | None) -> float:
    """Megabytes of memory a process had at its peak."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


async def measure(name: str) -> dict[str, object]:
    """One call in a worker of its own that has done an ordinary one before."""
    client = WorkerClient(log_file=Path(tempfile.gettempdir()) / "bounds-worker.log")
    try:
        with Loopback() as server:
            kind = "anthropic/claude-sonnet-4-6" if "anthropic" in name else "openai/local"
            spec = ModelSpec("m", kind, api_base=server.url, api_key=KEY)
            server.serve(
                "*", Reply(sse(anthropic_events(["x"]), named=True) if "anthropic" in name else chat_stream(["x"]))
            )
            await ask(client, spec)
            before = peak(client.pid)
            server.serve("*", CASES[name]())
            begun = time.perf_counter()
            said, length = await ask(client, spec)
            seconds = time.perf_counter() - begun
            return {
                "case": name,
                "seconds": seconds,
                "before": before,
                "peak": peak(client.pid),
                "said": said,
                "characters": length,
            }
    finally:
        await client.close()


async def ask(client: WorkerClient, spec: ModelSpec) -> tuple[str, int]:
    length, said = 0, "finished"
    async for item in client.stream(replace(make_request(spec), content_timeout=3.0)):
        if isinstance(item, Delta):
            length += len(item.text)
        elif isinstance(item, Failed):
            said = f"{item.failure.kind}: {item.failure.message}"
    return said, length


_LINE: Final[str] = "{case:26}{seconds:>8.2f} s {before:>6.0f} → {peak:>5.0f} MB {characters:>10,}  {said}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("cases", nargs="*")
    values = parser.parse_args()
    rows = [asyncio.run(measure(name)) for name in values.cases or CASES]
    if values.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(_LINE.format(**row))
    lines = {str(row["case"]): float(str(row["seconds"])) for row in rows}
    if {"line of 1 MB", "line of 20 MB"} <= lines.keys():
        print(f"20 MB : 1 MB = {lines['line of 20 MB'] / lines['line of 1 MB']:.1f} (20 is linear)")


if __name__ == "__main__":
    main()
