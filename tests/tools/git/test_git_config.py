from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.git.repository import names_programs
from tests.support.git import git
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.quick


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "a").write_text("a\n")
    git(root, "add", "a")
    git(root, "commit", "-q", "-m", "start")
    return root


@pytest.mark.parametrize(
    "setting",
    [
        ("core.fsmonitor", "./evil"),
        ("diff.external", "./evil"),
        ("diff.x.textconv", "./evil"),
        ("filter.x.clean", "./evil"),
        ("filter.x.process", "./evil"),
        ("core.hooksPath", "hooks"),
        ("core.pager", "./evil"),
        ("alias.status", "!./evil"),
        ("include.path", "more"),
        ("includeIf.gitdir:/.path", "more"),
        ("gpg.program", "./evil"),
    ],
)
def test_a_repository_that_names_programs_is_asked_about(repository: Path, setting: tuple[str, str]) -> None:
    permissions = permissions_of(repository, PermissionsConfig())
    look = Intent("command", "git status", command="git status --short")
    assert permissions.decide("bash", look).action == "allow"
    git(repository, "config", *setting)
    assert names_programs(repository) and permissions.decide("bash", look).action == "ask"
    (repository / "below").mkdir()
    assert names_programs(repository / "below")


def test_ordinary_repositories_are_not(repository: Path, tmp_path: Path) -> None:
    git(repository, "remote", "add", "origin", "https://example.org/command/clean.git")
    git(repository, "config", "core.fsmonitor", "true")
    git(repository, "config", "branch.main.rebase", "true")
    assert not names_programs(repository)
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert not names_programs(tmp_path / "tree")
    git(repository, "config", "diff.external", "./evil")
    assert names_programs(tmp_path / "tree")


def test_a_bare_repository_in_a_folder_counts(repository: Path) -> None:
    bare = repository / "vendor"
    bare.mkdir()
    git(bare, "init", "-q", "--bare", ".")
    git(bare, "config", "core.fsmonitor", "./evil")
    assert names_programs(bare) and not names_programs(repository)


def test_edits_of_the_users_own_programs_ask_where_the_home_is_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    permissions = permissions_of(tmp_path, PermissionsConfig(mode="accept-edits"))
    for name, action in ((".local/bin/tool", "ask"), (".nvm/x", "ask"), ("src/tool", "allow")):
        assert permissions.decide("write", Intent("edit", name, paths=[tmp_path / name])).action == action
