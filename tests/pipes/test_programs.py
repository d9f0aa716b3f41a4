"""Which program is found, and what of the environment is kept: nothing that a command can have put there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_tui.pipes.programs import find_program, keep_out_of, may_be_written, program_environment, why_not_found
from agent_tui.pipes.start import run
from tests.support.starting import stand_alone

pytestmark = pytest.mark.skipif(os.name != "posix", reason="folders and links of POSIX")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a project, in which we stand, an added folder, and one of the user's own, each with a ``tool``."""
    stand_alone(monkeypatch, tmp_path)
    base = tmp_path.resolve()
    for name in ("project/bin", "added/bin", "own", "open", "links", "other"):
        (base / name).mkdir(parents=True)
    for name in ("project/tool", "project/bin/tool", "added/bin/tool", "own/tool", "open/tool"):
        (base / name).write_text("#!/bin/sh\n")
        (base / name).chmod(0o755)
    (base / "open").chmod(0o777)
    (base / "links/tool").symlink_to(base / "project/tool")
    (base / "into").symlink_to(base / "project/bin")
    (base / "project/out").symlink_to(base / "own")
    (base / "loop").symlink_to(base / "loop")
    monkeypatch.chdir(base / "project")
    keep_out_of([base / "project", base / "added"])
    return base


UNSAFE = {
    "the project": "{0}/project/bin",
    "where we stand": ".",
    "an empty entry": "",
    "a relative entry": "bin",
    "a relative entry that leads out": "../own",
    "an added folder": "{0}/added/bin",
    "everybody's folder": "{0}/open",
    "a folder that is a link into the project": "{0}/into",
    "a folder behind a link that lies in the project": "{0}/project/out",
    "a program that is a link into the project": "{0}/links",
    "dots": "{0}/own/../project/bin",
    "by way of /proc": "/proc/self/cwd",
    "a home that is not expanded": "~/bin",
    "a loop of links": "{0}/loop",
}


@pytest.mark.parametrize("entry", UNSAFE.values(), ids=UNSAFE.keys())
def test_no_program_is_taken_from_where_commands_write(world: Path, entry: str) -> None:
    entry = entry.format(world)
    assert find_program("tool", {"PATH": entry}) is None
    assert find_program("tool", {"PATH": f"{entry}:{world}/own"}) == f"{world}/own/tool"
    assert find_program("tool", {"PATH": f"{world}/own:{entry}"}) == f"{world}/own/tool"
    kept = program_environment({"PATH": f"{entry}:{world}/own", "HOME": "/h"})
    assert kept == {"PATH": f"{world}/links:{world}/own" if "/links" in entry else f"{world}/own", "HOME": "/h"}


@pytest.mark.parametrize(
    "name", ["./tool", "bin/tool", "{0}/project/tool", "{0}/links/tool", "{0}/open/tool", "", "x\0"]
)
def test_a_path_is_a_program_only_where_commands_do_not_write(world: Path, name: str) -> None:
    assert find_program(name.format(world), {"PATH": f"{world}/own"}) is None


def test_a_path_of_the_users_own_is_one(world: Path) -> None:
    assert find_program(f"{world}/own/tool", {}) == f"{world}/own/tool"


@pytest.mark.parametrize("mode", [0o644, 0o757, 0o777])
def test_what_is_no_program_or_anybodys_is_passed_over(world: Path, mode: int) -> None:
    (world / "own/tool").chmod(mode)
    (world / "other/tool").mkdir()
    assert find_program("tool", {"PATH": f"{world}/own:{world}/other"}) is None


def test_it_is_said_where_one_is_that_is_not_started(world: Path) -> None:
    line = why_not_found("tool", {"PATH": f"{world}/project/bin"})
    assert f"({world}/project/bin/tool)" in line and "commands may write" in line
    assert "not installed" in why_not_found("tool", {"PATH": f"{world}/other"})


def test_a_folder_that_is_added_counts_from_then_on(world: Path) -> None:
    assert not may_be_written(world / "own/tool")
    keep_out_of([world / "own"])
    assert may_be_written(world / "own/tool") and find_program("tool", {"PATH": f"{world}/own"}) is None


def test_where_the_whole_machine_is_the_project_programs_are_found(world: Path) -> None:
    keep_out_of([Path("/")])
    assert find_program("tool", {"PATH": f"{world}/own"})


LOADED = {
    "PYTHONPATH": ("{0}/project:/usr/lib/py:.:src", "/usr/lib/py"),
    "PYTHONSTARTUP": ("{0}/project/start.py", None),
    "PYTHONWARNINGS": ("error::planted.Warning", None),
    "PYTHONHOME": ("{0}/project", None),
    "LD_PRELOAD": ("{0}/project/evil.so", None),
    "LD_LIBRARY_PATH": ("{0}/project/lib::/usr/lib", "/usr/lib"),
    "BASH_ENV": ("{0}/project/rc", None),
    "ENV": ("rc", None),
    "NODE_OPTIONS": ("--require ./x.js", None),
    "NODE_PATH": ("{0}/added/node_modules:/usr/lib/node", "/usr/lib/node"),
    "PERL5LIB": ("lib/perl", None),
    "PERL5OPT": ("-I{0}/project -MEvil", None),
    "RUBYOPT": ("-r./evil", None),
    "RUBYLIB": ("{0}/project", None),
    "JAVA_TOOL_OPTIONS": ("-javaagent:{0}/project/a.jar", None),
    "CLASSPATH": (".:/usr/share/java/a.jar", "/usr/share/java/a.jar"),
    "GIT_EXEC_PATH": ("{0}/project", None),
    "GIT_SSH_COMMAND": ("{0}/project/ssh -v", None),
    "GIT_DIR": (".git", None),
    "EDITOR": ("{0}/project/tool", None),
    "PAGER": ("less -R", "less -R"),
    "BROWSER": ("{0}/project/tool:firefox", None),
    "GIT_SSH": ("/usr/bin/ssh", "/usr/bin/ssh"),
    "NO_PROXY": ("", ""),
    "NODE_EXTRA_CA_CERTS": ("/etc/ssl/certs/ca.pem", "/etc/ssl/certs/ca.pem"),
    "MY_DATABASE": ("{0}/project/db", "{0}/project/db"),
}


@pytest.mark.parametrize("name", LOADED)
def test_what_is_loaded_by_a_variable_does_not_lie_where_commands_write(world: Path, name: str) -> None:
    value, kept = LOADED[name]
    assert program_environment({name: value.format(world), "PATH": ""}).get(name) == (kept and kept.format(world))


def test_only_what_was_found_is_started() -> None:
    with pytest.raises(FileNotFoundError):
        run(["true"])
    assert run([find_program("true") or "/bin/true"]).returncode == 0
