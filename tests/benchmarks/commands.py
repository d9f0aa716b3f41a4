"""What asks: everyday commands of coding agents in every mode.

    python tests/benchmarks/commands.py [--reasons] [--json]

Each command is judged in a small project, alone, without any rule. ``+`` runs unasked, ``?`` asks, ``-`` is refused.
``--held`` judges as where a sandbox holds, with its network open.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.permissions.permissions import Permissions
from tests.support.commands import make_world, sections

SIGNS = {"allow": "+", "ask": "?", "deny": "-"}
MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reasons", action="store_true", help="why the strictest mode does not let it pass")
    parser.add_argument("--held", action="store_true", help="as where a sandbox holds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        root = make_world(Path(folder)).root
        for heading, command in sections("everyday.txt"):
            row = {"heading": heading, "command": command}
            for mode in MODES:
                held = Permissions(root, root, PermissionsConfig(mode), holds=lambda domain: True, network="allow")
                permissions = held if options.held else Permissions(root, root, PermissionsConfig(mode))
                decision = permissions.decide("bash", Intent("command", command, command=command))
                row[mode] = decision.action
                if decision.action != "allow":
                    row["reason"] = row.get("reason", decision.reason)
            rows.append(row)
    if options.json:
        print(json.dumps(rows))
        return
    print("  ".join(MODES))
    heading = ""
    for row in rows:
        if row["heading"] != heading:
            heading = row["heading"]
            print(f"\n{heading}")
        signs = " ".join(SIGNS[row[mode]] for mode in MODES)
        reason = f"    [{row['reason']}]" if options.reasons and "reason" in row else ""
        print(f"  {signs}  {row['command']!r}{reason}")
    print()
    for mode in MODES:
        counted = Counter(row[mode] for row in rows)
        print(f"{mode:13} {counted['allow']:4} unasked {counted['ask']:4} ask {counted['deny']:4} refused")


if __name__ == "__main__":
    main()
