"""What came back from a summary call: its sections, however they are written, what is wrong with them, and the most
that can be made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from agent_tui.context.compaction.summary import COPIED, MODEL_SECTIONS, ORDER, clip
from agent_tui.context.tokens import char_tokens
from agent_tui.models.requests import FinishReason
from agent_tui.records import dataclass
from agent_tui.text.numbers import tokens

_HEADING = re.compile(r"^ {0,3}(?:#{1,6}\s+(?P<hash>.+?)|\*\*(?P<bold>[^*]+)\*\*:?)\s*$")
_PLAIN = re.compile(r"^[\s>*_#\-\d.)]*(?P<title>[A-Za-z][A-Za-z ]{2,30}?)[*_\s]*(?:[::][*_]*\s*(?P<rest>.*))?$")
"""A heading as weak models write one: ``Goal: build it``, ``1. Goal``, ``- **Goal:**``."""
_KNOWN = {name.casefold(): name for name in (*ORDER, *COPIED)}

DONE = "Done"
"""Where text stands that fits under no other heading: what is finished, with the facts that matter later."""

_WORDS: tuple[tuple[str, str], ...] = (
    ("Open questions", r"question|unresolved|unclear|unknown"),
    ("Next steps", r"next|pending|remaining|todo|to do|plan|upcoming"),
    ("Instructions and constraints", r"instruct|constraint|preference|requirement|rule"),
    ("Decisions", r"decision|decided|choice|rationale|agreed"),
    ("In progress", r"progress|current|ongoing|state|status"),
    ("Goal", r"goal|intent|request|objective|purpose|task|aim"),
)
"""What headings of other agents' summaries are about; the first that fits wins."""

CHATTER_CHARS = 300
"""Text before the first heading up to this long is talk to the reader; more of it is summary."""

LEAST_TOKENS = 20
"""An answer without headings that is shorter says nothing that could stand for a conversation."""


def parse_sections(text: str) -> dict[str, str]:
    """The known sections of a summary, by name, in the order they appear. Text before the first one is dropped; any
    other heading belongs to the section it stands in. A heading inside a code block does not count, unless counting
    it is the only way to find a section (a block that was never closed)."""
    text = _unfenced(text.strip())
    strict = _by_name(_split(text, fences=True))
    loose = _by_name(_split(text, fences=False))
    return strict if all(name in strict for name in loose) else loose


def model_sections(text: str) -> dict[str, str]:
    """Returns the sections of a summary message's text that a model wrote, without what was collected."""
    return _written(parse_sections(text))


def joined(sections: Mapping[str, str]) -> str:
    """Sections as text again, in their order."""
    return "\n\n".join(f"## {name}\n{sections[name]}" for name in MODEL_SECTIONS if sections.get(name))


def read_answer(text: str) -> dict[str, str]:
    """The sections of a model's answer that have something below them, found by every means that leaves no doubt: our
    headings as they were asked for, as names before a colon, as keys of a JSON object, or as seven headings in a row,
    which are ours in another language. Empty where there are none."""
    text = _unfenced(text.strip())
    found = model_sections(text)
    if found:
        talk = _split(text, fences=True).get("", "")
        if len(talk) > CHATTER_CHARS:
            found[DONE] = "\n".join(filter(None, [found.get(DONE), talk]))
        return found
    return _of_json(text) or _of_names(text) or _of_places(text)


def placed(text: str) -> dict[str, str]:
    """An answer as it is, under our headings: what stands below a heading of its own goes where that belongs best, the
    rest to what is done."""
    found: dict[str, list[str]] = {}
    for title, body in _split(_unfenced(text.strip()), fences=True, every=True).items():
        name = next((name for name, words in _WORDS if re.search(words, title, re.I)), DONE)
        own = [f"{title}:"] if title and name == DONE else []
        if body:
            found.setdefault(name, []).extend([*own, body])
    return {name: _quoted("\n".join(found[name])) for name in MODEL_SECTIONS if name in found}


def shortened(sections: Mapping[str, str], most: int) -> dict[str, str]:
    """Sections that take at most about so many tokens: the longest are cut first, visibly, all to the same length."""
    sizes = {name: char_tokens(body) for name, body in sections.items()}
    left, each = float(most), 0.0
    for index, size in enumerate(sorted(sizes.values())):
        each = left / (len(sizes) - index)
        if size > each:
            break
        left -= size
    return {
        name: clip(body, int(len(body) * each / sizes[name]), tail=False) if sizes[name] > each else body
        for name, body in sections.items()
    }


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


def _quoted(body: str) -> str:
    """A text without headings of ours: it cannot forge another section, such as the user's own words."""
    return "\n".join(f"> {line}" if _known(_title(line) or "") else line for line in body.splitlines())


def _known(title: str) -> str | None:
    """The section of ours that a title names. Case, marks, numbering and a final colon do not matter."""
    title = title.strip().strip("#*_ ").rstrip(":").strip("*_ ")
    title = re.sub(r"^\d+[.)]\s*", "", title)
    return _KNOWN.get(title.replace("\u2019", "'").casefold())


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


