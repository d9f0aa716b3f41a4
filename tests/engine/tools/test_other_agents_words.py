"""Calls in the words of other agents through the whole agent: judged, run and told as if they were in ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig
from agent_tui.models.events import ToolStarted
from tests.support.agents import results, running, say
from tests.support.developer import answering, parts
from tests.support.scripts import step

PATCH = "*** Begin Patch\n*** Update File: src/calc.py\n@@\n-    return a - b\n+    return a + b\n*** End Patch"


@pytest.mark.slow
async def test_a_file_is_read_and_written_in_one_answer(tmp_path: Path, project: Path) -> None:
    script = step(
        read={"path": "src/calc.py"},
        Read={"file_path": "src/check.py"},
        write={"path": "src/calc.py", "content": "x = 1\n"},
    ) + step("ok")
    async with running(parts(tmp_path, project, script, "auto")) as (agent, _):
        await say(agent, "write it anew")
        assert [result.is_error for result in results(agent)] == [False] * 3
        assert (project / "src/calc.py").read_text() == "x = 1\n"


async def test_a_rule_about_our_tool_holds_whatever_it_is_called(tmp_path: Path, project: Path) -> None:
    script = (
        step(
            shell={"command": ["bash", "-lc", "git diff --stat"]}, Bash={"command": "touch denied", "description": "x"}
        )
        + step(
            exec_command={"cmd": "touch denied"}, str_replace_editor={"command": "create", "path": "n", "file_text": ""}
        )
        + step("ok")
    )
    rules = PermissionsConfig(deny=["bash(touch*)", "write(n)"])
    async with running(parts(tmp_path, project, script, "auto", rules=rules)) as (agent, _):
        await say(agent, "try")
        found = results(agent)
        assert [result.is_error for result in found] == [False, True, True, True]
        assert all("rule" in result.text for result in found[1:]), [result.text for result in found]
        assert not (project / "denied").exists() and not (project / "n").exists()


@pytest.mark.slow
async def test_a_patch_in_a_shell_command_is_applied_by_the_tool_with_its_question(
    tmp_path: Path, project: Path
) -> None:
    script = step(shell={"command": f"cd src && apply_patch <<'EOF'\n{PATCH.replace('src/', '')}\nEOF"}) + step("ok")
    async with running(parts(tmp_path, project, script, "ask")) as (agent, seen):
        asked = answering(agent)
        await say(agent, "mend it")
        assert [question.tool for question in asked] == ["apply_patch"]
        assert "return a + b" in (project / "src/calc.py").read_text()
        assert not results(agent)[0].is_error and "[" not in results(agent)[0].text
        assert [started.summary for started in seen.of(ToolStarted)] == ["apply_patch src/calc.py"]


async def test_a_patch_that_is_no_json_is_applied(tmp_path: Path, project: Path) -> None:
    script = f'[[step]]\ntool_calls = [{{ name = "apply_patch", arguments = {json.dumps(PATCH)} }}]\n'
    async with running(parts(tmp_path, project, script + step("ok"), "auto")) as (agent, _):
        await say(agent, "mend it")
        assert "return a + b" in (project / "src/calc.py").read_text()


async def test_a_list_of_another_name_is_kept_and_shown(tmp_path: Path, project: Path) -> None:
    todos = [{"content": "mend", "status": "in_progress", "activeForm": "Mending"}]
    async with running(parts(tmp_path, project, step(TodoWrite={"todos": todos}) + step("ok"))) as (agent, _):
        await say(agent, "plan it")
        display = results(agent)[0].display
        assert display is not None and display["items"] == [{"text": "mend", "status": "in_progress"}]
