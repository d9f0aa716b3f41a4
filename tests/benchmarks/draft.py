"""A key in a prompt of 5 000 pasted lines, with the draft counted and, in the same run, with nothing counted.

    python tests/benchmarks/draft.py [--lines N] [--keys N] [--json]

``paste`` has the lines behind a placeholder, ``text`` in the prompt itself, where each key changes the text that is
counted; ``empty`` is a prompt without them. ``work`` is the processor time that the count alone takes of a key,
``key`` the key until it is drawn. The application, its agent and its worker are the real ones.

The bound is 16 ms of work a key. Measured on two cores with four times as much to do as they can: work 0.3 ms (empty),
0.3 ms (paste), 0.6 ms (text), at most 1 ms; a key until it is drawn 38, 38 and 48 ms, and not counted, in the same run,
38, 39 and 99 ms: of what is drawn the count is nothing that can be told from the noise.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.ratios import report
from tests.support.real_app import Chat, make_home


async def keys(chat: Chat, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of keys until they are drawn, and what the count took of each."""
    drawn: list[float] = []
    work: list[float] = []
    counting, changed = chat.app.chat.draft_count, chat.app.chat.draft_count.changed

    def timed() -> None:
        begun = time.thread_time()
        changed()
        work[-1] += 1_000 * (time.thread_time() - begun)

    counting.changed = timed  # type: ignore[method-assign]
    for number in range(count):
        work.append(0.0)
        begun = time.perf_counter()
        chat.app.prompt.insert_text("abc d"[number % 5])
        await chat.pilot.pause()
        drawn.append(1_000 * (time.perf_counter() - begun))
        if number % 10 == 9:
            await asyncio.sleep(0.2)  # The worker counts meanwhile.
    counting.changed = changed  # type: ignore[method-assign]
    return drawn, work


async def measure(chat: Chat, lines: int, count: int) -> dict[str, float]:
    text = "".join(f"    def line_{number}(self) -> int: return {number}  # @property\n" for number in range(lines))
    out: dict[str, float] = {}
    for name in ("empty", "paste", "text"):
        chat.app.prompt.set_text("")
        if name == "paste":
            chat.app.chat.pasting.pasted(text)
        elif name == "text":
            chat.app.prompt.insert_text(text)
        await chat.pilot.pause()
        drawn, work = await keys(chat, count)
        out[f"{name} key"], out[f"{name} key max"] = median(drawn), max(drawn)
        out[f"{name} work"], out[f"{name} work max"] = median(work), max(work)
    return out


async def run(lines: int, count: int) -> tuple[dict[str, float], dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        home = make_home(Path(folder), patch)
        async with home.chat() as chat:
            counted = await measure(chat, lines, count)
            chat.app.chat.draft_count.changed = lambda: None  # type: ignore[method-assign]
            return counted, await measure(chat, lines, count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=5_000)
    parser.add_argument("--keys", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    counted, plain = asyncio.run(run(options.lines, options.keys))
    report(("counted", "not counted"), counted, plain, options.json)


if __name__ == "__main__":
    main()
