"""Tools through the whole agent, in a real repository: what a developer would see, step by step."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from agent_tui.commands.mentions import expand_mentions
from agent_tui.models.events import Notice, PermissionAsked, ToolStarted
from agent_tui.tools.files.access import FileAccess
from tests.support.agents import results, running, say
from tests.support.developer import CHECK, FIX, answering, parts
from tests.support.git import git
from tests.support.scripts import step


async def test_a_bug_is_found_mended_and_tested(tmp_path: Path, project: Path) -> None:
    script = (
        step("Looking.", glob={"pattern": "**/*.py"}, grep={"pattern": "def add"}, list={"path": "."})
        + step(read={"path": "src/calc.py"}, bash={"command": CHECK})
        + step("It subtracts.", edit=FIX)
        + step(bash={"command": CHECK}, bash1={"command": "git diff --stat"})
        + step("Mended and tested.")
    )
    async with running(parts(tmp_path, project, script)) as (agent, seen):
        asked = answering(agent)
        await say(agent, "add(1, 2) is -1")
        glob, grep, listed, read, before, edit, after, diff = results(agent)
        assert "src/calc.py" in glob.text and "build/" not in glob.text
        assert grep.text.splitlines() == ["src/calc.py:1:def add(a, b):"]
        assert "src/" in listed.text and "2\t    return a - b" in read.text
        assert before.is_error and "AssertionError" in before.text and before.display["exit_code"] == 1  # type: ignore[index]
        assert edit.display is not None and edit.display["text"].splitlines()[-2:] == [
            "-    return a - b",
            "+    return a + b",
        ]
        assert after.text == "all tests passed" and not after.is_error
        assert "src/calc.py | 2 +-" in diff.text
        assert [a.tool for a in asked] == ["bash", "edit", "bash"]
        assert asked[1].display["kind"] == "diff" and "+    return a + b" in asked[1].display["text"]
        assert asked[0].display == {"kind": "command", "text": CHECK}
        assert agent.conversation.path[-1].text == "Mended and tested." and seen.last_end.stop_reason == "end"
        usage = agent.context.usage()
        assert sum(r.tokens for r in usage.rows) == usage.total
        assert all(r.seconds is not None for r in results(agent))
        assert [e.summary for e in seen.of(ToolStarted)][3] == "read src/calc.py"


async def test_rewinding_brings_files_back_and_leaves_git_and_other_files_alone(tmp_path: Path, project: Path) -> None:
    script = (
        step(edit=FIX, write={"path": "docs/new.md", "content": "new"}, bash={"command": "echo x > by-bash"})
        + step("one")
        + step(read={"path": "src/check.py"}, edit={**FIX, "edits": [{"old_string": "a + b", "new_string": "b + a"}]})
        + step("two")
    )
    (project / "src" / "mine.py").write_text("mine")
    before = git(project, "status", "--porcelain")
    async with running(parts(tmp_path, project, script, "auto")) as (agent, seen):
        await say(agent, "first")
        await say(agent, "second")
        first, second = (m.id for m in agent.conversation.path if m.role == "user")
        assert (await agent.branches.rewind(second, restore_files=True)).text == "second"
        assert "a + b" in (project / "src" / "calc.py").read_text() and (project / "docs" / "new.md").exists()
        (project / "docs" / "new.md").write_text("changed by hand")
        assert (await agent.branches.rewind(first, restore_files=True)).text == "first"
        assert "a - b" in (project / "src" / "calc.py").read_text()
        assert (project / "docs" / "new.md").read_text() == "changed by hand"
        lines = [n.text for n in seen.of(Notice) if n.code == "restored"]
        assert any("new.md: changed since by something else" in line for line in lines)
        assert not (project / "by-bash").exists() and (project / "src" / "mine.py").read_text() == "mine"
        (project / "docs" / "new.md").unlink()
        (project / "docs").rmdir()
    assert git(project, "status", "--porcelain") == before


@pytest.mark.slow
async def test_the_todo_list_is_shown_and_kept(tmp_path: Path, project: Path) -> None:
    items = [{"text": "find", "status": "completed"}, {"text": "mend", "status": "in_progress"}]
    async with running(parts(tmp_path, project, step(todo={"items": items}) + step("ok"))) as (agent, seen):
        await say(agent, "plan it")
        display = results(agent)[0].display
        assert display is not None and display["kind"] == "list" and display["items"] == items
        assert display["text"] == "[x] find\n[>] mend" and [asdict(item) for item in agent.toolbox.memory.todo] == items
        assert not seen.of(PermissionAsked)


@pytest.mark.quick
async def test_calls_of_one_answer_see_what_the_ones_before_them_did(tmp_path: Path, project: Path) -> None:
    second = {"path": "new.py", "edits": [{"old_string": "one", "new_string": "two"}]}
    script = step(write={"path": "new.py", "content": "one\n"}, edit=second, read={"path": "new.py"}) + step("ok")
    async with running(parts(tmp_path, project, script)) as (agent, _):
        asked = answering(agent)
        await say(agent, "go")
        assert [r.is_error for r in results(agent)] == [False, False, False]
        assert asked[1].display["text"] == "@@ -1 +1 @@\n-one\n+two" and "two" in results(agent)[2].text


@pytest.mark.slow
async def test_a_file_named_with_an_at_sign_counts_as_read(tmp_path: Path, project: Path) -> None:
    new = {"path": "src/calc.py", "content": "def add(a, b):\n    return b + a\n"}
    script = step(write=new) + step("one") + step(write=new, edit={**FIX, "path": "src/check.py"}) + step("two")
    async with running(parts(tmp_path, project, script, "auto")) as (agent, _):
        attached, _ = expand_mentions("@src/calc.py", project, FileAccess([project]))
        await say(agent, "@src/calc.py", tuple(attached))
        assert results(agent)[0].text == "Replaced src/calc.py: 2 lines."
        # What was attached is known as it was then: whatever happens to the file meanwhile is not overwritten.
        attached, _ = expand_mentions("@src/calc.py @src/check.py:1-2", project, FileAccess([project]))
        for name in ("calc.py", "check.py"):
            (project / "src" / name).write_text("# by the user, in their editor\n")
        await say(agent, "@src/calc.py @src/check.py:1-2", tuple(attached))
        write, edit = results(agent)[1:]
        assert write.is_error and "has changed since it was read" in write.text
        assert edit.is_error and "has changed since it was read" in edit.text
        assert (project / "src" / "calc.py").read_text() == "# by the user, in their editor\n"
