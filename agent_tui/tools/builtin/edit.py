"""edit: exact replacements in one file, all or none."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
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
from agent_tui.tools.files.diffs import MAX_CHARACTERS, diff_display
from agent_tui.tools.files.near import why_missing
from agent_tui.tools.files.paths import may_tell, resolve, shown

_TELLING = 12
"""Characters from which on a text that is found says something."""


@dataclass(slots=True)
class Edit:
    old_string: str
    new_string: str
    replace_all: bool = False


@dataclass(slots=True)
class EditArguments:
    path: str
    edits: list[Edit] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class _Planned:
    before: str
    after: str
    info: os.stat_result
    replaced: int


class EditTool:
    """Edits apply in order, each to the result of the one before it, and are written only if all of them fit."""

    group = "builtin"
    schema = ToolSchema(
        "edit",
        "Replace exact strings in a file, in order, all or none. old_string must occur exactly once "
        "unless replace_all.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "old_string": {"type": "string"},
                            "new_string": {"type": "string"},
                            "replace_all": {"type": "boolean"},
                        },
                        "required": ["old_string", "new_string"],
                    },
                },
            },
            "required": ["path", "edits"],
        },
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = _arguments(arguments)
        path = resolve(args.path, context)
        name = shown(path, context)
        try:
            if files.is_large(path):
                return Intent("edit", f"edit {pictured(name)}", [path], display=_unplaced(args.edits, name))
            planned = _plan(path, args.edits, context)
        except ToolError as problem:
            if may_tell(path, context):
                raise  # it would fail when it runs: nothing to ask the user about
            # Of a file that may not be read, nothing is said before the user agreed.
            display: Metadata = {"kind": "text", "text": str(problem), "path": pictured(name)}
        else:
            display = diff_display(planned.before, planned.after, name)
        return Intent("edit", f"edit {pictured(name)}", [path], display=display)

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = _arguments(arguments)
        path = resolve(args.path, context)
        name = shown(path, context)
        planned = await in_thread(lambda stop: _plan(path, args.edits, context))
        files.save(context, path, planned.after, pictured(name), planned.info)
        display = await in_thread(lambda stop: diff_display(planned.before, planned.after, name))
        count = plural(planned.replaced, "replacement")
        return ToolOutcome(f"Edited {pictured(name)}: {count}.", display=display)


def _unplaced(edits: list[Edit], name: str) -> Metadata:
    """The edits of a file too large to be read before the user is asked: what is replaced, without its place."""
    lines: list[str] = []
    for number, edit in enumerate(edits, 1):
        everywhere = ", everywhere" if edit.replace_all else ""
        lines.append(f"@@ edit {number} of {len(edits)}{everywhere} @@")
        lines += [f"-{line}" for line in edit.old_string.split("\n")]
        lines += [f"+{line}" for line in edit.new_string.split("\n")]
    return {"kind": "diff", "text": pictured("\n".join(lines)[:MAX_CHARACTERS]), "path": pictured(name)}


def _arguments(arguments: Metadata) -> EditArguments:
    """A single edit written flat is what many models were trained on; it is taken too."""
    if not arguments.get("edits") and "old_string" in arguments:
        flat = {k: arguments[k] for k in ("old_string", "new_string", "replace_all") if k in arguments}
        rest = {k: v for k, v in arguments.items() if k not in flat}
        arguments = {**rest, "edits": [flat]}
    args = validate(EditArguments, arguments, "edit")
    if not args.edits:
        raise ToolError("edit: edits is empty.")
    return args


def _plan(path: Path, edits: list[Edit], context: ToolContext) -> _Planned:
    name = pictured(shown(path, context))
    before, info = files.load(path, name)
    seen.require_unchanged(context, path, info)
    # A file with Windows line ends throughout is edited as the model sees it, and keeps them.
    windows = files.style_of(before).windows
    text = before.replace("\r\n", "\n") if windows else before
    replaced = 0
    for number, edit in enumerate(edits, 1):
        where = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        text, count = _apply(text, edit, windows, f"{where}", name)
        replaced += count
    after = text.replace("\n", "\r\n") if windows else text
    return _Planned(before, after, info, replaced)


def _apply(text: str, edit: Edit, windows: bool, where: str, name: str) -> tuple[str, int]:
    reject_surrogates(edit.old_string, "edit", f"{where}old_string")
    reject_surrogates(edit.new_string, "edit", f"{where}new_string")
    old = edit.old_string.replace("\r\n", "\n") if windows else edit.old_string
    new = edit.new_string.replace("\r\n", "\n") if windows else edit.new_string
    if not old:
        raise ToolError(f"{where}old_string is empty. Use write to create a file.")
    if old == new:
        raise ToolError(f"{where}old_string and new_string are the same.")
    count = text.count(old)
    if count == 0:
        raise ToolError(f"{where}old_string is not in {name}. Nothing was changed. {_why(text, old, new)}")
    if count > 1 and not edit.replace_all:
        lines = ", ".join(str(n) for n in _lines_of(text, old)[:5])
        raise ToolError(
            f"{where}old_string occurs {count} times in {name} (lines {lines}). "
            "Add surrounding lines to make it unique, or set replace_all. Nothing was changed."
        )
    return text.replace(old, new), count


def _why(text: str, old: str, new: str) -> str:
    if len(new.strip()) >= _TELLING and new in text:
        line = text.count("\n", 0, text.find(new)) + 1
        return f"new_string stands in line {line} already: the edit may have been made before."
    return why_missing(text, old)


def _lines_of(text: str, old: str) -> list[int]:
    lines: list[int] = []
    position = text.find(old)
    while position >= 0 and len(lines) < 5:
        lines.append(text.count("\n", 0, position) + 1)
        position = text.find(old, position + len(old))
    return lines
