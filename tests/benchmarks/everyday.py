"""Forty commands of real work and 32 more, really run by the program: what asks, and what works.

    python tests/benchmarks/everyday.py [--means NAME]... [--mode MODE]... [--json FILE] [--before FILE] [--only TEXT]

The commands of ``tests/tools/judge/data/everyday_run.txt`` are called by the demo model, each in a fresh small project
(Python with tests and a Makefile, npm, Cargo, git with a remote on disk); questions are answered with yes, those about
commands that leave the machine with no. ``+`` runs unasked, ``?`` asks, ``-`` is refused without a question; behind it
``!`` where it ran and its exit code or its effect is not what bash alone gives. What does not work in bash alone here
is left out, and named. ``--means`` is the beginning of a name (``bubblewrap``, ``landlock``, …, or ``none``; default:
all that this machine has); a bwrap that is not installed is taken from ``AGENT_TUI_TEST_BWRAP``. ``--json`` keeps the
results in a file, to which further runs (as another user) are added; ``--before`` is such a file of earlier code:
what changed is marked, and its totals are shown. Nothing is downloaded. Takes some minutes a means.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.everyday_world import Case, Project, cases

MODES = ("ask", "accept-edits", "plan", "auto")
USER = "root" if os.geteuid() == 0 else "user"
Row = dict[str, Any]


def available() -> list[str]:
    """The names of the means this machine could have, and ``none``."""
    from agent_tui.tools.sandbox import box

    _with_bwrap()
    return [*dict.fromkeys(backend.name.split()[0].lower() for backend in box.backends()), "none"]


def _with_bwrap() -> None:
    from agent_tui.tools.sandbox import box

    # Taken out: the program knows no such variable.
    given, found = os.environ.pop("AGENT_TUI_TEST_BWRAP", None), box.find
    if given:
        box.find = lambda program: given if program == "bwrap" else found(program)


def _without_our_path() -> None:
    """Where this program is found is nothing to the commands: they begin without it, as a user's do."""
    from agent_tui.tools.sandbox import environment

    given = environment.child_env

    def child_env(*args: Any, **more: Any) -> dict[str, str]:
        return {name: value for name, value in given(*args, **more).items() if name != "PYTHONPATH"}

    environment.child_env = child_env


def only(means: str) -> None:
    """This process uses one means alone."""
    from agent_tui.tools.sandbox import box

    _with_bwrap()
    _without_our_path()
    every = box.backends
    box.backends = lambda: [backend for backend in every() if backend.name.lower().startswith(means)]


def script(chosen: Sequence[Case]) -> str:
    steps = [
        f'[[step]]\nmatch = "^task {number}$"\ntool_calls = [{{ name = "bash", arguments = '
        f"{json.dumps(json.dumps({'command': case.command, 'timeout': 120}))} }}]\n"
        for number, case in enumerate(chosen)
    ]
    return "window = 2000000\n" + "\n".join([*steps, '[[step]]\ntext = "Done."\nrepeat = 0\n'])


async def one_mode(project: Project, mode: str, chosen: Sequence[Case]) -> dict[str, Row]:
    """Every command in one permission mode, by the whole agent."""
    from agent_tui.bootstrap import make_agent
    from agent_tui.models.events import PermissionAsked
    from agent_tui.models.messages import ToolResultPart
    from agent_tui.options import Options

    os.chdir(project.root)
    options = Options(model="demo", permission_mode=mode, trust=True)  # type: ignore[arg-type]
    agent = await make_agent(options)
    asked: list[str] = []
    allow = True

    def answer(event: object) -> None:
        if isinstance(event, PermissionAsked):
            asked.append(event.reason)
            asyncio.get_running_loop().call_soon(agent.permissions.answer, event.request_id, allow)

    agent.subscribe(answer)
    await agent.start()
    found: dict[str, Row] = {}
    try:
        for number, case in enumerate(chosen):
            project.refresh(chosen[number - 1].command)
            asked.clear()
            allow = bool(case.check)
            agent.turns.submit(f"task {number}")
            await agent.turns.join()
            parts = [part for m in agent.conversation.path for part in m.parts if isinstance(part, ToolResultPart)]
            result = parts[-1]
            ran = "exit_code" in (result.display or {})
            row: Row = {"sign": "?" if asked else "+" if ran else "-", "reasons": list(asked)}
            if ran and case.check:
                row["works"] = (result.display or {})["exit_code"] == 0 and project.holds(case, result.text)
            if not row.get("works", True) or row["sign"] == "-":
                row["said"] = result.text[-600:]
            found[case.command] = row
    finally:
        await agent.close()
    project.refresh()
    return found


