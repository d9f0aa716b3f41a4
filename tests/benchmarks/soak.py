"""A conversation of 2 000 turns (8 000 messages) with compactions, in the chat as it is shipped: what it holds.

    python tests/benchmarks/soak.py [--turns N] [--every N] [--json]

The real agent, store, index and screen with the demo model, in one process. Resident memory in MB at every ``--every``
turns, and what a message costs by it from the first tenth on (the program itself comes before); what must not grow is
counted beside it: tasks, threads, open files, widgets, timers, laid out lines.

2 000 turns, 59 compactions, an hour on a busy machine: 76 MB before, 107 after 200 turns (by then what
is kept of drawn lines is full), 134 after 1 000, 165 at the end: 7.9 kB a message, in a straight line; 15 tasks,
3 threads, 21 files, 6 widgets, 1 timer, 45 fixed parts and 4 000 laid out lines from the 200th turn to the end.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pytest

from tests.support.real_app import make_home
from tests.support.soak import Held, grown, kinds, soaking


async def run(folder: Path, turns: int, every: int) -> tuple[list[Held], dict[str, int]]:
    out: list[Held] = []
    with pytest.MonkeyPatch.context() as patch:
        async with soaking(make_home(folder, patch), turns) as soak:
            first, before = turns // 10, kinds()
            for turn in range(turns + 1):
                if turn % every == 0:
                    held = await soak.held()
                    out.append(held)
                    print(json.dumps(dataclasses.asdict(held)), file=sys.stderr, flush=True)
                if turn == first:
                    before = kinds()
                if turn < turns:
                    await soak.turn()
            if soak.problems:
                print("\n".join(soak.problems[:10]), file=sys.stderr)
            return out, grown(before, kinds(), turns // 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        curve, more = asyncio.run(run(Path(folder), options.turns, options.every))
    tenth = next(held for held in curve if held.turns >= options.turns // 10)
    last = curve[-1]
    cost = (last.memory - tenth.memory) / max(1, last.messages - tenth.messages)
    result = {
        "seconds": time.monotonic() - begun,
        "bytes_a_message": cost,
        "curve": [dataclasses.asdict(held) for held in curve],
        "objects_more": more,
    }
    if options.json:
        print(json.dumps(result))
        return
    print(f"{'turns':>8}{'messages':>10}{'compactions':>13}{'MB':>8}  " + "  ".join(last.things))
    for held in curve:
        things = "  ".join(f"{value:>{len(name)}}" for name, value in held.things.items())
        print(f"{held.turns:>8}{held.messages:>10}{held.compactions:>13}{held.memory / 1e6:>8.1f}  {things}")
    print(f"{cost / 1000:.1f} kB a message; {result['seconds']:.0f} s")
    print("more objects:", ", ".join(f"{name} {count}" for name, count in list(more.items())[:20]))


if __name__ == "__main__":
    main()
