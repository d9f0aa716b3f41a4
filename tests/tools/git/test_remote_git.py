"""Git that talks to a remote from inside the sandbox: held against what plain git makes of the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent_tui.config import SandboxConfig
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from tests.support import sandbox_world as sandboxes
from tests.support.git import git
from tests.support.git_remotes import PASSWORD, fake_ssh, web_server
from tests.support.tool_context import make_context

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@dataclass(slots=True)
class World:
    """``project`` is a clone of ``remote``; ``plain`` a copy of it that plain git works on. ``addresses`` are ways to
    the remote: the web with a password, ssh, and its folder, which is not there inside."""

    base: Path
    jail: Jail
    project: Path
    plain: Path
    remote: Path
    addresses: dict[str, str]

    def context(self) -> ToolContext:
        return replace(make_context(self.project), jail=self.jail, domain="work")

    async def run(self, line: str, *remotes: str, folder: Path | None = None) -> ToolOutcome:
        """Runs a line of which ``remotes`` are the commands that were allowed to reach out."""
        known = self.jail.remotes
        reaches = tuple(known.reach(remote.split(), folder or self.project) for remote in remotes)
        return await BashTool().run({"command": line, "timeout": 60}, replace(self.context(), remotes=reaches))

    def more(self, *arguments: str) -> None:
        """Something new on the remote."""
        git(self.base / "other", "pull", "-q")
        for number in arguments:
            (self.base / "other" / number).write_text(number)
            git(self.base / "other", "add", ".")
            git(self.base / "other", "commit", "-qm", f"more {number}")
        git(self.base / "other", "push", "-q", "origin", "HEAD")


@pytest.fixture(params=["bubblewrap", "Landlock"])
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    base = (Path("/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}").resolve()
    base.mkdir()
    try:
        backend = sandboxes.available(base).get(request.param, "not on this system")
        if isinstance(backend, str):
            pytest.skip(backend)
        home = base / "home"
        home.mkdir()
        fake_ssh(base / "tools", base / "ssh-calls")
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        monkeypatch.setenv("PATH", f"{base / 'tools'}:{os.environ['PATH']}")
        (home / ".gitconfig").write_text(
            "[user]\n\tname = t\n\temail = t@example.org\n[credential]\n\thelper = store\n"
            "[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n"
        )
        remote = base / "served" / "remote.git"
        git(base, "init", "-q", "--bare", str(remote))
        git(remote, "config", "http.receivepack", "true")
        git(base, "clone", "-q", str(remote), str(base / "other"))
        (base / "other" / "file").write_text("1")
        git(base / "other", "add", ".")
        git(base / "other", "commit", "-qm", "first")
        git(base / "other", "push", "-q", "origin", "HEAD")
        git(base, "clone", "-q", str(remote), str(base / "project"))
        with web_server(base / "served") as server:
            (home / ".git-credentials").write_text(server.replace("//", f"//user:{PASSWORD}@") + "\n")
            addresses = {
                "web": f"{server}/remote.git",
                "ssh": f"ssh://git@host.invalid:2222{remote}",
                "short": f"git@host.invalid:{remote}",
                "folder": str(remote),
            }
            jail = Jail(SandboxConfig(), base / "project", base / "cache")
            jail.sandbox = Sandbox(backend, frozenset(("look", "work")))
            yield World(base, jail, base / "project", base / "plain", remote, addresses)
            jail.close()
    finally:
        shutil.rmtree(base, ignore_errors=True)


KINDS = ["web", "ssh", "short", "folder"]


def both(world: World, kind: str) -> None:
    git(world.project, "remote", "set-url", "origin", world.addresses[kind])
    shutil.copytree(world.project, world.plain, symlinks=True)


def state(root: Path) -> dict[str, str]:
    """All that a user sees of a repository, and that git finds in it."""
    assert git(root, "fsck", "--strict") == ""
    return {
        "status": git(root, "status", "-sb"),
        "references": git(root, "for-each-ref", "--format=%(refname) %(objectname) %(upstream) %(symref)"),
        "log": git(root, "log", "--all", "--format=%H %s", "--date-order"),
        "fetched": (root / ".git/FETCH_HEAD").read_text() if (root / ".git/FETCH_HEAD").exists() else "",
        "config": (root / ".git/config").read_text(),
        "shallow": (root / ".git/shallow").read_text() if (root / ".git/shallow").exists() else "",
    }


def plain(world: World, line: str) -> str:
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}
    done = subprocess.run(
        ["bash", "-c", line], cwd=world.plain, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.stdout.rstrip("\n")


@pytest.mark.parametrize("kind", KINDS)
async def test_fetch_and_pull_leave_what_plain_git_leaves(world: World, kind: str) -> None:
    both(world, kind)
    world.more("a", "b")
    git(world.base / "other", "tag", "v1")
    git(world.base / "other", "push", "-q", "origin", "v1", "HEAD:refs/heads/side")
    done = await world.run("git fetch", "git fetch")
    assert not done.is_error, done.text
    assert done.text.replace(str(world.project), "") == plain(world, "git fetch").replace(str(world.plain), "")
    assert state(world.project) == state(world.plain)
    done = await world.run("git pull -q && git ls-remote -q", "git pull -q", "git ls-remote -q")
    assert done.text == plain(world, "git pull -q && git ls-remote -q")
    assert state(world.project) == state(world.plain)


@pytest.mark.parametrize("kind", KINDS)
async def test_push_is_what_plain_git_would_push(world: World, kind: str) -> None:
    both(world, kind)
    line = "git checkout -qb new && echo 2 > second && git add -A && git commit -qm second && git push -u origin new"
    done = await world.run(line, "git push -u origin new")
    assert not done.is_error and "new -> new" in done.text, done.text
    assert git(world.remote, "rev-parse", "new") == git(world.project, "rev-parse", "HEAD")
    assert git(world.project, "rev-parse", "@{u}") == git(world.project, "rev-parse", "HEAD")
    assert git(world.project, "status", "-sb") == "## new...origin/new"
    assert git(world.project, "reflog", "show", "origin/new").endswith("update by push")
    git(world.project, "fsck", "--strict")
