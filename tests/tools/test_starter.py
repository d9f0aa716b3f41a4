"""What is started for a project and for the user runs nothing that a command of the model left there."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.pipes.programs import keep_out_of
from agent_tui.tools.files.fingerprints import BEING_WRITTEN, changed_files, fingerprint
from agent_tui.tools.files.named_files import named_files
from agent_tui.tools.starter import Ran, Starter
from tests.support.starting import stand_alone

pytestmark = pytest.mark.skipif(os.name != "posix", reason="lines of a POSIX shell")
PYTHON = f'"{sys.executable}"'


class World:
    """A project whose user accepts what ``accept`` sees."""

    def __init__(self, base: Path) -> None:
        self.base, self.root, self.mark = base, base / "project", base / "mark"
        self.root.mkdir()
        self.trusted = True
        self.accepted: dict[str, str] = {}
        self.starter = Starter(self.root, base / "bytecode", self._changed, lambda: self.trusted)

    def _changed(self, files: Mapping[str, str]) -> list[str]:
        return changed_files(self.accepted if self.trusted else {}, files)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def accept(self, line: str) -> None:
        self.accepted |= fingerprint(named_files(line, self.root, self.root), self.root)

    async def run(self, line: str, **more: str) -> Ran:
        return await self.starter.run(line, b"", self.root, {**os.environ, **more}, 60.0)

    @property
    def evil(self) -> str:
        return f"open({str(self.mark)!r}, 'w').close()\n"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    stand_alone(monkeypatch, tmp_path)
    made = World(tmp_path.resolve())
    monkeypatch.chdir(made.base)
    keep_out_of([made.root])
    return made


def plant_bytecode(world: World, source: Path, unchecked: bool) -> None:
    """Bytecode that Python takes for that of ``source``: of the same time and size, or not compared at all."""
    evil, info = world.base / "evil.py", source.stat()
    evil.write_text(world.evil.ljust(info.st_size)[: max(info.st_size, len(world.evil))])
    cached = Path(importlib.util.cache_from_source(str(source)))
    cached.parent.mkdir(exist_ok=True)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH if unchecked else py_compile.PycInvalidationMode.TIMESTAMP
    py_compile.compile(str(evil), cfile=str(cached), doraise=True, invalidation_mode=mode)
    if not unchecked:
        data = bytearray(cached.read_bytes())
        data[8:16] = int(info.st_mtime).to_bytes(4, "little") + info.st_size.to_bytes(4, "little")
        cached.write_bytes(data)


@pytest.mark.forms(1)
@pytest.mark.parametrize("unchecked", [False, True])
@pytest.mark.parametrize("line", [f"{PYTHON} hooks/h.py", f"cd hooks; {PYTHON} -m h"])
async def test_planted_bytecode_is_not_run(world: World, line: str, unchecked: bool) -> None:
    helper = world.write("hooks/helper.py", "WORD = 'right'\n")
    world.write("hooks/h.py", "import helper\nprint(helper.WORD)\n")
    world.accept(line)
    plant_bytecode(world, helper, unchecked)
    plain = subprocess.run(line, shell=True, cwd=world.root, capture_output=True, check=False)  # noqa: ASYNC221
    assert b"right" not in plain.stdout and world.mark.exists(), "python alone falls for it"
    world.mark.unlink()
    assert await world.run(line) == Ran(0, "right\n", "")
    assert not world.mark.exists()


@pytest.mark.forms(1)
@pytest.mark.parametrize("name", ["json.py", "sitecustomize.py", "usercustomize.py", "json/__init__.py"])
@pytest.mark.parametrize(
    "line", [f"{PYTHON} -c 'import json'", f"echo import json | {PYTHON} -", f"{PYTHON} -m hooks.h"]
)
async def test_a_planted_module_is_not_imported(world: World, name: str, line: str) -> None:
    world.write("hooks/h.py", "import json\n")
    world.accept(line)
    world.write(name, world.evil)
    ran = await world.run(line, PYTHONPATH=f".:{world.root}:")
    assert not world.mark.exists() and (ran.code == 0 or name.split("/")[0] in ran.problem)


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["run/h.sh", "run/lib.sh"])
async def test_a_script_that_changed_is_not_run_until_it_is_accepted(world: World, changed: str) -> None:
    line = "sh run/h.sh"
    world.write("run/h.sh", ". ./run/lib.sh\necho one\n")
    world.write("run/lib.sh", "")
    world.accept(line)
    assert (await world.run(line)).output == "one\n"
    world.write(changed, "echo two\n")
    ran = await world.run(line)
    assert changed in ran.problem and "changed since you trusted this folder; /trust shows" in ran.problem
    assert "\n" not in ran.problem and not ran.output
    world.accept(line)
    assert "two" in (await world.run(line)).output


async def test_nothing_of_a_folder_nobody_trusts_is_run(world: World) -> None:
    world.write("h.sh", "echo one\n")
    world.accept("sh h.sh")
    world.trusted = False
    assert "have not trusted" in (await world.run("sh h.sh")).problem
    assert (await world.run("echo own")).output == "own\n"


@pytest.mark.forms(2)
@pytest.mark.parametrize(
    "variables", [{"BASH_ENV": "rc.sh"}, {"BASH_ENV": "{0}/rc.sh"}, {"ENV": "{0}/rc.sh"}, {"LD_PRELOAD": "{0}/evil.so"}]
)
async def test_variables_that_lead_into_the_project_load_nothing(world: World, variables: dict[str, str]) -> None:
    world.write("rc.sh", f": > {world.mark}\n")
    given = {name: value.format(world.root) for name, value in variables.items()}
    assert await world.run("echo; env | grep -c project/ || true", **given) == Ran(0, "\n0\n", "")
    assert not world.mark.exists()


async def test_a_program_of_the_project_on_path_is_not_found(world: World) -> None:
    for name in ("git", "tool"):
        world.write(f"bin/{name}", f"#!/bin/sh\n: > {world.mark}\n").chmod(0o755)
    path = f"{world.root}/bin:.::{os.environ['PATH']}"
    assert (await world.run("git --version; command -v tool; true", PATH=path)).code == 0
    for line in (
        "tool --flag",
        "test -f a && tool",
        "A=b tool",
        "if tool; then :; fi",
        "true\ntool",
        "true;(tool)|cat",
    ):
        ran = await world.run(line, PATH=path)
        assert f"({world.root}/bin/tool)" in ran.problem and "Name it by its path" in ran.problem
    assert not (await world.run("echo tool 'x && tool' > tool; : tool", PATH=path)).problem
    assert not world.mark.exists()
    world.accept("bin/tool")
    assert (await world.run("bin/tool", PATH=path)).code == 0 and world.mark.exists()


def git(root: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=b", *words], cwd=root, check=True, capture_output=True
    )


CONFIG = {
    "a monitor": ("core.fsmonitor", "git status"),
    "an external diff": ("diff.external", "git diff"),
    "an alias": ("alias.st", "git st"),
    "a filter": ("filter.x.clean", "git diff; git add a"),
    "a text converter": ("diff.x.textconv", "git diff; git log -p"),
    "hooks": ("core.hooksPath", "git commit -qam x"),
    "ssh": ("core.sshCommand", "git fetch ssh://127.0.0.1/x"),
}


@pytest.mark.forms(1)
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("kind", CONFIG)
async def test_git_of_a_folder_nobody_trusts_runs_none_of_its_programs(world: World, kind: str) -> None:
    git(world.root, "init", "-q")
    world.write(".gitattributes", "a filter=x diff=x\n")
    world.write("a", "1\n")
    git(world.root, "add", ".")
    git(world.root, "commit", "-qm", "x")
    hooks = world.write("hooks/pre-commit", f"#!/bin/sh\n: > {world.mark}\n")
    hooks.chmod(0o755)
    key, line = CONFIG[kind]
    value = "hooks" if kind == "hooks" else f"{'!' if 'alias' in key else ''}: > {world.mark};"
    git(world.root, "config", key, value)
    world.write("a", "2\n")
    world.trusted = False
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "b"}
    await world.run(line, **identity)
    assert not world.mark.exists()
    world.trusted = True
    await world.run(line, **identity)
    assert world.mark.exists(), "in a trusted folder it is git's own business"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("trusted", [True, False])
async def test_files_that_look_like_a_repository_are_none(world: World, trusted: bool) -> None:
    git(world.root, "init", "-q", "--bare", "sub")
    (world.root / "sub/config").write_text(
        f"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = : > {world.mark};\n", "utf-8"
    )
    world.trusted = trusted
    await world.run("cd sub && git status")
    assert not world.mark.exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_git_works_in_a_folder_nobody_trusts_that_names_no_programs(world: World) -> None:
    git(world.root, "init", "-q", "-b", "main")
    world.write("a", "")
    world.trusted = False
    assert (await world.run("git status --short; git branch --show-current")).output == "?? a\nmain\n"


def test_a_server_is_started_by_its_whole_path(world: World) -> None:
    world.write("bin/tool", "#!/bin/sh\n").chmod(0o755)
    world.write("plain", "")
    start = world.starter.server
    assert start("sh", [], {}, str(world.root))[0].startswith("/")
    for command, env, why in (
        ("nothing-like-it", {}, "no such program"),
        ("./plain", {}, "not executable"),
        ("tool", {"PATH": f"{world.root}/bin"}, "commands may write"),
        ("bin/tool", {}, "changed since"),
    ):
        with pytest.raises(ToolError, match=why):
            start(command, [], env, str(world.root))
    world.accept("bin/tool")
    program, env = start("bin/tool", [], {"A": "b", "LD_PRELOAD": "x/y.so"}, str(world.root))
    assert program == f"{world.root}/bin/tool" and env["A"] == "b" and "LD_PRELOAD" not in env


@pytest.mark.slow
async def test_a_script_that_is_swapped_all_the_time_is_never_run_as_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever swaps leaves a new time of change, of the file and its folder, so that the next look sees it."""
    monkeypatch.setattr("agent_tui.tools.starter.SETTLING", 0.0)
    line, script = "sh h.sh", world.write("h.sh", "echo good\n")
    world.accept(line)
    stop, begun, refused, runs = threading.Event(), threading.Event(), 0, 0

    def swap() -> None:
        evil = world.base / "evil.sh"
        while not stop.is_set():
            evil.write_text(f": > {world.mark}\n")
            good = script.rename(world.base / "good.sh")
            evil.rename(script)
            time.sleep(0.0005)
            good.rename(script)
            begun.set()

    thread = threading.Thread(target=swap)
    thread.start()
    assert begun.wait(10)
    try:
        for _ in range(1_000):
            try:
                world.starter.environment(line, world.root, os.environ)
            except ToolError:
                refused += 1
            else:
                runs += 1
                subprocess.run(["sh", "h.sh"], cwd=world.root, check=False, capture_output=True)  # noqa: ASYNC221
    finally:
        stop.set()
        thread.join()
    assert not world.mark.exists() and (refused, runs) == (1_000, 0)


