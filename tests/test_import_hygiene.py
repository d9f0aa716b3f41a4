"""What a process may have imported, and when: the screen never what only the workers need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import environment

pytestmark = pytest.mark.quick

WORKERS_ONLY = ("litellm", "tiktoken", "mcp", "openai", "httpx")
ON_DEMAND = ("PIL",)
"""Imported in a thread when there is something to do for it."""

FIRST_FRAME = """
import asyncio, os, sys
from pathlib import Path
from agent_tui.cli.arguments import build_parser
from agent_tui.cli import parse_options
from agent_tui.config.early import early_settings
from agent_tui.paths import user_paths
from agent_tui.ui.app import AgentApp

async def factory():
    await asyncio.Event().wait()

async def main():
    paths = user_paths()
    app = AgentApp(factory, early_settings(parse_options([]).config, paths), paths, Path.cwd())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        print("\\n".join(sys.modules))

asyncio.run(main())
"""

WHOLE_RUN = """
import sys
from agent_tui.cli import main
code = main(["-p", "hello", "-m", "demo"])
print("\\n".join(["", "MODULES", *sys.modules]))
sys.exit(code)
"""


def modules(script: str, tmp_path: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment({"AGENT_TUI_HOME": str(tmp_path / "home")}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in done.stdout.rpartition("MODULES")[2].split()}


def test_the_screen_needs_neither_workers_nor_pydantic(tmp_path: Path) -> None:
    found = modules("import sys, agent_tui.cli, agent_tui.ui.app\nprint('\\n'.join(sys.modules))", tmp_path)
    assert "textual" in found
    assert sorted(found & {*WORKERS_ONLY, *ON_DEMAND, "pydantic"}) == []


def test_nor_does_the_first_frame(tmp_path: Path) -> None:
    assert sorted(modules(FIRST_FRAME, tmp_path) & {*WORKERS_ONLY, *ON_DEMAND, "pydantic"}) == []


@pytest.mark.skipif(os.name != "posix", reason="the worker needs POSIX pipes")
def test_a_whole_run_without_a_screen_loads_neither_workers_nor_textual(tmp_path: Path) -> None:
    assert sorted(modules(WHOLE_RUN, tmp_path) & {*WORKERS_ONLY, *ON_DEMAND, "textual"}) == []
