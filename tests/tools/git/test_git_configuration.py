"""Git's configuration is read as git reads it, and what is not known to be harmless counts as naming programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent_tui.pipes.programs import find_program
from agent_tui.tools.git.configuration import as_config, config_of, read_config, runs_nothing
from agent_tui.tools.git.repository import descends, listed, names_programs
from agent_tui.tools.git.untrusted import harmless_git
from tests.support.every import every
from tests.support.git import git

pytestmark = pytest.mark.quick

TEXTS = [
    "",
    "[a]b=1",
    "\ufeff[a]\n\tB = 1 ; why\n",
    '[filter "x;y"]\n clean = ./evil\n',
    '[a ";"][core]fsmonitor=./evil\n',
    '[remote "a;b"] uploadpack = ./evil # [core]\n',
    '[url "ext::sh -c x;y"] insteadOf = https://\n',
    "[core]bare=false;x\n[CORE] Pager = less\n",
    '[a "b\\"]c\\\\"] d = "e;f" g \\\n  h # i \\\nj = k\n',
    '[a] b = "x\\n\\t\\b\\\\\\"" \\\n c\n',
    "[a.B]c\r\n[d]\r\ne = f \r\n",
    '[a]\nb =\nc = ""\nd = \' # \'\ne = " x " \n',
    '[a "one\ntwo"] b = c\n',
    '[a "B" ] b = c\n',
    "[ a] b = c\n",
    "[a] b = c\\q\n",
    '[a] b = "c\n',
    "[a] 1b = c\n",
    "[a] b c = d\n",
    "[a",
    "[a] b\\",
    "; [a] b = c\n#[a] b = c\n  [a] d = e ;",
]


@every("text", TEXTS)
def test_it_is_read_as_git_reads_it(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(text.encode())
    done = subprocess.run(["git", "config", "--file", file, "-z", "--list"], capture_output=True, check=False)
    entries = [entry.partition("\n") for entry in done.stdout.decode().split("\0") if entry]
    if done.returncode:
        with pytest.raises(ValueError):
            read_config(text)
    else:
        assert read_config(text) == [(key, value if line else "true") for key, line, value in entries]


def test_what_stands_before_a_fault_can_be_had() -> None:
    assert config_of('[a]b = c\n[d "') == [("a.b", "c")]
    with pytest.raises(ValueError, match="ends within"):
        read_config('[remote "o.uploadpack\0"] url = ./evil\n')


def test_what_is_written_is_read_again() -> None:
    settings = [("a.b", 'c;"d"\\ \n\t#'), ('e."f]\\;.g', " h ")]
    assert read_config(as_config(settings)) == settings


NAMING = [
    *('[filter "x;y"] clean = e', '[a ";"][core]fsmonitor=./e', '[remote "a;b"] uploadpack = e', "[core]FSMonitor=./e"),
    *('[url "ext::sh -c x;y"] insteadOf = a', '[remote "o"] url = ext::sh', '[remote "o"] vcs = e', "[core]\npager=e"),
    *('[submodule "x"] update = !e', '[submodule "x"] ignore = none', "[credential] helper = !e", "[include] path = e"),
    *(
        '[includeIf "gitdir:/"] path = e',
        "[gpg] program = e",
        '[gpg "ssh"] defaultKeyCommand = e',
    ),
    *('[lfs "extension.x"] clean = e', '[lfs "customtransfer.x"] path = e', '[merge "x"] driver = e', "[man]viewer=e"),
    *('[diff "x"] command = e', "[diff] external = e", "[alias] status = !e", "[interactive] diffFilter = e"),
    *("[gc]recentObjectsHook=e", '[remote "../local"] promisor = true', "[extensions] partialClone = ../local"),
    *("[sequence] editor = e", "[trailer] x = e", '[tar "x"] command = e', '[branch "x"] mergeOptions = -s e'),
    *("[core] whatComesNext = e", "fsmonitor = e", "[core", '[remote "o"] promisor = true\n url = ../local'),
    *('[extensions] partialClone = o\n[remote "o"] url = file:///x', "[uploadpack] packObjectsHook = e"),
]
HARMLESS = [
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
    '[remote "origin"]\n\turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
    '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n\tvscode-merge-base = origin/main\n',
    '[remote "o"]\n\turl = https://example.org/a;b\n\tpromisor = true\n\tpartialclonefilter = blob:none\n',
    '[user]\n\tname = A ; clean = x\n[pull]\n\trebase = true\n[submodule "x"]\n\turl = ../x\n\tactive = true\n',
    '[http "https://example.org/"]\n\textraheader = X: y\n[gc]\n\tauto = 0\n[core]\n\tfsmonitor = true\n',
]


@pytest.mark.parametrize("text", NAMING)
def test_what_may_name_programs_counts(tmp_path: Path, text: str) -> None:
    git(tmp_path, "init", "-q")
    with (tmp_path / ".git/config").open("a") as file:
        file.write(text + "\n")
    assert names_programs(tmp_path)


@every("text", HARMLESS)
def test_what_usual_configurations_say_is_harmless(text: str) -> None:
    assert runs_nothing(read_config(text))


def _planted(folder: Path) -> None:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "config", "filter.x.clean", "./evil")


def test_the_repository_that_git_finds_counts(tmp_path: Path) -> None:
    _planted(tmp_path / "a")
    (tmp_path / "a/empty/.git").mkdir(parents=True)
    assert names_programs(tmp_path / "a/empty"), "git goes on upwards"
    git(tmp_path, "init", "-q", "b")
    (tmp_path / "b/.git/commondir").write_text(f"{tmp_path}/a/.git\n")
    assert names_programs(tmp_path / "b"), "its configuration is elsewhere"
    git(tmp_path, "init", "-q", "c")
    (tmp_path / "c/.git/HEAD").unlink()
    (tmp_path / "c/.git/HEAD").symlink_to("ORIG_HEAD")
    assert names_programs(tmp_path / "c"), "git follows that or not"


def test_a_git_that_nobody_trusts_is_held_to_the_one_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    _planted(tmp_path / "sub")
    held = harmless_git(tmp_path, {}, trusted=False)
    assert (held["GIT_DIR"], held["GIT_WORK_TREE"]) == (str(tmp_path / ".git"), str(tmp_path))
    assert held["GIT_NO_LAZY_FETCH"] == "1" and "diff.external" not in held.values()
    assert harmless_git(tmp_path / "sub", {}, trusted=False)["GIT_DIR"] == "/dev/null"
    assert not {"GIT_DIR", "GIT_WORK_TREE"} & harmless_git(tmp_path / "sub", {}, trusted=True).keys()


def test_submodules_are_not_looked_into(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    own = tmp_path / ".git"
    assert not descends(own, tmp_path)
    for ignore, looks in (("dirty", False), ("none", True), ("untracked", True)):
        (tmp_path / ".gitmodules").write_text(f'[submodule "s"]\n path = s\n url = ../s\n ignore = {ignore}\n')
        assert descends(own, tmp_path) is looks
    (tmp_path / ".gitmodules").unlink()
    git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},s")
    assert descends(own, tmp_path), "what says so may lie in the index"


def test_git_lists_what_was_added_to_the_variables(tmp_path: Path) -> None:
    given = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_COUNT": "1"}
    given |= {"GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    settings = dict(
        listed([find_program("git") or "git", "config"], harmless_git(tmp_path, given, trusted=False), tmp_path) or ()
    )
    assert settings["a.b"] == "c" and settings["core.hookspath"] == "/dev/null"
