"""todo: the model's list of what it has to do, shown to the user."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import pictured_line
from agent_tui.tools.arguments import validate
from agent_tui.tools.base import Intent, TodoItem, ToolContext, ToolOutcome

MAX_ITEMS = 100

_BOXES = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


@dataclass(slots=True)
class TodoArguments:
    items: list[TodoItem]


class TodoTool:
    """Each call replaces the list, kept in ``context.memory.todo``."""

    group = "builtin"
    schema = ToolSchema(
        "todo",
        "Replace your todo list; use it for work of several steps.",
        {
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string"},
                            "status": {"enum": ["pending", "in_progress", "completed"]},
                        },
                        "required": ["text", "status"],
                    },
                }
            },
            "required": ["items"],
        },
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        items = validate(TodoArguments, arguments, "todo").items
        return Intent("internal", f"todo {_progress(items)}")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        items = validate(TodoArguments, arguments, "todo").items
        if len(items) > MAX_ITEMS:
            raise ToolError(f"todo: more than {MAX_ITEMS} items.")
        listed = [asdict(item) for item in items]
        context.memory.todo = items
        text = "\n".join(f"{_BOXES[item.status]} {pictured_line(item.text)}" for item in items)
        display = {"kind": "list", "summary": _progress(items), "text": text, "items": listed}
        return ToolOutcome(f"The list is updated: {_progress(items)}.", display=display)


def _progress(items: list[TodoItem]) -> str:
    done = sum(item.status == "completed" for item in items)
    return f"{done} of {len(items)} done"
