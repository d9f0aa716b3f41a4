"""What came back from a summary call: its sections, however their headings are written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from agent_tui.context.compaction.summary import COPIED, MODEL_SECTIONS, ORDER

_HEADING = re.compile(r"^ {0,3}(?:#{1,6}\s+(?P<hash>.+?)|\*\*(?P<bold>[^*]+)\*\*:?)\s*$")
_PLAIN = re.compile(r"^[\s>*_#\-\d.)]*(?P<title>[A-Za-z][A-Za-z ]{2,30}?)[*_\s]*(?:[::][*_]*\s*(?P<rest>.*))?$")
"""A heading as weak models write one: ``Goal: build it``, ``1. Goal``, ``- **Goal:**``."""
_KNOWN = (*ORDER, *COPIED)
_THOUGHTS = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)

DONE = "Done"
"""Where text stands that fits under no other heading: what is finished, with the facts that matter later."""

CHATTER_CHARS = 300
"""Text before the first heading up to this long is talk to the reader; more of it is summary."""


def parse_sections(text: str) -> dict[str, str]:
    """The known sections of a summary, by name, in the order they appear. Text before the first one is dropped; any
    other heading belongs to the section it stands in. A heading inside a code block does not count, unless counting
    it is the only way to find a section (a block that was never closed)."""
    return _sections(_unfenced(text.strip()), _KNOWN)


def _sections(text: str, known: Collection[str]) -> dict[str, str]:
    strict = _by_name(_split(text, known, fences=True))
    loose = _by_name(_split(text, known, fences=False))
    return strict if all(name in strict for name in loose) else loose


def model_sections(text: str) -> dict[str, str]:
    """Returns the sections of a summary message's text that a model wrote, without what was collected."""
    return _written(parse_sections(text), MODEL_SECTIONS)


def joined(sections: Mapping[str, str]) -> str:
    """Sections as text again, in their order."""
    return "\n\n".join(f"## {name}\n{sections[name]}" for name in MODEL_SECTIONS if sections.get(name))


def bare(text: str) -> str:
    """An answer without the thoughts that a model wrote into it, and without a code block around all of it."""
    return _unfenced(_THOUGHTS.sub("", text).strip())


def read_answer(text: str, headings: Sequence[str] = MODEL_SECTIONS) -> dict[str, str]:
    """The sections of a model's answer that have something below them: under the headings that were asked for, under
    their names before a colon, or under as many others in a row, which are the same in another language. Empty where
    there are none."""
    text = bare(text)
    known = _KNOWN if headings is MODEL_SECTIONS else headings
    found = _written(_sections(text, known), headings)
    if found:
        talk = _split(text, known, fences=True).get("", "")
        if len(talk) > CHATTER_CHARS and DONE in headings:
            found[DONE] = "\n".join(filter(None, [found.get(DONE), talk]))
        return found
    return _of_names(text, known, headings) or _of_places(text, headings)


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


def _written(sections: Mapping[str, str], headings: Sequence[str]) -> dict[str, str]:
    return {name: body for name, body in sections.items() if name in headings and body}


def _quoted(body: str, known: Collection[str]) -> str:
    """A text without headings of ours: it cannot forge another section, such as the user's own words."""
    return "\n".join(f"> {line}" if _known(_title(line) or "", known) else line for line in body.splitlines())


def _known(title: str, known: Collection[str]) -> str | None:
    """The section of ours that a title names. Case, marks, numbering and a final colon do not matter."""
    title = title.strip().strip("#*_ ").rstrip(":").strip("*_ ")
    title = re.sub(r"^\d+[.)]\s*", "", title)
    folded = title.replace("\u2019", "'").casefold()
    return next((name for name in known if name.casefold() == folded), None)


def _title(line: str) -> str | None:
    """What stands in a line that is written as a heading; None for any other line."""
    match = _HEADING.match(line)
    return (match["hash"] or match["bold"]).strip() if match is not None else None


def _by_name(blocks: Mapping[str, str]) -> dict[str, str]:
    return {title: body for title, body in blocks.items() if title}


def _unfenced(text: str) -> str:
    """The text without a code block around all of it, which some models put there."""
    lines = text.splitlines()
    wrapped = len(lines) > 2 and re.fullmatch(r"```(?:markdown|md|text|json)?", lines[0].strip()) is not None
    if wrapped and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    return text


def _split(text: str, known: Collection[str], *, fences: bool, every: bool = False) -> dict[str, str]:
    """What stands below each of our headings, or below ``every`` heading, by its name; before the first, by ``""``."""
    blocks: dict[str, list[str]] = {"": []}
    current = blocks[""]
    for line, in_code in _lines(text):
        title = None if fences and in_code else _title(line)
        name = None if title is None else title.strip("#*_: ") if every else _known(title, known)
        if name:
            current = blocks.setdefault(name, [])
        else:
            current.append(line)
    return {name: "\n".join(lines).strip() for name, lines in blocks.items()}


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it stands in a code block."""
    fence: str | None = None
    for line in text.splitlines():
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in (None, mark):
            fence = mark if fence is None else None
        yield line, fence is not None


def _of_names(text: str, known: Collection[str], headings: Sequence[str]) -> dict[str, str]:
    """Sections that begin with a line of their name alone, or with their name and a colon."""
    blocks: dict[str, list[str]] = {}
    current: list[str] = []
    for line, in_code in _lines(text):
        match = None if in_code else _PLAIN.match(line)
        name = _known(match["title"], known) if match is not None else None
        if match is not None and name is not None:
            current = blocks.setdefault(name, [])
            current.extend(filter(None, [match["rest"]]))
        else:
            current.append(line)
    found = _written({name: _quoted("\n".join(lines).strip(), known) for name, lines in blocks.items()}, headings)
    return found if len(found) > 1 else {}


def _of_places(text: str, headings: Sequence[str]) -> dict[str, str]:
    """As many headings as were asked for that are none of those are the same in their order."""
    blocks = _by_name(_split(text, (), fences=True, every=True))
    if len(blocks) != len(headings):
        return {}
    return _written(dict(zip(headings, blocks.values(), strict=True)), headings)
