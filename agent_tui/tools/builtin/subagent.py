"""subagent: a task done in a context of its own, of which only the answer comes back."""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import pictured_line
from agent_tui.tools.arguments import validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.output import cap


@dataclass(slots=True)
class SubagentArguments:
    description: str
    prompt: str


class SubagentTool:
    """The work itself is the engine's (``context.subagent``); its tools are judged by the same permissions."""

    group = "builtin"
    schema = ToolSchema(
        "subagent",
        "Give a self-contained task, e.g. a broad search, to an agent with a fresh context; only its answer returns.",
        {
            "type": "object",
            "properties": {
                "description": {"type": "string", "description": "3-6 words"},
                "prompt": {"type": "string"},
            },
            "required": ["description", "prompt"],
        },
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = validate(SubagentArguments, arguments, "subagent")
        return Intent("internal", f"subagent: {pictured_line(args.description)[:100]}")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(SubagentArguments, arguments, "subagent")
        if not args.prompt.strip():
            raise ToolError("subagent: prompt is empty.")
        if context.subagent is None:
            raise ToolError("A subagent cannot start another one. Do the task yourself.")
        outcome = await context.subagent(args.description, args.prompt, context.emit)
        outcome.text = cap(outcome.text, context.config.output_limit, context.spill_dir, "subagent").text
        return outcome
