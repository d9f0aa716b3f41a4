"""The bash tool in its domains, and what it says of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import agent_tui
from agent_tui.config import SandboxConfig
from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.sandbox import places
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Masks
from tests.support import sandbox_world as world
from tests.support.forms import one_of
from tests.support.tool_context import make_context

GIT = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.fixture
def base() -> Iterator[Path]:
    base = Path("/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}"
    base.mkdir()
    yield base.resolve()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def context(sandbox: Sandbox, base: Path) -> ToolContext:
    world.make_repository(base / "project")
    jail = Jail(SandboxConfig(), base / "project", base / "cache", sandbox=sandbox)
    return replace(make_context(base / "project"), jail=jail, domain="work")


def git(*arguments: str, folder: Path) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env=GIT, check=True)


async def bash(context: ToolContext, command: str) -> str:
    return (await BashTool().run({"command": command}, context)).text


async def test_a_pipe_that_ends_well_hides_nothing(context: ToolContext) -> None:
    assert "[sandbox: /usr/x: not allowed here" in await bash(context, "touch /usr/x 2>&1 | tail -3")
    assert "sandbox" not in await bash(context, "echo 'a permission denied in the middle of a sentence' | cat")


async def test_a_command_that_was_stopped_says_so(context: ToolContext) -> None:
    looked = await bash(replace(context, domain="look"), "echo x > new")
    assert looked.endswith("[sandbox: this ran where it may write only $TMPDIR (look); that may be why.]")
    assert "[sandbox: /usr/x: not allowed here" in await bash(context, "touch /usr/x")
    assert "[sandbox: this ran without a network (work)." in await bash(
        context, "echo 'Could not resolve host'; exit 1"
    )
    assert "sandbox" not in await bash(context, "echo x > new; exit 1")
    assert "sandbox" not in await bash(replace(context, domain="free"), "echo Permission denied; exit 1")


async def test_what_is_taken_away_again_is_said_and_kept_aside(context: ToolContext) -> None:
    said = await bash(context, "mkdir .vscode; echo '{\"new\": 1}' > .vscode/tasks.json; echo done")
    assert said.startswith("done\n") and ".vscode removed; commands may not create it" in said
    assert not (context.root / ".vscode").exists()
    assert context.jail is not None
    (kept,) = context.jail.held.rglob("tasks.json")
    assert kept.read_text() == '{"new": 1}\n'


async def test_what_existed_is_as_before(context: ToolContext) -> None:
    hook = context.root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho mine\n")
    hook.chmod(0o755)
    (context.root / ".envrc").write_text("mine\n")
    await bash(
        context, "echo evil > .git/hooks/pre-commit; chmod 644 .git/hooks/pre-commit; rm -f .envrc; echo e > .envrc"
    )
    assert (hook.read_text(), hook.stat().st_mode & 0o777) == ("#!/bin/sh\necho mine\n", 0o755)
    assert (context.root / ".envrc").read_text() == "mine\n"


async def test_secrets_of_the_environment_are_not_there(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abcdefgh-value")
    for domain in ("look", "work", "free"):
        assert "abcdefgh-value" not in await bash(replace(context, domain=domain), "env; cat /proc/$PPID/environ")
    assert "abcdefgh-value" not in await bash(replace(context, jail=None, domain="free"), "env")
    own = await BashTool(own=True).run({"command": "env"}, context)
    assert "abcdefgh-value" in own.text


@pytest.mark.quick
async def test_where_none_holds_and_one_is_required_nothing_runs(base: Path) -> None:
    (base / "project").mkdir()
    jail = Jail(SandboxConfig(mode="required"), base / "project", base / "cache", sandbox=Sandbox(mode="required"))
    context = replace(make_context(base / "project"), jail=jail, domain="work")
    with pytest.raises(ToolError, match="no sandbox works here"):
        await bash(context, "touch ran")
    assert not (base / "project" / "ran").exists()
    assert "ran" in await bash(replace(context, domain="free"), "echo ran")


async def test_a_linked_worktree_brings_its_repository(context: ToolContext, base: Path) -> None:
    tree = base / "tree"
    git("worktree", "add", "-q", str(tree), folder=context.root)
    assert context.jail is not None
    jail = Jail(SandboxConfig(), tree, base / "cache", sandbox=context.jail.sandbox)
    context = replace(make_context(tree), jail=jail, domain="work")
    commit = "git -c user.name=a -c user.email=a@b commit -qm more --allow-empty && git log --oneline | wc -l"
    assert await bash(context, commit) == "2"
    assert "more" in await bash(replace(context, domain="look"), "git log --oneline")
    await bash(context, "git config core.pager ./x; echo x > $(git rev-parse --git-common-dir)/hooks/pre-commit")
    assert "pager" not in (base / "project" / ".git" / "config").read_text()
    assert not (base / "project" / ".git" / "hooks" / "pre-commit").exists()


def test_a_folder_cannot_claim_to_be_a_worktree(base: Path) -> None:
    world.make_repository(base / "victim")
    (base / "hostile").mkdir()
    own = base / "hostile" / "fake"
    own.mkdir()
    (own / "commondir").write_text(str(base / "victim" / ".git"))
    (own / "gitdir").write_text(str(base / "hostile" / ".git"))
    for target in (own, base / "victim" / ".git", base / "victim", Path("/")):
        (base / "hostile" / ".git").write_text(f"gitdir: {target}\n")
        assert places.linked_repository(base / "hostile") is None


async def test_a_home_as_project_keeps_its_secrets(
    context: ToolContext, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = base / "home"
    world.make_home(home)
    monkeypatch.setenv("HOME", str(home))
    assert context.jail is not None
    jail = Jail(SandboxConfig(), home, base / "cache", sandbox=context.jail.sandbox)
    context = replace(make_context(home), jail=jail, domain="work")
    own = ("notes.txt", ".bashrc", ".profile")
    command = "; ".join(f"grep -q SECRET- {name} 2>/dev/null && echo read {name}" for name in world.SECRET_FILES)
    said = await bash(context, f"{command}; echo evil >> .bashrc; echo mine > notes.txt")
    assert sorted(line.removeprefix("read ") for line in said.splitlines() if line.startswith("read ")) == sorted(own)
    assert "evil" not in (home / ".bashrc").read_text() and (home / "notes.txt").read_text() == "mine\n"


@pytest.mark.parametrize("where", one_of([".local/share/agent-tui/x", ".config/nvim", ".cache/x", "code/x"]))
async def test_a_project_in_a_secret_place_is_a_project(
    where: str, context: ToolContext, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = base / "home"
    world.make_home(home)
    world.make_repository(home / where)
    before = world.runs_later(home / where)
    monkeypatch.setenv("HOME", str(home))
    assert context.jail is not None
    jail = Jail(SandboxConfig(), home / where, base / "cache", sandbox=context.jail.sandbox)
    context = replace(make_context(home / where), jail=jail, domain="work")
    said = await bash(context, "echo x > new && cat new file; cat ~/.ssh/id_ed25519 ~/.config/gh/hosts.yml")
    assert said.startswith("x\nfile\n") and world.SECRET not in said
    await bash(context, "echo evil > .git/hooks/pre-commit; git config core.pager ./evil; echo evil > .envrc")
    assert world.runs_later(home / where) == before


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="needs root, to stop being it")
def test_they_hold_for_ordinary_users_too(base: Path) -> None:
    """The trial, as somebody who is not root."""
    code = """
