"""How long a turn waits at the limit for a summary that takes a while: prepared beside the turn, and not, in one run.

A scripted model reads file after file through the real executor and store; a step and a summary take the seconds given.
The wait is from the event that a compaction begins to the one that it has ended.

Usage: python tests/benchmarks/compaction_wait.py [--json] [--step SECONDS] [--summary SECONDS] [--runs N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2]))

from agent_tui.engine.compaction.preparing import SummaryPreparation
from agent_tui.models.events import CompactionEnded, CompactionStarted
from agent_tui.models.messages import user_message
from agent_tui.models.requests import ModelRequest, StreamItem
from tests.support.compaction_bench import ReadingModel, benches

MOST = 1.0
"""Seconds that the wait may take where the summary was prepared."""


@dataclass
class Slow(ReadingModel):
    """Takes its time."""

    step: float = 0.0
    seconds: float = 0.0
    waits: list[float] = field(default_factory=list)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        await asyncio.sleep(self.seconds if request.kind == "compaction" else self.step)
        async for item in super().stream(request):
            yield item


async def waited(step: float, summary: float) -> list[float]:
    """Seconds of each wait of one turn."""
    with tempfile.TemporaryDirectory() as folder, benches(Path(folder)) as make:
        world = make(Slow(reads=14, step=step, seconds=summary), tokens=300)
        world.fill(30, 300)
        waits, begun = [], 0.0
        async for event in world.executor.run(user_message("Read fourteen files.")):
            if isinstance(event, CompactionStarted):
                begun = time.perf_counter()
            elif isinstance(event, CompactionEnded):
                assert event.outcome == "done", event.text
                waits.append(time.perf_counter() - begun)
        return waits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=float, default=0.5)
    parser.add_argument("--summary", type=float, default=1.5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    prepared, unprepared = list[float](), list[float]()
    for _ in range(options.runs):
        prepared += asyncio.run(waited(options.step, options.summary))
        with mock.patch.object(SummaryPreparation, "near", return_value=False):
            unprepared += asyncio.run(waited(options.step, options.summary))
    figures = {
        "prepared_seconds": round(statistics.median(prepared), 3),
        "prepared_longest": round(max(prepared), 3),
        "unprepared_seconds": round(statistics.median(unprepared), 3),
        "share": round(statistics.median(prepared) / statistics.median(unprepared), 3),
        "waits": len(prepared),
    }
    if options.json:
        print(json.dumps(figures))
        return
    print(f"prepared    {figures['prepared_seconds']:.3f} s (longest {figures['prepared_longest']:.3f} s)")
    print(f"unprepared  {figures['unprepared_seconds']:.3f} s: {figures['share']:.1%} of that")
    print("ok" if figures["prepared_longest"] <= MOST else f"more than {MOST:g} s")


if __name__ == "__main__":
    main()
