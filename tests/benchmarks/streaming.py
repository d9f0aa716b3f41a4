"""A streaming answer: processor time for 5 000 chunks of ~100 kB Markdown against rendering the final text once with
Rich, whether it is linear (500 and 50 000 chunks), and how long a key takes meanwhile.

Usage: python tests/benchmarks/streaming.py [--json] [--runs N] [--slow]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from io import StringIO
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rich.console import Console
from rich.markdown import Markdown
from textual.app import App, ComposeResult
from textual.widgets import TextArea

from agent_tui.models.messages import Message, TextPart
from agent_tui.models.requests import Delta
from agent_tui.ui.transcript import Transcript

SECTION = """## Section {n}: what happens to a request

The request is **validated** first, then `dispatch()` hands it to the worker; see [the guide](https://example.org/{n})
for *all* the details that would not fit here, of which there are many more than one paragraph could hold.

- the first point, with some `code` in it
- the second point
  - nested below it
- the third point, which is longer than the others so that it has to be wrapped at the edge of the screen

```python
class Worker{n}:
    \"\"\"Does the work.\"\"\"

    def run(self, request: Request) -> Response:
        # one attempt, no retry
        return self.client.send(request, timeout={n})
```

| Name | Value | Meaning |
|------|-------|---------|
| alpha | {n} | the first |
| beta | 2 | the second |

> A remark that is quoted.

"""


def text_of(chars: int) -> str:
    """Markdown of about ``chars`` characters."""
    out: list[str] = []
    n = 0
    while sum(map(len, out)) < chars:
        n += 1
        out.append(SECTION.format(n=n))
    return "".join(out)


def shaped(shape: str, chars: int) -> str:
    """Texts that tempt a renderer to be quadratic."""
    if shape == "paragraph":
        return ("word and another word, " * (chars // 23))[:chars]
    if shape == "fence":
        return "```python\n" + "x = compute(1, 'text')  # note\n" * (chars // 31)
    if shape == "list":
        return "- an item of a long list with **bold** text\n" * (chars // 44)
    return text_of(chars)


class Bench(App[None]):
    """A transcript and a prompt."""

    def compose(self) -> ComposeResult:
        yield Transcript()
        yield TextArea()


def rich_once(text: str, width: int = 120) -> float:
    """Processor seconds of parsing and rendering with Rich."""
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system="truecolor")
    begun = time.process_time()
    console.print(Markdown(text))
    return time.process_time() - begun


async def stream(text: str, chunks: int, *, per_second: float | None = None) -> tuple[float, float]:
    """Processor and wall seconds from the first chunk until the last line is shown."""
    size = max(1, len(text) // chunks)
    app = Bench()
    async with app.run_test(size=(120, 50)) as pilot:
        transcript = app.query_one(Transcript)
        message = Message("m", "assistant", status="streaming")
        transcript.begin_answer(message)
        await pilot.pause()
        cpu, wall = time.process_time(), time.perf_counter()
        for n, at in enumerate(range(0, len(text), size)):
            transcript.apply_delta("m", Delta(0, "text", text[at : at + size]))
            if per_second is not None:
                await asyncio.sleep(max(0.0, wall + n / per_second - time.perf_counter()))
            elif n % 16 == 15:
                await asyncio.sleep(0)
        transcript.end_answer(Message("m", "assistant", [TextPart(text)]))
        await pilot.pause()
        assert transcript.is_vertical_scroll_end
        return time.process_time() - cpu, time.perf_counter() - wall


async def keys(text: str, chunks: int, count: int, *, streaming: bool) -> list[float]:
    """Seconds from a key press until the prompt holds it, chunks arriving as fast as they are taken."""
    size = max(1, len(text) // chunks)
    app = Bench()
    out: list[float] = []
    async with app.run_test(size=(120, 50)) as pilot:
        transcript, prompt = app.query_one(Transcript), app.query_one(TextArea)
        prompt.focus()
        transcript.begin_answer(Message("m", "assistant", status="streaming"))
        await pilot.pause()

        async def feed() -> None:
            for n, at in enumerate(range(0, len(text), size)):
                transcript.apply_delta("m", Delta(0, "text", text[at : at + size]))
                if n % 4 == 3:
                    await asyncio.sleep(0.001)

        task = asyncio.create_task(feed()) if streaming else None
        for _ in range(count):
            await asyncio.sleep(0.02)
            before = len(prompt.text)
            begun = time.perf_counter()
            app.simulate_key("x")
            while len(prompt.text) == before:  # noqa: ASYNC110
                await asyncio.sleep(0)
            out.append(time.perf_counter() - begun)
            if task is not None and task.done():
                break
        if task is not None:
            await task
    return out


def note(line: str) -> None:
    print(line, file=sys.stderr)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", action="store_true")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--slow", action="store_true", help="also 100 chunks a second, for 10 s")
    args = options.parse_args()
    text = text_of(100_000)
    rich_once(text)
    result: dict[str, object] = {}
    base = median(rich_once(text) for _ in range(args.runs))
    asyncio.run(stream(text_of(5_000), 100))
    burst = []
    for run in range(args.runs):
        note(f"run {run + 1} of {args.runs}")
        burst.append(asyncio.run(stream(text, 5_000)))
    cpu, wall = (median(values) for values in zip(*burst, strict=True))
    result["burst"] = {"rich_once_s": base, "cpu_s": cpu, "wall_s": wall, "ratio": cpu / base}
    linear = {}
    for chunks in (500, 5_000, 50_000):
        note(f"{chunks} chunks")
        piece = text_of(chunks * 20)
        seconds = asyncio.run(stream(piece, chunks))[0]
        linear[str(chunks)] = {"cpu_s": seconds, "us_a_chunk": seconds / chunks * 1e6}
    result["linear"] = linear
    shapes = {}
    for shape in ("paragraph", "fence", "list"):
        note(shape)
        short = asyncio.run(stream(shaped(shape, 25_000), 1_250))[0]
        long = asyncio.run(stream(shaped(shape, 100_000), 5_000))[0]
        shapes[shape] = {"cpu_s": long, "ratio_to_a_quarter": long / short}
    result["shapes"] = shapes
    note("keys")
    idle = asyncio.run(keys(text, 5_000, 60, streaming=False))
    busy = asyncio.run(keys(text, 5_000, 200, streaming=True))
    result["keys_ms"] = {
        "idle_p95": quantiles(idle, n=20)[-1] * 1e3,
        "streaming_p50": median(busy) * 1e3,
        "streaming_p95": quantiles(busy, n=20)[-1] * 1e3,
        "streaming_max": max(busy) * 1e3,
        "count": len(busy),
    }
    if args.slow:
        seconds, wall = asyncio.run(stream(text[:20_000], 1_000, per_second=100))
        result["slow"] = {"cpu_s": seconds, "wall_s": wall, "share": seconds / wall}
    print(json.dumps(result, indent=None if args.json else 2))


if __name__ == "__main__":
    main()
