"""The league of agents against a server that counts truly: what each says its context is, and what it is.

    python -m tests.benchmarks.league --cache FOLDER [--only ours] [--rivals claude,pi] [--vocabulary qwen,tekken]
        [--measure numbers] [--rounds 1] [--keep FOLDER]
        [--json docs/agents-compared.json] [--write docs/agents-compared.md]

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
from tests.benchmarks.league.running import Result, converse, read_result, surroundings
from tests.benchmarks.league.timing import timed
from tests.benchmarks.league.vocabularies import NAMES

WHAT = ("numbers", "times")
Found = dict[str, dict[str, Result]]
"""Results by vocabulary and agent."""


def main() -> None:
    options = _options()
    chosen = _chosen(options)
    cache: Path = options.cache.expanduser().resolve()
    cache.mkdir(parents=True, exist_ok=True)
    python, node = installing.vocabularies(cache), installing.node(cache)
    found = _known(options.json)
    vocabularies = options.vocabulary.split(",")
    work = [(name, rival, "numbers") for name in vocabularies for rival in chosen]
    # Rounds by turns, so that what else the machine does hits all alike.
    work += [(vocabularies[0], rival, "times") for _ in range(options.rounds) for rival in chosen]
    for vocabulary, rival, what in work:
        if options.measure in ("both", what):
            results = found.setdefault(vocabulary, {})
            before = results.get(rival.name)
            results[rival.name] = _one(rival, (cache, python, node), vocabulary, what, options.keep, before)
            if options.json:
                data = {name: [asdict(one) for one in found[name].values()] for name in found}
                options.json.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
    text = reporting.tables({name: [own[one] for one in RIVALS if one in own] for name, own in found.items()})
    if options.write:
        reporting.put(options.write, text)
    print(text)


def _known(path: Path | None) -> Found:
    """What a file holds of earlier runs: rows of agents that are not run now stay as they were."""
    if path is None or not path.exists():
        return {}
    data = json.loads(path.read_text("utf-8"))
    return {name: {one["name"]: read_result(one) for one in results} for name, results in data.items()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.league", description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="where agents and vocabularies are installed")
    parser.add_argument("--only", choices=("ours", "rivals"), help="one side")
    parser.add_argument("--rivals", help=f"some by name: {','.join(RIVALS)}")
    parser.add_argument("--vocabulary", default="qwen", help=f"one or more of {','.join(NAMES)}")
    parser.add_argument("--measure", choices=("both", *WHAT), default="both", help="numbers or times alone")
    parser.add_argument(
        "--rounds", type=int, default=1, help="how often the times are taken; the least busy one counts"
    )
    parser.add_argument("--json", type=Path, help="everything measured; what is not measured now stays as it was")
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
    rival: Rival,
    where: tuple[Path, Path, Path],
    vocabulary: str,
    what: str,
    keep: Path | None,
    before: Result | None,
) -> Result:
    """One agent with one vocabulary: its numbers or its times, beside what is known of it."""
    cache, python, node = where
    say(f"{rival.title}, {what}, {vocabulary} …")
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
            rival.prepare(place)
            result = before or Result(rival.name)
            if what == "numbers":
                result = converse(rival, place, server)
                result.date = time.strftime("%Y-%m-%d")
                if before:
                    result.times, result.timed = before.times, before.timed
            else:
                _times(rival, place, server, result)
    return result


def _times(rival: Rival, place: Place, server: Server, result: Result) -> None:
    """The times, at the second try where the first fails: agents that are slow to start lose keys. Those that stand
    already stay where the machine was less busy for them."""
    begun = time.monotonic()
    for _ in range(2):
        result.missing.pop("times", None)
        try:
            found = timed(rival, place, server, surroundings(rival, place))
            found["load"] = os.getloadavg()[0]
            if not result.times or found["load"] <= result.times["load"]:
                result.times, result.timed = found, time.strftime("%Y-%m-%d")
            break
        except (Hung, TimeoutError, EOFError, OSError, StopIteration) as error:
            said = str(error).partition("; its last bytes")[0]
            say(f"{rival.title}: times: {said}")
            if not result.times:
                result.missing["times"] = said
    result.seconds += time.monotonic() - begun


if __name__ == "__main__":
    if shutil.which("tmux") is None or shutil.which("npm") is None:
        sys.exit("the league needs tmux and npm")
    os.environ.pop("TMUX", None)
    main()
