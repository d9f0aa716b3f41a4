from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_tui.store.store import Store
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin.edit import EditTool, WriteTool
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.files.snapshots import FileHistory, RestorePlan, Snapshotter, apply_restore
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick


@dataclass
class Project:
    context: ToolContext
    store: Store
    session: str
    snapshots: Snapshotter

    async def write(self, message: str, name: str, content: str) -> None:
        self.snapshots.message_id = message
        if (self.context.root / name).exists():
            await ReadTool().run({"path": name}, self.context)
        await WriteTool().run({"path": name, "content": content}, self.context)

    def plan(self, *messages: str) -> RestorePlan:
        return FileHistory(self.store.snapshots.all(self.session)).plan(messages)

    def text(self, name: str) -> str | None:
        path = self.context.root / name
        return path.read_text() if path.exists() else None


@pytest.fixture
def project(tmp_path: Path) -> Project:
    context = make_context(tmp_path / "project")
    store = Store.open(tmp_path / "sessions.db")
    session = store.sessions.create(str(context.root), "demo").id
    snapshots = Snapshotter(lambda m, p, c, mode: store.snapshots.add(session, m, p, c, mode))
    context.before_change, context.after_change = snapshots.before_change, snapshots.after_change
    return Project(context, store, session, snapshots)


async def test_files_come_back_as_they_were_before_a_message(project: Project) -> None:
    (project.context.root / "a").write_text("0")
    (project.context.root / "a").chmod(0o640)
    await project.write("m1", "a", "1")
    await project.write("m1", "a", "1b")
    await project.write("m2", "a", "2")
    await project.write("m2", "new/b", "b")
    assert apply_restore(project.plan("m2")) == []
    assert (project.text("a"), project.text("new/b")) == ("1b", None)
    assert apply_restore(project.plan("m1", "m2")) == []
    assert project.text("a") == "0"
    assert (project.context.root / "a").stat().st_mode & 0o777 == 0o640
    assert project.plan("m1", "m2").restores == []


async def test_what_others_changed_since_is_left_and_named(project: Project, tmp_path: Path) -> None:
    await project.write("m1", "a", "ours")
    await project.write("m1", "b", "ours")
    await project.write("m1", "gone", "ours")
    await project.write("m1", "turned", "ours")
    (project.context.root / "a").write_text("theirs")
    (project.context.root / "gone").unlink()
    (tmp_path / "elsewhere").write_text("ours")
    (project.context.root / "turned").unlink()
    (project.context.root / "turned").symlink_to(tmp_path / "elsewhere")
    lines = apply_restore(project.plan("m1"))
    assert [line.rpartition("/")[2] for line in lines] == [
        "a: changed since by something else; left as is",
        "turned: a link points elsewhere now; left as is",
    ]
    assert (project.text("a"), project.text("b"), project.text("gone")) == ("theirs", None, None)
    assert (tmp_path / "elsewhere").read_text() == "ours"


async def test_work_goes_on_after_a_restore(project: Project) -> None:
    await project.write("m1", "a", "1")
    await project.write("m2", "a", "2")
    apply_restore(project.plan("m2"))
    await project.write("m3", "a", "3")
    assert apply_restore(project.plan("m3")) == []
    assert project.text("a") == "1"
    assert apply_restore(project.plan("m1")) == []
    assert project.text("a") is None


async def test_a_change_that_failed_is_not_restored(project: Project) -> None:
    project.snapshots.message_id = "m1"
    project.snapshots.before_change(project.context.root / "a")
    (project.context.root / "a").write_text("someone else's")
    plan = project.plan("m1")
    assert (plan.restores, plan.skipped) == ([], [])


async def test_git_is_not_touched(project: Project) -> None:
    root = project.context.root

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True)
        return done.stdout

    git("init", "-q")
    (root / "a").write_text("0\n")
    git("add", "a")
    git("commit", "-qm", "x")
    (root / "a").write_text("staged\n")
    git("add", "a")
    before = {p: p.read_bytes() for p in (root / ".git").rglob("*") if p.is_file()}
    project.snapshots.message_id = "m1"
    await EditTool().run({"path": "a", "old_string": "staged", "new_string": "edited"}, project.context)
    apply_restore(project.plan("m1"))
    assert project.text("a") == "staged\n"
    assert {p: p.read_bytes() for p in (root / ".git").rglob("*") if p.is_file()} == before


async def test_other_names_of_a_file_keep_what_they_have_and_that_is_said(project: Project, tmp_path: Path) -> None:
    file, other = project.context.root / "a", tmp_path / "other"
    file.write_text("0")
    await project.write("m1", "a", "1")
    other.hardlink_to(file)
    (line,) = apply_restore(project.plan("m1"))
    assert (file.read_text(), other.read_text()) == ("0", "1")
    assert line == f"{file} was restored alone; another name keeps the newer content (hard links)"
    assert project.plan("m1").restores == []


@pytest.mark.parametrize(("given", "then"), [(None, 0o640), (0o600, 0o600), (0o755, 0o755)])
async def test_the_mode_that_a_user_gave_since_stays(project: Project, given: int | None, then: int) -> None:
    file = project.context.root / "a"
    file.write_text("0")
    file.chmod(0o640)
    await project.write("m1", "a", "1")
    if given is not None:
        file.chmod(given)
    assert apply_restore(project.plan("m1")) == []
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("0", then)


def test_the_mode_that_a_command_gave_is_taken_back(project: Project) -> None:
    file = project.context.root / "a"
    file.write_text("0")
    file.chmod(0o600)
    project.snapshots.message_id = "m1"
    project.snapshots.before_change(file)
    file.chmod(0o666)
    project.snapshots.after_change(file)
    assert apply_restore(project.plan("m1")) == []
    assert file.stat().st_mode & 0o777 == 0o600
