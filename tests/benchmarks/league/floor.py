"""What each agent still sends of planted facts after one and after five compactions with a summary that names none.

    python -m tests.benchmarks.league.floor --cache FOLDER [--rivals claude,codex,ours-anthropic] [--keep FOLDER]

The session is that of ``tests/support/floor.py`` without its plan, which every agent has approved in its own way: the
agents talk to a server on this machine that scripts the model and its summaries, call their own tools, and are told to
compact by their own command. A fact counts where its text stands in the next request; of the facts of a kind, those
count that stood in a request before (who has no list of what is to do has no fact of it). An agent takes about six
minutes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.league import conversation, installing, versions
from tests.benchmarks.league.driving import Hung, Server, say, serving
from tests.benchmarks.league.everyone import RIVALS
from tests.benchmarks.league.rivals import Place, Rival
from tests.benchmarks.league.running import Result, Talk
from tests.support import floor

LAST = "floor-999"
CHOSEN = "ours-anthropic,claude,codex"


def _permit_ours(place: Place) -> None:
    config = place.home / "config" / "config.toml"
    rules = '[permissions]\nmode = "auto"\nallow = ["bash(sh check.sh *)", "write(**)"]\n'
    config.write_text(f"{config.read_text('utf-8')}{rules}", "utf-8")


def _permit_claude(place: Place) -> None:
    allowed = '["Read", "Write", "Edit", "TodoWrite", "Bash(sh check.sh:*)"]'
    place.write(".claude/settings.json", f'{{"permissions": {{"allow": {allowed}}}}}')


PERMIT: dict[str, Callable[[Place], None]] = {"ours-anthropic": _permit_ours, "claude": _permit_claude}
"""What an agent needs so that nothing is asked; the others ask nothing here."""


@dataclass(slots=True)
class Floor:
    """The facts that one agent sent before and after each of its compactions."""

    rival: Rival
    before: list[set[str]] = field(default_factory=list)
    after: list[set[str]] = field(default_factory=list)
    missing: str = ""

    def kept(self, kind: str, compactions: int) -> str:
        """``3/7``: of the facts of a kind that had been sent, those that were still."""
        if len(self.after) < compactions:
            return "not measured"
        known = set().union(*self.before[:compactions])
        of = {fact.found for fact in floor.FACTS if fact.kind == kind or not kind} & known
        return f"{len(of & self.after[compactions - 1])}/{len(of)}" if of else "–"


def measured(rival: Rival, place: Place, server: Server, rounds: int) -> Floor:
    """One agent's session."""
    found = Floor(rival)
    talk = Talk(rival, place, server, Result(rival.name))
    try:
        talk.start()
        for number, parts in enumerate(conversation.ROUNDS[:rounds]):
            for part in parts:
                talk.turn(part)
                if number and part == parts[0]:
                    found.after.append(_facts(server, part, 0))
            found.before.append(_facts(server, parts[-1], -1))
            talk.compact()
            say(f"{rival.title}: compaction {number + 1}")
        talk.turn(LAST)
        found.after.append(_facts(server, LAST, 0))
    except Hung as error:
        found.missing = str(error)
        say(f"{rival.title}: {error}")
    finally:
        talk.pane.close()
    return found


def _facts(server: Server, part: str, which: int) -> set[str]:
    """Those in the first (0) or last (-1) request of a turn."""
    return set([one["facts"] for one in server.seen() if one["part"] == part and one["kind"] == "turn"][which])


def table(found: list[Floor], rounds: int) -> str:
    """Agents by row, kinds by column."""
    kinds = [kind for kind in floor.KINDS if kind != "plan"]
    lines = [["agent", "after", *kinds, "all"], ["---"] * (len(kinds) + 3)]
    for one in found:
        version = versions.AGENTS[one.rival.name].rpartition("@")[2] if one.rival.package else "this checkout"
        for compactions in dict.fromkeys((1, rounds)):
            cells = [one.kept(kind, compactions) for kind in (*kinds, "")]
            lines.append([f"{one.rival.title} {version}", str(compactions), *cells])
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([text, *(f"{one.rival.title}: {one.missing}" for one in found if one.missing)])


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.benchmarks.league.floor", description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="where agents and vocabularies are installed")
    parser.add_argument("--rivals", default=CHOSEN, help=f"some by name: {','.join(RIVALS)}")
    parser.add_argument("--rounds", type=int, default=len(conversation.ROUNDS), help="compactions in a row")
    parser.add_argument("--keep", type=Path, help="a folder for every request as it came")
    options = parser.parse_args()
    cache: Path = options.cache.expanduser().resolve()
    python, node, found = installing.vocabularies(cache), installing.node(cache), []
    for rival in (RIVALS[name] for name in options.rivals.split(",")):
        installed = installing.agent(cache, rival.name) if rival.package else cache
        with tempfile.TemporaryDirectory(prefix="floor-", ignore_cleanup_errors=True) as folder:
            project = Path(folder) / "books"
            floor.write_project(project)
            kept = options.keep / rival.name if options.keep else None
            with serving(python, "qwen", project, kept) as server:
                place = Place(installed, Path(folder) / "home", project, server.url, node)
                place.home.mkdir()
                rival.prepare(place)
                if rival.name in PERMIT:
                    PERMIT[rival.name](place)
                found.append(measured(rival, place, server, options.rounds))
    print(table(found, options.rounds))


if __name__ == "__main__":
    if shutil.which("tmux") is None or shutil.which("npm") is None:
        sys.exit("this needs tmux and npm")
    os.environ.pop("TMUX", None)
    main()
