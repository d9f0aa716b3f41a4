"""Goes through the reports of recorded runs again, in a tenth of a second each: what another calibration makes of them.

    python -m tests.benchmarks.full_context --models vllm --mixed 4 --turns 60 … --record runs.jsonl
    python -m tests.benchmarks.research.reports_again runs.jsonl [--name MODEL] [--set WIDEN=0.2 …]

``--set`` changes numbers of ``models/calibration.py``; ``--name`` says what the models are called instead. For each run
and model: steps, how many intervals held, their ± on average and the errors at 95 %, both in percent of the window, and
the interval's score (its width, and 20 times by how much it misses; less is better). What a step consists of does not
depend on what was learned before, so the errors are those of a run with that calibration, but for what it would have
compacted otherwise. Numbers are chosen by some seeds and judged by others.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from agent_tui.context.tokens import family_of
from agent_tui.models import calibration
from agent_tui.models.calibration import Calibration, Content
from agent_tui.models.requests import Target

MISSED_COSTS = 40
"""Of the score of an interval that holds 95 times of 100: two by the share that misses."""


def again(steps: Iterable[dict[str, Any]], name: str = "") -> Iterator[tuple[str, float, int]]:
    """The model, by how much its input was off and the spread of each of the steps."""
    learned: dict[str, Calibration] = {}
    for step in steps:
        called = name or step["model"]
        target = Target("hosted_vllm", "chat", called.rpartition("/")[2], "unknown")
        known = learned.get(called) or family_of(target).beginning
        content = Content(**step["content"])
        yield called, step["known"] + known.tokens(content) - step["true"], known.spread(content)
        if step["taught"]:
            learned[called] = known.learned(content, step["true"] - step["known"])


def figures(found: list[tuple[float, int]], window: int) -> str:
    """One row of the table."""
    off, count = sorted(abs(error) for error, _ in found), len(found)
    held = sum(abs(error) <= spread for error, spread in found) / count
    width = sum(spread for _, spread in found) / count / window
    score = sum(2 * spread + MISSED_COSTS * max(0.0, abs(error) - spread) for error, spread in found) / count / window
    return f"{count:>7}{100 * held:>8.1f}{100 * width:>8.3f}{100 * off[int(0.95 * count)] / window:>8.2f}{score:>10.5f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--name", default="")
    parser.add_argument("--set", nargs="*", default=[])
    options = parser.parse_args()
    for change in options.set:
        name, _, value = change.partition("=")
        assert isinstance(getattr(calibration, name), (int, float)), name
        setattr(calibration, name, float(value))
    print(f"{'run':32}{'model':28}{'steps':>7}{'held %':>8}{'± %':>8}{'p95 %':>8}{'score':>10}")
    for line in options.file.read_text("utf-8").splitlines():
        run = json.loads(line)
        models: dict[str, list[tuple[float, int]]] = defaultdict(list)
        for model, off, spread in again(run["steps"], options.name):
            models[model].append((off, spread))
        for model, found in models.items():
            named = f"{run['vocabulary']} {run['window']} seed {run['seed']}"
            print(f"{named:32}{model[-26:]:28}{figures(found, run['window'])}")


if __name__ == "__main__":
    main()
