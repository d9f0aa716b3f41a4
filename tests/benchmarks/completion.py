"""Completing ``@`` paths in a project of 50 000 files against one of 100: the list, and every further letter.

    python tests/benchmarks/completion.py [--files N] [--runs N] [--json]

``list`` reads the project (git or a walk, in a thread) and answers the first search; ``letter`` is the median of
searches as letters are typed; ``key`` is a letter typed into the prompt until it is drawn, while the search runs.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.completion import FileIndex
from tests.benchmarks.ratios import app, medians, milliseconds, report
from tests.support.fake_agent import FakeAgent

TYPED = ("m", "mo", "mod", "modu", "module_7", "module_77", "src/module_12", "xyzq", "mdl9")


def project(folder: Path, files: int) -> None:
    """Files in folders of a hundred, as a repository with everything added."""
    for number in range(files):
        path = folder / f"package_{number // 1000}" / f"part_{number // 100}" / f"module_{number}.py"
        if number % 100 == 0:
            path.parent.mkdir(parents=True)
        path.touch()
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)


async def measure(folder: Path) -> dict[str, float]:
    out: dict[str, float] = {}
    index = FileIndex(folder)
    begun = time.perf_counter()
    assert await index.search("module_5")
    out["list"] = 1_000 * (time.perf_counter() - begun)
    letters = []
    for text in TYPED:
        begun = time.perf_counter()
        await index.search(text)
        letters.append(1_000 * (time.perf_counter() - begun))
    out["letter"], out["letter_max"] = median(letters), max(letters)
    async with app(FakeAgent) as run:
        run.app.chat.completing.files = index
        await run.type("look at @")
        await run.until(lambda: run.app.completions.open)
        keys = [await milliseconds(run, partial(run.app.prompt.insert_text, key)) for key in "module_77"]
        out["key"], out["key_max"] = median(keys), max(keys)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    for files in (options.files, 100):
        print(f"{files:,} files", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            project(Path(folder), files)
            results.append(medians([asyncio.run(measure(Path(folder))) for _ in range(options.runs)]))
    report((f"{options.files:,}", "100"), results[0], results[1], options.json)


if __name__ == "__main__":
    main()