def not_here(wanted: str) -> list[str]:
    """The commands that do not work in bash alone, for this user on this machine."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="everyday-") as folder:
        project = Project(Path(folder).resolve())
        found: list[str] = []
        for case in cases():
            if case.check and wanted in case.command and not project.works_without(case):
                found.append(case.command)
            project.refresh(case.command)
        return found


def one_means(means: str, modes: Sequence[str], wanted: str, left: Sequence[str]) -> dict[str, dict[str, Row]]:
    """By column (means, user, mode), by command, without what is ``left`` out. Runs in a process of its own."""
    only(means)
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="everyday-") as folder:
        base = Path(folder).resolve()
        os.environ["AGENT_TUI_HOME"] = str(base / "home")
        os.environ["AGENT_TUI_DEMO_SCRIPT"] = str(base / "script.toml")
        project = Project(base)
        chosen = [case for case in cases() if wanted in case.command]
        tried = [case for case in chosen if case.command not in left]
        (base / "script.toml").write_text(script(tried), "utf-8")
        found: dict[str, dict[str, Row]] = {}
        for mode in modes:
            rows = asyncio.run(one_mode(project, mode, tried))
            rows |= {case.command: {"sign": " "} for case in chosen if case not in tried}
            found[f"{means} {USER} {mode}"] = rows
        os.chdir("/")
    return found


def mark(row: Row | None) -> str:
    if row is None:
        return "  "
    return str(row["sign"]) + ("!" if row.get("works") is False else " ")


def table(found: dict[str, dict[str, Row]], before: dict[str, dict[str, Row]]) -> None:
    groups = list(dict.fromkeys(column.rpartition(" ")[0] for column in found))
    print("columns, each in the modes " + ", ".join(MODES) + ":\n  " + "   ".join(groups))
    heading = ""
    for case in cases():
        if case.heading != heading:
            heading = case.heading
            print(f"\n{heading}")
        marks = ["".join(mark(found.get(f"{g} {m}", {}).get(case.command)) for m in MODES) for g in groups]
        old = ["".join(mark(before.get(f"{g} {m}", {}).get(case.command)) for m in MODES) for g in groups]
        changed = "*" if before and old != marks else " "
        print(f" {changed}{'  '.join(marks)} {case.command!r}"[:150])
    for which in dict.fromkeys(case.list for case in cases()):
        print(f"\n{which:32} tried  asks refused fails" + ("    before: asks refused fails" if before else ""))
        for column in found:
            print(f"{column:32} {total(found[column], which)}", end="")
            print(f"            {total(before[column], which)[6:]}" if column in before else "")


def total(rows: dict[str, Row], which: str) -> str:
    mine = [rows[case.command] for case in cases() if case.list == which and case.command in rows]
    tried = [row for row in mine if row["sign"] != " "]
    asks, refused = (sum(row["sign"] == sign for row in tried) for sign in "?-")
    return f"{len(tried):5} {asks:5} {refused:7} {sum(row.get('works') is False for row in tried):5}"


def run(options: argparse.Namespace, found: dict[str, dict[str, Row]]) -> None:
    """Adds to ``found`` what is tried, each means in a process of its own, and keeps it as it comes."""
    environ = dict(os.environ)
    means = options.means or available()
    left = json.dumps(not_here(options.only))
    for one in means:
        again = [sys.executable, __file__, "--child", "--means", one, "--only", options.only]
        again += [word for mode in options.mode or () for word in ("--mode", mode)]
        done = subprocess.run(again, stdout=subprocess.PIPE, text=True, check=True, input=left, env=environ)
        for column, rows in json.loads(done.stdout.splitlines()[-1]).items():
            found.setdefault(column, {}).update(rows)
        if options.json is not None:
            options.json.write_text(json.dumps(found), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--means", action="append")
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--only", default="", metavar="TEXT", help="commands that hold TEXT")
    parser.add_argument("--table", action="store_true", help="run nothing; show what --json holds")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        left = json.loads(sys.stdin.read())
        print(json.dumps(one_means(options.means[0], options.mode or MODES, options.only, left)))
        return
    kept = options.json is not None and options.json.exists()
    found: dict[str, dict[str, Row]] = json.loads(options.json.read_text("utf-8")) if kept else {}
    if not options.table:
        run(options, found)
    before = json.loads(options.before.read_text("utf-8")) if options.before else {}
    table(found, before)
    failed = {c: r for column in found.values() for c, r in column.items() if r.get("works") is False}
    for command, row in failed.items():
        print(f"\n! {command!r}\n{row['said']}")
    left = {c for column in found.values() for c, r in column.items() if r["sign"] == " "}
    print("\nDoes not work in bash alone for one of the users: " + ("; ".join(map(repr, sorted(left))) or "none"))


if __name__ == "__main__":
    main()
