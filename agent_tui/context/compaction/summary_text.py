"""The text of a summary message: the sections a model writes, and what is added to them word for word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

GOAL = "Goal"
INSTRUCTIONS = "Instructions and constraints"
PLAN = "The plan the user approved last"
TODO = "Todo list"
FILES = "Files"
USER_MESSAGES = "The user's messages, word for word"
MODEL_SECTIONS = (GOAL, INSTRUCTIONS, "Decisions", "Done", "In progress", "Next steps", "Open questions")
"""What the model has to write. The plan, ``Todo list`` and ``Files`` come from the tool calls, so that nothing in them
is invented or forgotten."""

ORDER = (*MODEL_SECTIONS[:-1], PLAN, TODO, FILES, MODEL_SECTIONS[-1])
NOTHING = "(nothing)"
"""Stands below a heading that the model left out."""
INTRODUCTION = (
    "[The earlier part of this conversation was compacted. This summary stands for it; the conversation goes on below.]"
)

_HEADING = re.compile(r"^ {0,3}(?:#{1,6}\s+(?P<hash>.+?)|\*\*(?P<bold>[^*]+)\*\*:?)\s*$")
_KNOWN = {name.casefold(): name for name in (*ORDER, USER_MESSAGES)}


def parse_sections(text: str) -> dict[str, str]:
    """The known sections of a summary, by name, in the order they appear. Text before the first one is dropped; any
    other heading belongs to the section it stands in. A heading inside a code block does not count, unless counting
    it is the only way to find a section (a block that was never closed)."""
    text = _unfenced(text.strip())
    strict = _split(text, fences=True)
    loose = _split(text, fences=False)
    return strict if all(name in strict for name in loose) else loose


def heading_of(line: str) -> str | None:
    """The known section a line opens, or None. Case, bold marks, numbering and a final colon do not matter."""
    match = _HEADING.match(line)
    if match is None:
        return None
    title = (match["hash"] or match["bold"]).strip().strip("#*_ ").rstrip(":").strip("*_ ")
    title = re.sub(r"^\d+[.)]\s*", "", title)
    return _KNOWN.get(title.replace("\u2019", "'").casefold())


def assemble(
    sections: Mapping[str, str],
    files: Sequence[str],
    user_messages: Sequence[str],
    left_out: int,
    todo: Sequence[str] = (),
    introduction: str = INTRODUCTION,
    approved: Sequence[str] = (),
) -> str:
    """The summary message's text. ``files``, ``todo`` and ``approved`` (the plan) are finished lines; ``user_messages``
    are the user's own words, oldest first, ``left_out`` how many others are only in the summary. Without any
    ``sections`` no model wrote a summary: their headings are left out too."""
    collected = {PLAN: "\n".join(approved), TODO: "\n".join(todo), FILES: "\n".join(files)}
    blocks = [introduction]
    for name in ORDER:
        body = collected.get(name, sections.get(name, "")).strip()
        if body or (sections and name not in (PLAN, TODO)):
            blocks.append(f"## {name}\n{body or NOTHING}")
    if user_messages:
        others = " is" if left_out == 1 else "s are"
        note = f" {left_out} other{others} in the summary only." if left_out and sections else ""
        quoted = "\n\n".join(f"<user_message>\n{text}\n</user_message>" for text in user_messages)
        blocks.append(f"## {USER_MESSAGES}\nOldest first.{note}\n\n{quoted}")
    return "\n\n".join(blocks)


def model_sections(text: str) -> dict[str, str]:
    """What a model wrote of a summary message's text, without what was collected."""
    return {name: body for name, body in parse_sections(text).items() if name in MODEL_SECTIONS and body}


def joined(sections: Mapping[str, str]) -> str:
    """Sections as text again, in their order."""
    return "\n\n".join(f"## {name}\n{sections[name]}" for name in MODEL_SECTIONS if sections.get(name))


def merged(earlier: Mapping[str, str], later: Mapping[str, str]) -> dict[str, str]:
    """Both, section by section: for a summary that was written without having seen the earlier one."""
    both = ((name, [earlier.get(name, ""), later.get(name, "")]) for name in MODEL_SECTIONS)
    return {name: "\n".join(filter(None, bodies)) for name, bodies in both}


def _unfenced(text: str) -> str:
    """The text without a code block around all of it, which some models put there."""
    lines = text.splitlines()
    wrapped = len(lines) > 2 and re.fullmatch(r"```(?:markdown|md|text)?", lines[0].strip()) is not None
    if wrapped and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    return text


def _split(text: str, fences: bool) -> dict[str, str]:
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    fence: str | None = None
    for line in text.splitlines():
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in (None, mark):
            fence = mark if fence is None else None
        name = None if fences and fence is not None else heading_of(line)
        if name is not None:
            current = sections.setdefault(name, [])
        elif current is not None:
            current.append(line)
    return {name: "\n".join(lines).strip() for name, lines in sections.items()}
