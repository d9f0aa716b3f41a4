"""The texts that can be read behind a row: a fixed part, a message, a compaction, as they are sent."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from agent_tui.commands.report import estimated
from agent_tui.context.compaction.summary import sizes_text
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    ReasoningPart,
    SearchPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    recall_id,
    summary_text,
)
from agent_tui.models.rows import ROW_KINDS, STACKED
from agent_tui.models.search import search_text
from agent_tui.models.steps import CompactionRecord
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import age, duration, largest_remainder, money, plural, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_tui.context.compaction.plan import CompactionFigures
    from agent_tui.engine.agent import Agent
    from agent_tui.models.context import ContextRow
    from agent_tui.models.requests import SentMessage

NO_TEXT = "Text not available: its server is not running, or it was part of an earlier request."
ADDED = "The provider adds this to every request with tools. Only its size is known, not its text."
WAS_READ, NOT_READ = "read from the provider's cache", "not read from the provider's cache"


EDITED = {"summary": "folded", "drop": "dropped", "restore": "restored"}


def compaction_text(record: CompactionRecord, now: float) -> str:
    """One compaction in one line: what it saves of each request, what stayed, what it cost."""
    parts = [size] if (size := sizes_text(record)) else []
    if record.before_tokens is not None and record.after_tokens is not None:
        parts.append(f"saves {tokens(record.before_tokens - record.after_tokens, True)}")
    parts.append(EDITED.get(record.kind, record.reason) if record.reason == "edit" else record.reason)
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


def compaction_details(
    record: CompactionRecord,
    summary: Message | None,
    now: float,
    about: Sequence[str] = (),
    messages: Sequence[Message] = (),
) -> str:
    """What there is to say of a compaction: which ``messages`` are not sent as they were, and its summary; ``about``
    are lines on what it left."""
    lines = [compaction_text(record, now), *about]
    if record.model:
        lines.append(f"model {one_line(record.model, 100)}")
    if record.focus:
        lines.append(f"focus: {one_line(record.focus, 500)}")
    lines.append(f"replaces {plural(len(record.message_ids), 'message')}; they stay stored")
    if messages:
        lines += ["", "No longer sent, by the ids that recall takes", ""]
        lines += [f"  {recall_id(message.id)}  {_title(message)}" for message in messages]
    if record.files:
        lines += ["", "Files:", *(f"  {one_line(f, 300)}" for f in record.files)]
    if summary is not None:
        lines += ["", "Summary", "", summary_text(summary)]
    return "\n".join(lines)


def _title(message: Message) -> str:
    """A message in one line: who says it, and its first words or calls."""
    result = message.tool_result
    who = f"result of {result.name}" if result is not None else message.role
    said = result.text if result is not None else message.text
    calls = ", ".join(call.name for call in message.tool_calls)
    return one_line(f"{who}: {said.strip() or f'calls {calls}'}", SHOWN)


SHOWN = 120
"""Characters of a message that stand in a list."""


def operations(records: Iterable[CompactionRecord]) -> list[CompactionRecord]:
    """Returns one record of each compaction, that of its summary where it has one; the newest first."""
    found: dict[str, CompactionRecord] = {}
    for record in (record for record in records if record.compacts):
        if record.kind == "summary" or record.operation_id not in found:
            found[record.operation_id] = record
    return sorted(found.values(), key=lambda record: record.created, reverse=True)


PREVIEW = "preview"


async def compaction_picture(agent: Agent, which: str, now: float) -> CompactionFigures | None:
    """The page of a compaction, by its record's id, or of one that would be made now (``PREVIEW``); None where there is
    none."""
    if which == PREVIEW:
        return await agent.compaction.preview()
    record = next((r for r in agent.conversation.own_records if r.id == which), None)
    return None if record is None else await compaction_page(agent, record, now)


async def compaction_page(agent: Agent, record: CompactionRecord, now: float) -> CompactionFigures:
    """``compaction_details`` of a session's compaction as things stand now, and the request before it and after it."""
    from agent_tui.context.accounting.spending import priced_call
    from agent_tui.context.accounting.usage import calculate_context_usage
    from agent_tui.context.compaction.plan import CompactionFigures, stays_whole

    conversation = agent.conversation
    summary = agent.store.messages.summaries(conversation.info.id).get(record.summary_id or "")
    gone = {i for r in conversation.own_records if r.operation_id == record.operation_id for i in r.message_ids}
    messages = [message for message in conversation.path if message.id in gone]
    moments = agent.context.around(record.operation_id)

    def draw() -> CompactionFigures:
        usages = [calculate_context_usage(moment) for moment in moments]
        before, after = record.before_tokens, record.after_tokens
        about: list[str] = []
        if moments and before is not None and after is not None and after < before:
            prices = moments[0].model.prices
            costs = [priced_call(prices, size, size, 0).usd for size in (before, after)]
            if costs[0] and costs[1] is not None:
                saved = f"{tokens(before - after, True)} tokens less, {money(costs[0] - costs[1])} at cache prices"
                about.append(f"Each later step: {saved}")
        stacks: list[dict[str, int]] = [{}, {}]
        if len(usages) == 2 and usages[1].total < usages[0].total:
            about.append(f"Kept word for word: {plural(stays_whole(moments[1].view), 'message')}")
            known = (before, after) if before is not None and after is not None else (None, None)
            stacks = [_scaled(usage.stack(), total) for usage, total in zip(usages, known, strict=True)]
        say = compaction_details(record, summary, now, about, messages)
        limit = usages[0].limit if usages else None
        return CompactionFigures(say, stacks[0], stacks[1], limit, record.before_estimated)

    return await asyncio.to_thread(draw)


