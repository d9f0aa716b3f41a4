"""skill: loads the instructions of a skill into the conversation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import pictured, plain_line
from agent_tui.text.numbers import lines_in, plural
from agent_tui.tools.arguments import validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome


@dataclass(slots=True)
class SkillArguments:
    name: str


class SkillTool:
    """``find`` gives a skill's text and folder, ``names`` those there are."""

    group = "builtin"
    schema = ToolSchema(
        "skill",
        "Load a skill's instructions.",
        {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    )

    def __init__(self, find: Callable[[str], tuple[str, Path] | None], names: Callable[[], list[str]]) -> None:
        self._find = find
        self.names = names

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = validate(SkillArguments, arguments, "skill")
        return Intent("internal", f"skill {plain_line(args.name, 64)}")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(SkillArguments, arguments, "skill")
        found = self._find(args.name)
        if found is None:
            known = ", ".join(self.names()) or "none"
            raise ToolError(f"There is no skill {plain_line(args.name, 64)!r}. There are: {known}.")
        text, folder = found
        lines = lines_in(text)
        body = f"The skill's folder, to which its paths are relative: {folder}\n\n{pictured(text)}"
        return ToolOutcome(body, display={"kind": "text", "summary": plural(lines, "line")})