def _split(text: str, *, fences: bool, every: bool = False) -> dict[str, str]:
    """What stands below each of our headings, or below ``every`` heading, by its name; before the first, by ``""``."""
    blocks: dict[str, list[str]] = {"": []}
    current = blocks[""]
    for line, in_code in _lines(text):
        title = None if fences and in_code else _title(line)
        name = None if title is None else title.strip("#*_: ") if every else _known(title)
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


def _of_json(text: str) -> dict[str, str]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, str] = {}
    for key, value in values.items() if isinstance(values, dict) else ():
        name = _known(str(key).replace("_", " "))
        entries = value if isinstance(value, list) else [value]
        said = [
            entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in entries if entry
        ]
        if name is not None:
            body = "\n".join(f"- {one}" for one in said) if isinstance(value, list) else "".join(said)
            found[name] = _quoted(body.strip())
    return _written(found)


def _of_names(text: str) -> dict[str, str]:
    """Sections that begin with a line of their name alone, or with their name and a colon."""
    blocks: dict[str, list[str]] = {}
    current: list[str] = []
    for line, in_code in _lines(text):
        match = None if in_code else _PLAIN.match(line)
        name = _known(match["title"]) if match is not None else None
        if match is not None and name is not None:
            current = blocks.setdefault(name, [])
            current.extend(filter(None, [match["rest"]]))
        else:
            current.append(line)
    found = _written({name: _quoted("\n".join(lines).strip()) for name, lines in blocks.items()})
    return found if len(found) > 1 else {}


def _of_places(text: str) -> dict[str, str]:
    """Seven headings that are none of ours are ours in the order that was asked for."""
    blocks = _by_name(_split(text, fences=True, every=True))
    if len(blocks) != len(MODEL_SECTIONS):
        return {}
    return _written(dict(zip(MODEL_SECTIONS, blocks.values(), strict=True)))


ProblemCode = Literal["empty", "tool", "truncated", "refused", "headings", "too_large", "over_limit"]

ASKED_AGAIN: dict[ProblemCode, str] = {
    "empty": "Your last answer was empty.",
    "tool": "Your last answer called a tool; it was not run, and none is now. Answer in text alone.",
    "truncated": "Your last answer was cut off before its end: be much shorter.",
    "refused": "Your last answer was no summary. Nothing is asked of you but to say what was talked about.",
    "headings": "It has none of the headings.",
    "too_large": "It is too long.",
    "over_limit": "It is too long.",
}
"""What the model is told in one line when it is asked once more."""

FRUITLESS: tuple[ProblemCode, ...] = ("empty", "tool", "refused")
"""Problems of an answer of which nothing can be used."""


@dataclass(slots=True, frozen=True)
class SummaryProblem:
    """What is wrong with a summary; ``text`` is half a sentence for the user."""

    code: ProblemCode
    text: str


def check_text(text: str, finish: FinishReason) -> SummaryProblem | None:
    """The checks of the model's answer alone: not empty, complete, something below one of the headings. Headings that
    are missing are filled in later."""
    if finish == "refused":
        return SummaryProblem("refused", "the model refused to summarise")
    sections = read_answer(text)
    if finish == "tool_calls" and not sections:
        return SummaryProblem("tool", "the model called a tool instead of summarising")
    if not text.strip():
        return SummaryProblem("empty", "the summary was empty")
    if not sections and not any(placed(text).values()):
        return SummaryProblem("empty", "the summary has headings but nothing below them")
    if char_tokens(text) < LEAST_TOKENS and (finish == "length" or not sections):
        why = "was cut off at the output limit" if finish == "length" else "says next to nothing"
        return SummaryProblem("empty", f"the summary {why}")
    if finish == "length":
        return SummaryProblem("truncated", "the summary was cut off at the output limit")
    if sections:
        return None
    return SummaryProblem("headings", f"the summary has none of the {len(MODEL_SECTIONS)} headings")


MIN_GAIN = 0.05
"""A compaction has to make the next input at least 5 % smaller."""


def check_size(
    before: int,
    after: int,
    limit: int | None,
    *,
    fits: bool = False,
    before_estimated: bool = True,
    part: int | None = None,
) -> SummaryProblem | None:
    """The checks of the whole next input, in tokens: at least 5 % smaller than before, and below the limit unless it
    ``fits`` the window with an answer. Of a fold: 5 % of the ``part`` it is of."""
    sizes = f"{tokens(before, before_estimated)} → {tokens(after, True)}"
    if part is not None:
        few = f"the summary is not at least 5 % smaller than the {tokens(part, True)} it would replace"
        return SummaryProblem("too_large", few) if before - after < max(1, part * MIN_GAIN) else None
    if after > before * (1 - MIN_GAIN):
        return SummaryProblem("too_large", f"the summary is not at least 5 % smaller than what it replaces ({sizes})")
    if limit is not None and after > limit and not fits:
        over = f"the limit of {tokens(limit, False)}"
        return SummaryProblem("over_limit", f"it would still be over {over} ({sizes})")
    return None
