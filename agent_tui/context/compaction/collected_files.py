"""The files a conversation touched, collected from its tool calls: facts, not what a model remembers of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from agent_tui.context.tokens.estimate import char_tokens
from agent_tui.errors import ToolError
from agent_tui.models.messages import AttachmentPart, Message, Metadata
from agent_tui.text.clean import printable_line
from agent_tui.tools.aliases import own_name, parsed, understood

MAX_FILES = 100
MAX_PATH = 300

PATH_ARGUMENTS = ("path", "file_path", "filepath", "filename", "file", "notebook_path", "directory", "dir")
LIST_ARGUMENTS = ("paths", "files")

PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): *(.+?) *$", re.MULTILINE)
"""The files of a patch, in the argument ``input``."""

VERBS = {
    "read": "read",
    "write": "written",
    "edit": "edited",
    "apply_patch": "edited",
    "list": "listed",
    "glob": "searched",
    "grep": "searched",
}
ORDER = ("attached", "read", "edited", "written", "listed", "searched", "used")
MAX_RANGES = 3
"""Ranges of lines named of one file: the newest."""


def collect_files(messages: Sequence[Message], limit: int = MAX_FILES) -> dict[str, list[str]]:
    """Path → what was done with it, the most recently used last, at most ``limit`` of the most recent ones. A file of
    which only a part was read has ``read lines 101-300``.

    Calls that failed or never ran are left out. Paths are hostile text: control characters are removed and long ones
    cut. Files that were only listed or searched give way first.
    """
    results = (m.tool_result for m in messages)
    succeeded = {(r.call_id, r.name) for r in results if r is not None and not r.is_error}
    found: dict[str, list[str]] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, AttachmentPart) and part.path:
                _note(found, part.path, "attached")
        for call in message.tool_calls:
            if (call.call_id, call.name) not in succeeded:
                continue
            name, arguments = in_our_words(call.name, call.arguments)
            verb = VERBS.get(name, "used")
            for path in _paths(arguments):
                _note(found, path, f"read{_lines(arguments)}" if verb == "read" else verb)
    while len(found) > limit:
        weak = next((p for p, verbs in found.items() if set(verbs) <= {"listed", "searched"}), None)
        del found[weak if weak is not None else next(iter(found))]
    return found


def within(files: dict[str, list[str]], tokens: int) -> dict[str, list[str]]:
    """The most recently used files whose lines together cost at most ``tokens`` by the character rule."""
    kept: dict[str, list[str]] = {}
    left = float(tokens)
    for path, verbs in reversed(files.items()):
        (line,) = file_lines({path: verbs})
        left -= char_tokens(line) + 1
        if left < 0:
            break
        kept[path] = verbs
    return dict(reversed(kept.items()))


def file_lines(files: dict[str, list[str]]) -> list[str]:
    """One line a file for the summary: ``- src/app.py (read lines 1-80, edited)``."""
    return [f"- {path} ({', '.join(sorted(verbs, key=_rank))})" for path, verbs in files.items()]


def _rank(verb: str) -> int:
    return ORDER.index(verb.partition(" ")[0])


def _note(found: dict[str, list[str]], path: str, verb: str) -> None:
    clean = printable_line(path, MAX_PATH)
    if not clean:
        return
    verbs = found.pop(clean, [])
    if verb == "read":
        verbs = [v for v in verbs if not v.startswith("read ")]
    ranges = [v for v in verbs if v.startswith("read ")]
    if verb.startswith("read ") and verb not in verbs and len(ranges) >= MAX_RANGES:
        verbs.remove(ranges[0])
    found[clean] = verbs if verb in verbs or ("read" in verbs and verb.startswith("read ")) else [*verbs, verb]


def _lines(arguments: Metadata) -> str:
    """``" lines 101-300"``, as the call asked for them; empty where it asked for the whole file."""
    first, count = arguments.get("offset"), arguments.get("limit")
    start = first if isinstance(first, int) and first > 1 else 1
    if isinstance(count, int) and count > 0:
        return f" lines {start}-{start + count - 1}"
    return f" from line {start}" if start > 1 else ""


def in_our_words(name: str, arguments: str) -> tuple[str, Metadata]:
    """A stored call by our own names, whatever the model called the tool and its arguments."""
    try:
        return understood(name, parsed(name, arguments), Path("/"))
    except ToolError:
        return own_name(name), {}


def _paths(values: Metadata) -> list[str]:
    paths = [v for k in PATH_ARGUMENTS if isinstance(v := values.get(k), str)]
    for key in LIST_ARGUMENTS:
        many = values.get(key)
        if isinstance(many, list):
            paths.extend(v for v in many if isinstance(v, str))
    patch = values.get("input")
    return paths + (PATCHED.findall(patch) if isinstance(patch, str) else [])
