"""How often real work asks: three small tasks on three real packages, in two permission modes.

    python tests/benchmarks/real_tasks.py FOLDER... [--mode MODE]... [--texts]

FOLDER is an unpacked source distribution of itsdangerous, tabulate or more-itertools, by name: a git repository without
changes, whose ``.venv`` holds pytest (and freezegun) and the package, editable. Nothing is downloaded; what the task
commits there is taken back. The calls are those of ``tests/support/real_tasks.py``, made by the demo model in a real
process without a screen: a call that is refused there is a question in the chat. A call that fails is shown with the
end of its result (one edit misses on purpose), and with ``--texts`` every result is, as the model reads it.

With bubblewrap, in both modes: itsdangerous 2.2.0, 18 calls; tabulate 0.10.0, 21; more-itertools 11.2.1, 20; no
question in any, and no call that fails but the one that is meant to.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.real_tasks import TASKS, Call

SHOWN = 600
"""Characters of a failed call's result that are shown."""


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def script(calls: list[Call]) -> str:
    steps = [
        f'[[step]]\ntool_calls = [{{ name = "{name}", arguments = {json.dumps(json.dumps(arguments))} }}]\n'
        for name, arguments in calls
    ]
    return "\n".join([*steps, '[[step]]\ntext = "Done."\n'])


def run(folder: Path, calls: list[Call], mode: str) -> dict[str, Any]:
    """What the program prints of the task. The folder is afterwards as it was before."""
    if git(folder, "status", "--porcelain"):
        raise SystemExit(f"{folder} has changes; it must be as it was unpacked and committed.")
    start = git(folder, "rev-parse", "HEAD")
    with tempfile.TemporaryDirectory() as home:
        demo = Path(home, "script.toml")
        demo.write_text(script(calls), "utf-8")
        command = [sys.executable, "-m", "agent_tui", "-p", "Do the task.", "-m", "demo", "--permission-mode", mode]
        env = {**os.environ, "AGENT_TUI_HOME": home, "AGENT_TUI_DEMO_SCRIPT": str(demo)}
        env["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
        try:
            done = subprocess.run(
                [*command, "--trust", "--output-format", "json"],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )
        finally:
            git(folder, "reset", "-q", "--hard", start)
            git(folder, "clean", "-fdq")
    if not done.stdout:
        raise SystemExit(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def line(call: dict[str, Any]) -> str:
    arguments = call["arguments"]
    text = arguments.get("command") or arguments.get("path") or arguments.get("pattern") or ""
    return f"{call['name']} {' '.join(text.split())}"[:110]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--mode", action="append", help="default: auto and accept-edits")
    parser.add_argument("--texts", action="store_true", help="every result, as the model reads it")
    options = parser.parse_args()
    table = [f"{'task':16} {'mode':14} {'calls':>6} {'questions':>10} {'failed':>7}"]
    for folder in options.folders:
        for mode in options.mode or ["auto", "accept-edits"]:
            found = run(folder.resolve(), TASKS[folder.resolve().name], mode)
            calls = found["tool_calls"]
            failed = [call for call in calls if call["result"] is None or call["result"]["is_error"]]
            table.append(f"{folder.name:16} {mode:14} {len(calls):6} {found['denied_calls']:10} {len(failed):7}")
            for call in calls if options.texts else failed:
                text = call["result"]["text"] if call["result"] else "(none)"
                mark = "!" if call in failed else " "
                print(f"{mark} {folder.name} {mode}: {line(call)}\n{text if options.texts else text[-SHOWN:]}\n")
    print("\n".join(table))


if __name__ == "__main__":
    main()
