"""What a command destroys comes back: the history at once, files with ``/rewind``. Held against git itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import tracemalloc
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
from agent_tui.tools.files import history, kept
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


@pytest.mark.parametrize(("packed", "command"), one_of(product([False, True], DESTROYED), every=18))
async def test_the_history_survives(project: Project, command: str, packed: bool) -> None:
    root = project.root
    if packed:
        git(root, "gc", "-q")
    log, refs, files = git(root, "log", "--all", "--format=%H %s"), git(root, "show-ref"), project.files()
    said = await project.run(command)
    if not (packed and command.endswith("objects/??")):
        assert "[the repository's history was restored: " in said
    assert "damaged" not in (checked := git(root, "fsck", "--full", "--no-dangling")) and "missing" not in checked
    assert git(root, "log", "--all", "--format=%H %s") == log
    assert set(git(root, "show-ref").split()) >= set(refs.split())
    assert project.rewind("m1") == []
    after = {name: data for name, data in project.files().items() if not name.startswith("away/")}
    assert after | {"ignored": b""} == files | {"ignored": b""}, "ignored files are left out"
    assert "staged" in git(root, "status", "--porcelain")
    git(root, "commit", "-q", "-m", "goes on")
    assert git(root, "log", "-1", "--format=%s", "main") == "goes on\n"


HONEST = [
    f"git {' '.join(_WHO)} commit -q -m more",
    "git branch -q -D other",
    "git branch -q -m main trunk",
    "git checkout -q --orphan fresh",
    "git checkout -q other",
    "git switch -q --detach HEAD~1",
    "git gc -q --prune=now",
    "git repack -q -a -d && git pack-refs --all",
    "git reset -q --hard HEAD~1 && git reflog expire --expire=now --all && git gc -q --prune=now",
    f"git {' '.join(_WHO)} rebase -q --force-rebase HEAD~1",
    "git tag -d v1",
    "git stash -q; git stash drop -q",
    "git rm -q -r --cached . && git add a.txt",
    f"git {' '.join(_WHO)} commit --amend -q -m other && git prune",
    "git worktree add -q ../tree other && git worktree remove ../tree",
]


@pytest.mark.parametrize("command", one_of(HONEST, every=8))
async def test_what_git_does_by_itself_stays(project: Project, tmp_path: Path, command: str) -> None:
    twin = tmp_path / "twin"
    shutil.copytree(project.root, twin, symlinks=True)
    _bash(twin, command)
    said = await project.run(command)
    assert "restored" not in said
    for query in (("for-each-ref", "--format=%(refname)"), ("symbolic-ref", "-q", "HEAD"), ("ls-files",)):
        assert _asked(project.root, query) == _asked(twin, query)
    count = ("count-objects", "-v")
    assert _asked(project.root, count).splitlines()[0] == _asked(twin, count).splitlines()[0]
    git(project.root, "fsck", "--full", "--no-dangling")


def _bash(folder: Path, command: str) -> None:
    subprocess.run(["bash", "-c", command], cwd=folder, env=os.environ | _PLAIN, check=False, capture_output=True)


def _asked(folder: Path, query: tuple[str, ...]) -> str:
    return subprocess.run(["git", *query], cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
async def test_worktrees_and_submodules_survive_too(project: Project, tmp_path: Path) -> None:
    shutil.copytree(project.root, tmp_path / "library")
    git(tmp_path / "library", "reset", "-q", "--hard")
    git(project.root, "submodule", "--quiet", "add", str(tmp_path / "library"), "sub")
    git(project.root, "commit", "-q", "-m", "with a submodule")
    git(project.root, "worktree", "add", "-q", str(tmp_path / "tree"), "other")
    log = git(project.root / "sub", "log", "--format=%H")
    await project.run("rm -rf .git")
    assert git(project.root / "sub", "log", "--format=%H") == log
    for folder in (project.root, project.root / "sub", tmp_path / "tree"):
        git(folder, "fsck", "--no-dangling")
        git(folder, "status")
    tree = make_project(tmp_path / "tree")
    said = await tree.run(f"rm -rf {project.root}/.git/worktrees/tree/HEAD {project.root}/.git/refs; rm -rf *")
    assert "restored" in said and tree.rewind("m1") == []
    git(tmp_path / "tree", "commit", "-q", "--allow-empty", "-m", "goes on")
    git(project.root, "commit", "-q", "--allow-empty", "-m", "goes on")


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
    before, log = project.files(), git(project.root, "log", "--format=%H")
    project.snapshots.message_id = "m1"
    command = "read -r _ < gate; rm -rf a.txt src .git; echo x > made"
    os.mkfifo(project.root / "gate")
    await BashTool().run({"command": command, "background": True}, project.context)
    await project.run("true")
    (project.root / "gate").write_text("go\n")
    assert project.context.jobs is not None
    (job,) = project.context.jobs.all()
    assert await job.ended(60)
    assert "history was restored" in job.look()
    assert git(project.root, "log", "--format=%H") == log
    assert project.rewind("m1") == []
    assert project.files() == before


async def test_what_is_too_much_is_said_once_and_left_out(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kept, "FILES", 2)
    said = await project.run("rm a.txt")
    assert "/rewind cannot undo what commands change in this project: there are more than 2 files" in said
    assert "/rewind" not in await project.run("rm new.txt")
    monkeypatch.setattr(history, "OBJECT_BYTES", 10)
    other = make_project(tmp_path / "more" / "project")
    shutil.copytree(project.root, other.root, dirs_exist_ok=True)
    log = git(other.root, "log", "--format=%H")
    said = await other.run("rm -rf .git/objects")
    assert "restored" in said, "further names of the objects outlive a removal"
    assert git(other.root, "log", "--format=%H") == log


async def test_the_history_cannot_be_buried(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """More files than are looked at, and larger ones, hide nothing of what was known, and are not all read."""
    monkeypatch.setattr(history, "ENTRIES", 200)
    monkeypatch.setattr(history, "FILES_BYTES", 50_000_000)
    log = git(project.root, "log", "--all", "--format=%H %s")
    tracemalloc.start()
    said = await project.run(
        "rm -rf .git/objects; mkdir .git/0 .git/refs/0; touch .git/{a,0/,refs/0/}{1..300};"
        " truncate -s 19M .git/refs/heads/* .git/{b,refs/0/b}{1..20} .git/refs/tags/*"
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "history was restored: " in said and "[the repository's history could not" not in said
    assert peak < 150_000_000
    git(project.root, "fsck", "--full", "--no-dangling", "HEAD")
    assert git(project.root, "log", "--branches", "--tags", "--format=%H %s") == log


async def test_an_interrupted_command_is_undone_too(project: Project) -> None:
    context = replace(project.context, config=replace(project.context.config, bash_timeout=0.5))
    project.snapshots.message_id = "m1"
    done = await BashTool().run({"command": "rm -rf .git a.txt; sleep 100"}, context)
    assert "timed out" in done.text and "history was restored" in done.text
    assert project.rewind("m1") == [] and (project.root / "a.txt").exists()
