"""Whatever a repository or a command inside the sandbox tries: nothing of theirs runs outside, and nothing but what was
allowed is asked of a remote."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.git.remotes import Remotes
from agent_tui.tools.rules.decision import Decision, RemoteGit
from tests.support.every import every
from tests.support.forms import examples, one_of
from tests.support.git import HOSTILE, Hostile, World, evil_program, git, make_hostile, make_world, together
from tests.support.sandbox_world import MEANS
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

TIMES = examples(1, 12)


COMMANDS = (
    "git fetch",
    "git fetch o",
    "git pull -q",
    "git remote update",
    "git push -f origin HEAD:x",
    "git ls-remote o",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "traps", together(), ids=lambda traps: traps[0].name if len(traps) == 1 else f"{len(traps)} traps"
)
async def test_nothing_of_a_hostile_repository_runs_outside(world: World, traps: list[Hostile]) -> None:
    evil, mark = evil_program(world.base)
    git(world.project, "remote", "set-url", "origin", world.addresses["web"])
    world.jail.remotes.begin()
    hostile = make_hostile(world.project, world.base / "hostile", traps, evil)
    shutil.rmtree(world.project)
    hostile.rename(world.project)
    await world.run("; ".join(COMMANDS), *COMMANDS)
    assert not mark.exists()


@pytest.mark.slow
async def test_a_repository_that_the_line_makes_starts_nothing_outside(world: World) -> None:
    evil, mark = evil_program(world.base)
    git(world.project, "remote", "set-url", "origin", world.addresses["web"])
    line = (
        f"git init -q sub; cd sub; git remote add origin .; git config remote.origin.uploadpack {evil}; git fetch;"
        f"git config core.sshCommand {evil}; git fetch ssh://host/x; git fetch 'ext::{evil}'; git push; cd ..;"
        f"mkdir -p tools/hooks; "
        f"for it in reference-transaction pre-push post-merge; do cp {evil} tools/hooks/$it; done;"
        "git -c core.hooksPath=tools/hooks fetch; git -c core.hooksPath=tools/hooks push origin HEAD:y"
    )
    for _ in range(TIMES):
        shutil.rmtree(world.project / "sub", ignore_errors=True)
        await world.run(line, "git fetch", "git push origin HEAD:y", "git push")
        assert not mark.exists()


@pytest.mark.slow
async def test_a_configuration_that_changes_meanwhile_starts_nothing_outside(world: World) -> None:
    evil, mark = evil_program(world.base)
    git(world.project, "remote", "set-url", "origin", world.addresses["ssh"])
    before = git(world.remote, "rev-parse", "main")
    text = "\n".join(
        (
            f"[core]\n\tsshCommand = {evil}\n\thooksPath = {world.project}\n[gpg]\n\tprogram = {evil}",
            f'[remote "origin"]\n\turl = ext::{evil}\n\tpush = :refs/heads/main\n\treceivepack = {evil}',
            f'[credential]\n\thelper = !{evil}\n[url "ext::{evil} "]\n\tinsteadOf = ssh:',
            "[protocol]\n\tallow = always\n[push]\n\tgpgSign = true",
        )
    )
    (world.project / "held").write_text(text)
    (world.project / "pre-push").write_text(f"#!/bin/sh\n{evil}\n")
    (world.project / "pre-push").chmod(0o755)
    line = (
        "(while :; do cat held >> .git/config; cp .git/config kept; done) 2>/dev/null & sleep 0.1; git fetch; git push"
    )
    for _ in range(TIMES):
        await world.run(line, "git fetch", "git push")
        assert not mark.exists() and git(world.remote, "rev-parse", "main") == before
    assert "evil" not in (world.project / ".git/config").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", one_of(["cd sub && {}", "git -C sub {}", "GIT_TERMINAL_PROMPT=0 git -C sub -c core.pager=cat {}"])
)
async def test_git_in_another_folder_reaches_what_the_question_showed_and_starts_nothing_outside(
    world: World, line: str
) -> None:
    evil, mark = evil_program(world.base)
    world.jail.remotes.begin()
    sub = world.project / "sub"
    git(world.project, "clone", "-q", world.addresses["folder"], "sub")
    git(sub, "remote", "set-url", "origin", world.addresses["web"])
    git(sub, "config", "core.sshCommand", str(evil))
    git(sub, "config", "remote.origin.uploadpack", str(evil))
    (sub / ".git/hooks").mkdir(exist_ok=True)
    for hook in ("reference-transaction", "pre-push"):
        (sub / ".git/hooks" / hook).write_text(f"#!/bin/sh\n{evil} 2>/dev/null; true\n")
        (sub / ".git/hooks" / hook).chmod(0o755)
    permissions = permissions_of(
        world.project,
        PermissionsConfig("auto", allow=["bash(git *)"]),
        holds=lambda domain: True,
        remotes=world.jail.remotes,
    )
    world.more("a")
    (sub / "mine").write_text("mine")
    git(sub, "-c", "core.hooksPath=/dev/null", "checkout", "-qb", "new")
    for words in ("fetch", "push origin new"):
        command = line.format(f"git {words}" if line.startswith("cd") else words)
        decision = permissions.decide("bash", Intent("command", command, command=command))
        assert (decision.action, decision.domain, decision.patterns) == ("ask", "work", [])
        reaches = tuple(remote.reach for remote in decision.remotes if remote.reach is not None)
        problem = "-c" in command and "push" in command
        assert problem or world.addresses["web"] in decision.reason
        done = await BashTool().run({"command": command, "timeout": 60}, replace(world.context(), remotes=reaches))
        assert done.is_error is problem and not mark.exists(), done.text
        permissions.seen_remotes(decision)
    assert git(sub, "rev-parse", "origin/main") == git(world.remote, "rev-parse", "main")


ASK = r"""
import json, os, socket, sys, tempfile
def ask(request, out=None):
    reply, theirs = os.pipe()
    here, there = os.pipe()
    back, answer = os.pipe()
    os.write(there, b"push :refs/heads/main\n\nget file:///etc/passwd stolen\nlist for-push\n")
    os.close(there)
    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(request).encode()); file.flush()
        one = socket.socket(fileno=os.dup(int(os.environ["AGENT_TUI_GIT"])))
        socket.send_fds(one, [b"?"], [file.fileno(), theirs, here, answer] if out is None else out)
    for fd in (theirs, here, answer): os.close(fd)
    return os.fdopen(reply, "rb").read() + os.fdopen(back, "rb").read()
