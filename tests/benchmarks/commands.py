"""What asks: everyday commands of coding agents in every mode, with a sandbox and without.

    python tests/benchmarks/commands.py [--reasons] [--json] [--before FILE]

Each command is judged in a small project, alone, without any rule. ``+`` runs unasked, ``~`` too, and is asked about
when the sandbox stops it (``ask`` looks first), ``?`` asks, ``-`` is refused; in the columns ``none`` nothing holds
commands, in ``box`` a sandbox does, whose network opens by a question, in ``net`` one whose network is open.
``--before`` is the JSON of an earlier run: what changed is marked. Last come forty commands of real work, and the
hostile commands: how many run unasked, and how many of them outside a sandbox.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.permissions.permissions import Permissions
from tests.support.commands import lines, make_world, sections
from tests.support.tool_context import permissions_of

SIGNS = {"allow": "+", "ask": "?", "deny": "-"}
MODES: tuple[PermissionMode, ...] = ("ask", "accept-edits", "plan", "auto")
GROUNDS = ("none", "box", "net")
COLUMNS = [f"{ground} {mode}" for ground in GROUNDS for mode in MODES]


def permissions(root: Path, ground: str, mode: PermissionMode) -> Permissions:
    if ground == "none":
        return permissions_of(root, PermissionsConfig(mode))
    network = "allow" if ground == "net" else "ask"
    return permissions_of(
        root,
        PermissionsConfig(mode),
        holds=lambda domain: True,
        network=network,
        has_ports=lambda: True,
    )


def judged(root: Path, named: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """For each command: by column the sign, and the domain and reason where there is one."""
    for heading, command in named:
        row: dict[str, Any] = {"heading": heading, "command": command, "reasons": {}, "domains": {}}
        for column in COLUMNS:
            ground, _, mode = column.partition(" ")
            judge = permissions(root, ground, mode)  # type: ignore[arg-type]
            decision = judge.decide("bash", Intent("command", command, command=command))
            row[column] = SIGNS[decision.action] if decision.if_stopped is None else "~"
            row["domains"][column] = decision.domain
            if decision.action != "allow":
                row["reasons"][column] = decision.reason
        yield row


def total(rows: list[dict[str, Any]], column: str) -> str:
    counted = Counter(row[column] for row in rows)
    return f"{counted['+'] + counted['~']:4} {counted['?']:4} {counted['-']:4}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reasons", action="store_true", help="why a command asks, in the first column where it does")
    parser.add_argument("--before", type=Path, help="the JSON of an earlier run")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = make_world(Path(folder)).root
        rows = list(judged(root, sections("everyday.txt")))
        real = list(judged(root, sections("real_work.txt")))
        hostile = list(judged(root, [("hostile", command) for command in lines("hostile.txt")]))
    if options.json:
        print(json.dumps({"everyday": rows, "real_work": real, "hostile": hostile}))
        return
    before = json.loads(options.before.read_text("utf-8")) if options.before else {"everyday": [], "hostile": []}
    earlier = {row["command"]: row for row in before["everyday"]}
    print("   ".join(f"{ground}: {' '.join(MODES)}" for ground in GROUNDS))
    heading = ""
    for row in rows:
        if row["heading"] != heading:
            heading = row["heading"]
            print(f"\n{heading}")
        signs = "  ".join(" ".join(row[f"{ground} {mode}"] for mode in MODES) for ground in GROUNDS)
        was = earlier.get(row["command"], row)
        mark = "*" if any(was[column] != row[column] for column in COLUMNS) else " "
        column = next(iter(row["reasons"]), "")
        reason = f"    [{column}: {row['reasons'][column]}]" if options.reasons and column else ""
        print(f" {mark}{signs}  {row['command']!r}{reason}")
    honest = [row for row in rows if row["heading"] != "Reaching out"]
    print("\n                    unasked  ask refused" + ("   before" if earlier else ""))
    for column in COLUMNS:
        old = "  " + total(before["everyday"], column) if earlier else ""
        inside = sum(row[column] == "?" for row in honest)
        print(f"{column:18} {total(rows, column)}{old}   of these ask without reaching out: {inside}")
    print(f"\nreal work ({len(real)})   asked")
    for column in COLUMNS:
        print(f"{column:18} {sum(row[column] == '?' for row in real):5}")
    print(f"\nhostile ({len(hostile)})    unasked  outside the sandbox")
    for column in COLUMNS:
        run = [row for row in hostile if row[column] in "+~"]
        out = sum(row["domains"][column] == "free" or column.startswith("none") for row in run)
        print(f"{column:18} {len(run):8} {out:8}")


if __name__ == "__main__":
    main()
