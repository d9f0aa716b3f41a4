"""The conversation of a session as Markdown, to be read as a text or pasted somewhere. It holds no HTML of others and
no links that could run anything."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from agent_tui.commands.export.readable import (
    Call,
    Entry,
    Event,
    Readable,
    is_own_output,
    left_out,
    on_one_line,
    own_command,
    paste_name,
    short,
    written,
)
from agent_tui.commands.tool_words import items_of
from agent_tui.models.messages import (
    PLAN_TOOL,
    AttachmentPart,
    ReasoningPart,
    SummaryPart,
    TextPart,
)
from agent_tui.models.session import SessionInfo
from agent_tui.store.salvage import Content
from agent_tui.text.clean import printable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

SCHEMES = frozenset({"http", "https", "mailto"})
"""Of links; those without a scheme are fine, too."""
LEVELS = 2
"""The headings of the conversation are below those of the document: its title and who speaks."""
LOWEST = 6

_FENCE = re.compile(r"(`{3,})[^`\n]*$|(~{3,})")
_RUN = re.compile("`+")
_DESTINATION = re.compile(r"(\]\s*[(:]\s*(?:&lt;)?\s*)([^\s)]+)")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_BOXES = {"completed": "[x]", "in_progress": "[ ] *(in progress)*", "pending": "[ ]"}


def to_markdown(info: SessionInfo, content: Content, keys: Collection[str] = ()) -> str:
    """The conversation of a session as Markdown; without the ``keys``."""
    session = Readable(info, content, keys)
    facts = " · ".join(f"{name}: {_plain(value)}" for name, value in session.facts())
    blocks = [f"# {_plain(session.title)}", facts]
    for entry in session.entries():
        blocks.extend(_event(entry) if isinstance(entry, Event) else _entry(entry))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _event(event: Event) -> Iterator[str]:
    yield f"> **{_plain(event.title)}** {_plain(event.detail)}"
    if event.text:
        yield _folded("Summary", prose(event.text))


def _entry(entry: Entry) -> Iterator[str]:
    if not entry.goes_on:
        yield f"## {entry.speaker}{f' ({entry.state})' if entry.state else ''}"
    output = own_command(entry.message)
    for part in entry.parts:
        if isinstance(part, Call):
            yield _call(part)
        elif isinstance(part, ReasoningPart):
            if part.text.strip():
                yield _folded("Reasoning", prose(part.text))
        elif isinstance(part, AttachmentPart):
            if not is_own_output(part):
                yield _attachment(part)
        elif isinstance(part, TextPart):
            yield _code(part.text) if output is not None else _written(part)
        elif isinstance(part, SummaryPart):
            yield prose(part.text)
    if output:
        yield fenced(*short(output))
    if entry.ending:
        yield f"*{_plain(entry.ending)}*"


def _written(part: TextPart) -> str:
    pieces = written(part)
    return "\n\n".join(
        _folded(paste_name(text), fenced(*short(text))) if apart else prose(text) for text, apart in pieces
    )


def _call(call: Call) -> str:
    if call.part.name == PLAN_TOOL and call.kind == "text":
        return f"**Plan** ({_plain(call.facts)})\n\n{prose(call.output)}"
    title = f"{call.sign} {_shortened(call.label)}{f' · {call.facts}' if call.facts else ''}"
    blocks: list[str] = []
    if call.kind == "list":
        rows = [f"- {_BOXES[status]} {_plain(text)}" for text, status in items_of(call.result)]
        return f"{_plain(title)}\n\n" + "\n".join(rows)
    if call.kind == "diff":
        blocks.append(fenced(*short(call.output), language="diff"))
    else:
        blocks += [fenced(*short(arguments)) if (arguments := call.arguments()) else ""]
        blocks += [fenced(*short(call.output)) if call.output.strip() else ""]
    blocks += [_attachment(picture) for picture in call.pictures]
    inside = "\n\n".join(filter(None, blocks))
    return _folded(html.escape(title), inside) if inside else _plain(title)


def _attachment(part: AttachmentPart) -> str:
    head = f"Attachment: {_code(part.name)} ({_plain(part.media_type)})"
    return (
        head if not part.text else _folded(html.escape(f"{part.name} ({part.media_type})"), fenced(*short(part.text)))
    )


def _folded(title: str, text: str) -> str:
    """A part that opens. Behind the empty line all is Markdown again."""
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"


def fenced(text: str, cut: int = 0, language: str = "") -> str:
    """A code block, with a fence longer than all that it holds; so many characters of it were ``cut`` off."""
    fence = "`" * max(3, 1 + max((len(run) for run in _RUN.findall(text)), default=0))
    more = f"\n\n*{left_out(cut)}*" if cut else ""
    return f"{fence}{language}\n{text.rstrip()}\n{fence}{more}"


def _code(text: str) -> str:
    text = on_one_line(text)
    fence = "`" * (1 + max((len(run) for run in _RUN.findall(text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _plain(text: str) -> str:
    """A line of others as text: no sign in it makes anything of it."""
    return re.sub(r"([\\`*_\[\]~#|])", r"\\\1", on_one_line(text)).replace("<", "&lt;")


def prose(text: str) -> str:
    """Markdown of others as a part of this document: harmless, its headings below ours."""
    return nested(defused(text)).strip("\n")


@cache
def _blocks() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable("inline")


def nested(text: str) -> str:
    """Markdown with its headings ``LEVELS`` further down, all in the form with ``#``."""
    if "#" not in text and "==" not in text and "--" not in text:
        return text
    lines = text.split("\n")
    tokens = _blocks().parse(text)
    # From the end: a heading of two lines becomes one.
    for token, inner in reversed(list(pairwise(tokens))):
        if token.type != "heading_open" or token.map is None:
            continue
        first, end = token.map
        signs = "#" * min(LOWEST, int(token.tag[1:]) + LEVELS)
        if token.markup.startswith("#"):
            lines[first] = re.sub(r"#+", signs, lines[first], count=1)
        else:
            words = inner.content.split("\n")
            before = lines[first].partition(words[0])[0]
            lines[first:end] = [f"{before}{signs} {' '.join(word.strip() for word in words)}"]
    return "\n".join(lines)


