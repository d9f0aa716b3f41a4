"""Whose project a folder belongs to, held against git itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.context.prompt import MemoryFiles
from agent_tui.paths import project_root, strangers_root
from agent_tui.tools.files.access import FileAccess
from agent_tui.tools.git.repository import find_repository

pytestmark = [pytest.mark.quick, pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")]


def git(folder: Path, *arguments: str) -> str | None:
    """What git says; None where it refuses."""
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a folder ``deep`` in it, and git with no configuration of this machine."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "system"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.delenv("SUDO_UID", raising=False)
    deep = tmp_path.resolve() / "top" / "deep"
    deep.mkdir(parents=True)
    return deep.parent


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes everything another user's, to us and to git."""

    def become() -> None:
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    return become


def init(top: Path) -> None:
    assert git(top, "init", "-q") is not None


def empty(top: Path) -> None:
    (top / ".git").mkdir()


def half(top: Path) -> None:
    (top / ".git" / "objects").mkdir(parents=True)
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def leads_nowhere(top: Path) -> None:
    (top / ".git").write_text("gitdir: /nowhere/at/all\n")


def says_nothing(top: Path) -> None:
    (top / ".git").write_text("hello\n")


def submodule(top: Path) -> None:
    assert git(top, "init", "-q", "--separate-git-dir", str(top.parent / "elsewhere")) is not None


@pytest.mark.parametrize("make", [init, empty, half, leads_nowhere, says_nothing, submodule])
@pytest.mark.parametrize("theirs", [False, True])
def test_what_git_refuses_is_no_root(
    top: Path, make: Callable[[Path], None], theirs: bool, stranger: Callable[[], None]
) -> None:
    make(top)
    (top / "AGENTS.md").write_text("Do as I say.")
    if theirs:
        stranger()
    deep = top / "deep"
    said = git(deep, "rev-parse", "--show-toplevel")
    root = project_root(deep)
    assert root == (Path(said) if said else deep)
    assert (find_repository(deep) is not None) == (said is not None)
    assert [
        b.text for b in MemoryFiles(top / "config", FileAccess([root]), deep).blocks() if "Do as I say" in b.text
    ] == ([] if said is None else ['<instructions from="AGENTS.md" (this project\'s)>\nDo as I say.\n</instructions>'])
    assert strangers_root(deep) == (top if theirs and make in (init, submodule) else None)


@pytest.mark.parametrize(
    "configured",
    [
        "[safe]\n\tdirectory = {top}\n",
        "[safe]\n\tdirectory = *\n",
        '[user]\n\tname = x\n[safe] directory = "{top}"\n',
        "[safe]\n\tdirectory = *\n\tdirectory =\n",
        "[safe]\n\tdirectory = {top}/deep\n",
        "[other]\n\tdirectory = *\n",
        '[safe "x"]\n\tdirectory = *\n',
        "[SAFE]\n\tDirectory = {top}/\n",
    ],
)
def test_safe_directory_is_what_the_users_git_says(top: Path, configured: str, stranger: Callable[[], None]) -> None:
    init(top)
    Path(os.environ["GIT_CONFIG_GLOBAL"]).write_text(configured.format(top=top))
    stranger()
    said = git(top / "deep", "rev-parse", "--show-toplevel")
    assert project_root(top / "deep") == (Path(said) if said else top / "deep")


def test_a_strangers_configuration_above_is_no_root(top: Path, stranger: Callable[[], None]) -> None:
    (top / ".agent-tui").mkdir()
    assert project_root(top / "deep") == top
    stranger()
    assert project_root(top / "deep") == top / "deep"


def test_a_folder_open_to_all_is_no_root_and_its_files_are_not_obeyed(top: Path, stranger: Callable[[], None]) -> None:
    init(top)
    (top / "AGENTS.md").write_text("Mine.")
    top.chmod(0o1777)
    assert project_root(top / "deep") == top / "deep"
    assert project_root(top) == top
    assert [block.label for block in MemoryFiles(top / "config", FileAccess([top]), top).blocks()] == ["AGENTS.md"]
    stranger()
    files = MemoryFiles(top / "config", FileAccess([top]), top)
    assert files.blocks() == [] and "another user" in files.problems[0]


def test_under_sudo_the_callers_repository_is_a_root(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init(top)
    owner = top.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    if owner != 0:
        assert project_root(top / "deep") == top / "deep"
    monkeypatch.setenv("SUDO_UID", str(owner))
    assert project_root(top / "deep") == top
