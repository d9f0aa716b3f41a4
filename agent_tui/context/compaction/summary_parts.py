"""The parts that a summary message keeps besides what a model writes: the user's own words, the plan they approved
last, the todo list as it stands, and the files that were used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent_tui.context.compaction.summary import clip
from agent_tui.context.compaction.typed import SHORT_DATA, spoken_text
from agent_tui.context.tokens import Family, char_tokens, estimate_message
from agent_tui.errors import ToolError
from agent_tui.models.messages import (
    APPROVED,
    PLAN_TOOL,
    RECALL_TOOL,
    AttachmentPart,
    Message,
    Metadata,
    TextPart,
    recall_id,
)
from agent_tui.text.clean import pictured, printable_line
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
ORDER = ("attached", "read", "edited", "written", "listed", "searched", "used", RECALL_TOOL)
MAX_RANGES = 3
"""Ranges of lines named of one file: the newest."""


def collect_files(messages: Sequence[Message], limit: int = MAX_FILES, *, recall: bool = False) -> dict[str, list[str]]:
    """Path → what was done with it, the most recently used last, at most ``limit`` of the most recent ones. A file of
    which only a part was read has ``read lines 101-300``; with ``recall`` also the id and size of what was read last.

    Calls that failed or never ran are left out. Paths are hostile text: control characters are removed and long ones
    cut. Files that were only listed or searched give way first.
    """
    results = ((m.tool_result, m.id) for m in messages)
    succeeded = {(r.call_id, r.name): (id, len(r.text)) for r, id in results if r is not None and not r.is_error}
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
            for path in paths_in(arguments):
                _note(found, path, f"read{_lines(arguments)}" if verb == "read" else verb)
                if recall and verb == "read":
                    id, size = succeeded[call.call_id, call.name]
                    _note(found, path, f"{RECALL_TOOL} {recall_id(id)}: {size:,} characters")
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
    if verb.startswith(f"{RECALL_TOOL} "):
        verbs = [v for v in verbs if not v.startswith(f"{RECALL_TOOL} ")]
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


def paths_in(values: Metadata) -> list[str]:
    paths = [v for k in PATH_ARGUMENTS if isinstance(v := values.get(k), str)]
    for key in LIST_ARGUMENTS:
        many = values.get(key)
        if isinstance(many, list):
            paths.extend(v for v in many if isinstance(v, str))
    patch = values.get("input")
    return paths + (PATCHED.findall(patch) if isinstance(patch, str) else [])


TODO_TOOL = "todo"
TODO_BOXES = {"completed": "x", "in_progress": ">"}
TODO_CHARS = 300

WORTH_CLIPPING = 60
"""Tokens of a large message that are worth keeping of it; with less left it is only counted."""


def user_words(messages: Sequence[Message], budget: int, family: Family) -> tuple[tuple[str, ...], str, int]:
    """The user's messages, without long data in them, that fit ``budget`` tokens whole, oldest first; what fits of the
    newest of the others, cut visibly; and how many messages neither has.

    The small ones come first, however old: a rule in one line must not give way to a paste. Among those of about the
    same size the newest win.
    """
    words = [m for m in messages if m.role == "user" and m.text.strip()]
    texts = [_spoken(message) for message in words]
    costs = [_cost(m, text, family) for m, text in zip(words, texts, strict=True)]
    kept: dict[int, str] = {}
    left = budget
    for index in sorted(range(len(words)), key=lambda i: (costs[i].bit_length(), -i)):
        if costs[index] <= left:
            kept[index] = texts[index]
            left -= costs[index]
    cut = ""
    newest = next((i for i in range(len(words) - 1, -1, -1) if i not in kept), None)
    if newest is not None and left >= min(WORTH_CLIPPING, budget):
        text = texts[newest]
        cut = clip(text, len(text) * left // costs[newest])
    return tuple(kept[i] for i in sorted(kept)), cut, len(words) - len(kept) - bool(cut)


def _spoken(message: Message) -> str:
    """What the user said in a message: long data in it is only counted."""
    if len(message.text) <= SHORT_DATA:
        return message.text
    return "".join(spoken_text(part) for part in message.parts if isinstance(part, TextPart))


def _cost(message: Message, text: str, family: Family) -> int:
    whole = text == message.text and all(isinstance(p, TextPart) for p in message.parts)
    raw, counts = (message.raw_tokens, message.counts) if whole else (None, None)
    return estimate_message(replace(message, parts=[TextPart(text)], raw_tokens=raw, counts=counts), family).tokens


def todo_lines(messages: Sequence[Message], budget: int) -> tuple[str, ...]:
    """The todo list as the newest successful call left it, one line an item, within ``budget`` tokens. What is done
    gives way first. The model's text is hostile: one line each, no control characters."""
    succeeded = {r.call_id for m in messages if (r := m.tool_result) is not None and not r.is_error}
    for message in reversed(messages):
        for call in reversed(message.tool_calls):
            if own_name(call.name) == TODO_TOOL and call.call_id in succeeded:
                return _within(_items(call.arguments), budget)
    return ()


def plan_lines(messages: Sequence[Message], cut: int, budget: int) -> tuple[str, ...]:
    """The plan that the user approved last, as lines of a quotation (its headings are none of the summary's), within
    ``budget`` tokens; empty where it stands among the messages from ``cut`` on, which are kept."""
    for index in range(len(messages) - 1, -1, -1):
        result = messages[index].tool_result
        display = result.display if result is not None and own_name(result.name) == PLAN_TOOL else None
        if display and display.get(APPROVED):
            if index >= cut:
                return ()
            text = pictured(str(display.get("text") or "").strip())
            cost = char_tokens(text) + text.count("\n") + 1
            kept = text if cost <= budget else clip(text, int(len(text) * budget / cost))
            return tuple(f"> {line}".rstrip() for line in kept.splitlines())
    return ()


def _items(arguments: str) -> list[tuple[str, bool]]:
    items = in_our_words(TODO_TOOL, arguments)[1].get("items")
    lines: list[tuple[str, bool]] = []
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and isinstance(item.get("text"), str):
            text = printable_line(item["text"], TODO_CHARS)
            status = str(item.get("status"))
            lines.append((f"- [{TODO_BOXES.get(status, ' ')}] {text}", status == "completed"))
    return lines


def _within(lines: list[tuple[str, bool]], budget: int) -> tuple[str, ...]:
    left = float(budget)
    kept: set[int] = set()
    for index in sorted(range(len(lines)), key=lambda i: (lines[i][1], i)):
        left -= char_tokens(lines[index][0]) + 1
        if left < 0:
            break
        kept.add(index)
    return tuple(line for i, (line, _) in enumerate(lines) if i in kept)
