"""What a weak model does through the whole agent: circles end the turn, calls written as text are run or told."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.models.events import Notice, TurnEnded
from tests.support.agents import results, running, say
from tests.support.developer import parts
from tests.support.scripts import step

pytestmark = pytest.mark.quick

WRITTEN = """
[[step]]
text = '''I read it.
<tool_call>
{"name": "read", "arguments": {"path": "src/calc.py"}}
</tool_call>'''
[[step]]
text = "Done."
"""


async def test_arguments_that_are_no_json_are_mended_and_told(tmp_path: Path, project: Path) -> None:
    script = """
[[step]]
tool_calls = [{ name = "read", arguments = '{"path": "src/calc.py"}}' }]
"""
    async with running(parts(tmp_path, project, script + step("ok"), "auto")) as (agent, _):
        await say(agent, "read it")
        (result,) = results(agent)
        assert not result.is_error and "return a - b" in result.text
        assert "not valid JSON (text after the object)" in result.text


async def test_the_same_call_again_and_again_ends_the_turn(tmp_path: Path, project: Path) -> None:
    script = step(read={"path": "src/calc.py"}).replace("[[step]]", "[[step]]\nrepeat = 0", 1)
    async with running(parts(tmp_path, project, script, "auto")) as (agent, seen):
        await say(agent, "read it")
        assert len(results(agent)) == 3
        assert [event.stop_reason for event in seen.of(TurnEnded)] == ["step_limit"]
        (line,) = [notice.text for notice in seen.of(Notice) if notice.code == "repeated_call"]
        assert "read src/calc.py" in line


async def test_an_answer_that_goes_in_circles_is_ended(tmp_path: Path, project: Path) -> None:
    script = "[[step]]\ntext = '''" + "I will check again.\n" * 2_000 + "'''\n"
    async with running(parts(tmp_path, project, script, "auto")) as (agent, seen):
        await say(agent, "go")
        assert [event.stop_reason for event in seen.of(TurnEnded)] == ["length"]
        assert len(agent.conversation.path[-1].text) < 4_000
        (line,) = [notice.text for notice in seen.of(Notice) if notice.code == "repeated_answer"]
        assert "I will check again." in line
        await say(agent, "and now?")  # what is stored can be sent


@pytest.mark.parametrize("wanted", [True, None])
async def test_a_call_written_as_text_is_run_or_told(tmp_path: Path, project: Path, wanted: bool | None) -> None:
    made = parts(tmp_path, project, WRITTEN, "auto")
    made.settings.tools.text_calls = wanted
    async with running(made) as (agent, seen):
        await say(agent, "read it")
        told = [notice.text for notice in seen.of(Notice) if notice.code == "written_call"]
        if wanted:
            (result,) = results(agent)
            assert "return a - b" in result.text and not told
            call = next(message for message in agent.conversation.path if message.tool_calls)
            assert call.text == "I read it." and agent.conversation.path[-1].text == "Done."
        else:
            assert results(agent) == [] and len(told) == 1 and "call of read as text" in told[0]
