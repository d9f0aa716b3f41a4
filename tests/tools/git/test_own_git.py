"""Whatever a repository's configuration, hooks and attributes name: looking at it starts none of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from agent_tui.commands.mentions import project_files
from agent_tui.config import PermissionsConfig
from agent_tui.context.prompt import git_facts
from agent_tui.engine.extensions import Workspace
from agent_tui.pipes.programs import find_program
from agent_tui.tools.base import Intent
from agent_tui.tools.files.access import FileAccess
from agent_tui.tools.git.outside import OutsideGit
from agent_tui.tools.git.repository import PINNED, Repository, find_repository, own_git
from tests.support.cli import REPOSITORY
from tests.support.git import HOSTILE, IDENTITY, Hostile, evil_program, git, ids_of, make_hostile, ordinary, together
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ordinary(tmp_path_factory.mktemp("template"))


def look(root: Path) -> None:
    """Every use of git that the program makes for itself."""
    git_facts(root)
    project_files(root)
    workspace = Workspace(FileAccess([root]), root, today=lambda: date(2026, 1, 1))
    workspace.look()
    assert workspace.environment
    for command in ("git status", "git diff", "git log -p", "cat a"):
        permissions_of(root, PermissionsConfig()).decide("bash", Intent("command", command, command=command))


@pytest.mark.quick
@pytest.mark.parametrize("traps", together(), ids=ids_of)
def test_looking_at_a_hostile_repository_starts_nothing(template: Path, tmp_path: Path, traps: list[Hostile]) -> None:
    evil, mark = evil_program(tmp_path)
    root = make_hostile(template, tmp_path / "project", traps, evil)
    before = (root / ".git/index").read_bytes()
    look(root)
    assert not mark.exists()
    assert (root / ".git/index").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda trap: trap.name)
def test_each_trap_is_a_real_one_and_is_not_sprung(template: Path, tmp_path: Path, hostile: Hostile) -> None:
    evil, mark = evil_program(tmp_path)
    root = make_hostile(template, tmp_path / "project", [hostile], evil)
    before = (root / ".git/index").read_bytes()
    look(root)
    assert not mark.exists()
    assert (root / ".git/index").read_bytes() == before
    if hostile.fires:
        # The trap is a real one: a user's git springs it.
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        command = ["git", "-C", str(root), *IDENTITY[:4], *hostile.fires]
        subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
        assert mark.exists(), "the trap never springs"


@pytest.mark.quick
def test_there_are_enough_traps_and_most_are_proven() -> None:
    assert len({hostile.name for hostile in HOSTILE}) >= 60
    assert sum(bool(hostile.fires) for hostile in HOSTILE) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("trust", [(), ("--trust",)], ids=["untrusted", "trusted"])
def test_the_program_itself_started_in_it_starts_nothing(
    template: Path, tmp_path: Path, trust: tuple[str, ...]
) -> None:
    evil, mark = evil_program(tmp_path)
    whole = [h for h in HOSTILE if not any(name in ("config", "HEAD", "commondir") or "refs" in name
                                           for name, _ in h.inner)]  # fmt: skip
    root = make_hostile(template, tmp_path / "project", whole, evil)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "AGENT_TUI_"))}
    env |= {"AGENT_TUI_HOME": str(tmp_path / "home"), "PYTHONPATH": str(REPOSITORY), "PATH": f".:{env['PATH']}"}
    argv = [sys.executable, "-m", "agent_tui", "-p", "hello", "-m", "demo", *trust]
    done = subprocess.run(argv, cwd=root, env=env, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and done.stdout, done.stderr
    assert not mark.exists()


@pytest.mark.quick
def test_branch_status_and_commits_are_those_of_git(template: Path, tmp_path: Path) -> None:
    root = make_hostile(template, tmp_path / "project", [], Path())
    facts = git_facts(root)
    assert facts.branch == "main"
    assert facts.status.splitlines() == git(root, "status", "--porcelain").splitlines()
    assert facts.recent.splitlines() == git(root, "log", "--oneline", "-5").splitlines()
    git(root, "checkout", "-q", "--detach")
    assert git_facts(root).branch == "HEAD"
    git(root, "checkout", "-q", "main")
    git(root, "pack-refs", "--all")
    git(root, "gc", "-q")
    assert "second" in git_facts(root).recent
    git(root, "add", ".")
    git(root, "mv", "b", "c")
    assert sorted(git_facts(root).status.splitlines()) == ["A  c", "A  new", "D  b", "M  a"]


def test_new_worktrees_subfolders_and_shallow_or_split_repositories_are_read(template: Path, tmp_path: Path) -> None:
    root = make_hostile(template, tmp_path / "project", [], Path())
    tree = tmp_path / "tree"
    git(root, "worktree", "add", "-q", "-b", "side", str(tree))
    (tree / "fresh").write_text("")
    facts = git_facts(tree)
    assert (facts.branch, facts.status) == ("side", "?? fresh") and "second" in facts.recent
    assert project_files(tree) == ["a", "b", "fresh"]
    git(root, "update-index", "--split-index")
    assert git_facts(root).status.splitlines() == [" M a", "?? new"]
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{root}", str(shallow))
    assert git_facts(shallow).status == "" and git_facts(shallow).recent.endswith("second")
    (root / "below").mkdir()
    (root / "below/file").write_text("")
    assert project_files(root / "below") == ["file"]


def test_submodules_are_known_and_not_entered(template: Path, tmp_path: Path) -> None:
    evil, mark = evil_program(tmp_path)
    root = make_hostile(template, tmp_path / "project", [], evil)
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(template), "sub")
    git(root / "sub", "config", "core.fsmonitor", str(evil))
    git(root / "sub", "config", "filter.x.clean", str(evil))
    (root / "sub/.gitattributes").write_text("* filter=x\n")
    mark.unlink(missing_ok=True)
    look(root)
    facts = git_facts(root / "sub")
    assert (facts.branch, facts.status) == ("main", "?? .gitattributes")
    assert not mark.exists()


def test_a_repository_of_another_hash_and_one_without_commits(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "trunk", "--object-format=sha256")
    assert (git_facts(root).branch, git_facts(root).recent) == ("trunk", "")
    (root / "a").write_text("x")
    git(root, "add", "a")
    assert git_facts(root).status == "A  a"
    git(root, "commit", "-qm", "first of all")
    assert git_facts(root).status == "" and "first of all" in git_facts(root).recent


def test_the_users_ignore_file_and_line_ends_count(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil, mark = evil_program(tmp_path)
    root = make_hostile(template, tmp_path / "project", [], evil)
    home = tmp_path / "home"
    home.mkdir()
    (home / "ignored").write_text("new\n")
    (home / ".gitconfig").write_text(f"[core]\n\texcludesFile = ~/ignored\n\tfsmonitor = {evil}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert git_facts(root).status == "M a" or git_facts(root).status == " M a"
    assert project_files(root) == ["a", "b"]
    assert not mark.exists()


@pytest.mark.quick
def test_another_projects_repository_is_not_told_of(template: Path, tmp_path: Path) -> None:
    """A ``.git`` that points at a repository which knows nothing of this folder, or whose parts are links."""
    other = make_hostile(template, tmp_path / "other", [], Path())
    root = tmp_path / "project"
    root.mkdir()
    (root / ".git").write_text(f"gitdir: {other}/.git\n")
    facts = git_facts(root)
    assert "second" not in facts.recent and " M a" not in facts.status
    shutil.rmtree(root)
    git(tmp_path, "init", "-q", "-b", "main", str(root))
    shutil.rmtree(root / ".git/objects")
    (root / ".git/objects").symlink_to(other / ".git/objects")
    (root / ".git/refs/heads/main").symlink_to(other / ".git/refs/heads/main")
    facts = git_facts(root)
    assert (facts.status, facts.recent) == ("not known", "")


@pytest.mark.quick
def test_devices_huge_files_and_loops_do_not_hold_it_up(template: Path, tmp_path: Path) -> None:
    root = make_hostile(template, tmp_path / "project", [], Path())
    (root / ".git/HEAD").unlink()
    os.mkfifo(root / ".git/HEAD")
    assert git_facts(root).branch == ""
    (root / ".git/HEAD").unlink()
    (root / ".git/HEAD").write_text("ref: refs/heads/loop\n")
    (root / ".git/refs/heads/loop").write_text("ref: refs/heads/loop\n")
    repository = find_repository(root)
    assert repository is not None and (repository.branch, repository.commit) == ("loop", "")
    (root / ".git/HEAD").write_text("ref: " + "x" * 100_000)
    assert git_facts(root).branch == ""
    shutil.rmtree(root / ".git")
    os.mkfifo(root / ".git")
    assert git_facts(root).branch == ""


@pytest.mark.quick
def test_only_the_users_git_is_started(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil, mark = evil_program(tmp_path)
    root = make_hostile(template, tmp_path / "project", [], evil)
    (root / "bin").mkdir()
    shutil.copy(evil, root / "bin/git")
    shutil.copy(evil, root / "git")
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", f"{root}/bin:.::{os.environ['PATH']}")
    found = find_program("git")
    assert found is not None and not Path(found).is_relative_to(root)
    look(root)
    assert not mark.exists()
    monkeypatch.setenv("PATH", f"{root}/bin:.")
    assert git_facts(root).status == "not known"
    assert "a" in project_files(root)


@pytest.mark.quick
def test_settings_of_the_environment_do_not_reach_it(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil, mark = evil_program(tmp_path)
    root = make_hostile(template, tmp_path / "project", [], evil)
    for name, value in {
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": str(evil),
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor'='{evil}'", "GIT_EXTERNAL_DIFF": str(evil), "GIT_DIR": str(tmp_path),
        "GIT_PAGER": str(evil), "GIT_SSH_COMMAND": str(evil), "GIT_EXEC_PATH": str(tmp_path), "GIT_TRACE": "1",
        "GIT_INDEX_FILE": str(tmp_path / "none"), "GIT_TEMPLATE_DIR": str(tmp_path),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert git_facts(root).status.splitlines() == [" M a", "?? new"]
    assert not mark.exists()


@pytest.mark.quick
def test_the_environment_that_every_git_of_ours_gets(template: Path, tmp_path: Path) -> None:
    """The names are git's own: one that is spelled in another way says nothing to it."""
    fixed = {
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "none", "GIT_PAGER": "cat", "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    assert fixed == PINNED
    repository = find_repository(make_hostile(template, tmp_path / "project", [], Path()))
    assert repository is not None
    with own_git(repository) as opened:
        assert opened is not None
        environment = opened._environment()
    assert environment.items() >= fixed.items()
    places = {"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "GIT_DIR", "GIT_WORK_TREE"}
    assert environment.keys() - fixed.keys() == places | {"GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"}
    outside = OutsideGit(tmp_path / "private", None)._env
    silent = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never"}
    same = ("GIT_NO_REPLACE_OBJECTS", "GIT_NO_LAZY_FETCH", "GIT_PAGER")
    assert outside.items() >= {**silent, **{name: fixed[name] for name in same}, "GIT_EDITOR": "true"}.items()


def test_replaced_objects_are_not_read_in_the_place_of_the_real_ones(template: Path, tmp_path: Path) -> None:
    root = make_hostile(template, tmp_path / "project", [], Path())
    names = []
    for text in ("real", "other"):
        (root / "made").write_text(text)
        names.append(git(root, "hash-object", "-w", "made").strip())
    git(root, "replace", *names)
    assert git(root, "cat-file", "blob", names[0]) == "other"
    command = ["git", "-C", str(root), "cat-file", "blob", names[0]]
    env = PINNED | {"PATH": os.environ["PATH"]}
    assert subprocess.run(command, env=env, capture_output=True, check=True).stdout == b"real"


@pytest.mark.quick
def test_a_bare_repository_is_not_run_in(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare")
    repository = find_repository(tmp_path / "bare")
    assert repository == Repository(None, tmp_path / "bare", tmp_path / "bare")
    with own_git(repository) as opened:
        assert opened is None
