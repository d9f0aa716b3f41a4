"""Which program is found, and what of the environment is kept: nothing that a command can have put there."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from agent_tui.pipes import programs
from agent_tui.pipes.programs import (
    find_program,
    keep_out_of,
    may_be_written,
    program_environment,
    why_not_found,
    with_git_config,
)
from agent_tui.pipes.start import run
from tests.support.starting import stand_alone

pytestmark = [pytest.mark.quick, pytest.mark.skipif(os.name != "posix", reason="folders and links of POSIX")]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, with what separates words in its name, with a project, in which we stand, an added folder, and one of
    the user's own, each with a ``tool``."""
    stand_alone(monkeypatch, tmp_path)
    base = tmp_path.resolve() / "my own, (new) work"
    for name in ("project/bin", "added/bin", "own", "open", "links", "other", "shared", "all"):
        (base / name).mkdir(parents=True)
    for name in (
        "project/tool",
        "project/bin/tool",
        "added/bin/tool",
        "own/tool",
        "open/tool",
        "shared/tool",
        "all/tool",
    ):
        (base / name).write_text("#!/bin/sh\n")
        (base / name).chmod(0o755)
    (base / "open/tool").chmod(0o777)
    (base / "links/tool").symlink_to(base / "project/tool")
    (base / "into").symlink_to(base / "project/bin")
    (base / "project/out").symlink_to(base / "own")
    (base / "loop").symlink_to(base / "loop")
    (base / "all").chmod(0o777)
    monkeypatch.setattr(programs, "_SHARED", (*programs._SHARED, str(base / "shared")))
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
    "everybody's file": "{0}/open",
    "a place where everybody keeps files": "{0}/shared",
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
    assert kept == {
        "PATH": f"{entry}:{world}/own" if entry.endswith(("/links", "/open")) else f"{world}/own",
        "HOME": "/h",
    }


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
    "MY_DATABASE": ("{0}/project/db", None),
    "MAKEFILES": ("x.mk", None),
    "MAKEFLAGS": ("-j4 -f {0}/project/x.mk", None),
    "AWKPATH": ("{0}/project:/usr/share/awk", "/usr/share/awk"),
    "npm_config_script_shell": ("./sh", None),
    "npm_config_userconfig": (".npmrc", None),
    "R_PROFILE_USER": ("{0}/added/x.R", None),
    "JULIA_LOAD_PATH": (".:@stdlib", None),
    "RUSTC_WRAPPER": ("bin/tool", None),
    "GOFLAGS": ("-mod=mod -toolexec=./x", None),
    "DOCKER_CONFIG": ("{0}/into", None),
    "SHELL": ("{0}/project/sh", None),
    "ANY": ("a,b={0}/own/../project/x", None),
    "AWS_PROFILE": ("work", "work"),
    "CC": ("ccache gcc", "ccache gcc"),
    "TZ": ("Europe/Berlin", "Europe/Berlin"),
    "LS_COLORS": ("*.tar=01;31:.a=1", "*.tar=01;31:.a=1"),
    "INDEX": ("https://example.org/project/bin", "https://example.org/project/bin"),
    "LESSOPEN": ("|/usr/bin/lesspipe.sh %s", "|/usr/bin/lesspipe.sh %s"),
    "GIT_PROXY_COMMAND": ("p -i ~/.ssh/id_work", "p -i ~/.ssh/id_work"),
    "VIRTUAL_ENV": ("{0}/project/.venv", "{0}/project/.venv"),
    "CLAUDE_PROJECT_DIR": ("{0}/project", "{0}/project"),
    "OLDPWD": ("{0}/added", "{0}/added"),
    "SSH_AUTH_SOCK": ("{0}/shared/agent", "{0}/shared/agent"),
}


@pytest.mark.parametrize("name", LOADED)
def test_what_is_loaded_by_a_variable_does_not_lie_where_commands_write(world: Path, name: str) -> None:
    value, kept = LOADED[name]
    assert program_environment({name: value.format(world), "PATH": ""}).get(name) == (kept and kept.format(world))


def test_what_was_configured_for_a_program_may_name_the_project(world: Path) -> None:
    environ = {"DATABASE": f"{world}/project/db", "OTHER": f"{world}/project/db", "NODE_PATH": "node_modules"}
    kept = program_environment(environ, given=["DATABASE", "NODE_PATH"])
    assert kept.keys() == {"PATH", "DATABASE"}


