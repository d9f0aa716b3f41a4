"""Git that talks to a remote from inside the sandbox: held against what plain git makes of the same."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.models.messages import NO_OUTPUT
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.children.jobs import Jobs
from tests.support.forms import examples, one_of
from tests.support.git import World, git
from tests.support.waiting import Bell, running

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

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


@pytest.mark.slow
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


@pytest.mark.quick
@pytest.mark.parametrize("kind", one_of(["short", "folder"]))
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


DATED = "export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'; "


@pytest.mark.slow
@pytest.mark.parametrize("how", ["--no-rebase --no-edit", "--rebase", "--ff-only"])
async def test_what_a_pull_does_with_what_came_is_plain_git(world: World, how: str) -> None:
    both(world, "web")
    world.more("theirs")
    line = f"{DATED}echo mine > mine; git add -A; git commit -qm mine; git pull -q {how}; echo $?"
    done = await world.run(line, f"git pull -q {how}")
    assert done.text == plain(world, line)
    assert state(world.project) == state(world.plain)


@pytest.mark.slow
async def test_pushes_are_refused_and_forced_as_by_plain_git(world: World) -> None:
    both(world, "web")
    world.more("theirs")
    commit = f"{DATED}echo mine > mine; git add -A; git commit -qm mine"
    await world.run(commit)
    plain(world, commit)
    refused = await world.run("git push", "git push")
    assert refused.text == plain(world, "git push") + "\n[exit code 1]" and "[rejected]" in refused.text
    assert state(world.project) == state(world.plain)
    stale = "git push --force-with-lease origin main"
    assert "stale info" in (await world.run(f"git update-ref refs/remotes/origin/main HEAD && {stale}", stale)).text
    forced = await world.run("git push -f origin HEAD:main", "git push -f origin HEAD:main")
    assert not forced.is_error and git(world.remote, "rev-parse", "main") == git(world.project, "rev-parse", "HEAD")
    tags = "git tag v1 && git tag -a -m two v2 && git push --tags origin"
    assert not (await world.run(tags, "git push --tags origin")).is_error
    assert git(world.remote, "tag") == "v1\nv2"
    taken = await world.run("git push origin :v1 2>/dev/null", "git push origin :v1")
    assert not taken.is_error and git(world.remote, "tag") == "v2"
    said = await world.run("git push --porcelain origin main 2>/dev/null", "git push --porcelain origin main")
    assert said.text == plain(world, "git push -f -q origin main; git push --porcelain origin main 2>/dev/null")


@pytest.mark.slow
@pytest.mark.parametrize("kind", one_of(["web", "folder"]))
async def test_a_clone_is_one_of_plain_git(world: World, kind: str) -> None:
    address = world.addresses[kind].replace("/var", "file:///var", 1) if kind == "folder" else world.addresses[kind]
    shutil.copytree(world.project, world.plain, symlinks=True)
    line = f"git clone -q {address} sub && git -C sub log --oneline && git -C sub fsck --strict"
    done = await world.run(line, f"git clone -q {address} sub")
    assert done.text == plain(world, line) and not done.is_error
    assert state(world.project / "sub") == state(world.plain / "sub")


@pytest.mark.slow
async def test_shallow_packed_linked_and_sha256_repositories(world: World) -> None:
    both(world, "web")
    world.more("a", "b", "c")
    for line in ("git fetch -q --depth 1", "git fetch -q --deepen 1", "git fetch -q --unshallow"):
        assert (await world.run(f"{line}; echo $?", line)).text == plain(world, f"{line}; echo $?")
        assert state(world.project) == state(world.plain)
    git(world.project, "pack-refs", "--all")
    git(world.project, "gc", "-q")
    git(world.project, "worktree", "add", "-q", "-b", "side", str(world.project / "tree"))
    line = "cd tree && echo 3 > third && git add -A && git commit -qm third && git push -q -u origin side && git fetch"
    reached = world.project / "tree"
    done = await world.run(line, "git push -q -u origin side", "git fetch", folder=reached)
    assert not done.is_error, done.text
    assert (
        git(world.remote, "rev-parse", "side") == git(reached, "rev-parse", "HEAD") == git(reached, "rev-parse", "@{u}")
    )
    other = world.remote.with_name("wide.git")
    git(world.base, "init", "-q", "--bare", "--object-format=sha256", str(other))
    git(other, "config", "http.receivepack", "true")
    address = world.addresses["web"].replace("remote.git", "wide.git")
    (world.project / "wide").mkdir()
    git(world.project / "wide", "init", "-q", "--object-format=sha256")
    git(world.project / "wide", "remote", "add", "origin", address)
    line = "cd wide && echo 1 > one && git add -A && git commit -qm one && git push -q origin main && git fetch"
    done = await world.run(line, "git push -q origin main", "git fetch", folder=world.project / "wide")
    assert not done.is_error and git(other, "rev-parse", "main") == git(world.project / "wide", "rev-parse", "HEAD"), (
        done
    )


@pytest.mark.slow
async def test_a_shallow_clone_can_be_pushed_from(world: World) -> None:
    world.more("a", "b")
    address = world.addresses["ssh"]
    line = (
        f"git clone -q --depth 1 {address} sub && cd sub && echo 2 > 2 && git add -A && git commit -qm 2"
        " && git push -q origin HEAD:deep"
    )
    first = await world.run(line.partition(" && cd")[0], f"git clone -q --depth 1 {address} sub")
    assert not first.is_error, first.text
    done = await world.run(line.partition("sub && ")[2], "git push -q origin HEAD:deep", folder=world.project / "sub")
    assert not done.is_error and git(world.remote, "log", "-1", "--format=%s", "deep") == "2", done.text


@pytest.mark.slow
async def test_submodules_come_with_it(world: World) -> None:
    part = world.remote.with_name("part.git")
    git(world.base, "clone", "-q", "--bare", str(world.remote), str(part))
    other = world.base / "other"
    git(other, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "part")
    git(other, "config", "-f", ".gitmodules", "submodule.part.url", "../part.git")
    git(other, "add", ".")
    git(other, "commit", "-qm", "part")
    git(other, "push", "-q", "origin", "HEAD")
    git(world.project, "remote", "set-url", "origin", world.addresses["web"])
    pulled = await world.run("git pull -q", "git pull -q")
    assert not pulled.is_error, pulled.text
    git(world.project, "submodule", "init", "-q")
    done = await world.run("git submodule update && cat part/file", "git submodule update")
    assert not done.is_error and done.text.endswith("\n1"), done.text
    assert git(world.project / "part", "remote", "get-url", "origin") == world.addresses["web"].replace(
        "remote", "part"
    )


@pytest.mark.slow
async def test_much_comes_through_whole(world: World) -> None:
    both(world, "web")
    (world.base / "other/large").write_bytes(os.urandom(examples(2_000_000, 20_000_000)))
    world.more("a")
    done = await world.run("git fetch --progress", "git fetch --progress")
    assert not done.is_error and "100%" in done.text
    plain(world, "git fetch")
    assert state(world.project) == state(world.plain)


@pytest.mark.slow
async def test_the_users_configuration_counts_and_that_of_the_folder_does_not(world: World) -> None:
    home = world.base / "home"
    named = world.addresses["web"]
    with (home / ".gitconfig").open("a") as file:
        file.write(f'[url "{named.rpartition("/")[0]}/"]\n\tinsteadOf = short:\n[core]\n\tsshCommand = ssh -F none\n')
    git(world.project, "remote", "set-url", "origin", "short:remote.git")
    shutil.copytree(world.project, world.plain, symlinks=True)
    world.more("a")
    done = await world.run("git fetch", "git fetch")
    assert done.text == plain(world, "git fetch") and not done.is_error
    git(world.project, "remote", "set-url", "origin", world.addresses["ssh"])
    git(world.project, "config", "core.sshCommand", "false")
    assert (await world.run("git fetch", "git fetch")).text == NO_OUTPUT
    called = (world.base / "ssh-calls").read_text().splitlines()[-1]
    assert called.startswith("-F none -o BatchMode=yes") and "-p 2222 git@host.invalid git-upload-pack" in called


@pytest.mark.slow
async def test_a_wrong_password_and_a_place_that_is_not_there_are_told(world: World) -> None:
    git(world.project, "remote", "set-url", "origin", world.addresses["web"].replace("remote", "missing"))
    assert "not found" in (await world.run("git fetch", "git fetch")).text
    (world.base / "home/.git-credentials").write_text("")
    for command in ("git fetch", "git push"):
        done = await world.run(command, command)
        assert done.is_error and "could not read Username" in done.text, done.text


@pytest.mark.slow
async def test_it_ends_with_its_line(world: World, bell: Callable[[str], Bell]) -> None:
    begun = bell("begun")
    (world.base / "tools/ssh").write_text(f"#!/bin/sh\necho $$ > '{begun}'\nexec sleep 1000\n")
    git(world.project, "remote", "set-url", "origin", world.addresses["ssh"])
    for command in ("git fetch", "git push"):
        task = asyncio.create_task(world.run(command, command))
        pid = int(await begun.rung())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not running(pid)


@pytest.mark.slow
async def test_in_the_background_it_ends_with_its_job(world: World, tmp_path: Path) -> None:
    both(world, "web")
    world.more("a")
    jobs = Jobs()
    reaches = tuple(
        world.jail.remotes.reach(["git", *words], world.project)
        for words in (["pull"], ["push", "-u", "origin", "new"])
    )
    context = replace(world.context(), jobs=jobs, remotes=reaches)
    line = "git pull && git checkout -qb new && git push -u origin new"
    await BashTool().run({"command": line, "background": True}, context)
    (job,) = jobs.all()
    assert await job.ended(60) and not job.failed, job.look()
    assert git(world.remote, "rev-parse", "new") == git(world.project, "rev-parse", "HEAD")
    await jobs.close()
    assert not list((world.base / "cache/sandbox").glob("git-for-*"))


class Failing:
    """What keeps a project, and cannot."""

    async def before(self) -> None:
        raise ToolError("no room")

    async def after(self) -> list[str]:
        raise AssertionError("it never began")


@pytest.mark.slow
async def test_what_cannot_start_gives_back_all_that_was_opened_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise ToolError("no process")

    both(world, "web")
    work = replace(world.context(), remotes=(world.jail.remotes.reach(["git", "fetch"], world.project),))
    look = replace(world.context(), domain="look", first_look=True)
    await BashTool().run({"command": "git fetch"}, work)
    await BashTool().run({"command": "ls"}, look)

    def opened() -> int:
        return len(os.listdir("/dev/fd"))  # noqa: PTH208

    before = opened()
    with pytest.raises(ToolError, match="no room"):
        await BashTool().run({"command": "git fetch"}, replace(work, keeping=Failing()))
    assert opened() == before
    with pytest.raises(ToolError, match="background"):
        await BashTool().run({"command": "git fetch", "background": True}, replace(work, jobs=None))
    assert opened() == before
    monkeypatch.setattr("agent_tui.tools.children.process.ProcessGroup.start", refused)
    for context in (work, look):
        with pytest.raises(ToolError, match="no process"):
            await BashTool().run({"command": "ls"}, context)
        assert opened() == before
    monkeypatch.setattr(type(world.jail), "launch", refused)
    with pytest.raises(ToolError, match="no process"):
        await BashTool().run({"command": "ls"}, look)
    assert opened() == before
