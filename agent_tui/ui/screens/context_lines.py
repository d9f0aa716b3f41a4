"""The lines of words on the context screen: calculation, accuracy, session, proof, why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.commands.usage_text import accuracy_line, header, proof_line, session_line, subtitle
from agent_tui.context.accounting.why import calculation_text
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

__all__ = [
    "accuracy_line",
    "calculation_text",
    "compaction_details",
    "compaction_text",
    "header",
    "message_text",
    "proof_line",
    "row_details",
    "session_line",
    "subtitle",
]

LABEL = 13


def compaction_text(record: CompactionRecord, now: float) -> str:
    """One compaction in one line."""
    parts = [
        f"{tokens(record.before_tokens, record.before_estimated)} → {tokens(record.after_tokens, True)}",
        record.reason,
    ]
    if record.kind == "prune":
        clipped = sum(i in record.clips for i in record.message_ids)
        cleared = len(record.message_ids) - clipped
        parts += [f"cleared {plural(cleared, 'tool result')}"] if cleared else []
        parts += [f"clipped {plural(clipped, 'tool result')}"] if clipped else []
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


def row_details(row: ContextRow, message: Message | None) -> str:
    """A row with all that is known of it, and the message it stands for."""
    facts = [f"{row.tokens:,} tokens, {row.basis}"]
    if row.estimated_tokens and row.basis != "estimated":
        facts.append(f"{row.estimated_tokens:,} of them estimated")
    if row.approximate:
        facts.append("not counted yet: a rule by characters stands in")
    if row.deferred_tokens:
        facts.append(f"{row.deferred_tokens:,} more when its deferred tools are loaded")
    if row.cached_tokens is not None and row.tokens:
        amount = "" if row.cached else f"{row.cached_tokens:,} of them "
        facts.append(f"{amount}read from the provider's cache" if row.cached_tokens else "not cached")
    elif row.cached is not None:
        facts.append("read from the provider's cache" if row.cached else "not cached")
    if row.replay:
        facts.append(f"reasoning: {one_line(row.replay, 200)}")
    if row.detail == "rough":
        facts.append("rough: images and files have no exact rule")
    elif row.detail:
        facts.append(one_line(row.detail, 300))
    if row.path:
        facts.append(one_line(row.path, 400))
    return "\n".join([*facts, "", *([message_text(message)] if message is not None else [])])


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