for request in json.load(open(sys.argv[1])):
    print(request.get("kind"), ask(request)[-300:])
null = os.open("/dev/null", os.O_RDWR)
for fds in ([], [null], [null] * 4, [null, os.pipe()[1]], [os.open(sys.argv[1], os.O_RDONLY), null, null, null]):
    print(ask({}, fds))
print("end")
"""


@pytest.mark.slow
@pytest.mark.parametrize("old", [False, True], ids=["new protocol", "old protocol"])
@pytest.mark.parametrize("means", MEANS)
async def test_who_asks_inside_gets_what_was_allowed_and_no_more(
    means: str, old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_world(means, monkeypatch, old) as world:
        evil, mark = evil_program(world.base)
        git(world.project, "remote", "set-url", "origin", world.addresses["web"])
        git(world.project, "remote", "add", "other", world.addresses["ssh"])
        (world.base / "private").mkdir()
        git(world.base / "private", "init", "-q")
        before = git(world.remote, "for-each-ref")
        folder, head = str(world.project), "ref: refs/heads/main"
        push: dict[str, object] = {"kind": "push", "folder": folder, "head": head, "references": {}}
        push |= {"shallow": [], "sha256": False}
        main = ["git", "push", "origin", "main"]
        path, web = str(world.remote), world.addresses["web"]
        ssh = {"kind": "ssh", "host": "git@host.invalid", "port": "2222", "command": f"git-upload-pack '{path}'"}
        requests: list[dict[str, object]] = [
            {"kind": "web", "address": web},
            {"kind": "web", "address": f"{web}/../private"},
            {"kind": "web", "address": f"ext::{evil}"},
            {"kind": "local", "path": str(world.base / "private")},
            {"kind": "local", "path": path},
            {**ssh, "command": f"git-receive-pack '{path}'"},
            {**ssh, "command": f"{evil}"},
            {**ssh, "command": f"git-upload-pack '{path}'; {evil}"},
            {**ssh, "host": f"-oProxyCommand={evil}"},
            {**push, "argv": ["git", "push"]},
            {**push, "argv": ["git", "push", "-f", "origin", ":main"]},
            {**push, "argv": ["git", "push", f"--receive-pack={evil}"]},
            {**push, "argv": main, "folder": str(world.base)},
            {**push, "argv": main, "head": f"x\n[core]\nsshCommand={evil}"},
            {**push, "argv": main, "references": {"refs/heads/../x": "0" * 40}},
            {**push, "argv": main, "shallow": [f"x\n{evil}"]},
            {"kind": "nothing"},
            {},
        ]
        requests = [{"protocol": "version=2", **request} for request in requests]
        (world.project / "requests").write_text(json.dumps(requests))
        (world.project / "ask.py").write_text(ASK)
        done = await world.run(f"{sys.executable} -I -S ask.py requests", "git fetch origin", "git push origin main")
        assert done.text.endswith("end"), done.text
        assert "root:" not in done.text and not mark.exists() and not list(world.base.rglob("stolen"))
        assert git(world.remote, "for-each-ref") == before
        calls = world.base / "ssh-calls"
        assert not calls.exists() or str(evil) not in calls.read_text()
        fetched = await world.run("git fetch", "git fetch")
        assert ("too old for the sandbox" in fetched.text) is old and fetched.is_error is old


async def test_programs_of_the_project_are_not_those_that_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    evil, mark = evil_program(world.base)
    tools = world.project / "node_modules/.bin"
    tools.mkdir(parents=True)
    for name in ("ssh", "git", "git-remote-http", "git-credential-store", "cat", "sh"):
        shutil.copy(evil, tools / name)
    monkeypatch.setenv("PATH", f"{tools}:.:{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tools))
    git_path = shutil.which("git", path=os.environ["PATH"].partition(":.:")[2])
    for kind in ("web", "ssh"):
        address = world.addresses[kind]
        (world.project / ".git/config").write_text(f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {address}\n')
        await world.run(f"{git_path} fetch; {git_path} push origin main:z", "git fetch", "git push origin main:z")
        await world.run("git fetch; git push origin main:z", "git fetch", "git push origin main:z")
        assert not mark.exists()


# What is asked before


class Asked:
    """The permissions of a session in ``project``, whose rules let every git command of these pass."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch, held: bool = True, trusted: bool = True) -> None:
        self.remotes = Remotes([project])
        self.remotes.begin()
        self._patch = monkeypatch
        self.permissions = permissions_of(
            project,
            PermissionsConfig(),
            holds=lambda domain: held or domain == "free",
            trusted=lambda: trusted,
            remotes=self.remotes,
        )

    def decide(self, command: str, folder: Path) -> Decision:
        found = Decision("allow", domain="work", remotes=(RemoteGit(tuple(command.split()), folder),))
        self._patch.setattr("agent_tui.tools.judge.commands.judge_command", lambda *_: found)
        return self.permissions.decide("bash", Intent("command", command, command=command))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(root, "remote", "add", "origin", "https://example.org/a.git")
    git(root, "remote", "add", "fork", "git@example.org:b.git")
    return root


