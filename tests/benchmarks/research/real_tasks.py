"""How often real work asks: four small tasks on four real packages, in three permission modes.

    python tests/benchmarks/research/real_tasks.py FOLDER... [--mode MODE]... [--means NAME] [--texts] [--json FILE]

FOLDER is an unpacked source distribution of itsdangerous, tabulate, more-itertools or markupsafe, by name: a git
repository without changes (``.venv/``, ``build/``, ``*.so`` and ``*.egg-info/`` in ``.git/info/exclude``), whose
``.venv`` holds pytest, build, what the package needs to be built (and freezegun for itsdangerous) and the package,
editable. Nothing is downloaded; what the task commits there is taken back. The calls are those of
``tests/support/real_tasks.py`` (looks, edits, tests, build, install, commit), made by the demo model in the whole
agent; questions are counted, shown and answered with yes. A call that fails is shown with the end of its result (one
edit misses on purpose), and with ``--texts`` every result is, as the model reads it. ``--means`` is that of
``everyday.py``; without it the best of this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.benchmarks.everyday import only
from tests.benchmarks.research.task_worlds import TASKS, Call

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
    """The questions and the results of the task. The folder is afterwards as it was before."""
    if git(folder, "status", "--porcelain"):
        raise SystemExit(f"{folder} has changes; it must be as it was unpacked and committed.")
    start = git(folder, "rev-parse", "HEAD")
    for left in ("patch_tests.py", "change.diff", "msg"):  # by a run without a /tmp of its own
        Path("/tmp", left).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="real-tasks-") as home:
        demo = Path(home, "script.toml")
        demo.write_text(script(calls), "utf-8")
        os.environ |= {"AGENT_TUI_HOME": home, "AGENT_TUI_DEMO_SCRIPT": str(demo)}
        os.chdir(folder)
        try:
            return asyncio.run(_worked(mode))
        finally:
            git(folder, "reset", "-q", "--hard", start)
            git(folder, "clean", "-fdq")
            shutil.rmtree(folder / "build", ignore_errors=True)


async def _worked(mode: str) -> dict[str, Any]:
    from agent_tui.bootstrap import make_agent
    from agent_tui.models.events import PermissionAsked
    from agent_tui.models.messages import ToolResultPart
    from agent_tui.options import Options

    agent = await make_agent(Options(model="demo", permission_mode=mode, trust=True))  # type: ignore[arg-type]
    asked: list[str] = []

    def answer(event: object) -> None:
        if isinstance(event, PermissionAsked):
            asked.append(f"{event.summary[:90]} ({event.reason})")
            asyncio.get_running_loop().call_soon(agent.permissions.answer, event.request_id, True)

    agent.subscribe(answer)
    await agent.start()
    try:
        agent.turns.submit("Do the task.")
        await agent.turns.join()
        made = [call for message in agent.conversation.path for call in message.tool_calls]
        results = {p.call_id: p for m in agent.conversation.path for p in m.parts if isinstance(p, ToolResultPart)}
        calls = [
            {"name": call.name, "arguments": json.loads(call.arguments), "result": results.get(call.call_id)}
            for call in made
        ]
        return {"asked": asked, "calls": calls}
    finally:
        await agent.close()


def line(call: dict[str, Any]) -> str:
    arguments = call["arguments"]
    text = arguments.get("command") or arguments.get("path") or arguments.get("pattern") or ""
    return f"{call['name']} {' '.join(text.split())}"[:110]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--mode", action="append", help="default: ask, accept-edits and auto")
    parser.add_argument("--means", help="the beginning of a name, or none")
    parser.add_argument("--texts", action="store_true", help="every result, as the model reads it")
    parser.add_argument("--json", type=Path, help="where the figures are kept")
    options = parser.parse_args()
    only(options.means or "")
    table = [f"{'task':16} {'mode':14} {'calls':>6} {'questions':>10} {'failed':>7}"]
    figures: list[dict[str, Any]] = []
    for folder in (one.resolve() for one in options.folders):
        for mode in options.mode or ["ask", "accept-edits", "auto"]:
            found = run(folder, TASKS[folder.name], mode)
            calls = found["calls"]
            failed = [call for call in calls if call["result"] is None or call["result"].is_error]
            table.append(f"{folder.name:16} {mode:14} {len(calls):6} {len(found['asked']):10} {len(failed):7}")
            counts = {"calls": len(calls), "questions": len(found["asked"]), "failed": len(failed)}
            figures.append({"task": folder.name, "mode": mode, "asked": found["asked"], **counts})
            for asked in found["asked"]:
                print(f"? {folder.name} {mode}: {asked}")
            for call in calls if options.texts else failed:
                text = call["result"].text if call["result"] else "(none)"
                mark = "!" if call in failed else " "
                print(f"{mark} {folder.name} {mode}: {line(call)}\n{text if options.texts else text[-SHOWN:]}\n")
    print("\n".join(table))
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1), "utf-8")


if __name__ == "__main__":
    main()
