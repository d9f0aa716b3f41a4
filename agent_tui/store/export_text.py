"""A session's conversation for people: Markdown, and one self-contained HTML page.

Both show the present path. Neither holds HTML or links of others that could run anything. Control characters are
removed, so that printing an export cannot drive a terminal.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import html
import re
from typing import Any

from agent_tui.errors import StoreError
from agent_tui.models.messages import Metadata
from agent_tui.models.usage import Cost
from agent_tui.store.export_data import to_json
from agent_tui.text.clean import clean, printable
from agent_tui.text.numbers import money, plural

SCHEMES = frozenset({"http", "https", "mailto"})
"""Of links; those without a scheme are fine, too."""

_FENCE = re.compile(r"(`{3,})[^`\n]*$|(~{3,})")
_RUN = re.compile("`+")
_DESTINATION = re.compile(r"(\]\s*[(:]\s*(?:&lt;)?\s*)([^\s)]+)")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


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


_BACKTICKS = re.compile("`+")
_SHOWN_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_SPEAKERS = {"user": "User", "assistant": "Assistant", "tool": "Tool"}

_STYLE = """
:root { color-scheme: light dark; --line: #8885; --quiet: #777; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
article { border-top: 1px solid var(--line); padding: .75rem 0; }
h1 { font-size: 1.4rem; } h2 { font-size: 1rem; margin: 0 0 .25rem; }
.quiet, summary { color: var(--quiet); font-size: .875rem; }
.text, pre { white-space: pre-wrap; overflow-wrap: anywhere; }
pre { font: 13px/1.45 ui-monospace, monospace; padding: .5rem .75rem; }
pre { border: 1px solid var(--line); border-radius: 6px; }
img { max-width: 100%; }
"""


FORMATS = ("json", "md", "html")


def render(export: Metadata, form: str) -> str:
    """An export as text in one of ``FORMATS``. Raises ``StoreError`` for any other."""
    if form == "json":
        return to_json(export) + "\n"
    if form == "md":
        return to_markdown(export)
    if form == "html":
        return to_html(export)
    raise StoreError(f"unknown export format {form!r}: one of {', '.join(FORMATS)}")


def to_markdown(export: Metadata) -> str:
    """The conversation of an export (``Store.export``) as Markdown."""
    session = export["session"]
    facts = "\n".join(f"- {name}: {defused(value)}" for name, value in _facts(export))
    blocks = [f"# {defused(_title(session))}", facts]
    for message in _path(export):
        note = _note(message)
        blocks.append(f"## {_speaker(message)}{f' ({note})' if note else ''}")
        blocks.extend(block for part in message["parts"] if (block := _part_markdown(part)))
    return "\n\n".join(blocks) + "\n"


def to_html(export: Metadata) -> str:
    """The conversation of an export as one page that loads nothing and runs nothing."""
    session = export["session"]
    title = html.escape(_title(session))
    facts = "<br>".join(f"{html.escape(name)}: {html.escape(value)}" for name, value in _facts(export))
    articles = "\n".join(_message_html(message) for message in _path(export))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{title}</h1>\n<p class="quiet">{facts}</p>\n{articles}\n</body>\n</html>\n'
    )


def _path(export: Metadata) -> list[Metadata]:
    by_id = {message["id"]: message for message in export["messages"] if message["on_path"]}
    path: list[Metadata] = []
    head = export["session"]["head_id"]
    while head in by_id:
        message = by_id.pop(head)
        path.append(message)
        head = message["parent_id"]
    gone = _dropped(export["compactions"], {message["id"] for message in path})
    return [{**message, "dropped": message["id"] in gone} for message in reversed(path)]


def _dropped(records: list[Metadata], path: set[str]) -> set[str]:
    """What the user dropped of the conversation and did not restore, by the records that hold on its branch."""
    gone: set[str] = set()
    for record in records:
        if record["active"] and path.isdisjoint(record["beside"]):
            gone |= set(record["message_ids"]) if record["kind"] == "drop" else set()
            gone -= set(record["message_ids"]) if record["kind"] == "restore" else set()
    return gone


def _note(message: Metadata) -> str:
    """What stands beside the speaker of a message that is not whole, or not sent."""
    status = [message["status"]] if message["status"] != "complete" else []
    return ", ".join([*status, *(["dropped"] if message["dropped"] else [])])


def _title(session: Metadata) -> str:
    return _line(session["title"]) or _line(session["preview"])[:80] or "Session"


def _facts(export: Metadata) -> list[tuple[str, str]]:
    session = export["session"]
    created = datetime.datetime.fromtimestamp(session["created"], datetime.UTC)
    others = sum(message["in_tree"] and not message["on_path"] for message in export["messages"])
    return [
        ("Session", _line(session["id"])),
        ("Project", _line(session["project"])),
        ("Model", _line(session["model"])),
        ("Created", f"{created:%Y-%m-%d %H:%M} UTC"),
        ("Cost", money(Cost(export["cost_known_usd"], export["unpriced_calls"]))),
        *(
            [("Other branches", f"{plural(others, 'message')}, not shown here; the JSON export has them")]
            if others
            else []
        ),
    ]


def _speaker(message: Metadata) -> str:
    role = str(message["role"])
    return _SPEAKERS.get(role, role)


def _line(text: str) -> str:
    return " ".join(clean(text).split())


def _fenced(text: str, language: str = "") -> str:
    text = clean(text)
    fence = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _part_markdown(part: Metadata) -> str:
    kind = part["type"]
    if kind == "reasoning":
        lines = defused(clean(part["text"])).splitlines()
        return "\n".join(f"> {line}".rstrip() for line in ["*Reasoning*", "", *lines]) if lines else ""
    if kind == "tool_call":
        return f"Tool call: {_code(part['name'])}\n\n{_fenced(part['arguments'], 'json')}"
    if kind == "tool_result":
        what = "Tool error" if part["is_error"] else "Tool result"
        return f"{what}: {_code(part['name'])}\n\n{_fenced(part['text'])}"
    if kind == "attachment":
        head = f"Attachment: {_code(part['name'])} ({defused(_line(part['media_type']))})"
        return head if part["text"] is None else f"{head}\n\n{_fenced(part['text'])}"
    return defused(clean(part["text"]))


def _code(text: str) -> str:
    text = _line(text)
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _message_html(message: Metadata) -> str:
    speaker = html.escape(_speaker(message))
    said = html.escape(_note(message))
    note = f' <span class="quiet">({said})</span>' if said else ""
    parts = "\n".join(part for p in message["parts"] if (part := _part_html(p)))
    return f"<article>\n<h2>{speaker}{note}</h2>\n{parts}\n</article>"


def _part_html(part: Metadata) -> str:
    kind = part["type"]
    if kind == "reasoning":
        return _details("Reasoning", _text(part["text"])) if part["text"] else ""
    if kind == "tool_call":
        return _details(f"Tool call: {part['name']}", _pre(part["arguments"]))
    if kind == "tool_result":
        return _details(f"{'Tool error' if part['is_error'] else 'Tool result'}: {part['name']}", _pre(part["text"]))
    if kind == "attachment":
        content = _image(part) if part["text"] is None else _pre(part["text"])
        return _details(f"Attachment: {part['name']} ({part['media_type']})", content)
    return _text(part["text"])


def _escape(text: str) -> str:
    return html.escape(clean(text))


def _text(text: str) -> str:
    return f'<div class="text">{_escape(text)}</div>'


def _pre(text: str) -> str:
    return f"<pre>{_escape(text)}</pre>"


def _details(label: str, content: str) -> str:
    return f"<details><summary>{html.escape(_line(label))}</summary>{content}</details>"


def _image(part: Metadata) -> str:
    data = _valid_base64(part["data"]) if part["media_type"] in _SHOWN_IMAGES else None
    if data is None:
        return ""
    return f'<img alt="{html.escape(_line(part["name"]))}" src="data:{part["media_type"]};base64,{data}">'


def _valid_base64(data: Any) -> str | None:
    try:
        return base64.b64encode(base64.b64decode(data or "", validate=True)).decode() or None
    except (binascii.Error, ValueError):
        return None