SWAPS: dict[str, str] = {
    "a folder and back": "cd tools; mv cur old; mv evil cur; {line}; mv cur evil; mv old cur; cd ..",
    "the folder above": "mv tools old; mkdir tools; cp -r old/evil tools/cur; {line}; rm -r tools; mv old tools",
    "the script and back": "mv tools/cur/x.sh o; cp tools/evil/x.sh tools/cur/x.sh; {line}; mv o tools/cur/x.sh",
    "by hard links": "ln tools/cur/x.sh o; ln -f tools/evil/x.sh tools/cur/x.sh; {line}; ln -f o tools/cur/x.sh",
    "its text": "echo 'echo EVIL' > tools/cur/x.sh",
    "what it asks for and is not there": "echo 'echo EVIL' > tools/cur/lib.sh; {line}; rm tools/cur/lib.sh",
}


@pytest.mark.forms(1)
@pytest.mark.skipif(sys.platform != "linux", reason="needs inotify")
@pytest.mark.parametrize("what", SWAPS)
@pytest.mark.parametrize("when", ["after the look", "while it runs"])
async def test_what_is_swapped_behind_the_look_is_not_believed(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str, when: str
) -> None:
    world.write("tools/cur/x.sh", "[ -f tools/cur/lib.sh ] && . tools/cur/lib.sh\necho GOOD\n")
    world.write("tools/evil/x.sh", "echo EVIL\n")
    line, swap = "sh tools/cur/x.sh", SWAPS[what].format(line="true")
    whole = f"{swap}; {line}" if when == "while it runs" else line
    world.accept(line)
    looked = world.starter._accepted

    def swapped_then(command: str, cwd: Path) -> object:
        found = looked(line, cwd)
        if when == "after the look":
            subprocess.run(swap, shell=True, cwd=world.root, check=True)
        return found

    monkeypatch.setattr("agent_tui.tools.files.fingerprints.SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(world.starter, "_accepted", swapped_then)
    ran = await world.run(whole)
    assert ran.changed and ran.known and not ran.output and "does not count" in ran.problem


@pytest.mark.skipif(sys.platform != "linux", reason="needs inotify")
async def test_a_command_whose_files_change_is_ended_at_once(world: World) -> None:
    world.write("x.sh", "echo >> x.sh\nsleep 60\n")
    world.accept("sh x.sh")
    async with asyncio.timeout(30):
        assert (await world.run("sh x.sh")).changed == "while it ran"


async def test_what_others_write_beside_the_files_disturbs_nothing(world: World) -> None:
    world.write("tools/x.sh", "echo GOOD\n")
    line = "sh tools/x.sh; : > tools/state; mv tools/state tools/kept; : > other; rm other"
    world.accept(line)
    assert await world.run(line) == Ran(0, "GOOD\n")


def test_a_file_is_not_taken_for_the_one_that_was_read_for_what_it_names(world: World) -> None:
    script = world.write("x.sh", ". ./lib.sh\n")
    world.write("lib.sh", "")
    world.accept("sh x.sh")
    script.rename(world.base / "good.sh")
    world.write("x.sh", "")
    named = named_files("sh x.sh", world.root, world.root)
    (world.base / "good.sh").rename(script)
    assert fingerprint(named, world.root, settled=True)["x.sh"] == BEING_WRITTEN


@pytest.mark.parametrize("known", [True, False])
async def test_what_cannot_be_told_of_a_command_is_no_leave_to_go_on(
    world: World, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_tui.tools.files.named_files.MOST_FILES", 3)
    world.trusted = known
    for number in range(5):
        world.write(f"{number}.sh", "")
    ran = await world.run("; ".join(f"sh {number}.sh" for number in range(5)))
    assert "more than" in ran.changed and ran.known == known and "not started" in ran.problem
