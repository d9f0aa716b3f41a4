"""The transcript with 10 000 messages against 100: open, focus change, resize, scroll, jumps, memory a message.

Usage: python tests/benchmarks/transcript.py [--json] [--messages N] [--runs N]

Milliseconds of CPU until it is drawn, as the clock of a busy machine says little; what follows the first drawing of a
session (the older messages) is not in it, nor are the passes of Python's collector. Medians of five on two busy cores:
open × 0.98 (15 ms), resize 0.98, Home 0.90 and 1.07, End 1.01, jump 0.92, to a place found 0.96; 22.6 kB a message.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import time
import tracemalloc
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from textual.app import App, ComposeResult

from agent_tui.models.messages import Message, ReasoningPart, TextPart, ToolCallPart, ToolResultPart, user_message
from agent_tui.ui.transcript import Transcript

ANSWER = (
    "## Answer {n}\n\nSome **bold** text with `code` and a [link](https://example.org) that goes on for a while so "
    "that it wraps at the edge of the screen, which is usual.\n\n- item one\n- item two\n\n"
    "```python\ndef f(x):\n    return x + 1\n```\n"
)


def conversation(count: int) -> list[Message]:
    """Messages as they come: a question, a call with its result, an answer."""
    out: list[Message] = []
    for n in range(count // 4):
        out.append(user_message(f"Question number {n}: why is the sky blue, and what follows from it?"))
        call = ToolCallPart(f"c{n}", "read", '{"path": "app.py"}')
        out.append(Message(f"a{n}", "assistant", [ReasoningPart("Let me look at the file first."), call]))
        out.append(Message(f"t{n}", "tool", [ToolResultPart(f"c{n}", "read", "line\n" * 20, seconds=0.1)]))
        out.append(Message(f"b{n}", "assistant", [ReasoningPart("Now I know."), TextPart(ANSWER.format(n=n))]))
    return out


class Bench(App[None]):
    """An app that holds a transcript and nothing else."""

    def compose(self) -> ComposeResult:
        yield Transcript()


async def measure(count: int) -> dict[str, float]:
    """Seconds of each act, once, in a fresh app."""
    messages = conversation(count)
    app = Bench()
    out: dict[str, float] = {}
    async with app.run_test(size=(120, 40)) as pilot:
        transcript = app.query_one(Transcript)
        await pilot.pause()
        gc.collect()
        gc.freeze()

        async def drawn() -> float:
            """When everything that changed is drawn; the pilot's own pause would be most of what is measured."""
            done: asyncio.Future[float] = asyncio.get_running_loop().create_future()
            transcript.call_after_refresh(lambda: done.set_result(time.process_time()))
            return await done

        async def timed(name: str, act: object, first: bool = False) -> None:
            """``first``: until it is drawn for the first time, without what the act itself does after that."""
            await pilot.pause()
            gc.collect()
            begun = time.process_time()
            waits = asyncio.create_task(drawn()) if first else None
            await asyncio.sleep(0)
            result = act()  # type: ignore[operator]
            if asyncio.iscoroutine(result):
                await result
            out[name] = await (waits or drawn()) - begun

        await timed("open", lambda: transcript.load(messages), first=True)
        await timed("focus_out", lambda: setattr(app, "app_focus", False))
        await timed("focus_in", lambda: setattr(app, "app_focus", True))
        await timed("resize", lambda: pilot.resize_terminal(100, 40))
        await timed("home", lambda: transcript.scroll_home(animate=False))
        await pilot.pause()
        begun = time.process_time()
        for _ in range(5):
            transcript.scroll_page_down(animate=False)
            await drawn()
        out["page"] = (time.process_time() - begun) / 5
        middle = transcript.virtual_size.height * 2 // 3
        await timed("jump", lambda: transcript.scroll_to(y=middle, animate=False))
        # Of 100 messages all were seen by now.
        transcript.load(messages)
        place = messages[len(messages) // 3].id
        await timed("place", lambda: transcript.find_in(place, "blue", ["blue"]))
        transcript.clear_find()
        await timed("end", lambda: transcript.scroll_end(animate=False))
        await timed("home_again", lambda: transcript.scroll_home(animate=False))
        gc.unfreeze()
    return out


async def memory(count: int) -> float:
    """Bytes a message that the transcript holds after everything was looked at (the messages themselves excluded)."""
    messages = conversation(count)
    app = Bench()
    async with app.run_test(size=(120, 40)) as pilot:
        transcript = app.query_one(Transcript)
        await pilot.pause()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        transcript.load(messages)
        await pilot.pause()
        transcript.scroll_home(animate=False)
        await pilot.pause()
        while not transcript.is_vertical_scroll_end:
            transcript.scroll_page_down(animate=False)
            await pilot.pause()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    return held / count


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", action="store_true")
    options.add_argument("--messages", type=int, default=10_000)
    options.add_argument("--runs", type=int, default=5)
    args = options.parse_args()
    few: list[dict[str, float]] = []
    many: list[dict[str, float]] = []
    asyncio.run(measure(100))
    for run in range(args.runs):
        print(f"run {run + 1} of {args.runs}", file=sys.stderr)
        few.append(asyncio.run(measure(100)))
        many.append(asyncio.run(measure(args.messages)))
    print("memory", file=sys.stderr)
    held = asyncio.run(memory(min(args.messages, 1_000)))
    rows = {}
    for name in few[0]:
        a, b = median(run[name] for run in few), median(run[name] for run in many)
        rows[name] = {"messages_100_ms": a * 1e3, f"messages_{args.messages}_ms": b * 1e3, "ratio": b / a}
    result = {"acts": rows, "bytes_a_message": held}
    if args.json:
        print(json.dumps(result))
        return
    for name, row in rows.items():
        a, b, ratio = row.values()
        print(f"{name:10} {a:8.1f} ms   {b:8.1f} ms   × {ratio:.2f}")
    print(f"memory     {held / 1000:.1f} kB a message, all of them seen")


if __name__ == "__main__":
    main()
