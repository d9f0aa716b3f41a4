"""The lines of words on the context screen: calculation, accuracy, session, proof, why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_tui.commands.format import age, duration, money, one_line, percent, plural, tokens
from agent_tui.models.context import ContextUsage
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

if TYPE_CHECKING:
    from agent_tui.models.context import ContextRow

LABEL = 13


def calculation_line(usage: ContextUsage) -> str:
    """The formula with its numbers, as it was calculated."""
    c = usage.calculation
    new = f"new {c.new_messages:,}{' (estimated)' if c.new_messages else ''}"
    if c.last_input is None:
        return f"no anchor: estimate of everything {c.new_messages:,} = {usage.total:,} (estimated)"
    changed = f"{'−' if c.fixed_delta < 0 else '+'} changed {abs(c.fixed_delta):,}"
    return (
        f"last input {c.last_input:,} + last output {c.last_output or 0:,} − dropped reasoning {c.dropped_reasoning:,}"
        f" − removed {c.removed:,} {changed} + {new} = {usage.total:,}"
    )


def accuracy_line(usage: ContextUsage) -> str:
    a = usage.accuracy
    if not a.calls:
        return f"no verified call yet · ratio {a.ratio:.2f}"
    last = "?"
    if a.last_error_percent is not None:
        sign = f" ({a.last_error_tokens:+,})" if a.last_error_tokens is not None else ""
        last = f"{a.last_error_percent:+.1f} %{sign}"
    median = "?" if a.median_error_percent is None else f"{a.median_error_percent:.1f} %"
    return f"last {last} · median {median} over {plural(a.calls, 'call')} · ratio {a.ratio:.2f}"


def session_line(usage: ContextUsage, records: Sequence[CompactionRecord]) -> str:
    s = usage.session
    parts = [f"in {tokens(s.input_tokens)}", f"out {tokens(s.output_tokens)}"]
    if s.reasoning_tokens is not None:
        parts.append(f"reasoning {tokens(s.reasoning_tokens)}")
    if s.cache_read_tokens is not None and s.input_tokens:
        parts.append(f"cached {100 * s.cache_read_tokens / s.input_tokens:.0f} %")
    parts.append(money(s.cost_usd))
    newest = max(records, key=lambda r: r.created, default=None)
    if s.compactions:
        change = ""
        if newest is not None and newest.before_tokens is not None and newest.after_tokens is not None:
            change = f" ({tokens(newest.before_tokens)} → {tokens(newest.after_tokens)})"
        parts.append(f"{plural(s.compactions, 'compaction')}{change}")
    return " · ".join(parts)


def proof_line(usage: ContextUsage, trigger: int, sound: bool) -> tuple[str, bool]:
    """The identities with their numbers, and whether they hold. ``sound``: every level of the rows adds up."""
    rows = sum(row.tokens for row in usage.rows)
    holds = rows == usage.total == trigger and sound
    signs = ("=" if rows == usage.total else "≠", "=" if usage.total == trigger else "≠")
    text = f"rows {rows:,} {signs[0]} total {usage.total:,} {signs[1]} trigger {trigger:,}"
    if rows == usage.total == trigger:
        text = f"rows = total = trigger = {rows:,}"
    if usage.window is not None and usage.free is not None and usage.reserve is not None:
        over = usage.over or 0
        whole = usage.total + usage.free + usage.reserve - over
        sign = "=" if whole == usage.window else "≠"
        minus = " − over" if over else ""
        text += f" · + free + reserve{minus} {sign} {usage.window:,}"
    return f"{text} {'✓' if holds else '✗'}", holds


def subtitle(usage: ContextUsage, request: str = "") -> str:
    """When it will be compacted and how long that is; ``request`` says what the next request costs."""
    if usage.limit is None:
        return "unknown window: never compacted automatically; set context_window for this model"
    parts = [f"compacts at {tokens(usage.limit)}"]
    if usage.over:
        parts = [f"over the limit of {tokens(usage.limit)} by {usage.over:,}"]
    elif usage.turns_left is not None:
        parts.append(f"about {plural(usage.turns_left, 'turn')} left")
    if usage.pending:
        parts.append("still counting…")
    parts += [request] if request else []
    return " · ".join(parts)


def compaction_text(record: CompactionRecord, now: float) -> str:
    """One compaction in one line."""
    parts = [f"{tokens(record.before_tokens)} → {tokens(record.after_tokens)}", record.reason]
    if record.kind == "prune":
        parts.append(f"cleared {plural(len(record.message_ids), 'tool result')}")
    if record.kept_messages is not None:
        parts.append(f"kept {plural(record.kept_messages, 'message')}")
    if record.seconds is not None:
        parts.append(duration(record.seconds))
    if record.cost_usd is not None:
        parts.append(money(record.cost_usd))
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
        facts.append("rough: no exact rule for this content")
    if row.deferred_tokens:
        facts.append(f"{row.deferred_tokens:,} more when its deferred tools are loaded")
    if row.cached is not None:
        facts.append("read from the provider's cache" if row.cached else "not cached")
    if row.replay:
        facts.append(f"reasoning: {one_line(row.replay, 200)}")
    if row.detail:
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


def header(usage: ContextUsage, in_flight: int) -> tuple[str, str, str]:
    """Tokens of the window, percentage, and how they were made."""
    mark = "~" if in_flight or usage.pending or usage.basis == "estimated" else ""
    total = usage.total + in_flight
    size = f"{mark}{tokens(total)} / {tokens(usage.window)}" if usage.window else f"{mark}{tokens(total)} / unknown"
    share = f"{mark}{percent(100 * total / usage.window)}" if usage.window else ""
    basis: str = usage.basis
    if in_flight:
        basis = f"{tokens(in_flight)} in flight"
    elif usage.estimated_tokens and usage.basis != "estimated":
        basis = f"{usage.basis}, {tokens(usage.estimated_tokens)} estimated"
    return size, share, basis
