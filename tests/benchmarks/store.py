"""How fast the message store is: appends, flushes of a draft, and resuming 10 000 messages.

The resume is given as a ratio to reading the same bytes with bare sqlite3 and json. Medians of the runs; progress goes
to stderr. Usage: ``python tests/benchmarks/store.py [--messages N] [--json]``.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.models.messages import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    new_id,
    user_message,
)
from agent_tui.models.steps import FixedPart, Step
from agent_tui.models.usage import TokenUsage
from agent_tui.store.store import Store

RUNS = 5
ORIGIN = Origin("anthropic", "messages", "claude-sonnet-4-6")
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "context", "windows", "fill"]


def prose(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def fill(store: Store, session_id: str, count: int) -> list[float]:
    """A conversation of user, assistant (reasoning, text, call) and tool messages; the seconds of each append."""
    rng = random.Random(1)
    fixed = tuple(FixedPart("tools", "builtin", f"tool{n}", 900, f"{n:024x}", 220) for n in range(20))
    parent: str | None = None
    times: list[float] = []
    for n in range(count):
        if n % 3 == 0:
            message = user_message(prose(rng, 40), parent_id=parent)
        elif n % 3 == 1:
            parts: list[Part] = [
                ReasoningPart(prose(rng, 60), {"signature": "c2ln" * 100}, "f" * 24),
                TextPart(prose(rng, 80)),
                ToolCallPart(f"call_{n}", "read", '{"path":"app.py"}'),
            ]
            message = Message(
                new_id("msg"), "assistant", parts, "complete", parent, time.time(), ORIGIN, f"step_{n}", 300
            )
        else:
            result = ToolResultPart(f"call_{n - 1}", "read", prose(rng, 150), display={"kind": "text"}, seconds=0.01)
            message = Message(new_id("msg"), "tool", [result], "complete", parent, time.time(), raw_tokens=200)
        start = time.perf_counter()
        store.messages.add(session_id, message)
        times.append(time.perf_counter() - start)
        if n % 3 == 1:
            usage = TokenUsage(1000 + n, 300, 80, 900, 0)
            step = Step(f"step_{n}", "turn", "sonnet", *("anthropic", "messages", "claude-sonnet-4-6"), message.id)
            step.usage, step.fixed, step.status = usage, fixed, "complete"
            store.steps.add(session_id, step)
        parent = message.id
    return times


def flush(store: Store, session_id: str, count: int) -> list[float]:
    """Flushes of a draft that grows to about 100 kB, the size of a very long answer."""
    parent = store.sessions.get(session_id).head_id
    draft = Message(new_id("msg"), "assistant", [ReasoningPart("thought " * 500), TextPart("")], "streaming", parent)
    store.messages.add(session_id, draft)
    text = draft.parts[1]
    assert isinstance(text, TextPart)
    times: list[float] = []
    for _ in range(count):
        text.text += "words of a streamed answer " * (100_000 // 27 // count + 1)
        start = time.perf_counter()
        store.messages.write(session_id, draft, [1])
        times.append(time.perf_counter() - start)
    draft.status = "complete"
    store.messages.write(session_id, draft)
    return times


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def resume(path: Path, session_id: str) -> None:
    with Store.open(path) as store:
        info = store.sessions.get(session_id)
        messages, steps = store.messages.all(info.id), store.steps.all(info.id)
        store.compactions.all(info.id)
        store.messages.summaries(info.id)
    assert messages and steps


def bare(path: Path) -> None:
    """The same rows, parsed and thrown away."""
    connection = sqlite3.connect(path)
    for query in (
        "SELECT n, id, role, status, parent_id, raw_tokens, data FROM message ORDER BY n",
        "SELECT message, data FROM part ORDER BY message, position",
        "SELECT id, status, message_id, fixed_id, data FROM step ORDER BY n",
    ):
        for row in connection.execute(query):
            json.loads(row[-1])
    connection.close()


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def measure(folder: Path, count: int) -> dict[str, float | int]:
    path = folder / "sessions.db"
    with Store.open(path) as store:
        info = store.sessions.create("/project", "sonnet")
        print(f"appending {count} messages", file=sys.stderr)
        appends = fill(store, info.id, count)
        print("flushing", file=sys.stderr)
        flushes = flush(store, info.id, 400)
    print("resuming", file=sys.stderr)
    with Store.open(path) as store:
        loads = [seconds(lambda: store.messages.all(info.id)) for _ in range(RUNS)]
    resumes = [seconds(lambda: resume(path, info.id)) for _ in range(RUNS)]
    bares = [seconds(lambda: bare(path)) for _ in range(RUNS)]
    print("listing 10 000 sessions", file=sys.stderr)
    with Store.open(folder / "many.db") as store:
        with store.transaction():
            for n in range(10_000):
                session = store.sessions.create(f"/project/{n % 50}", "sonnet")
                store.messages.add(session.id, user_message(f"question {n}"))
        lists = [seconds(store.sessions.all) for _ in range(RUNS)]
        ours = [seconds(lambda: store.sessions.all("/project/7")) for _ in range(RUNS)]
    return {
        "messages": count,
        "append_p50_ms": percentile(appends, 50) * 1e3,
        "append_p99_ms": percentile(appends, 99) * 1e3,
        "append_max_ms": max(appends) * 1e3,
        "flush_p50_ms": percentile(flushes, 50) * 1e3,
        "flush_p99_ms": percentile(flushes, 99) * 1e3,
        "flush_max_ms": max(flushes) * 1e3,
        "load_messages_ms": median(loads) * 1e3,
        "resume_ms": median(resumes) * 1e3,
        "bare_ms": median(bares) * 1e3,
        "resume_ratio": median(resumes) / median(bares),
        "list_10000_sessions_ms": median(lists) * 1e3,
        "list_project_ms": median(ours) * 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Benchmark of the message store")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), options.messages)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:28} {value:10.2f}" if isinstance(value, float) else f"{name:28} {value:10}")


if __name__ == "__main__":
    main()
