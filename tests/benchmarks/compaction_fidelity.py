"""What five compactions in a row leave of the facts of a session, whoever summarises.

The session (``tests/support/floor.py``) plants 61 facts of twelve kinds, most of them before the first compaction, in
English, Chinese, Arabic, code and pasted text. The agent, its store and its tools are real; the model and its eleven
summarisers, from good to useless, are scripted, on a server with a true prefix cache. A fact counts as sent where its
text stands in the next request. Where no compaction was made everything is still sent.

    python tests/benchmarks/compaction_fidelity.py [--summarisers good,empty] [--rounds 5] [--lost] [--baseline]

Found on 2026-11-28, facts sent after five compactions + those that asking for them found / planted:

    summariser   rule typed plan decision question error todo number command path    id   url   all
    good        10/10   6/6  3/3      7/7      4/4   5/5  4/4    6/6     4/4  5/5   4/4   3/3 61/61
    the others  10/10   6/6  3/3    0+7/7      4/4   5/5  4/4  0+6/6   0+4/4  5/5 1+3/4 0+3/3 38+23/61

    summariser                 made calls    cost  cached  added  undone alike
    good                          5     5  $0.099     93%   0.2%        5 of 5
    the others                    3     6  $0.05      94%   0.5%        3 of 3

``added`` is of the limit, at most. What all but the first two write is no summary: each is asked twice, then what is
kept stands for the messages, which leaves more room than a summary, so that three compactions do; after three failures
no model is asked any more. Whether a real model writes better summaries than these, and asks for what is gone, is not
shown.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2]))

from agent_tui.context.compaction.facts import FactReader
from agent_tui.providers.client import ModelClient
from tests.support import floor
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.floor_runs import FloorOutcome, FloorRun, Standing
from tests.support.model_calls import KEY, environment, no_provider_keys


async def measure(names: Iterable[str], rounds: int) -> list[FloorOutcome]:
    worker, found = ModelClient(), []
    try:
        for name in names:
            with tempfile.TemporaryDirectory(prefix="fidelity-") as folder:
                found.append(await FloorRun(name, worker, Path(folder), rounds).go())
    finally:
        await worker.close()
    return found


def report(found: list[FloorOutcome]) -> list[str]:
    """Both tables."""
    lines = [f"{'summariser':<24} " + " ".join(f"{kind:>8}" for kind in floor.KINDS) + f" {'all':>8}"]
    for one in found:
        cells = [_standing(one.after[-1], kind) for kind in floor.KINDS]
        lines.append(
            f"{one.summariser:<24} " + " ".join(f"{cell:>8}" for cell in cells) + f" {_standing(one.after[-1]):>8}"
        )
    lines += [
        "",
        f"{'summariser':<24} {'made':>5} {'calls':>5} {'cost':>7} {'cached':>7} {'added':>6} undone alike   after one",
    ]
    for one in found:
        undone = f"{sum(one.same)} of {len(one.same)}" if one.same else ""
        lines.append(
            f"{one.summariser:<24} {one.made:>5} {one.calls:>5} {f'${one.cost.known:.3f}':>7} {one.warm:>7.0%} "
            f"{one.added / one.limit:>6.1%} {undone:>12}   {_standing(one.after[0])}"
        )
    return lines


def _standing(standing: Standing, *kinds: floor.Kind) -> str:
    """``4+2/7``: sent, found by asking for them, planted."""
    sent, found, planted = standing.of(*kinds)
    return f"{sent}{f'+{found}' if found else ''}/{planted}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=len(floor.ROUNDS), help="compactions in a row")
    parser.add_argument("--summarisers", default=",".join(floor.SUMMARISERS))
    parser.add_argument("--lost", action="store_true", help="name each fact that is lost, and what was told")
    parser.add_argument("--baseline", action="store_true", help="without the list of facts")
    values = parser.parse_args()
    unread = mock.patch.object(FactReader, "read", return_value=[]) if values.baseline else nullcontext()
    logging.disable(logging.WARNING)
    with environment({**no_provider_keys(), KEY_VARIABLE: KEY}), unread:
        found = asyncio.run(measure(values.summarisers.split(","), values.rounds))
    print("\n".join(report(found)))
    if values.lost:
        for one in found:
            print(f"\n{one.summariser}", *one.told, sep="\n    ")
            print(*(f"    lost: {fact.kind}: {fact.found}" for fact in one.after[-1].lost), sep="\n")


if __name__ == "__main__":
    main()