import os, sys, tempfile
os.setgroups([]); os.setgid(65534); os.setuid(65534)
os.environ["HOME"] = "/nonexistent"
from pathlib import Path
from agent_tui.tools.sandbox.box import backends
from agent_tui.tools.sandbox.confine import abi
from agent_tui.tools.sandbox.backends import Bubblewrap
from agent_tui.tools.sandbox.box import trial
with tempfile.TemporaryDirectory(dir="/var/tmp") as base:
    for backend in [*backends(), *(Bubblewrap(given, abi()) for given in sys.argv[1:])]:
        for domain in ("look", "work"):
            print(f"{backend.name} {domain}: {trial(backend, domain, Path(base)) or 'holds'}")
"""
    path = str(Path(agent_tui.__file__).parents[1])
    # The interpreter of this test may lie where only root may look.
    python = shutil.which("python3", path="/usr/bin") or sys.executable
    env = {**os.environ, "PYTHONPATH": path}
    # So may the bubblewrap that was given.
    given = [shutil.copy(world.GIVEN, base / "bwrap")] if world.GIVEN else []
    done = subprocess.run([python, "-c", code, *given], capture_output=True, text=True, env=env, cwd="/", check=False)
    if not done.stdout:
        pytest.skip(f"not to be tried here: {done.stderr.strip()[-200:]}")
    # What does not hold for root here is missing for everybody.
    here = {found.name for found in world.means().values() if isinstance(found, Sandbox)}
    told = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert {told[f"{name} {domain}"] for name in here for domain in ("look", "work")} == {"holds"}, told


async def test_what_is_kept_back_is_said_for_what_it_is(context: ToolContext) -> None:
    said = await bash(context, "sh -c 'git config user.email a@b'; git config user.email")
    assert "they say who commits are by, and what git starts outside the sandbox" in said
    assert "a@b" not in (context.root / ".git" / "config").read_text()
    assert context.jail is not None
    (context.root / ".env").write_text("TOKEN")
    context.jail.denied = lambda trees: Masks((context.root / ".env",))
    said = await bash(replace(context, domain="look"), "cat .env")
    assert said.endswith(
        "[sandbox: .env: a rule of the user denies reading this, so commands can neither read nor change it. Leave it "
        "out: git add, for instance, by naming the other files.]"
    )
