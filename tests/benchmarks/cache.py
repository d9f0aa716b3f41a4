"""Every cache miss of 200 turns, named: the program against providers with a true prefix cache.

The providers are scripted and on loopback; they count, keep, expire, give up and report what they have by the bytes
alone. Between the turns everything is done that costs a cache. A step is misnamed where a miss is not told, is told
with another cause or other words, or is told where there was none.

    python tests/benchmarks/cache.py [--turns 200] [--dialects anthropic,vllm] [--busy]

Last figures, 200 turns with each (steps; those without a miss, tokens expected and read in them; misses named by cause;
misnamed):

    dialect       steps  plain    expected        read  ours  exp.  unkn. wrong
    anthropic       485    427  12,897,526  12,897,539    51     2      4     0
    old claude      485    431  12,887,812  12,891,463    47     2      4     0
    openai chat     485    436  13,320,321  13,318,528    42     2      4     0
    responses       485    436  12,912,415  12,909,952    42     2      4     0
    gemini          485    439  12,881,546  12,881,545    41     0      4     0
    deepseek        485    442  15,779,797  15,777,984    38     0      4     0
    vllm            485    442  12,757,396  12,746,960    38     0      4     0

"Costs nothing here": a rewind is read from what an earlier call left, and time takes nothing where no life is
documented.

``--busy``: turns of many tool calls with the two Claudes instead, and how much of their input was read.

    4 turns of                     anthropic  old claude
    2 answers with 4 calls             86.1%       78.5%
    2 answers with 12 calls            84.4%       74.1%
    2 answers with 24 calls            84.0%       72.8%
    2 answers with 40 calls            83.8%       72.0%
    12 answers with 1 calls            96.6%       94.8%
    40 answers with 1 calls            98.8%       98.1%

What is not read is new, or follows thinking that an old Claude left out. With markers at the last two inputs only, the
second to fourth row were 34.4, 30.2, 28.2 and 13.4, 7.2, 4.5 %, the last two of an old Claude 92.5 and 97.2 %.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from agent_tui.providers.catalog import KEY_VARIABLES
from agent_tui.providers.client import ModelClient
from tests.support.cache_outcomes import Outcome
from tests.support.cached_models import KEPT, kinds_of
from tests.support.cached_runs import busy_run, cached_run
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.model_calls import KEY, environment


async def measure(names: list[str], turns: int) -> int:
    wrong = 0
    print(
        f"{'dialect':<12} {'steps':>6} {'plain':>6} {'expected':>11} {'read':>11} "
        f"{'ours':>5} {'exp.':>5} {'unkn.':>6} wrong"
    )
    worker = ModelClient()
    try:
        for name in names:
            outcome = await cached_run(name, turns, kinds_of(name), worker)
            print(line(name, outcome), flush=True)
            silent = sorted({*kinds_of(name)} - outcome.heard)
            print(f"{'':<12} costs nothing here: {', '.join(silent)}")
            for problem in outcome.wrong:
                print(f"    {problem}")
            wrong += len(outcome.wrong)
    finally:
        await worker.close()
    return wrong


BUSY = ((2, 4), (2, 12), (2, 24), (2, 40), (12, 1), (40, 1))
"""Answers with calls in each turn, and how many calls each has."""


async def measure_busy(turns: int) -> int:
    names, wrong = ("anthropic", "old claude"), 0
    print(f"{f'{turns} turns of':<30} {names[0]:>9} {names[1]:>11}")
    worker = ModelClient()
    try:
        for steps, calls in BUSY:
            runs = [await busy_run(name, turns, steps, calls, worker) for name in names]
            shares = [f"{run.share:.1%}" for run in runs]
            print(f"{f'{steps} answers with {calls} calls':<30} {shares[0]:>9} {shares[1]:>11}", flush=True)
            wrong += sum(len(run.outcome.wrong) for run in runs)
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
    parser.add_argument("--turns", type=int, default=None, help="default 200; with --busy 4")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--dialects", default=",".join(KEPT))
    values = parser.parse_args()
    logging.disable(logging.WARNING)
    unset: dict[str, str | None] = {name: None for names in KEY_VARIABLES.values() for name in names}
    with environment({**unset, KEY_VARIABLE: KEY}):
        run = (
            measure_busy(values.turns or 4) if values.busy else measure(values.dialects.split(","), values.turns or 200)
        )
        sys.exit(1 if asyncio.run(run) else 0)


if __name__ == "__main__":
    main()
