"""What hostile answers cost: seconds, the longest time in which nothing else on the loop has a turn, and the memory of
the process at its peak, for each bound; and whether one long line costs in proportion to its length (1, 5, 20 MB). The
server is a process of its own.

Usage: python tests/benchmarks/bounds.py [--json] [CASE …]
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.models.requests import Delta, Failed, ModelSpec
from agent_tui.providers.client import ModelClient
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


def peak() -> float:
    """Megabytes of memory this process had at its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def kind_of(name: str) -> str:
    return "anthropic/claude-sonnet-4-6" if "anthropic" in name else "openai/local"


def serve(name: str, line: Connection) -> None:
    """Answers as the case says, after an ordinary answer, until the parent is done."""
    with Loopback() as server:
        ordinary = sse(anthropic_events(["x"]), named=True) if "anthropic" in name else chat_stream(["x"])
        server.serve("*", Reply(ordinary), CASES[name]())
        line.send(server.url)
        line.recv()


class Heartbeat:
    """Notes the longest time between two turns on the loop."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def beat(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, time.perf_counter() - before - 0.001)


async def measure(name: str) -> dict[str, object]:
    """One call by a client that has done an ordinary one before."""
    ours, theirs = Pipe()
    process = get_context("spawn").Process(target=serve, args=(name, theirs), daemon=True)
    process.start()
    url = await asyncio.to_thread(ours.recv)
    client, heart = ModelClient(), Heartbeat()
    try:
        spec = ModelSpec("m", kind_of(name), api_base=url, api_key=KEY)
        await ask(client, spec)
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
        before, begun = peak(), time.perf_counter()
        beating = asyncio.create_task(heart.beat())
        said, length = await ask(client, spec)
        seconds = time.perf_counter() - begun
        beating.cancel()
        return {
            "case": name,
            "seconds": seconds,
            "stall": heart.longest * 1e3,
            "before": before,
            "peak": peak(),
            "said": said,
            "characters": length,
        }
    finally:
        ours.send("done")
        process.kill()
        await client.close()


async def ask(client: ModelClient, spec: ModelSpec) -> tuple[str, int]:
    length, said = 0, "finished"
    async for item in client.stream(replace(make_request(spec), content_timeout=3.0)):
        if isinstance(item, Delta):
            length += len(item.text)
        elif isinstance(item, Failed):
            said = f"{item.failure.kind}: {item.failure.message}"
    return said, length


_LINE: Final[str] = (
    "{case:26}{seconds:>8.2f} s, stall {stall:>6.0f} ms {before:>6.0f} → {peak:>5.0f} MB {characters:>10,}  {said}"
)


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
