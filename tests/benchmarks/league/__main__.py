"""The league of agents against a server that counts truly: what each says its context is, and what it is.

    python -m tests.benchmarks.league --cache FOLDER [--only ours] [--rivals claude,pi] [--vocabulary qwen,tekken]
        [--json FILE] [--write docs/truth-league.md] [--no-times] [--keep FOLDER]

Run it with the project's environment; it needs tmux, npm and the network of the package registries for the first run,
none after it. Agents are installed into ``--cache`` by the versions of ``versions.py``, run with a home of their own
and nothing of this environment, and speak with a server on this machine only. An agent takes about a minute and a half
for one vocabulary, and half a minute for its times.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks.league import installing, reporting
from tests.benchmarks.league.conversation import write_files
from tests.benchmarks.league.driving import Hung, Server, say, serving
from tests.benchmarks.league.everyone import RIVALS
from tests.benchmarks.league.rivals import Place, Rival
from tests.benchmarks.league.running import Result, converse, surroundings
from tests.benchmarks.league.timing import timed
from tests.benchmarks.league.vocabularies import NAMES


def main() -> None:
    options = _options()
    chosen = _chosen(options)
    cache: Path = options.cache.expanduser().resolve()
    cache.mkdir(parents=True, exist_ok=True)
    python = installing.vocabularies(cache)
    node = installing.node(cache)
    begun = time.monotonic()
    found: dict[str, list[Result]] = {}
    for vocabulary in options.vocabulary.split(","):
        times = not options.no_times and not found
        found[vocabulary] = [_one(rival, cache, python, node, vocabulary, times, options.keep) for rival in chosen]
    date, seconds = time.strftime("%Y-%m-%d"), time.monotonic() - begun
    whole = {
        "date": date,
        "seconds": round(seconds),
        "vocabularies": {name: [asdict(result) for result in results] for name, results in found.items()},
    }
    if options.json:
        options.json.write_text(json.dumps(whole, indent=1, ensure_ascii=False))
    text = reporting.tables(found, date, seconds)
    if options.write:
        reporting.put(options.write, text)
    print(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.league", description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="where agents and vocabularies are installed")
    parser.add_argument("--only", choices=("ours", "rivals"), help="one side")
    parser.add_argument("--rivals", help=f"some by name: {','.join(RIVALS)}")
    parser.add_argument("--vocabulary", default="qwen", help=f"one or more of {','.join(NAMES)}")
    parser.add_argument("--no-times", action="store_true", help="numbers only")
    parser.add_argument("--json", type=Path, help="everything measured")
    parser.add_argument("--write", type=Path, help="a Markdown file whose tables are replaced")
    parser.add_argument("--keep", type=Path, help="a folder for every request as it came")
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> list[Rival]:
    names = options.rivals.split(",") if options.rivals else list(RIVALS)
    unknown = [name for name in names if name not in RIVALS]
    if unknown:
        sys.exit(f"no agent is called {', '.join(unknown)}: {', '.join(RIVALS)}")
    sides = {"ours": [False], "rivals": [True], None: [False, True]}
    return [RIVALS[name] for name in names if bool(RIVALS[name].package) in sides[options.only]]


def _one(
    rival: Rival, cache: Path, python: Path, node: Path, vocabulary: str, times: bool, keep: Path | None
) -> Result:
    """One agent with one vocabulary: the conversation, then the times in another session."""
    say(f"{rival.title}, {vocabulary} …")
    try:
        installed = installing.agent(cache, rival.name) if rival.package else cache
    except installing.NotInstalled as error:
        return Result(rival.name, missing={"installing": str(error)})
    with tempfile.TemporaryDirectory(prefix="league-", ignore_cleanup_errors=True) as folder:
        project = Path(folder) / "books"
        write_files(project)
        kept = keep / f"{rival.name}-{vocabulary}" if keep else None
        with serving(python, vocabulary, project, kept) as server:
            place = Place(installed, Path(folder) / "home", project, server.url, node)
            place.home.mkdir()
            result = converse(rival, place, server)
            if times and "short talk" not in result.missing:
                _times(rival, place, server, result)
    return result


def _times(rival: Rival, place: Place, server: Server, result: Result) -> None:
    begun = time.monotonic()
    try:
        result.times = timed(rival, place, server, surroundings(rival, place))
    except (Hung, TimeoutError, EOFError, OSError, StopIteration) as error:
        result.missing["times"] = f"{type(error).__name__}: {error}"[:300]
        say(f"{rival.title}: times: {error}"[:500])
    result.seconds += time.monotonic() - begun


if __name__ == "__main__":
    if shutil.which("tmux") is None or shutil.which("npm") is None:
        sys.exit("the league needs tmux and npm")
    os.environ.pop("TMUX", None)
    main()
