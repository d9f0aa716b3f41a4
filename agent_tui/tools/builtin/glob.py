"""glob: files whose path matches a pattern."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import pictured, pictured_line
from agent_tui.text.numbers import plural
from agent_tui.tools.arguments import validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.builtin.list import require_folder
from agent_tui.tools.children.threads import Stop, in_thread
from agent_tui.tools.files.globs import Glob
from agent_tui.tools.files.paths import inside, resolve, resolve_from, shown
from agent_tui.tools.files.walk import walk

MAX_FILES = 500
_PLAIN = re.compile(r"[^*?\[\]{}]*/")  # the folders in front of the first sign that stands for something else


@dataclass(slots=True)
class GlobArguments:
    pattern: str
    path: str = "."


class GlobTool:
    """Files only, sorted by path; what .gitignore excludes is left out. Links are not followed."""

    group = "builtin"
    schema = ToolSchema(
        "glob",
        "Find files by pattern, e.g. `**/*.py`, `src/*.{ts,tsx}`.",
        {
            "type": "object",
            "properties": {"pattern": {"type": "string"}, "path": {"type": "string"}},
            "required": ["pattern"],
        },
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = _arguments(arguments, context)
        return Intent("read", f"glob {pictured_line(args.pattern)}", [resolve(args.path, context)])

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = _arguments(arguments, context)
        base = resolve(args.path, context)
        require_folder(base, context)
        pattern = Glob(args.pattern)
        name = shown(base, context)
        prefix = "" if name == "." else name.rstrip("/") + "/"
        return await in_thread(lambda stop: _glob(base, context.root.resolve(), pattern, prefix, stop))


def _arguments(arguments: Metadata, context: ToolContext) -> GlobArguments:
    """A pattern that begins with a folder of the file system, or leads upwards, is searched from there. A leading
    ``/`` alone means the top of the folder searched, as in .gitignore."""
    args = validate(GlobArguments, arguments, "glob")
    plain = _PLAIN.match(args.pattern)
    folder = plain.group().rstrip("/") if plain is not None else ""
    leads_away = args.pattern.startswith(("~/", "../")) or "/../" in f"/{folder}/"
    if folder.startswith("/"):
        own = resolve_from(f"{args.path}/{folder}", context.cwd)
        there = resolve_from(folder, context.cwd)
        leads_away = inside(there, context) or (there.is_dir() and not own.is_dir())
    if not folder or not leads_away:
        return args
    start = folder if folder.startswith(("/", "~")) else f"{args.path}/{folder}"
    return GlobArguments("/" + args.pattern[len(folder) :].lstrip("/"), start)


def _glob(base: Path, root: Path, pattern: Glob, prefix: str, stop: Stop) -> ToolOutcome:
    found: list[str] = []
    more = False
    for entry in walk(base, root):
        if stop.is_set():
            break
        if entry.is_dir or not pattern.matches(entry.path):
            continue
        if len(found) == MAX_FILES:
            more = True
            break
        found.append(pictured_line(pictured(prefix) + entry.path))
    display = {"kind": "text", "summary": f"{len(found)}+ files" if more else plural(len(found), "file")}
    if more:
        found.append(f"[more than {MAX_FILES} files; narrow the pattern]")
    return ToolOutcome("\n".join(found) or "No files match.", display=display)
