from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.base import Task, TodoItem, ToolContext, ToolOutcome
from agent_tui.tools.builtin.conversation import SubagentTool, TodoTool
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_context(tmp_path / "project", output_limit=500)


async def test_each_call_replaces_the_list(context: ToolContext) -> None:
    items = [{"text": "find [b]it[/b]\x1b[2K", "status": "completed"}, {"text": "mend", "status": "in_progress"}]
    outcome = await TodoTool().run({"items": items}, context)
    assert outcome.text == "The list is updated: 1 of 2 done."
    assert outcome.display is not None
    assert outcome.display["text"] == "[x] find [b]it[/b]␛[2K\n[>] mend"
    assert [asdict(item) for item in context.memory.todo] == items
    await TodoTool().run({"items": '[{"text": "sent as text", "status": "pending"}]'}, context)
    assert context.memory.todo == [TodoItem("sent as text", "pending")]
    with pytest.raises(ToolError, match=r"items\[0\]\.status"):
        await TodoTool().run({"items": [{"text": "x", "status": "later"}]}, context)


async def test_a_subagent_gets_the_task_and_its_answer_is_capped(context: ToolContext) -> None:
    tasks: list[Task] = []
    lines: list[str] = []

    async def work(task: Task, emit: Callable[[str], None]) -> ToolOutcome:
        tasks.append(task)
        emit("read a.py\n")
        return ToolOutcome("x" * 2_000)

    context.subagent, context.emit = work, lines.append
    outcome = await SubagentTool().run({"description": "look", "prompt": "find it"}, context)
    assert tasks == [Task("look", "find it")] and lines == ["read a.py\n"]
    assert len(outcome.text) < 900 and "left out" in outcome.text


async def test_a_subagent_has_none_of_its_own(context: ToolContext) -> None:
    with pytest.raises(ToolError, match="No subagent can be started here"):
        await SubagentTool().run({"description": "x", "prompt": "y"}, context)
