"""Hundreds of turns at full context against providers that count truly.

python -m tests.benchmarks.full_context [--models claude-4.6,vllm] [--windows 8192,32768] [--turns 200] [--json]
    [--vocabulary qwen] [--names some-model,llama-3.3-70b] [--mixed 4] [--other llama-3.3-70b] [--record FILE]

``--mixed``: restarts, kills, switched models, edited memory files, pinned documents, undone compactions, refusals, bad
reports and a window that shrinks, one of them every so many turns, and texts of every kind; there each automatic
compaction is checked by having the server count the request, and requests that were refused for their size are steps.

All events mixed, real vocabularies (``--models vllm --mixed 4 --turns 60 --seed 2``, all 25 runs of one build of
2026-11-23, on a busy machine): error at 95 % in percent of the window, percent of the steps in which the interval held,
and its ± in tokens on average, of the session's own model. Qwen, DeepSeek and Llama 3 under their names, Tekken as
mistral-small, Claude 2's, which no family has, under a name that says nothing. No number of the program was chosen by
this seed.

                8 192            32 768           128 000           200 000         1 000 000
Qwen      0.40 95.3  48   0.48 95.4  95   0.21 96.2 197   0.26 94.6  488   0.24 92.4 1345
Tekken    0.74 95.4  45   0.43 96.2  94   0.27 95.3 359   0.26 94.6  399   0.22 95.3 1768
DeepSeek  0.37 96.9  43   0.40 96.9 107   0.46 93.3 344   0.71 96.1  614   0.29 95.3 2363
Llama 3   0.46 94.0  34   0.55 92.4  76   0.32 95.4 181   0.16 94.6  296   0.19 94.6 1413
Claude 2  0.70 93.9  62   0.82 92.3 233   0.95 91.6 770   1.11 94.6 1253   0.99 93.8 5589

The interval held in 94.7 % of the 3 807 steps. No turn was dead or failed, no row scaled, no request invalid, no true
report doubted; 3 inputs were refused; 35 of 587 automatic compactions began outside their interval, one was needless
(Llama 3, 8 192). Missed: the goal of 1 % with an unknown vocabulary at 200 000; in four runs the interval held less
often than 93 %. With 200 turns (seed 3, 8 192): DeepSeek 0.38 96.7 33, Qwen 0.48 94.7 33; the others were not run so.

The other model, asked in 22 to 23 steps of a run, is cl100k as gpt-4-turbo, which tells that, and does not think: 0.2-
0.9 % from 32 768 on, 1.2-1.5 % at 8 192, which is its first request, where all is an estimate; the interval held in
86-100 %. Under a false name (``--other llama-3.3-70b``, 128 000 and more, an earlier build) in 71-81 %.

The build before, of the same day, all legs in one figure and the other model under a false name: 1.21, 0.80, 1.33,
0.84, 2.16 at 8 192; 0.46, 1.36, 1.38, 0.53, 3.17 at 32 768; at 200 000 0.55, 0.65, 0.66, 0.71, 1.43, where the interval
held in 92.0, 92.0, 90.8, 90.6, 91.3 % at ± 637, 765, 921, 650, 1 907. What it was: reasoning that nobody counted was
as unsure as if other factors made it than the texts it is left of (every second interval after such an answer missed);
what wraps answers and calls was sure (its small misses widened all others by a fifth); results that stay behind a
summary were estimated anew; other languages, and results beside an answer whose report was not believed, were too sure.

Without events, counting like o200k (an earlier build, 2026-11-22, not repeated; all seven models at 8 192, 32 768 and
200 000 tokens, 200 turns, 10 185 steps, 20 minutes): error at 95 % 29-68 / 33-65 / 94-126 tokens (at most 0.83 % of the
window); thinking on in 100 % of the steps but for Claude 4.5 at 8 192 (98.4 %); read from the cache 77-85 / 85-92 /
90-96 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import time
from dataclasses import replace
from pathlib import Path

from agent_tui.providers.client import ModelClient
from agent_tui.providers.litellm_files import VOCABULARIES, place
from tests.benchmarks.league.vocabularies import NAMES, vocabulary
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.long_run_figures import FLAVOURS, Flavour, Outcome
from tests.support.long_runs import Plan, long_run
from tests.support.mixed_runs import Mix, mixed_run

WINDOWS = (8_192, 32_768, 200_000)


async def run(
    flavours: list[Flavour], windows: list[int], plan: Plan, mix: Mix | None, seed: int, verbose: bool
) -> list[Outcome]:
    """All runs, one after the other, with one worker."""
    worker = ModelClient()
    found = []
    try:
        for flavour in flavours:
            for window in windows:
                begun = time.perf_counter()
                if mix is None:
                    outcome = await long_run(flavour, window, seed, plan, worker)
                else:
                    outcome = await mixed_run(flavour, window, seed, plan, mix, worker)
                found.append(outcome)
                if verbose:
                    print(_line(outcome), f"{time.perf_counter() - begun:6.1f} s", flush=True)
                    for fault in _first(outcome.faults()):
                        print(f"    {fault[:400]}")
    finally:
        await worker.close()
    return found


def _first(faults: list[str], most: int = 2) -> list[str]:
    """The first faults of each kind."""
    kinds: dict[str, list[str]] = {}
    for fault in faults:
        kinds.setdefault(" ".join(fault.split()[:2]), []).append(fault)
    return [fault for found in kinds.values() for fault in found[:most]]


def _line(outcome: Outcome) -> str:
    return "  ".join(f"{name} {value}" for name, value in outcome.row().items() if name != "seed")


def table(outcomes: list[Outcome]) -> str:
    """All figures, a row for each run."""
    rows = [o.row() for o in outcomes]
    names = list(rows[0])
    widths = [max(len(name), *(len(str(row[name])) for row in rows)) for name in names]
    lines = [names, *([str(row[name]) for name in names] for row in rows)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def record(path: Path, vocabulary: str, outcomes: list[Outcome]) -> None:
    """Adds a line for each run: what its steps were estimated from and what the servers counted."""
    with path.open("a", encoding="utf-8") as file:
        for o in outcomes:
            run = {"vocabulary": vocabulary, "window": o.window, "seed": o.seed, "steps": o.told}
            file.write(json.dumps(run) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(FLAVOURS))
    parser.add_argument("--windows", default=",".join(map(str, WINDOWS)))
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--exact", action="store_true", help="ask the provider for exact counts, as the default is")
    parser.add_argument("--vocabulary", default="", help=f"a real one to count with: {', '.join(NAMES)}")
    parser.add_argument("--names", default="", help="what the models are called, instead of what they are")
    parser.add_argument("--mixed", type=int, default=0, help="all events, one every so many turns")
    parser.add_argument("--other", default="", help="what the model that is switched to is called")
    parser.add_argument("--record", type=Path, help="a file for what reports_again.py goes through again")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    flavours = [FLAVOURS[name] for name in args.models.split(",")]
    files = place(*VOCABULARIES) or Path()
    if args.vocabulary:
        flavours = [replace(flavour, vocabulary=vocabulary(args.vocabulary, files)) for flavour in flavours]
    if args.names:
        flavours = [flavour.called(name) for flavour in flavours for name in args.names.split(",")]
    mix = None
    if args.mixed:
        other = FLAVOURS["vllm"].called(args.other or ("gpt-4-turbo" if args.vocabulary else "llama-3.3-70b"))
        if args.vocabulary:
            # The real one does not think, and no rule for its name says what becomes of its thoughts.
            thinks = not other.model.name.startswith("gpt-4")
            model = replace(other.model, thinks=thinks)
            other = replace(other, model=model, vocabulary=vocabulary("cl100k", files))
        mix = Mix(other, args.mixed)
    logging.disable(logging.WARNING)
    os.environ.setdefault(KEY_VARIABLE, "test-key")
    windows = [int(w) for w in args.windows.split(",")]
    plan = Plan(args.turns, exact=args.exact)
    outcomes = asyncio.run(run(flavours, windows, plan, mix, args.seed, not args.json))
    if args.record is not None:
        record(args.record, args.vocabulary, outcomes)
    if args.json:
        print(json.dumps([{**o.row(), "faults": o.faults()} for o in outcomes], indent=1))
    else:
        print(table(outcomes))


if __name__ == "__main__":
    main()
