"""What came back from a summary call: its sections, by one rule, whoever wrote their headings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from agent_tui.context.compaction.summary import COPIED, MODEL_SECTIONS, ORDER

_KNOWN = (*ORDER, *COPIED)
_MARKS = re.compile(r"^[\s#*_-]*(?:\d+[.)][\s*_]*)?")
_ANY_HEADING = re.compile(r"^ {0,3}(?:#{1,6}\s+\S|\*\*[^*]+\*\*:?\s*$)", re.MULTILINE)
_THOUGHTS = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)

DONE = "Done"
"""Where text stands that fits under no other heading: what is finished, with the facts that matter later."""

CHATTER_CHARS = 300
"""Text before the first heading up to this long is talk to the reader; more of it is summary."""


def parse_sections(text: str) -> dict[str, str]:
    """The sections of a summary message's text, by name, in the order they appear, as ``assemble`` wrote them."""
    blocks = _split(text.strip(), lambda line: (line[3:], "") if line[:3] == "## " and line[3:] in _KNOWN else None)
    return {name: body for name, body in blocks.items() if name}


def model_sections(text: str) -> dict[str, str]:
    """Returns the sections of a summary message's text that a model wrote, without what was collected."""
    return _written(parse_sections(text))


def joined(sections: Mapping[str, str]) -> str:
    """Sections as text again, in their order."""
    return "\n\n".join(f"## {name}\n{sections[name]}" for name in MODEL_SECTIONS if sections.get(name))


def bare(text: str) -> str:
    """An answer without the thoughts that a model wrote into it, and without a code block around all of it."""
    text = _THOUGHTS.sub("", text).strip()
    lines = text.splitlines()
    wrapped = len(lines) > 2 and re.fullmatch(r"```(?:markdown|md|text|json)?", lines[0].strip()) is not None
    return "\n".join(lines[1:-1]) if wrapped and lines[-1].strip() == "```" else text


def read_answer(text: str) -> dict[str, str]:
    """The sections of a model's answer that have something below them: a line that says one of the headings that were
    asked for begins its section, however it is marked. Where there are none but other headings, all of it is one
    section. Empty where there are none of any kind."""
    text = bare(text)
    blocks = _split(text, _heading)
    if len(blocks) == 1:
        return {DONE: text} if _ANY_HEADING.search(text) else {}
    talk, found = blocks[""], _written(blocks)
    if found and len(talk) > CHATTER_CHARS:
        found[DONE] = "\n".join(filter(None, [found.get(DONE), talk]))
    return found


_PATH = re.compile(r"(?<![\w./:@-])(?:~?/)?(?:[\w.@+-]+/)+[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,5}(?![\w/])")
"""A path of a file with at least one folder; addresses have ``://`` before it."""


def with_unknown_paths(sections: Mapping[str, str], said: str) -> dict[str, str]:
    """The same sections, each with a line on the paths in it that were never ``said``: the model made them up. A file
    whose name alone was said is known."""
    found = dict(sections)
    for name, body in sections.items():
        paths = dict.fromkeys(_PATH.findall(body))
        unknown = [path for path in paths if path.rpartition("/")[2] not in said]
        if unknown:
            found[name] = f"{body}\n[never mentioned before this summary: {', '.join(unknown)}]"
    return found


def _written(sections: Mapping[str, str]) -> dict[str, str]:
    return {name: body for name, body in sections.items() if name in MODEL_SECTIONS and body}


def _heading(line: str) -> tuple[str, str] | None:
    """The section of ours that a line begins, and what stands behind its colon. Case, marks and numbers do not matter;
    what the program itself adds is only meant where it is marked as a heading."""
    title, _, rest = line.replace("\uff1a", ":").partition(":")
    said = _MARKS.sub("", title).strip(" \t*_#").replace("\u2019", "'").casefold()
    name = next((name for name in _KNOWN if name.casefold() == said), None)
    if name is None or not (name in MODEL_SECTIONS or line.lstrip().startswith(("#", "**"))):
        return None
    return name, rest.lstrip(" *_")


def _split(text: str, heading: Callable[[str], tuple[str, str] | None]) -> dict[str, str]:
    """What stands below each heading, by its name; before the first, by ``""``. None is in a block of code."""
    blocks: dict[str, list[str]] = {"": []}
    current = blocks[""]
    for line, in_code in _lines(text):
        found = None if in_code else heading(line)
        if found is None:
            current.append(line)
        else:
            current = blocks.setdefault(found[0], [])
            current.extend(filter(None, [found[1]]))
    return {name: "\n".join(lines).strip() for name, lines in blocks.items()}


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it stands in a code block."""
    fence: str | None = None
    for line in text.splitlines():
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in (None, mark):
            fence = mark if fence is None else None
        yield line, fence is not None