def test_gits_configuration_in_variables_stays_whole(world: Path) -> None:
    pairs = [("safe.directory", f"{world}/project"), ("core.fsmonitor", f"{world}/project/tool"), ("a.b", "")]
    environ = with_git_config({"PATH": "/usr/bin"}, pairs)
    assert program_environment(environ) == with_git_config({"PATH": "/usr/bin"}, [pairs[0], pairs[2]])
    assert program_environment(environ | {"GIT_CONFIG_COUNT": "9"}) == program_environment(environ)
    assert program_environment({**environ, "GIT_CONFIG_COUNT": "x"}) == {"PATH": "/usr/bin"}


@pytest.mark.parametrize(("owner", "held", "found"), [(0, False, True), (4_711, False, False), (4_711, True, True)])
def test_in_a_folder_that_all_may_write_it_counts_who_put_it_there(
    world: Path, monkeypatch: pytest.MonkeyPatch, owner: int, held: bool, found: bool
) -> None:
    seen = os.lstat
    tool = str(world / "all/tool")

    def lstat(path: str) -> os.stat_result:
        info = seen(path)
        return os.stat_result((*info[:4], owner, *info[5:10])) if path == tool else info

    keep_out_of([], held=held)
    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", lstat)
        assert (find_program("tool", {"PATH": f"{world}/all"}) is not None) is found


def test_what_all_may_write_is_a_program_where_a_sandbox_holds_commands(world: Path) -> None:
    keep_out_of([], held=True)
    assert find_program("tool", {"PATH": f"{world}/open"}) and not find_program("tool", {"PATH": f"{world}/shared"})


DRIVE = "rw,noatime - {} rw,dirsync,aname=drvfs;path=C:\\;uid=1000;gid=1000;symlinkroot=/mnt/,mmap,access=client"
MOUNTED = {
    "a drive of Windows in WSL 2": (DRIVE.format("9p C:\\134"), "", True),
    "a drive of Windows in WSL 1": ("rw,noatime - drvfs C: rw,uid=1000,gid=1000", "", True),
    "another one in its place": (DRIVE.format("9p C:\\134"), "rw - ext4 /dev/sdb rw", False),
    "a folder of the host of a virtual machine": ("rw - 9p share rw,trans=virtio,aname=drv", "", False),
    "a file system that calls itself so": ("rw - fuse.x aname=drvfs;path=C: rw,user_id=1000", "", False),
    "a stick": ("rw - vfat /dev/sdb1 rw,fmask=0000", "", False),
}


@pytest.mark.parametrize(("first", "second", "found"), MOUNTED.values(), ids=MOUNTED.keys())
def test_on_a_drive_of_windows_modes_say_nothing(
    world: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str, found: bool
) -> None:
    """All files have mode 777 there. ``first`` is what is mounted, and ``second`` what over it."""
    drive = world / "mnt of c"
    for name in ("bin", "project"):
        (drive / name).mkdir(parents=True, mode=0o777)
        (drive / name / "tool").write_text("#!/bin/sh\n")
        (drive / name / "tool").chmod(0o777)
    place = str(drive).replace(" ", r"\040")
    lines = ["22 1 8:1 / / rw - ext4 /dev/sda rw", *(f"30 22 0:9 / {place} {said}" for said in (first, second) if said)]
    (world / "mountinfo").write_text("\n".join(lines))
    monkeypatch.setattr(programs, "MOUNTS", str(world / "mountinfo"))
    monkeypatch.setattr(programs, "_drives", cache(programs._drives.__wrapped__))
    keep_out_of([drive / "project"])
    assert (find_program("tool", {"PATH": f"{drive}/bin"}) is not None) is found
    assert find_program("tool", {"PATH": f"{drive}/project:{world}/open:{world}/shared"}) is None


def test_spared_places_of_a_project_have_programs(world: Path) -> None:
    keep_out_of([], [world / "project/bin"])
    assert find_program("tool", {"PATH": f"{world}/project:{world}/project/bin"}) == f"{world}/project/bin/tool"


def test_only_what_was_found_is_started() -> None:
    with pytest.raises(FileNotFoundError):
        run(["true"])
    assert run([find_program("true") or "/bin/true"]).returncode == 0
