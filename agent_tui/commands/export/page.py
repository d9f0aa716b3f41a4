"""The conversation of a session as one HTML page that loads nothing and runs nothing: to be sent to somebody who reads
it on any screen, or prints it."""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from agent_tui.commands.export.chart import chart
from agent_tui.commands.export.prose import Prose, Runs, escape, painted, verbatim
from agent_tui.commands.export.readable import (
    Event,
    Readable,
    ReadableCall,
    ReadableMessage,
    is_own_output,
    left_out,
    moment,
    own_command,
    paste_name,
    short,
    written,
)
from agent_tui.commands.tool_words import items_of
from agent_tui.models.messages import PLAN_TOOL, AttachmentPart, ReasoningPart, SummaryPart, TextPart
from agent_tui.models.rows import DRAWN_ROWS
from agent_tui.models.session import SessionInfo
from agent_tui.paths import package_themes
from agent_tui.store.content import SessionContent
from agent_tui.text.cells import shorten
from agent_tui.text.code import language_of_file
from agent_tui.text.diff import DiffLine, read_diff
from agent_tui.text.numbers import duration, lines_in, plural, size

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Kinds of pictures that are shown."""
MOST_PICTURE, MOST_PICTURES = 4_000_000, 40_000_000
"""Bytes of base64 of one picture, and of all in a page; others are only named."""
CODE = ("same", "added", "removed")
"""Lines of a diff that are lines of a file."""
OPEN_LINES = 40
"""A diff of up to so many lines is open."""
LEAST_PROMPTS = 4
"""A page with fewer has no list of them."""
LIGHT, DARK = "agent-light", "agent-dark"
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_BOXES = {"completed": "☑", "in_progress": "◐", "pending": "☐"}


def to_html(info: SessionInfo, content: SessionContent, keys: Collection[str] = ()) -> str:
    """The page; without the ``keys``."""
    return "".join(_Page(Readable(info, content, keys)).parts())


class _Page:
    def __init__(self, session: Readable) -> None:
        self.session = session
        self.prose = Prose()
        self.prompts: list[str] = []
        self._picture_bytes = MOST_PICTURES
        self._day = moment(session.info.created)[:10]

    def parts(self) -> Iterator[str]:
        session = self.session
        title, style = escape(session.title), _style()
        conversation = "".join(self._conversation())
        facts = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in session.facts()
        )
        yield (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(style)}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
            f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
            f"<header>\n<h1>{title}</h1>\n<dl>{facts}</dl>\n"
        )
        yield chart(session.content.steps, session.content.records, session.ids)
        yield f"{self._list_of_prompts()}</header>\n<main>\n{conversation}</main>\n"
        yield f"<footer>Session {escape(session.info.id)} · agent-tui</footer>\n</body>\n</html>\n"

    def _conversation(self) -> Iterator[str]:
        is_open = False
        for entry in self.session.entries():
            if isinstance(entry, Event) or not entry.goes_on:
                yield "</article>\n" if is_open else ""
                is_open = not isinstance(entry, Event)
            yield self._event(entry) if isinstance(entry, Event) else "".join(self._entry(entry))
        yield "</article>\n" if is_open else ""

    def _list_of_prompts(self) -> str:
        if len(self.prompts) < LEAST_PROMPTS:
            return ""
        items = "".join(f'<li><a href="#p{number}">{words}</a></li>' for number, words in enumerate(self.prompts, 1))
        return f"<details><summary>{plural(len(self.prompts), 'prompt')}</summary><ol>{items}</ol></details>\n"

    def _event(self, event: Event) -> str:
        head = f"<b>{escape(event.title)}</b> {escape(event.detail)}"
        if not event.text:
            return f'<p class="event">{head}</p>\n'
        return f'<details class="event"><summary>{head}</summary>{self._said(event.text)}</details>\n'

    def _entry(self, entry: ReadableMessage) -> Iterator[str]:
        message, user = entry.message, entry.message.role == "user"
        if not entry.goes_on:
            anchor = ""
            if user:
                self.prompts.append(escape(shorten(" ".join(message.text[:400].split()), 100)) or "…")
                anchor = f' id="p{len(self.prompts)}"'
            yield f'<article class="{"user" if user else "assistant"}"{anchor}>\n<h2>{entry.speaker}'
            yield f' <span class="state">{escape(entry.state)}</span>' if entry.state else ""
            yield f"{self._time(message.created)}</h2>\n"
        output = own_command(message)
        for part in entry.parts:
            yield self._part(part, user)
        if output is not None:
            text, more = short(output)
            said = f"{plural(lines_in(output.rstrip()), 'line')} of output" if output.strip() else "no output"
            yield _details(said, verbatim(text.rstrip()) + _more(more), is_open=lines_in(output) <= OPEN_LINES)
        if entry.ending:
            yield f'<p class="ending">{escape(entry.ending)}</p>\n'

    def _time(self, then: float) -> str:
        """When something was said, with the day where it is another one than before."""
        if not then:
            return ""
        at = datetime.datetime.fromtimestamp(then, datetime.UTC)
        day, _, clock = moment(then).partition(" ")
        before, self._day = self._day, day
        return f' <time datetime="{at:%Y-%m-%dT%H:%M:%SZ}">{clock if day == before else moment(then)}</time>'

    def _part(self, part: Any, user: bool) -> str:
        match part:
            case ReadableCall():
                return self._call(part)
            case TextPart():
                return self._written(part) if user else self._said(part.text)
            case ReasoningPart() if part.text.strip():
                thought = "Thought" if not part.seconds else f"Thought for {duration(part.seconds)}"
                return _details(thought, self._said(part.text), "reasoning")
            case AttachmentPart() if not is_own_output(part):
                return self._attachment(part)
            case SummaryPart():
                return self._said(part.text)
        return ""

    def _said(self, text: str) -> str:
        return f'<div class="text" dir="auto">{self.prose.markdown(text)}</div>\n' if text.strip() else ""

    def _written(self, part: TextPart) -> str:
        """The user's words as they are, long pastes in them folded."""
        out = ""
        for text, apart in written(part):
            begin, more = short(text) if apart else (text, 0)
            words = f'<div class="said" dir="auto">{escape(begin)}</div>\n'
            out += _details(paste_name(text), verbatim(begin) + _more(more)) if apart else words
        return out

    def _call(self, call: ReadableCall) -> str:
        name, _, rest = call.label.partition(" ")
        facts = f' <span class="facts">{escape(call.facts)}</span>' if call.facts else ""
        failed = call.sign in "✗⊘"
        head = (
            f'<span class="{"failed" if failed else "sign"}">{call.sign}</span> <b>{escape(name)}</b> '
            f'<span class="about">{escape(rest)}</span>{facts}'
        )
        if call.part.name == PLAN_TOOL and call.kind == "text":
            return f'<section class="plan"><p class="head">{head}</p>{self._said(call.output)}</section>\n'
        if call.kind == "list":
            rows = "".join(f"<li>{_BOXES[status]} {escape(text)}</li>" for text, status in items_of(call.result))
            return f'<p class="tool head">{head}</p><ul class="todo">{rows}</ul>\n'
        inside, is_open = "", False
        if call.kind == "diff":
            inside, count = self._diff(
                call.output, str((call.result.display or {}).get("path") or "") if call.result else ""
            )
            is_open = count <= OPEN_LINES
        else:
            for text, kind in ((call.arguments(), "arguments"), (call.output, "output")):
                begin, more = short(text)
                inside += verbatim(begin.rstrip(), kind) + _more(more) if text.strip() else ""
        inside += "".join(self._attachment(picture) for picture in call.pictures)
        if not inside:
            return f'<p class="tool head">{head}</p>\n'
        return f'<details class="tool"{" open" if is_open else ""}><summary>{head}</summary>{inside}</details>\n'

    def _diff(self, text: str, path: str) -> tuple[str, int]:
        """A diff in bands, with the words marked that changed; and how many lines it has."""
        begin, more = short(text)
        diff = read_diff(begin, path)
        colours = self._colours_of(diff.lines)
        rows = [
            _diff_row(line, painted(line.text, colours.get(number, ()), diff.changed(number)))
            for number, line in enumerate(diff.lines)
        ]
        return f'<div class="code"><table class="diff">{"".join(rows)}</table></div>{_more(more)}', len(rows)

    def _colours_of(self, lines: Sequence[DiffLine]) -> dict[int, Runs]:
        """The colours of the lines by their number. What stands together in a file is read together, as it was before
        and as it is after: a string may begin some lines above."""
        found: dict[int, Runs] = {}
        for is_code, run in groupby(enumerate(lines), lambda pair: pair[1].kind in CODE):
            together = list(run) if is_code else []
            for kind in ("removed", "added") if together else ():
                side = [(number, line) for number, line in together if line.kind in (kind, "same")]
                if kind == "added" or any(line.kind == kind for _, line in side):
                    texts = "\n".join(line.text for _, line in side)
                    runs = self.prose.runs(texts, language_of_file(side[0][1].path)) if side else []
                    found.update({number: run for (number, _), run in zip(side, runs, strict=True)})
        return found

    def _attachment(self, part: AttachmentPart) -> str:
        name = f"{part.name} ({part.media_type})"
        if part.text is not None:
            text, more = short(part.text)
            return _details(name, self.prose.code(text, language_of_file(part.name)) + _more(more), "attachment")
        data = _base64(part.data) if part.media_type in PICTURES else ""
        if not data or len(data) > min(MOST_PICTURE, self._picture_bytes):
            much = f", {size(len(part.data) * 3 // 4)}" if part.data else ""
            return f'<p class="quiet">{escape(part.name)} ({escape(part.media_type)}{much}), not shown here</p>\n'
        self._picture_bytes -= len(data)
        return f'<img alt="{escape(part.name)}" src="data:{part.media_type};base64,{data}">\n'


