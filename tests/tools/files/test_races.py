"""What a command in the background can do to the file tools, and to what is read and written without a call: it swaps a
folder of the project with a link that leads out, again and again, meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.commands.mentions import expand_mentions
from agent_tui.config import SandboxConfig
from agent_tui.context.prompt import MemoryFiles
from agent_tui.context.skills import SkillFolder, load_skills
from agent_tui.engine.extensions import Workspace
from agent_tui.errors import AgentError, ToolError
from agent_tui.models.messages import Metadata
from agent_tui.tools.base import Tool, ToolContext
from agent_tui.tools.builtin.edit import ApplyPatchTool, EditTool, WriteTool
from agent_tui.tools.builtin.find import GlobTool, GrepTool, ListTool
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.files.access import FileAccess
from agent_tui.tools.files.beneath import inside
from agent_tui.tools.files.snapshots import FileRestore, RestorePlan, apply_restore
from agent_tui.tools.sandbox.jail import Jail
from tests.support.forms import LONG, one_of
from tests.support.tool_context import make_context

RIPGREP = shutil.which("rg")
TRIES = one_of([15, 1_000 if LONG else 200])
SECRET, PATCH = "out" + "side-key", "*** Begin Patch\n*** Update File: d/f\n-one\n+two\n*** End Patch"

# Both ways of the swap have a name of their own for a moment, as with `mv`.
_SWAPPER = """
import os, shutil
print("swaps", flush=True)
def put(source):
    while True:
        try:
            return os.rename(source, "d")
        except OSError:  # one of the tools has made the folder meanwhile
            shutil.rmtree("d", ignore_errors=True)
while True:
    os.rename("d", "aside")
    put("link")
    os.rename("d", "link")
    put("aside")
"""


@contextmanager
def swapper(project: Path) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", _SWAPPER], cwd=project, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "swaps\n"
        yield
        assert process.poll() is None, "it swapped until the end"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    made = make_context(tmp_path / "project")
    outside = tmp_path / "outside"
    for folder, text in ((made.root / "d", "one\n"), (outside, f"one {SECRET}\n")):
        folder.mkdir()
        (folder / "f").write_text(text)
    (outside / f"{SECRET}-name").write_text("")
    (outside / "SKILL.md").write_text(f"---\nname: d\ndescription: {SECRET}\n---\n{SECRET}")
    (made.root / "link").symlink_to(outside)
    return made


def state(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() if path.is_file() else "" for path in folder.iterdir()}


async def call(tool: Tool, arguments: Metadata, context: ToolContext) -> str:
    """As the agent does: what leads out when it is looked at would be asked about, and what is allowed is run."""
    try:
        intent = tool.intent(arguments, context)
        shown = str(intent.display)
        if not all(inside(path, context) for path in intent.paths):
            return ""
        return shown + (await tool.run(arguments, replace(context, allowed_paths=frozenset(intent.paths)))).text
    except ToolError as error:
        return str(error)


async def _write(context: ToolContext) -> str:
    said = await call(WriteTool(), {"path": "d/new/n", "content": "x"}, context)
    return said + await call(WriteTool(), {"path": "d/n", "content": "x"}, context)


async def _restore(context: ToolContext) -> str:
    path = context.root / "d" / "n"
    plan = RestorePlan([FileRestore(path, b"x", None), FileRestore(path.with_name("f"), None, None)])
    told = "\n".join(apply_restore(plan))
    apply_restore(RestorePlan([FileRestore(path.with_name("f"), b"one\n", None)]))
    return told


async def _patch(context: ToolContext) -> str:
    back = PATCH.replace("-one\n+two", "-two\n+one")
    return await call(ApplyPatchTool(), {"input": PATCH}, context) + await call(
        ApplyPatchTool(), {"input": back}, context
    )


async def _edit(context: ToolContext) -> str:
    texts = [("one", "two"), ("two", "one")]
    done = [
        await call(EditTool(), {"path": "d/f", "old_string": old, "new_string": new}, context) for old, new in texts
    ]
    return "".join(done)


async def _sent(context: ToolContext) -> str:
    """What goes to a model without a call: a memory file's import, attachments, a pin, a skill."""
    files, file = FileAccess([context.root]), context.root / "d" / "f"
    (context.root / "AGENTS.md").write_text("@d/f")
    parts, problems = expand_mentions("@d/f @d", context.root, files)
    blocks = MemoryFiles(context.root / "none", files, context.root).blocks()
    pinned, refused = Workspace(files, context.root).documents([str(file)])
    skills = load_skills(files, [SkillFolder(context.root, "project")])
    return "".join(map(str, [*parts, *problems, *blocks, *pinned, *refused, *skills]))


async def _export(context: ToolContext) -> str:
    for name, over in (("n", False), ("f", True)):
        try:
            FileAccess([context.root]).write(context.root / "d" / name, b"one\n", over=over)
        except (AgentError, FileExistsError) as error:
            return str(error)
    return ""


Try = Callable[[ToolContext], Awaitable[str]]
TOOLS: dict[str, Try] = {
    "read": lambda context: call(ReadTool(), {"path": "d/f"}, context),
    "grep": lambda context: call(GrepTool(ripgrep=""), {"pattern": "one", "path": "d"}, context),
    "grep of all": lambda context: call(GrepTool(ripgrep=""), {"pattern": "one"}, context),
    "glob": lambda context: call(GlobTool(), {"pattern": "d/*"}, context),
    "list": lambda context: call(ListTool(), {"path": "d"}, context),
    "list of all": lambda context: call(ListTool(), {"path": ".", "depth": 3}, context),
    "write": _write,
    "edit": _edit,
    "apply_patch": _patch,
    "restore": _restore,
    "sent": _sent,
    "export": _export,
}


@pytest.mark.parametrize("tries", TRIES)
@pytest.mark.parametrize("name", one_of(TOOLS, 4))
async def test_no_tool_is_led_out_by_a_link_that_is_swapped_in(name: str, tries: int, context: ToolContext) -> None:
    outside = context.root.parent / "outside"
    before = state(outside)
    led_out = 0
    with swapper(context.root):
        for _ in range(tries if "grep" not in name else tries // 3):
            told = await TOOLS[name](context)
            changed = state(outside) != before
            led_out += SECRET in told or changed
            if changed:
                for path in outside.iterdir():
                    if path.name not in before:
                        path.unlink() if path.is_file() else path.rename(outside.parent / os.urandom(8).hex())
                for known, text in before.items():
                    (outside / known).write_text(text)
    assert led_out == 0, f"{led_out} of {tries} tries"


@pytest.mark.skipif(RIPGREP is None, reason="ripgrep is missing")
@pytest.mark.parametrize("tries", TRIES)
async def test_ripgrep_is_not_led_out_where_commands_are_held(tries: int, context: ToolContext, tmp_path: Path) -> None:
    context.jail = Jail(SandboxConfig(), context.root, tmp_path / "cache")
    if not (await context.jail.ready()).holds("look"):
        pytest.skip("nothing holds commands here")
    found, tool = 0, GrepTool(ripgrep=RIPGREP)
    with swapper(context.root):
        for _ in range(tries // 3):
            told = await call(tool, {"pattern": "one"}, context)
            told += await call(tool, {"pattern": "one", "path": "d"}, context)
            assert SECRET not in told
            found += "one" in told
    assert found or tries < 100, "it searches what is there"
