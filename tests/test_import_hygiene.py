"""What a process may have imported, and when: the screen never what only the workers need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.cli import environment

pytestmark = [pytest.mark.quick, pytest.mark.versions]

WORKERS_ONLY = ("litellm", "tiktoken", "mcp", "openai", "httpx")
ON_DEMAND = ("PIL",)
"""Imported in a thread when there is something to do for it."""
LATER = ("json", "tomllib", "sqlite3", "markdown_it", "pygments")
"""What the first frame does not need, and Textual does not load for it either."""

OWN_MODULES = 50
"""So many modules of ours may be loaded before the first frame: each costs a fifth of a millisecond without doing
anything. More than that is a decision."""
GENERATED_CLASSES = 13
"""So many dataclasses may be made before the first frame: each costs a tenth of a millisecond, as a named tuple does,
and twice that at its first instance. A class with its attributes written out costs nothing."""

FIRST_FRAME = """
import asyncio, os, sys
from dataclasses import is_dataclass
from pathlib import Path
from agent_tui.cli import parse_options
from agent_tui.config.files import early_settings
from agent_tui.paths import user_paths
from agent_tui.ui.chat.chat import Chat
from agent_tui.ui.app import AgentApp

def dataclasses_of(name):
    items = vars(sys.modules[name]).values()
    made = {item for item in items if isinstance(item, type) and item.__module__ == name}
    return {item.__name__ for item in made if is_dataclass(item)}

async def furnish(self, *more, **named):
    ours = [name for name in sys.modules if name.startswith("agent_tui")]
    print(*sys.modules, *(f"{name}:{made}" for name in ours for made in dataclasses_of(name)), file=out, flush=True)
    os._exit(0)

async def main():
    paths = user_paths()
    Chat.furnish = furnish
    app = AgentApp(None, early_settings(parse_options([]).config, paths), paths, Path.cwd())
    app.get_driver_class()
    async with app.run_test(size=(80, 24)):
        await asyncio.Event().wait()

out = sys.stdout
asyncio.run(main())
"""

WHOLE_RUN = """
import sys
from agent_tui.cli import main
code = main(["-p", "hello", "-m", "demo"])
print("\\n".join(["", "MODULES", *sys.modules]))
sys.exit(code)
"""

PLAIN_RUN = """
import sys
from agent_tui.cli import main
code = main(["--plain", "-m", "demo", "hello"])
print("\\n".join(["", "MODULES", *sys.modules]))
sys.exit(code)
"""

TEXTUAL_ALONE = """
import sys, textual.app, textual.widgets, textual.drivers.linux_driver
print(*sys.modules, sep="\\n")
"""
STANDARD_BEFORE_THE_FRAME = ("argparse", "gc", "shutil", "signal")
"""What of the standard library is loaded before the first frame, beside what Textual brings."""

STANDARD = (
    *("argparse", "asyncio", "base64", "dataclasses", "difflib", "fnmatch", "gc", "hashlib", "ipaddress", "json"),
    *("logging.handlers", "pathlib", "platform", "shlex", "sqlite3", "statistics", "tempfile", "unicodedata", "uuid"),
    *("__future__", "asyncio.subprocess", "concurrent.futures.thread", "importlib.util", "urllib.parse"),
)
"""What of the standard library a run without a screen imports, beside what these bring. One more is a decision: the
libraries of HTTP, e-mail or XML cost as much as fifty files of ours."""


def loaded(script: str, tmp_path: Path) -> list[str]:
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
    return done.stdout.rpartition("MODULES")[2].split()


def modules(script: str, tmp_path: Path) -> set[str]:
    """Top-level packages and modules."""
    return {name.partition(".")[0] for name in loaded(script, tmp_path)}


def standard_beyond(found: list[str], known: str, tmp_path: Path) -> list[str]:
    """The modules of the standard library among ``found`` that the script ``known`` does not load; what was imported
    comes before what it brought."""
    expected = {*loaded(known, tmp_path)}
    return [name for name in found if name.partition(".")[0] in sys.stdlib_module_names and name not in expected]


def importing(names: Sequence[str]) -> str:
    return f"import sys, {', '.join(names)}\nprint(*sys.modules, sep='\\n')"


def test_the_screen_needs_neither_workers_nor_pydantic(tmp_path: Path) -> None:
    found = modules("import sys, agent_tui.cli, agent_tui.ui.app\nprint('\\n'.join(sys.modules))", tmp_path)
    assert "textual" in found
    assert sorted(found & {*WORKERS_ONLY, *ON_DEMAND, "pydantic"}) == []


def test_nor_does_the_first_frame(tmp_path: Path) -> None:
    found = loaded(FIRST_FRAME, tmp_path)
    early = {*WORKERS_ONLY, *ON_DEMAND, *LATER, "pydantic"}
    assert sorted({name.partition(".")[0] for name in found} & early) == []
    ours = [name for name in found if name.partition(".")[0] == "agent_tui"]
    generated = [name for name in ours if ":" in name]
    assert len(generated) <= GENERATED_CLASSES, generated
    assert len(ours) - len(generated) <= OWN_MODULES, sorted(ours)
    assert standard_beyond(found, TEXTUAL_ALONE + importing(STANDARD_BEFORE_THE_FRAME), tmp_path) == []


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the worker needs POSIX pipes")
def test_a_whole_run_without_a_screen_loads_neither_workers_nor_textual(tmp_path: Path) -> None:
    found = loaded(WHOLE_RUN, tmp_path)
    assert sorted({name.partition(".")[0] for name in found} & {*WORKERS_ONLY, *ON_DEMAND, "textual", "pydantic"}) == []
    assert standard_beyond(found, importing(STANDARD), tmp_path) == []


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="plain mode needs POSIX")
def test_nor_does_the_chat_as_lines_of_text(tmp_path: Path) -> None:
    found = loaded(PLAIN_RUN, tmp_path)
    assert "agent_tui.plain.chat" in found
    assert sorted({name.partition(".")[0] for name in found} & {*WORKERS_ONLY, *ON_DEMAND, "textual"}) == []
    assert not [name for name in found if name.startswith("agent_tui.ui")]
