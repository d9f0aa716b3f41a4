"""write: a whole file."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import pictured
from agent_tui.text.numbers import plural
from agent_tui.tools.arguments import reject_surrogates, validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.children.threads import in_thread
from agent_tui.tools.files import seen
from agent_tui.tools.files import text as files
from agent_tui.tools.files.beneath import at, info_of
from agent_tui.tools.files.diffs import diff_display
from agent_tui.tools.files.paths import may_tell, resolve, shown


@dataclass(slots=True)
class WriteArguments:
    path: str
    content: str


class WriteTool:
    """Creates a file or replaces all of one that was read before and has not changed since. What the model does not
    see of a file (how its lines end, a mark in front) stays as it was."""

    group = "builtin"
    schema = ToolSchema(
        "write",
        "Create a file, or replace one you have read.",
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = validate(WriteArguments, arguments, "write")
        path = resolve(args.path, context)
        name = shown(path, context)
        if may_tell(path, context):
            _require_known(path, context)  # it would fail when it runs: nothing to ask the user about
        before = "" if files.is_large(path) else _content(path)
        display = diff_display(before, files.style_of(before).applied(args.content), name)
        if files.is_large(path):
            display["text"] = f"[the {_size(path):,} bytes of the file are replaced by this]\n{display['text']}"
        return Intent("edit", f"write {pictured(name)}", [path], display=display)

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = validate(WriteArguments, arguments, "write")
        reject_surrogates(args.content, "write", "content")
        path = resolve(args.path, context)
        name = shown(path, context)
        before, info = await in_thread(lambda stop: _replaced(path, context))
        style = files.style_of(before)
        content = style.applied(args.content)
        files.save(context, path, content, pictured(name), info)
        lines = len(args.content.splitlines())
        verb = "Created" if info is None else "Replaced"
        display = await in_thread(lambda stop: diff_display(before, content, name))
        kept = f" It keeps its {style}; change that with bash." if content != args.content else ""
        return ToolOutcome(f"{verb} {pictured(name)}: {plural(lines, 'line')}.{kept}", display=display)


def _replaced(path: Path, context: ToolContext) -> tuple[str, os.stat_result | None]:
    """The content and state of the file that is about to be replaced."""
    info = _require_known(path, context)
    return (_content(path) if info is not None else ""), info


def _require_known(path: Path, context: ToolContext) -> os.stat_result | None:
    """The state of the file, None where there is none. Raises ToolError for one that the model has not read as it is
    now."""
    name = pictured(shown(path, context))
    try:
        with at(path) as place:
            info = place.info()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(f"{name} cannot be written: {error.strerror}.") from None
    if not stat.S_ISREG(info.st_mode):
        raise ToolError(f"{name} exists and is not a regular file.")
    if not seen.was_read(context, path):
        raise ToolError(f"{name} exists. Read it before replacing it, or use edit.")
    seen.require_unchanged(context, path, info)
    return info


def _content(path: Path) -> str:
    """What stands in the file now, for the diff; empty where there is no text to show."""
    try:
        return files.load(path, path.name)[0]
    except ToolError:
        return ""


def _size(path: Path) -> int:
    info = info_of(path)
    return 0 if info is None else info.st_size
