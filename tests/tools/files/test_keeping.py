"""What a command destroys comes back: the repository from its copy, files with ``/rewind``."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pytest

from agent_tui.store.store import Store
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.builtin.edit import WriteTool
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.children.jobs import Jobs
from agent_tui.tools.files import kept, repository_copy
from agent_tui.tools.files.snapshots import FileHistory, ProjectKeeping, Snapshotter, apply_restore
from tests.support.forms import one_of
from tests.support.tool_context import make_context

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

_PLAIN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
_WHO = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "gc.auto=0", "-c", "protocol.file.allow=always")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *_WHO, *arguments], cwd=folder, env=os.environ | _PLAIN, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {arguments}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass
class Project:
    context: ToolContext
    store: Store
    session: str
    snapshots: Snapshotter

    @property
    def root(self) -> Path:
        return self.context.root

    async def run(self, command: str, message: str = "m1") -> str:
        self.snapshots.message_id = message
        return (await BashTool().run({"command": command}, self.context)).text

    def rewind(self, *messages: str) -> list[str]:
        return apply_restore(FileHistory(self.store.snapshots.all(self.session)).plan(messages))

    def files(self) -> dict[str, bytes]:
        found = (path for path in self.root.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in found}


def make_project(root: Path) -> Project:
    context = make_context(root)
    store = Store.open(root.parent / "sessions.db")
    session = store.sessions.create(str(context.root), "demo").id
    snapshots = Snapshotter(lambda m, p, c, mode: store.snapshots.add(session, m, p, c, mode), store.transaction)
    context.before_change, context.after_change = snapshots.before_change, snapshots.after_change
    context.keeping = ProjectKeeping(context.root, root.parent / "cache", snapshots)
    context.jobs = Jobs()
    return Project(context, store, session, snapshots)


@pytest.fixture
async def project(tmp_path: Path) -> AsyncIterator[Project]:
    made = make_project(tmp_path / "project")
    git(made.root, "init", "-q", "-b", "main")
    for name in ("a.txt", "src/b.py", "src/deep/c.py"):
        (made.root / name).parent.mkdir(parents=True, exist_ok=True)
        (made.root / name).write_bytes(f"{name}\r\n".encode())
        git(made.root, "add", ".")
        git(made.root, "commit", "-q", "-m", name)
    git(made.root, "branch", "other", "HEAD~1")
    git(made.root, "tag", "-m", "one", "v1")
    (made.root / ".gitignore").write_text("ignored\n")
    (made.root / "new.txt").write_text("not committed\n")
    (made.root / "ignored").write_text("ignored\n")
    (made.root / "staged").write_text("staged\n")
    git(made.root, "add", "staged")
    yield made
    assert made.context.jobs is not None
    for job in made.context.jobs.all():
        await made.context.jobs.stop(job.id, "the user")


DESTROYED = [
    "find . -print0 | xargs -0 rm",
    "find . -print0 | xargs -0 rm -f",
    "rm -rf .git",
    "rm -rf * .git",
    "git update-ref -d HEAD",
    "git update-ref -d refs/heads/main; git update-ref -d refs/heads/other",
    "find .git/objects -type f -exec chmod u+w {} + -exec truncate -s 0 {} +",
    "for f in $(find .git/objects -type f); do chmod u+w $f; echo damaged > $f; done",
    "find .git/objects -type f -delete",
    "rm -rf .git/objects/??",
    "rm -rf .git/objects",
    "rm -rf .git/refs",
    "rm -rf .git/refs .git/logs .git/packed-refs",
    "rm .git/HEAD",
    "echo nonsense > .git/HEAD",
    "echo nonsense > .git/refs/heads/main",
    "echo 1234567890123456789012345678901234567890 > .git/refs/heads/main",
    "rm .git/index",
    "truncate -s 40 .git/index",
    "chmod -R 000 .git",
    "mv .git away",
    "mv .git away; touch .git",
    "rm -rf .git; git init -q",
    "rm -rf .git; git init -q -b trunk",
    "rm -rf .git/objects/pack .git/objects/info; git gc -q; rm -f .git/objects/pack/*",
]


def shell(line: str) -> str:
    return subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True).stdout


def copy_of(project: Project) -> Path:
    (copy,) = (path for path in (project.root.parent / "cache").iterdir() if path.is_dir())
    return copy


@pytest.mark.parametrize(("packed", "command"), one_of(product([False, True], DESTROYED), every=18))
async def test_the_repository_comes_back_from_its_copy(project: Project, command: str, packed: bool) -> None:
    root = project.root
    if packed:
        git(root, "gc", "-q")
    log, refs, files = git(root, "log", "--all", "--format=%H %s"), git(root, "show-ref"), project.files()
    status = git(root, "status", "--porcelain")
    await project.run(command)
    back = f"rm -rf {root}/.git && cp -a {copy_of(project)} {root}/.git"
    shell(back)
    checked = git(root, "fsck", "--full", "--no-dangling")
    assert "damaged" not in checked and "missing" not in checked
    assert (git(root, "log", "--all", "--format=%H %s"), git(root, "show-ref")) == (log, refs)
    assert project.rewind("m1") == []
    after = {name: data for name, data in project.files().items() if not name.startswith("away/")}
    assert after | {"ignored": b""} == files | {"ignored": b""}, "ignored files are left out"
    shutil.rmtree(root / "away", ignore_errors=True)
    assert git(root, "status", "--porcelain") == status
    git(root, "commit", "-q", "-m", "goes on")
    assert git(root, "log", "-1", "--format=%s", "main") == "goes on\n"


async def test_what_is_gone_is_said_once_with_the_way_back(project: Project) -> None:
    log = git(project.root, "log", "--format=%H")
    assert "gone" not in await project.run("git checkout -q other; git branch -q -D main; git gc -q --prune=now")
    git(project.root, "branch", "-q", "main", "v1")
    said = await project.run("rm -rf .git")
    assert "is gone or damaged; as it was when the session began: " in said
    assert "gone" not in await project.run("true")
    shell(said.rpartition("began: ")[2].removesuffix("]"))
    assert git(project.root, "log", "--format=%H") == log, "on the branch of that time"


async def test_a_damaged_repository_does_not_replace_the_copy_of_an_earlier_session(project: Project) -> None:
    refs = git(project.root, "show-ref")
    await project.run("rm -rf .git/refs .git/packed-refs; mkdir -p .git/refs/heads")
    later = ProjectKeeping(project.root, project.root.parent / "cache", project.snapshots)
    await later.before()
    await later.after()
    shell(f"git --git-dir {copy_of(project)} fsck")
    assert shell(f"git --git-dir {copy_of(project)} show-ref") == refs


@pytest.mark.quick
async def test_files_come_back_as_after_an_edit(project: Project) -> None:
    root, before = project.root, project.files()
    (root / "a.txt").chmod(0o600)
    await project.run(
        "rm a.txt; echo more >> src/b.py; mkdir made; echo x > made/x; echo y > ignored; chmod 755 new.txt"
    )
    await project.run("echo again > made/x; rm new.txt", "m2")
    assert project.rewind("m2") == []
    assert (root / "made/x").read_text() == "x\n" and (root / "new.txt").read_text() == "not committed\n"
    assert project.rewind("m1", "m2") == []
    assert project.files() == before | {"ignored": b"y\n"}
    assert ((root / "a.txt").stat().st_mode & 0o777, (root / "new.txt").stat().st_mode & 0o111) == (0o600, 0)


@pytest.mark.quick
async def test_edits_between_commands_and_the_users_own_work_stay_apart(project: Project) -> None:
    root = project.root
    await project.run("echo one > made")
    (root / "a.txt").write_text("the user's\n")
    project.snapshots.message_id = "m2"
    await ReadTool().run({"path": "made"}, project.context)
    await WriteTool().run({"path": "made", "content": "two\n"}, project.context)
    await project.run("echo three >> made", "m3")
    assert project.rewind("m3") == [] and (root / "made").read_text() == "two\n"
    assert project.rewind("m2", "m3") == [] and (root / "made").read_text() == "one\n"
    assert project.rewind("m1", "m2", "m3") == [] and not (root / "made").exists()
    assert (root / "a.txt").read_text() == "the user's\n"


async def test_a_command_in_the_background_is_undone_when_it_has_ended(project: Project) -> None:
    before = project.files()
    project.snapshots.message_id = "m1"
    command = "read -r _ < gate; rm -rf a.txt src .git; echo x > made"
    os.mkfifo(project.root / "gate")
    await BashTool().run({"command": command, "background": True}, project.context)
    await project.run("true")
    (project.root / "gate").write_text("go\n")
    assert project.context.jobs is not None
    (job,) = project.context.jobs.all()
    assert await job.ended(60)
    assert f"{project.root}/.git is gone or damaged" in job.look()
    assert project.rewind("m1") == []
    assert project.files() == before


async def test_what_is_too_much_is_said_once_and_left_out(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kept, "FILES", 2)
    said = await project.run("rm a.txt")
    assert "/rewind cannot undo what commands change in this project: there are more than 2 files" in said
    assert "/rewind" not in await project.run("rm new.txt")
    monkeypatch.setattr(repository_copy, "OBJECT_BYTES", 10)
    other = make_project(tmp_path / "more" / "project")
    shutil.copytree(project.root, other.root, dirs_exist_ok=True)
    log = git(other.root, "log", "--format=%H")
    await other.run("rm -rf .git/objects")
    shutil.copytree(copy_of(other) / "objects", other.root / ".git" / "objects")
    assert git(other.root, "log", "--format=%H") == log, "further names of the objects outlive a removal"
    monkeypatch.setattr(repository_copy, "ENTRIES", 5)
    third = make_project(tmp_path / "third" / "project")
    shutil.copytree(project.root, third.root, dirs_exist_ok=True)
    assert "there is no whole copy" in await third.run("true") and "whole" not in await third.run("true")


async def test_an_interrupted_command_is_undone_too(project: Project) -> None:
    context = replace(project.context, config=replace(project.context.config, bash_timeout=0.5))
    project.snapshots.message_id = "m1"
    done = await BashTool().run({"command": "rm -rf .git a.txt; sleep 100"}, context)
    assert "timed out" in done.text and ".git is gone" in done.text
    assert project.rewind("m1") == [] and (project.root / "a.txt").exists()