def _diff_row(line: DiffLine, words: str) -> str:
    if line.kind not in CODE:
        return f'<tr class="{line.kind}"><td></td><td></td><td>{words or "⋯"}</td></tr>'
    number = "" if line.number is None else line.number
    sign = {"added": "+", "removed": "−"}.get(line.kind, "")
    return f'<tr class="{line.kind}"><td>{number}</td><td>{sign}</td><td>{words}</td></tr>'


def _details(label: str, content: str, kind: str = "", *, is_open: bool = False) -> str:
    names = f' class="{kind}"' if kind else ""
    return f"<details{names}{' open' if is_open else ''}><summary>{escape(label)}</summary>{content}</details>\n"


def _more(count: int) -> str:
    return f'<p class="quiet">{left_out(count)}</p>' if count else ""


def _base64(data: str | None) -> str:
    try:
        return base64.b64encode(base64.b64decode(data or "", validate=True)).decode()
    except (binascii.Error, ValueError):
        return ""


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


@cache
def _style() -> str:
    """The page's style sheet, with the colours of the two designed themes."""
    sheet = Path(__file__).with_name("page.css").read_text("utf-8")
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_colours(DARK)} }} }}"
    rows = "".join(
        f".row-{row.id} {{ fill: var(--{row.variable}); background: var(--{row.variable}); }}\n" for row in DRAWN_ROWS
    )
    return f"\n:root {{ {_colours(LIGHT)} }}\n{dark}\n{rows}{sheet}"


def _colours(theme: str) -> str:
    """The colours of a theme as the variables of a style sheet."""
    data = tomllib.loads((package_themes() / f"{theme}.toml").read_text("utf-8"))
    colours = {**data["colors"], **data["variables"]}
    for row in DRAWN_ROWS:
        colours.setdefault(row.variable, colours[row.color])
    return " ".join(f"--{name}: {value};" for name, value in colours.items() if _COLOUR.fullmatch(value))