@pytest.mark.quick
def test_a_rule_reaches_the_remotes_of_the_beginning_and_no_others(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(project, monkeypatch)
    for command in ("git fetch", "git pull", "git push", "git push -u fork main", "git fetch --all", "git ls-remote"):
        assert asked.decide(command, project).action == "allow"
    git(project, "remote", "set-url", "origin", "https://evil.example/a.git")
    for command in ("git fetch", "git pull", "git push", "git fetch --all", "git -C . fetch"):
        decision = asked.decide(command, project)
        assert decision.action == "ask" and "https://evil.example/a.git" in decision.reason and not decision.patterns
    assert asked.decide("git fetch fork", project).action == "allow"
    asked.permissions.seen_remotes(asked.decide("git fetch", project))
    assert asked.decide("git fetch", project).action == "allow"
    git(project, "config", "remote.fork.push", "+refs/heads/*:refs/heads/*")
    assert "remote.fork.push" in asked.decide("git push fork", project).reason
    assert asked.decide("git fetch fork", project).action == "allow"


def test_a_repository_made_later_is_asked_about(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(project, monkeypatch)
    sub = project / "sub"
    sub.mkdir()
    git(sub, "init", "-q")
    git(sub, "remote", "add", "origin", "https://evil.example/a.git")
    for command, folder in (("git fetch", sub), ("git -C sub fetch", project), ("git push origin main", sub)):
        assert "https://evil.example/a.git" in asked.decide(command, folder).reason


def test_an_untrusted_folder_shows_where_it_would_reach(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decision = Asked(project, monkeypatch, trusted=False).decide("git fetch", project)
    assert decision.action == "ask" and "https://example.org/a.git" in decision.reason


FETCHED = [trap for trap in HOSTILE if trap.fires and trap.fires[0] in ("fetch", "push", "ls-remote", "update-ref")]


@pytest.mark.forms(5)
@pytest.mark.parametrize("trap", FETCHED, ids=lambda trap: trap.name)
def test_without_a_sandbox_what_would_run_is_asked_about(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: Hostile
) -> None:
    assert Asked(project, monkeypatch, held=False).decide("git fetch", project).action == "allow"
    evil, _ = evil_program(tmp_path)
    root = make_hostile(project, tmp_path / "hostile", [trap], evil)
    assert Asked(root, monkeypatch, held=False).decide("git fetch", root).action == "ask"


@pytest.mark.quick
@pytest.mark.parametrize(
    "address",
    ["ext::sh -c id", "fd::17", "-oProxyCommand=id", "ssh://-oProxyCommand=id/x", "host:-x", "git://host/x", "ftp://host/x",
     "https://host/%0aevil", "https://host\n/x", "transport::https://x", "ssh://host:99999999/x", "http::https://x"],
)  # fmt: skip
def test_no_address_names_a_program_or_an_option(project: Path, address: str) -> None:
    remotes = Remotes([project])
    config = project / ".git/config"
    git(project, "remote", "remove", "fork")
    git(project, "config", "remote.origin.url", address)
    assert not remotes.reach(["git", "fetch", "origin"], project).addresses, config.read_text()
    assert remotes.reach(["git", "push", "origin"], project).problem
    assert remotes.reach(["git", "push", address], project).problem


@every(
    "words", ["--receive-pack=id", "--exec=id", "--signed", "--repo=x origin", "--recurse-submodules=on-demand", "-c x"]
)
def test_a_push_with_an_option_that_is_not_known_stays_inside(project: Path, words: str) -> None:
    assert Remotes([project]).reach(["git", "push", *words.split()], project).problem


def test_a_remote_in_the_project_is_not_reached_from_outside(project: Path) -> None:
    git(project, "init", "-q", "--bare", "inner.git")
    git(project, "remote", "add", "inner", "inner.git")
    remotes = Remotes([project])
    assert not remotes.reach(["git", "fetch", "inner"], project).addresses
    assert "in the project" in remotes.reach(["git", "push", "inner"], project).problem


async def test_a_push_that_was_not_allowed_says_so(world: World) -> None:
    git(world.project, "remote", "set-url", "origin", world.addresses["web"])
    reach = world.jail.remotes.reach(["git", "push", "origin", "main"], world.project)
    context = replace(world.context(), remotes=(reach,))
    done = await BashTool().run({"command": "git push --force origin main"}, context)
    assert done.is_error and "git push was not allowed outside the sandbox in this command" in done.text
