"""list: what a folder holds."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import pictured, pictured_line
from agent_tui.text.numbers import plural
from agent_tui.tools.arguments import validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.children.threads import Stop, in_thread
from agent_tui.tools.files.beneath import info_of
from agent_tui.tools.files.paths import resolve, shown
from agent_tui.tools.files.walk import walk

MAX_ENTRIES = 500


@dataclass(slots=True)
class ListArguments:
    path: str = "."
    depth: int = 1


class ListTool:
    """One entry a line, folders with ``/`` at their end."""

    group = "builtin"
    schema = ToolSchema(
        "list",
        "List a folder, leaving out what .gitignore excludes.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "depth": {"type": "integer", "description": "levels, default 1"},
            },
        },
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        path = resolve(validate(ListArguments, arguments, "list").path, context)
        return Intent("read", f"list {pictured(shown(path, context))}", [path])

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(ListArguments, arguments, "list")
        path = resolve(args.path, context)
        require_folder(path, context)
        return await in_thread(lambda stop: _list(path, args.depth, context.root.resolve(), stop))


def require_folder(path: Path, context: ToolContext) -> None:
    """Raises ToolError unless ``path`` is an existing folder."""
    info = info_of(path)
    if info is None or not stat.S_ISDIR(info.st_mode):
        problem = "is not a folder" if info is not None else "does not exist"
        raise ToolError(f"{pictured(shown(path, context))} {problem}.")


def _list(path: Path, depth: int, root: Path, stop: Stop) -> ToolOutcome:
    lines: list[str] = []
    more = False
    for entry in walk(path, root, max(1, depth)):
        if len(lines) >= MAX_ENTRIES or stop.is_set():
            more = True
            break
        lines.append(pictured_line(entry.path) + ("/" if entry.is_dir else ""))
    display = {"kind": "text", "summary": plural(len(lines), "entry", "entries")}
    if more:
        lines.append(f"[more than {MAX_ENTRIES} entries; list a folder below, or use glob]")
    return ToolOutcome("\n".join(lines) or "[empty, or all ignored]", display=display)