def defused(text: str) -> str:
    """Markdown of others, with raw HTML escaped and links to anything but web pages and mail marked as unsafe."""
    done: list[str] = []
    paragraph: list[str] = []
    fence = ""

    def end_paragraph() -> None:
        if paragraph:
            done.append(_paragraph(paragraph))
            paragraph.clear()

    for line in text.split("\n"):
        if fence:
            done.append(line)
            # A closing fence is at least as long, of the same sign, with nothing behind it.
            if line.startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif (match := _FENCE.match(line)) is not None:
            end_paragraph()
            # What stands behind the signs is not code.
            signs = match[1] or match[2]
            done.append(signs + line[len(signs) :].replace("<", "&lt;"))
            fence = signs
        elif not line.strip():
            end_paragraph()
            done.append(line)
        else:
            paragraph.append(line)
    end_paragraph()
    return "\n".join(done) + (f"\n{fence}" if fence else "")


def _paragraph(lines: list[str]) -> str:
    whole = "\n".join(lines)
    within_all = _spans(whole)
    pieces: list[str] = []
    at = 0
    for line in lines:
        plain = "|" not in line and "\\" not in line
        spans = [s for s in _spans(line) if plain and (s[0] + at, s[1] + at) in within_all]
        end = 0
        for start, stop in spans:
            pieces += [line[end:start].replace("<", "&lt;"), line[start:stop]]
            end = stop
        pieces += [line[end:].replace("<", "&lt;"), "\n"]
        at += len(line) + 1
    return _DESTINATION.sub(_safe_link, "".join(pieces[:-1]))


def _spans(text: str) -> set[tuple[int, int]]:
    """Returns the beginnings and ends of code spans: a run of backticks to the next one of the same length."""
    runs = [(m.start(), m.end()) for m in _RUN.finditer(text)]
    found: set[tuple[int, int]] = set()
    i = 0
    while i < len(runs):
        size = runs[i][1] - runs[i][0]
        close = next((j for j in range(i + 1, len(runs)) if runs[j][1] - runs[j][0] == size), None)
        if close is None:
            i += 1
        else:
            found.add((runs[i][0], runs[close][1]))
            i = close + 1
    return found


def _safe_link(match: re.Match[str]) -> str:
    target = _ESCAPED.sub(r"\1", html.unescape(html.unescape(match[2])))
    target = "".join(printable(target).split()).lstrip("<")
    scheme = _SCHEME.match(target)
    if scheme is None or scheme[1].lower() in SCHEMES:
        return match[0]
    return f"{match[1]}unsafe:{match[2]}"
