"""Every cache miss of 200 turns, named: the program against providers with a true prefix cache.

The providers are scripted and on loopback; they count, keep, expire, give up and report what they have by the bytes
alone. Between the turns everything is done that costs a cache. A step is misnamed where a miss is not told, is told
with another cause or other words, or is told where there was none.

    python tests/benchmarks/cache.py [--turns 200] [--dialects anthropic,vllm]
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from agent_tui.providers.catalog.keys import KEY_VARIABLES
from agent_tui.providers.worker.client import WorkerClient
from tests.support.cached_runs import KEPT, Outcome, cached_run, kinds_of
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.model_calls import KEY, environment


async def measure(names: list[str], turns: int) -> int:
    wrong = 0
    print(
        f"{'dialect':<12} {'steps':>6} {'plain':>6} {'expected':>11} {'read':>11} "
        f"{'ours':>5} {'exp.':>5} {'unkn.':>6} wrong"
    )
    worker = WorkerClient()
    try:
        for name in names:
            outcome = await cached_run(name, turns, kinds_of(name), worker)
            print(line(name, outcome), flush=True)
            for problem in outcome.wrong:
                print(f"    {problem}")
            wrong += len(outcome.wrong)
    finally:
        await worker.close()
    return wrong


def line(name: str, outcome: Outcome) -> str:
    plain, expected, read = outcome.predicted()
    counts = [outcome.named.get(cause, 0) for cause in ("ours", "expired", "unknown")]
    figures = f"{counts[0]:>5} {counts[1]:>5} {counts[2]:>6} {len(outcome.wrong):>5}"
    return f"{name:<12} {len(outcome.seen):>6} {plain:>6} {expected:>11,} {read:>11,} {figures}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--dialects", default=",".join(KEPT))
    values = parser.parse_args()
    logging.disable(logging.WARNING)
    unset: dict[str, str | None] = {name: None for names in KEY_VARIABLES.values() for name in names}
    with environment({**unset, KEY_VARIABLE: KEY}):
        sys.exit(1 if asyncio.run(measure(values.dialects.split(","), values.turns)) else 0)


if __name__ == "__main__":
    main()
