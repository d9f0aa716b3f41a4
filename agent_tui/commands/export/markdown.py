"""The conversation of a session as Markdown, to be read as a text or pasted somewhere. It holds no HTML of others and
no links that could run anything."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator

from agent_tui.commands.export.chart import table
from agent_tui.commands.export.markdown_text import code_span, escaped, fenced, heading, rewritten, verbatim
from agent_tui.commands.export.readable import (
    Event,
    Readable,
    ReadableCall,
    ReadableMessage,
    is_own_output,
    left_out,
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
from agent_tui.store.content import SessionContent

_BOXES = {"completed": "[x]", "in_progress": "[ ] *(in progress)*", "pending": "[ ]"}


def to_markdown(info: SessionInfo, content: SessionContent, keys: Collection[str] = ()) -> str:
    """The conversation of a session as Markdown; without the ``keys``."""
    session = Readable(info, content, keys)
    facts = " · ".join(f"{name}: {escaped(value)}" for name, value in session.facts())
    blocks = [heading(1, escaped(session.title)), facts]
    blocks.append(table(session.content.steps, session.content.records, session.ids))
    for entry in session.entries():
        blocks.extend(_event(entry) if isinstance(entry, Event) else _entry(entry))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _event(event: Event) -> Iterator[str]:
    yield f"> **{escaped(event.title)}** {escaped(event.detail)}"
    if event.text:
        yield _folded("Summary", rewritten(event.text))


def _entry(entry: ReadableMessage) -> Iterator[str]:
    if not entry.goes_on:
        yield f"## {entry.speaker}{f' ({entry.state})' if entry.state else ''}"
    output = own_command(entry.message)
    for part in entry.parts:
        if isinstance(part, ReadableCall):
            yield _call(part)
        elif isinstance(part, ReasoningPart):
            if part.text.strip():
                yield _folded("Reasoning", rewritten(part.text))
        elif isinstance(part, AttachmentPart):
            if not is_own_output(part):
                yield _attachment(part)
        elif isinstance(part, TextPart):
            if output is not None:
                yield _command(part.text)
            else:
                yield _written(part) if entry.message.role == "user" else rewritten(part.text)
        elif isinstance(part, SummaryPart):
            yield rewritten(part.text)
    if output:
        yield _output(output)
    if entry.ending:
        yield f"*{escaped(entry.ending)}*"


def _written(part: TextPart) -> str:
    pieces = written(part)
    return "\n\n".join(_folded(paste_name(text), _output(text)) if apart else verbatim(text) for text, apart in pieces)


def _call(call: ReadableCall) -> str:
    if call.part.name == PLAN_TOOL and call.kind == "text":
        return f"**Plan** ({escaped(call.facts)})\n\n{rewritten(call.output)}"
    title = f"{call.sign} {call.label}{f' · {call.facts}' if call.facts else ''}"
    blocks: list[str] = []
    if call.kind == "list":
        rows = [f"- {_BOXES[status]} {escaped(text)}" for text, status in items_of(call.result)]
        return f"{escaped(title)}\n\n" + "\n".join(rows)
    if call.kind == "diff":
        blocks.append(_output(call.output, "diff"))
    else:
        blocks += [_output(arguments) if (arguments := call.arguments()) else ""]
        blocks += [_output(call.output) if call.output.strip() else ""]
    blocks += [_attachment(picture) for picture in call.pictures]
    inside = "\n\n".join(filter(None, blocks))
    return _folded(html.escape(title, quote=False), inside) if inside else escaped(title)


def _attachment(part: AttachmentPart) -> str:
    head = f"Attachment: {code_span(part.name)} ({escaped(part.media_type)})"
    return (
        head
        if not part.text
        else _folded(html.escape(f"{part.name} ({part.media_type})", quote=False), _output(part.text))
    )


def _folded(title: str, text: str) -> str:
    """A part that opens. Behind the empty line all is Markdown again."""
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"


def _output(text: str, language: str = "") -> str:
    """The beginning of a long text, as it is."""
    begin, cut = short(text)
    return fenced(begin.rstrip(), language) + (f"\n\n*{left_out(cut)}*" if cut else "")


def _command(text: str) -> str:
    """The user's own command."""
    return code_span(text) if text == text.strip() and "\n" not in text else fenced(text)
