"""The texts that can be read behind a row: a fixed part, a message, a compaction, as they are sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_tui.commands.report import estimated
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.steps import CompactionRecord
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import age, duration, money, plural, tokens

if TYPE_CHECKING:
    from agent_tui.models.context import ContextRow
    from agent_tui.models.requests import SentMessage

NO_TEXT = "Its text is not at hand here: it belongs to a server that is not running, or to an earlier request."
ADDED = "The provider adds this by itself to a request with tools. Its words are not known, only its size."
WAS_READ, NOT_READ = "read from the provider's cache", "not read from the provider's cache"


def compaction_text(record: CompactionRecord, now: float) -> str:
    """One compaction in one line."""
    parts = [
        f"{tokens(record.before_tokens, record.before_estimated)} → {tokens(record.after_tokens, True)}",
        record.reason,
    ]
    if record.kind == "prune":
        parts += [f"cleared {plural(record.cleared, 'tool result')}"] if record.cleared else []
        parts += [f"clipped {plural(record.clipped, 'tool result')}"] if record.clipped else []
    if record.left_out:
        parts.append(f"left out {plural(record.left_out, 'old message')}")
    if record.kept_messages is not None:
        parts.append(f"kept {plural(record.kept_messages, 'message')}")
    if record.seconds is not None:
        parts.append(duration(record.seconds))
    if record.cost is not None:
        parts.append(money(record.cost))
    if record.created:
        parts.append(f"{age(record.created, now)} ago" if now - record.created >= 60 else "just now")
    if not record.active:
        parts.append("undone")
    return " · ".join(parts)


def compaction_details(record: CompactionRecord, summary: Message | None, now: float) -> str:
    """Everything about a compaction, with the summary that stands for what it replaced."""
    lines = [compaction_text(record, now)]
    if record.model:
        lines.append(f"model {one_line(record.model, 100)}")
    if record.focus:
        lines.append(f"focus: {one_line(record.focus, 500)}")
    lines.append(f"replaces {plural(len(record.message_ids), 'message')}; they stay in the database")
    if record.files:
        lines += ["", "Files:", *(f"  {one_line(f, 300)}" for f in record.files)]
    if summary is not None:
        lines += ["", *(p.text for p in summary.parts if isinstance(p, SummaryPart))]
    return "\n".join(lines)


def row_facts(row: ContextRow) -> str:
    """All that is known of a row, a line each."""
    facts = [f"{'~' if estimated(row) else ''}{row.tokens:,} tokens, {row.basis}"]
    if row.estimated_tokens and row.basis != "estimated":
        facts.append(f"~{row.estimated_tokens:,} of them estimated")
    if row.approximate:
        facts.append("not counted yet: a rule by characters stands in")
    if row.deferred_tokens:
        facts.append(f"~{row.deferred_tokens:,} more once it is loaded: the model asks for it when it needs it")
    if row.cached_tokens is not None and row.tokens:
        amount = "" if row.cached else f"{row.cached_tokens:,} of them "
        read = f"{amount}{WAS_READ}" if row.cached_tokens else NOT_READ
        facts.append(f"last request: {read}")
    elif row.cached is not None:
        facts.append(f"last request: {WAS_READ if row.cached else NOT_READ}")
    if row.replay:
        facts.append(f"reasoning: {one_line(row.replay, 400)}")
    if row.detail == "rough":
        facts.append("rough: images and files have no exact rule")
    elif row.detail and row.detail != "deferred":
        facts.append(one_line(row.detail, 400))
    if row.path:
        facts.append(one_line(row.path, 400))
    return "\n".join(facts)


def part_text(text: str | None, tool: bool) -> str:
    """The text of a fixed part as it is sent. A tool's schema is laid out for reading; not a word of it is another."""
    if text is None:
        return NO_TEXT
    if not tool:
        return text
    try:
        schema = json.loads(text)
        name, description, parameters = schema["name"], schema["description"], schema["parameters"]
    except (ValueError, KeyError, TypeError):
        return text
    laid_out = json.dumps(parameters, ensure_ascii=False, indent=2)
    return f"# {name}\n{description}\n\n# Parameters\n{laid_out}"


def sent_text(item: SentMessage | None) -> str:
    """A message as it is sent. Where that is not as it was stored, what was stored is below."""
    if item is None:
        return "The message is not part of what is sent now."
    text = message_text(item.message)
    if item.stored is None:
        return text
    return f"{text}\n\n# Stored, and not sent\n{message_text(item.stored)}"


def message_text(message: Message) -> str:
    """A message with all its parts, for reading."""
    blocks: list[str] = []
    for part in message.parts:
        match part:
            case TextPart(text=text) if text:
                blocks.append(text)
            case ReasoningPart(text=text):
                blocks.append(f"# Reasoning\n{text or '(no readable text)'}")
            case ToolCallPart():
                blocks.append(f"# Tool call {part.name}\n{part.arguments}")
            case ToolResultPart():
                blocks.append(f"# Result of {part.name}{' (failed)' if part.is_error else ''}\n{part.text}")
            case AttachmentPart():
                blocks.append(f"# Attachment {part.name} ({part.media_type})\n{part.text or ''}")
            case SummaryPart(text=text):
                blocks.append(text)
            case _:
                pass
    return "\n\n".join(blocks)
