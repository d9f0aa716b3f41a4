"""``[tools] check``: what a command says of a file goes to the model with the result of the edit."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.commands.tool_words import result_facts
from agent_tui.config import ToolsConfig
from agent_tui.engine.turns import checks
from agent_tui.models.events import ToolOutput
from agent_tui.models.messages import INTERRUPTED_RESULT
from tests.support.agents import results, running, say
from tests.support.developer import answering, once, parts, until
from tests.support.scripts import step

pytestmark = pytest.mark.quick

CHECK = {"*.py": "grep -n TODO {file} && exit 1 || true", "docs/*.md": "echo seen; exit 3"}


@pytest.mark.parametrize(
    ("path", "content", "told", "shown"),
    [
        ("a b.py", "x = 1\n", "[check grep -n TODO 'ROOT/a b.py' && exit 1 || true: passed]", "check passed"),
        (
            "a.py",
            "x = 1\n# TODO\n",
            "[check grep -n TODO ROOT/a.py && exit 1 || true: failed]\n2:# TODO\n[exit code 1]",
            "check failed",
        ),
        ("docs/a.md", "x", "[check echo seen; exit 3: failed]\nseen\n[exit code 3]", "check failed"),
        ("sub/docs/a.md", "x", "", ""),
        ("a.pyc", "x", "", ""),
    ],
)
async def test_a_check_says_what_it_found_beside_the_edit(
    tmp_path: Path, project: Path, path: str, content: str, told: str, shown: str
) -> None:
    script = step(write={"path": path, "content": content}) + step("Done.")
    async with running(parts(tmp_path, project, script, "accept-edits", tools=ToolsConfig(check=CHECK))) as (agent, _):
        await say(agent, "go")
        (result,) = results(agent)
        edit, _, rest = result.text.partition("\n")
        assert edit.startswith("Created") and rest == told.replace("ROOT", str(project.resolve()))
        assert not result.is_error and (project / path).read_text() == content
        said = [fact for fact in result_facts(result) if fact.startswith("check")]
        assert [fact.partition(" (~")[0] for fact in said] == ([shown] if shown else [])
        assert all("tokens)" in fact for fact in said), "its price is said"


async def test_what_failed_is_not_checked_and_endless_output_is_cut(tmp_path: Path, project: Path) -> None:
    check = {"*": "seq 1 100000; exit 1"}
    script = step(edit={"path": "no.py", "edits": [{"old_string": "a", "new_string": "b"}]})
    script += step(write={"path": "new.py", "content": "x"}) + step("Done.")
    async with running(parts(tmp_path, project, script, "accept-edits", tools=ToolsConfig(check=check))) as (agent, _):
        await say(agent, "go")
        failed, cut = results(agent)
        assert "check" not in failed.text
        assert len(cut.text) < checks.CHARACTERS + 1_000 and "everything is in" in cut.text


async def test_the_line_of_a_check_is_short_whatever_it_names(tmp_path: Path, project: Path) -> None:
    path = "/".join("d" * 100 for _ in range(5)) + "/a.py"
    script = step(write={"path": path, "content": "x"}) + step("Done.")
    tools = ToolsConfig(check={"*.py": "true {file}"})
    async with running(parts(tmp_path, project, script, "accept-edits", tools=tools)) as (agent, _):
        await say(agent, "go")
        (result,) = results(agent)
        line = result.text.splitlines()[-1]
        assert line.startswith("[check true /") and line.endswith("…: passed]") and len(line) < checks.LONGEST + 30


async def test_an_edit_is_known_although_its_check_was_interrupted(tmp_path: Path, project: Path) -> None:
    script = step(write={"path": "a.py", "content": "x"}) + step("Done.")
    tools = ToolsConfig(check={"*.py": "echo up; sleep 600"})
    async with running(parts(tmp_path, project, script, "accept-edits", tools=tools)) as (agent, _):
        answering(agent)
        up = once(agent, lambda e: isinstance(e, ToolOutput) and "up" in e.text)
        agent.turns.submit("go")
        await until(up)
        agent.turns.interrupt()
        await agent.turns.join()
        text = results(agent)[0].text
        assert text.startswith(INTERRUPTED_RESULT) and "Created a.py: 1 line." in text
