"""The commands' own ``/tmp``: file tools mean by a path below it what commands mean."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig, SandboxConfig
from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.builtin.edit import EditTool, WriteTool
from agent_tui.tools.builtin.find import GrepTool, ListTool
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.private_tmp import PrivateTmp
from tests.support.every import every
from tests.support.tool_context import make_context, permissions_of


@pytest.fixture
def base() -> Iterator[Path]:
    base = Path("/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}"
    (base / "project").mkdir(parents=True)
    yield base.resolve()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def context(sandbox: Sandbox, base: Path) -> ToolContext:
    jail = Jail(SandboxConfig(), base / "project", base / "cache", sandbox=sandbox)
    if sandbox.backend is None or not sandbox.backend.own_tmp:
        pytest.skip("commands have no /tmp of their own here, and cannot write in the machine's")
    return replace(make_context(base / "project"), jail=jail, domain="work")


@pytest.fixture
def name() -> Iterator[str]:
    """A name below the machine's /tmp, where a test may put something."""
    name = f"/tmp/agent-tui-{uuid.uuid4().hex}"
    yield name
    with contextlib.suppress(OSError):
        Path(name).unlink()


async def bash(context: ToolContext, command: str) -> str:
    return (await BashTool().run({"command": command}, context)).text


async def test_what_a_command_writes_is_found_and_said(context: ToolContext, name: str) -> None:
    assert context.jail is not None
    real = context.jail.policy().temporary.resolve()
    said = await bash(context, f"echo one > {name}; mkdir -p {name}.d; echo two > {name}.d/inner")
    assert f"/tmp is the commands' own, on this machine {real}, until the program ends" in said
    assert (real / Path(name).name).read_text() == "one\n" and not Path(name).exists()
    assert "this machine" not in await bash(context, f"cat {name}"), "it is said once"
    assert "1\tone" in (await ReadTool().run({"path": name}, context)).text
    assert "1\ttwo" in (await ReadTool().run({"path": f"{name}.d/inner"}, context)).text
    assert "inner" in (await ListTool().run({"path": f"{name}.d"}, context)).text
    assert "two" in (await GrepTool().run({"pattern": "tw.", "path": f"{name}.d"}, context)).text
    await EditTool().run({"path": name, "edits": [{"old_string": "one", "new_string": "three"}]}, context)
    assert await bash(context, f"cat {name}") == "three"


async def test_what_a_tool_writes_is_there_for_commands(context: ToolContext, name: str) -> None:
    said = (await WriteTool().run({"path": f"{name}", "content": "echo hi\n"}, context)).text
    assert said.endswith(f"\n[commands find it as {name}, until the program ends]")
    assert await bash(context, f"sh {name}") == "hi" and not Path(name).exists()
    await WriteTool().run({"path": f"{name}.d/new", "content": "deep\n"}, context)
    assert await bash(context, f"cat {name}.d/new") == "deep"


async def test_what_only_the_machine_has_is_read_there(context: ToolContext, name: str) -> None:
    Path(name).write_text("of the machine\n")
    assert "of the machine" in (await ReadTool().run({"path": name}, context)).text
    said = await bash(context, f"cat {name}")
    assert f"[sandbox: {name} of this machine is not in the commands' own /tmp; read can show it]" in said
    await bash(context, f"echo of the command > {name}")
    both = (await ReadTool().run({"path": name}, context)).text
    assert "of the command" in both and f"this machine has another {name}]" in both


async def test_outside_the_sandbox_it_is_the_machines(context: ToolContext, name: str) -> None:
    await bash(context, f"echo inside > {name}")
    free = replace(context, domain="free")
    with pytest.raises(ToolError, match="does not exist"):
        await ReadTool().run({"path": name}, free)
    assert "what commands keep in theirs is in" in await bash(free, f"cat {name}")


async def test_a_link_in_it_leads_nowhere_unasked(context: ToolContext, base: Path, name: str) -> None:
    assert context.jail is not None
    jail = context.jail
    (base / "secret").write_text("secret")
    await bash(context, f"ln -s {base}/secret {name}")
    permissions = permissions_of(
        context.root, PermissionsConfig("auto"), holds=jail.holds, sees=jail.sees, temporary=jail.policy().temporary
    )
    intent = ReadTool().intent({"path": name}, context)
    assert intent.paths == [base / "secret"] and permissions.decide("read", intent).action == "ask"
    wanted = WriteTool().intent({"path": f"{name}.new", "content": "x"}, context)
    assert permissions.decide("write", wanted).action == "allow", "as every command may"


async def test_a_project_below_it_is_the_machines(sandbox: Sandbox, tmp_path: Path) -> None:
    jail = Jail(SandboxConfig(), tmp_path / "project", tmp_path / "cache", sandbox=sandbox)
    context = replace(make_context(tmp_path / "project"), jail=jail, domain="work")
    await bash(context, "echo x > made")
    assert "1\tx" in (await ReadTool().run({"path": str(tmp_path / "project" / "made")}, context)).text
    await WriteTool().run({"path": str(tmp_path / "project" / "new"), "content": "y"}, context)
    await WriteTool().run({"path": str(tmp_path / "beside"), "content": "z"}, context)
    assert (tmp_path / "project" / "new").read_text() == "y" and (tmp_path / "beside").read_text() == "z"


@every("said", ["/tmp/out", "(/tmp/out).", "OUT=/tmp/out", "file:///tmp/out", "'/var/tmp/out':3: x"])
def test_a_new_file_is_named_however_it_is_written(tmp_path: Path, said: str) -> None:
    (tmp_path / "out").touch()
    (line,) = PrivateTmp(tmp_path, list).lines(f"wrote {said}", 0.0, held=True)
    assert str(tmp_path) in line
    assert PrivateTmp(tmp_path, list).lines("x/tmp/out http://host/tmp/out", 0.0, held=True) == []