def _scaled(stack: Mapping[str, int], total: int | None) -> dict[str, int]:
    """The parts of a request in the same proportion, so that they are ``total`` together, as it was told then."""
    if total is None:
        return dict(stack)
    return dict(zip(stack, largest_remainder(total, list(stack.values())), strict=True))


BAR, LABEL = 44, 8
"""Cells of a bar in a text, and of what stands before it."""


def bar_cells(stack: Mapping[str, int], scale: int, width: int) -> list[tuple[str, int]]:
    """Row ids with their cells in a bar of which ``width`` cells are ``scale`` tokens, from left to right."""
    ids = [name for name in STACKED if stack.get(name, 0) > 0]
    whole = sum(stack.values())
    cells = max(1, min(width, round(width * whole / max(1, scale)))) if whole else 0
    return list(zip(ids, largest_remainder(cells, [stack[name] for name in ids]), strict=True))


def bars_of(picture: CompactionFigures) -> list[tuple[str, Mapping[str, int], str]]:
    """The bars of a picture: label, parts, number; none where it has nothing to draw."""
    if not picture.after:
        return []
    made = (("before", picture.before, picture.rough), ("after", picture.after, True))
    return [(label, stack, tokens(sum(stack.values()), rough)) for label, stack, rough in made]


def changes_of(picture: CompactionFigures) -> list[tuple[str, str]]:
    """What a compaction changes, by row (its id, and ``messages 58.0k → 12.1k``); under no id all that stays."""
    found, same = list[tuple[str, str]](), 0
    for name in STACKED if picture.after else ():
        before, after = picture.before.get(name, 0), picture.after.get(name, 0)
        if abs(before - after) > max(LITTLE, max(before, after) * SAME):
            found.append((name, f"{ROW_KINDS[name].label.lower()} {tokens(before, False)} → {tokens(after, False)}"))
        else:
            same += after
    return [*found, ("", f"unchanged {tokens(same, False)}")] if found and same else found


SAME, LITTLE = 0.02, 5
"""Parts of the request that differ by less, in proportion or in tokens, are the same to the eye."""


def picture_text(picture: CompactionFigures) -> str:
    """A picture as text: bars of patterns, what changes, and what there is to say."""
    bars = bars_of(picture)
    scale = max((sum(stack.values()) for _, stack, _ in bars), default=1)
    lines = [
        f"{label:<{LABEL}}"
        + "".join(ROW_KINDS[name].pattern * cells for name, cells in bar_cells(stack, scale, BAR))
        + f" {number}"
        for label, stack, number in bars
    ]
    lines += [f"{' ' * LABEL}{ROW_KINDS[name].pattern if name else ' '} {said}" for name, said in changes_of(picture)]
    return "\n".join([*lines, "", picture.say] if lines else [picture.say])


def course_text(agent: Agent) -> list[str]:
    """How the context came to what it is, in a line; none before anything was sent."""
    from agent_tui.context.timeline import in_words

    path = {message.id for message in agent.conversation.path}
    line = in_words(agent.context.timeline(), agent.context.usage().total, path)
    return [line] if line else []


def row_facts(row: ContextRow) -> str:
    """All that is known of a row, a line each."""
    facts = [f"{'~' if estimated(row) else ''}{plural(row.tokens, 'token')}, {row.basis}"]
    if row.estimated_tokens and row.basis != "estimated":
        facts.append(f"~{row.estimated_tokens:,} of them estimated")
    if row.approximate:
        facts.append("not counted yet: estimated from its length")
    if row.deferred_tokens:
        facts.append(f"~{row.deferred_tokens:,} more once the model loads it")
    if row.cached_tokens is not None and row.tokens:
        amount = "" if row.cached else f"{row.cached_tokens:,} of them "
        read = f"{amount}{WAS_READ}" if row.cached_tokens else NOT_READ
        facts.append(f"last request: {read}")
    elif row.cached is not None:
        facts.append(f"last request: {WAS_READ if row.cached else NOT_READ}")
    if row.replay:
        facts.append(f"reasoning: {one_line(row.replay, 400)}")
    if row.detail == "rough":
        facts.append("rough: images and files cannot be counted exactly")
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
        return "This message is not sent now."
    text = message_text(item.message)
    if item.stored is None:
        return text
    return f"{text}\n\n# Stored, not sent\n{message_text(item.stored)}"


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
            case SearchPart():
                blocks.append(f"# Web search at the provider\n{search_text(part)}")
            case _:
                pass
    return "\n\n".join(blocks)
