"""The tools that talk to the user: what they refuse, and what the model is told of the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent_tui.engine.questions import CallVerdict
from agent_tui.engine.turns.toolrunner import ToolRunner
from agent_tui.errors import ToolError
from agent_tui.models.events import PlanAnswer, QuestionAnswer
from agent_tui.models.messages import Message, ToolCallPart, ToolResultPart
from agent_tui.tools.base import ToolContext, User
from agent_tui.tools.builtin.conversation import MAX_PLAN, AskTool, PresentPlanTool
from agent_tui.tools.builtin.edit import WriteTool
from agent_tui.tools.registry import ToolRegistry
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick


@dataclass
class Answers:
    """A user whose answers are known beforehand."""

    plan: PlanAnswer | None = None
    answer: QuestionAnswer = field(default_factory=QuestionAnswer)

    async def approve(self, plan: str) -> PlanAnswer | None:
        return self.plan

    async def choose(self, question: str, choices: tuple[str, ...], several: bool) -> QuestionAnswer:
        return self.answer


_USER: type[User] = Answers


def context(tmp_path: Path, user: User | None = None) -> ToolContext:
    made = make_context(tmp_path / "project")
    made.user = user
    return made


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"question": "  ", "choices": ["a", "b"]}, "1 to 2000 characters"),
        ({"question": "x" * 2_001, "choices": ["a", "b"]}, "1 to 2000 characters"),
        ({"question": "?", "choices": ["a"]}, "2 to 6 choices, not 1"),
        ({"question": "?", "choices": list("abcdefg")}, "2 to 6 choices, not 7"),
        ({"question": "?", "choices": ["a", " "]}, "every choice must have 1 to 300"),
        ({"question": "?", "choices": ["a", "x" * 301]}, "every choice must have 1 to 300"),
        ({"question": "?", "choices": ["a", "a "]}, "two of the choices are the same"),
        ({"question": "?"}, "choices"),
        ({"question": "?", "choices": ["a", "b"], "several": "maybe"}, "several"),
    ],
)
async def test_what_is_no_question_is_one_clear_line(tmp_path: Path, arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolError, match=problem) as caught:
        AskTool().intent(arguments, context(tmp_path))
    assert "\n" not in str(caught.value)
    with pytest.raises(ToolError, match=problem):
        await AskTool().run(arguments, context(tmp_path, Answers()))


async def test_without_a_user_nothing_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="Nobody can answer here"):
        await AskTool().run({"question": "?", "choices": ["a", "b"]}, context(tmp_path))
    with pytest.raises(ToolError, match="Nobody can approve a plan here"):
        await PresentPlanTool().run({"plan": "x"}, context(tmp_path))


@pytest.mark.parametrize(
    ("user", "told"),
    [
        (Answers(answer=QuestionAnswer(("a",))), "you wrote it before the user answered"),
        (None, "you wrote it beside a question that nobody can answer"),
    ],
)
async def test_what_was_written_without_the_answer_is_told_truly(tmp_path: Path, user: User | None, told: str) -> None:
    async def allow(*_: object) -> CallVerdict:
        return CallVerdict(True)

    stored: list[Message] = []
    runner = ToolRunner(ToolRegistry([AskTool(), WriteTool()]), lambda calls=1: context(tmp_path, user), allow)
    calls = [
        ToolCallPart("c1", "ask", '{"question": "?", "choices": ["a", "b"]}'),
        ToolCallPart("c2", "write", '{"path": "x", "content": "b"}'),
    ]
    await runner.run(calls, lambda event: None, stored.append)
    (result,) = stored[1].parts
    assert isinstance(result, ToolResultPart) and result.is_error and told in result.text
    assert not (tmp_path / "project" / "x").exists()


@pytest.mark.parametrize(
    ("plan", "problem"), [(" \n", "the plan is empty"), ("x" * (MAX_PLAN + 1), "40,000 characters")]
)
def test_what_is_no_plan_is_one_clear_line(tmp_path: Path, plan: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        PresentPlanTool().intent({"plan": plan}, context(tmp_path))


@pytest.mark.parametrize(
    ("answer", "text", "summary", "approved", "ends"),
    [
        (PlanAnswer("auto", "the plan"), "Carry it out.", "approved · auto", True, False),
        (PlanAnswer("ask", "mine"), "Carry out this version:\n\nmine", "approved · ask", True, False),
        (PlanAnswer(None, "the plan", "no tests"), "They said: no tests", "not approved", False, False),
        (PlanAnswer(None, "mine", "so?"), "Their version of it:\n\nmine", "not approved", False, False),
        (PlanAnswer(None, "the plan"), "will say what they want", "not approved", False, True),
        (None, "the turn ends with it", "presented", False, True),
    ],
)
async def test_the_model_is_told_what_became_of_its_plan(
    tmp_path: Path, answer: PlanAnswer | None, text: str, summary: str, approved: bool, ends: bool
) -> None:
    outcome = await PresentPlanTool().run({"plan": "the plan"}, context(tmp_path, Answers(plan=answer)))
    assert text in outcome.text and not outcome.is_error and outcome.ends_turn == ends
    display = outcome.display or {}
    assert (display["summary"], bool(display.get("approved"))) == (summary, approved)
    assert display["text"] == (answer.plan if answer and answer.mode else "the plan")


async def test_hostile_words_of_an_answer_are_one_line_for_people(tmp_path: Path) -> None:
    user = Answers(answer=QuestionAnswer(("a",), "x\x1b[2J\ny"))
    outcome = await AskTool().run({"question": "?", "choices": ["a", "b"]}, context(tmp_path, user))
    summary = (outcome.display or {})["summary"]
    assert "\x1b" not in summary and "\n" not in summary
