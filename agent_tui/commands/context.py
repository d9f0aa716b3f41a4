"""Commands about the context: what is in it, compaction, what is pinned."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from agent_tui.commands.bookkeeping import entries, why
from agent_tui.commands.context_texts import (
    ADDED,
    PREVIEW,
    course_text,
    operations,
    part_text,
    row_facts,
    sent_text,
)
from agent_tui.commands.edits import EDITS, NotFoldedError, dropped_lines, edited, ids_of, message_lines, told
from agent_tui.commands.info import Action, Info, Row, Section
from agent_tui.commands.past_words import past_json, past_text, past_view
from agent_tui.commands.registry import CommandResult, Nothing, OpenScreen, Text, command
from agent_tui.commands.report import (
    ContextReport,
    ReportRow,
    entry_details,
    row_notes,
    share_words,
    shown,
    total_mark,
)
from agent_tui.commands.report_json import context_json
from agent_tui.commands.sessions import write_export, write_told
from agent_tui.context.compaction.notices import EXACT_OFF, exact_text
from agent_tui.context.tokens import format_metrics
from agent_tui.errors import ConfigError
from agent_tui.models.messages import recall_id
from agent_tui.models.rows import FREE, RESERVE
from agent_tui.paths import in_project, with_home
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import clock, grouped, plural, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.commands.past_words import PastView
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import Message
    from agent_tui.models.steps import CompactionRecord


_CONTEXT_PARTS = {
    "rows": "list every row, numbered, with the sum",
    "row": "show a row by its number, with the text that is sent",
    "why": "explain the number, and why it compacts or not",
    "step": "show the context before an earlier step",
    "cache": "show what each call read from the cache, and what it missed",
    "exact": "ask the provider for the exact count",
    "export": "write the numbers, or those of a step, to a JSON file",
    **EDITS,
    "stats": "show token counter metrics",
    "stats reset": "reset the metrics",
}


WITH_WORDS = ("row", "step", "drop", "fold", "restore", "pin", "unpin")


def _context_choices(agent: Agent) -> Iterable[tuple[str, str]]:
    return ((f"{name} " if name in WITH_WORDS else name, what) for name, what in _CONTEXT_PARTS.items())


@command(
    "context",
    args="[rows | row N | why | step N | cache | exact | export | drop ID | restore ID | fold ID..ID | undo | stats]",
    choices=_context_choices,
)
async def context(agent: Agent, args: str) -> CommandResult:
    """Show what fills the context and when it compacts.

    With a word it prints that part as text: rows, row 3.2, why, step 12 (step 12 4 compares the two), cache, exact,
    export (export 12, export FILE), stats. drop ID stops sending messages (several ids, or ID..ID): it tells the
    price first, then --yes drops them now and --later when that costs nothing. restore ID sends them again; fold
    ID..ID replaces a range with a summary; undo undoes the newest edit. rows shows the ids.
    """
    what, _, rest = args.partition(" ")
    rest = rest.strip()
    match what:
        case "":
            return OpenScreen("context")
        case "rows" if not rest:
            return Text(rows_text(agent))
        case "row":
            return Text(row_text(agent, rest))
        case "why" if not rest:
            return Text(why_text(agent))
        case "step":
            return Text(step_text(agent, rest))
        case "cache" if not rest:
            return Text(cache_text(agent))
        case "exact" if not rest:
            return Text(await exact_line(agent))
        case "export":
            return Text(await export_line(agent, rest))
        case "drop" | "fold":
            return await _once_told(agent, what, rest.split())
        case "restore" | "pin" | "unpin" | "undo":
            return Text(await edited(agent, what, ids_of(what, rest.split())))
        case "stats" if not rest:
            return Text(format_metrics(agent.context.metrics))
        case "stats" if rest == "reset":
            agent.context.metrics.reset()
            return Text("Token counter metrics reset.")
    return Text(f"Usage: /context [{' | '.join(_CONTEXT_PARTS)}]", error=True)


LATER = "--later"


async def _once_told(agent: Agent, edit: str, words: list[str]) -> CommandResult:
    """Drops or folds messages once it was said what that brings and costs."""
    ids = ids_of(edit, words, (SURE, LATER) if edit == "drop" else (SURE,))
    if len(ids) < len(words):
        try:
            line = await edited(agent, edit, ids, later=LATER in words)
        except NotFoldedError:
            return Nothing()
        return Text(line) if edit == "drop" else Nothing()
    again = f"/context {edit} {' '.join(ids)} {SURE}"
    return Text(f"{await told(agent, edit, ids)} Run {again} to confirm.", then=again)


def _compact_choices(agent: Agent) -> Iterable[tuple[str, str]]:
    return (
        ("preview", "show what goes and what stays, without a model call"),
        ("show", "show the newest compaction: what is no longer sent, and its summary"),
        ("undo", "undo the newest compaction"),
    )


@command("compact", args="[focus] | preview | show [N] | undo", choices=_compact_choices)
async def compact(agent: Agent, args: str) -> CommandResult:
    """Summarise older messages to make room.

    A focus text tells the summary what matters most. preview shows what goes and what stays, without a model call;
    show opens the newest compaction (show 2 the one before) with its messages; undo restores exactly what the newest
    compaction replaced.
    """
    if args == "preview":
        return OpenScreen("compact", PREVIEW)
    what, _, number = args.partition(" ")
    if what == "show" and (not number or number.strip().isdecimal()):
        return OpenScreen("compact", numbered_compaction(agent, int(number or 1)).id)
    if args == "undo":
        await agent.compaction.undo()
        return Nothing()
    await agent.compaction.now(args)
    return Nothing()


def numbered_compaction(agent: Agent, number: int) -> CompactionRecord:
    """Returns the record of a compaction by its number, of which 1 is the newest. Raises ConfigError."""
    made = operations(agent.conversation.own_records)
    if not made:
        raise ConfigError("No compactions yet.")
    if not 1 <= number <= len(made):
        there = plural(len(made), "compaction")
        raise ConfigError(f"No such compaction: {number}. This conversation has {there}; 1 is the newest.")
    return made[number - 1]


SURE = "--yes"


def _pinnable(agent: Agent) -> Iterable[tuple[str, str]]:
    messages = (m for m in reversed(agent.conversation.path) if m.role == "user" and m.text.strip())
    return ((recall_id(m.id), one_line(m.text, 60)) for m in islice(messages, 20))


@command("pin", args="[PATH | ID]", choices=_pinnable)
async def pin(agent: Agent, args: str) -> CommandResult:
    """Keep a message or a file through every compaction.

    Alone it pins your newest message: every compaction keeps it word for word. With an id it pins that message;
    with a path it sends the file with every request, read afresh each time. If that is expensive it tells the price
    first; --yes pins it. Run it again to unpin; /pins lists what is pinned.
    """
    what = args.removesuffix(SURE).strip()
    message = agent.pins.message(what)
    sure = args.endswith(SURE)
    if message is not None:
        if _is_pinned(agent, message):
            return Text(agent.pins.unpin_message(message))
        return _pin_message(agent, message, sure)
    if not what:
        return Text("No message to pin yet. Run /pin PATH to pin a file.", error=True)
    if _is_id(what) and not (agent.cwd / what).exists():
        return Text(f"No such message: {what}.", error=True)
    path = os.path.normpath(agent.cwd / with_home(what))
    if path in agent.context.pinned:
        agent.context.unpin(path)
        return Text(f"Unpinned {in_project(path, agent.cwd)}.")
    if not sure and (price := await agent.pins.file_price(what)):
        return _ask(price, what)
    agent.context.pin(what)
    return Text(f"Pinned {in_project(path, agent.cwd)} ({plural(len(agent.context.pinned), 'document')} pinned).")


def _pin_message(agent: Agent, message: Message, sure: bool) -> Text:
    if not sure and (price := agent.pins.words_price(message)):
        return _ask(price, recall_id(message.id))
    return Text(agent.pins.pin_message(message))


def toggle_pin(agent: Agent, message: Message) -> str:
    """Pins the words of a message, or takes that back; returns the line for it. Raises AgentError."""
    if _is_pinned(agent, message):
        return agent.pins.unpin_message(message)
    return _pin_message(agent, message, False).text


def _is_pinned(agent: Agent, message: Message) -> bool:
    return message.id in agent.conversation.info.state.pinned_messages


def _ask(price: str, what: str) -> Text:
    again = f"/pin {what} {SURE}"
    return Text(f"{price} Run {again} to pin it.", then=again)


def _is_id(text: str) -> bool:
    """Returns whether this is how a message is named, by its short id or its long one."""
    return re.fullmatch(r"\d{6}|msg_\w{1,60}", text) is not None


_WHERE = {
    "file": "sent with every request",
    "sent": "still sent as a message",
    "carried": "kept in the summary",
    "next": "not sent until the next compaction",
}


@command("pins")
async def pins(agent: Agent, args: str) -> CommandResult:
    """List pinned files and messages, with their prices."""
    rows = []
    for each in agent.pins.all():
        id = each.label if each.state == "file" else recall_id(each.id)
        text = f"{_WHERE[each.state]}{agent.pins.price(each.tokens)}"
        name = each.label if each.state == "file" else f"{id} {each.label}"
        rows.append(Row(one_line(name, 300), text, f"{tokens(each.tokens, True)} tokens", key=id, keys=("d",)))
    return Info("Pinned", [Section("", rows or [Row(text="Nothing pinned.")])], "/pins", _CHANGES, foreign=True)


_CHANGES = (
    Action("a", "pin a file", "/pin {typed}", typed="PATH", hint="the path of a file, or the id of a message"),
    Action("d", "unpin", "/pin {row}", "PATH"),
)


CHILDREN = 12
"""Rows below a row that are told with all others; the row itself tells all of its own."""
CALLS = 20
"""Calls of the cache's list."""


def rows_text(agent: Agent, most: int | None = CHILDREN) -> str:
    """All rows as numbered sentences, the sum that proves them, and the newest messages (None: all) with their ids."""
    report = replace(ContextReport.compared(agent), read_only="")
    messages = message_lines(agent, report.usage, most)
    told = [report.in_words(), *course_text(agent), report.facts(), *report.changes()]
    rows = [*_row_sentences(report), *dropped_lines(agent)]
    return "\n".join([*told, "", *rows, "", *_proof_sentences(report), *(["", *messages] if messages else [])])


def _row_sentences(report: ContextReport) -> Iterator[str]:
    """A numbered sentence for each row and what stands below it, then what is free and what is kept for the answer."""
    usage, shares = report.usage, report.shares
    for row in report.rows():
        if shown(row.row):
            yield from _row(row, CHILDREN)
    if shares is not None:
        mark = bool(total_mark(usage))
        rest = [
            (FREE.label, usage.free or 0, shares.free, mark),
            (RESERVE.label, usage.reserve or 0, shares.reserve, False),
        ]
        if usage.over:
            rest[0] = ("Over the limit", usage.over, shares.over, mark)
        for label, count, tenths, rough in rest:
            yield f"{label}: {tokens(count, rough, full=True)} tokens, {share_words(count, tenths)}."


def _row(part: ReportRow, most: int) -> Iterator[str]:
    """A row and at most so many of those below it, whose own rows are not told."""
    row, indent = part.row, "  " * part.depth
    said = [f"{tokens(row.tokens, bool(part.mark), full=True)} tokens"]
    if part.tenths is not None:
        said.append(share_words(row.tokens, part.tenths))
    if row.message_id is not None and not row.children:
        number = f"#{row.attachment}" if row.attachment is not None else ""
        said.append(f"id {recall_id(row.message_id.partition('#')[0])}{number}")
    yield f"{indent}{part.number}. {one_line(row.label, 120)}: {', '.join([*said, *row_notes(row)])}."
    below = part.below()
    hidden = below[: max(0, len(below) - most)]
    for child in below[len(hidden) :]:
        yield from _row(child, 0)
    if hidden and most:
        count = plural(len(hidden), "earlier", "earlier")
        sum_of = tokens(sum(child.row.tokens for child in hidden), any(child.mark for child in hidden), full=True)
        yield f"{indent}  and {count}, {sum_of} tokens: /context row {part.number}"


def _proof_sentences(report: ContextReport) -> Iterator[str]:
    """The sum of the rows with every number in it, and the bookkeeping; a sum that is wrong says so."""
    usage = report.usage
    numbers = [row.tokens for row in usage.rows if row.tokens]
    whole = sum(numbers)
    sign = "=" if whole == usage.total else "≠"
    if numbers:
        yield f"Sum of the rows: {' + '.join(map(grouped, numbers))} = {grouped(whole)} {sign} total."
    for entry in entries(report):
        yield f"{entry.name}: {entry.text}"


def row_text(agent: Agent, path: str) -> str:
    """One row by its number (``3``, ``3.12``): all that is known of it, what stands below it, and what is sent behind
    it. Raises ConfigError where there is no such row."""
    rows, top = ContextReport.of(agent).rows(), ""
    for part in path.rstrip(".").split("."):
        number = int(part) if part.isdecimal() and len(part) < 8 else 0
        if not 1 <= number <= len(rows):
            raise ConfigError(f"No such row: {one_line(path, 40)}. Run /context rows to list them.")
        found = rows[number - 1]
        row, top, rows = found.row, top or found.row.id, found.below()
    lines = [one_line(row.label, 200), row_facts(row)]
    for child in rows:
        lines += _row(replace(child, tenths=None), 0)
    if row.message_id is not None:
        lines += ["", sent_text(agent.conversation.sent_message(row.message_id))]
    elif row.fingerprint is not None:
        lines += ["", part_text(agent.context.part_text(row.fingerprint), tool=top == "tools")]
    elif top == "tools" and not row.children:
        lines.append(ADDED)
    return "\n".join(lines)


def why_text(agent: Agent) -> str:
    """Returns the text about how the number was made, the proof, and why it compacts or does not."""
    report = replace(ContextReport.of(agent), read_only="")
    lines = [line for line in _proof_sentences(report) if not line.startswith("Compaction: ")]
    return "\n".join([*lines, *([f"Compaction: {one_line(why(report.usage), 2_000)}"] if report.usage.why else [])])


def step_text(agent: Agent, words: str) -> str:
    """``N`` or ``N M``: the context as it was before step N was sent, compared with the one before or step M. Raises
    ConfigError."""
    numbers = words.split()
    if not 1 <= len(numbers) <= 2 or not all(n.isdecimal() and len(n) < 8 for n in numbers):
        raise ConfigError("Usage: /context step N [M], where M is the step to compare with.")
    return past_text(_past(agent, int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else None))


def _past(agent: Agent, number: int, compared: int | None = None) -> PastView:
    return past_view(agent.context.history(), number, compared, {message.id for message in agent.conversation.path})


def cache_text(agent: Agent) -> str:
    """Returns a text of what each call read from the provider's cache and should have read, the newest first."""
    entries = ContextReport.of(agent).calls()
    if not entries:
        return "No calls yet."
    lines: list[str] = []
    for entry in entries[:CALLS]:
        lines += [f"At {clock(entry.created)}:", *(f"  {line}" for line in entry_details(entry).split("\n"))]
    if len(entries) > CALLS:
        lines.append(f"and {plural(len(entries) - CALLS, 'earlier call')}")
    return "\n".join(lines)


async def exact_line(agent: Agent) -> str:
    """Returns a line with what the provider says of the size of the next request."""
    if agent.settings.context.exact_counting == "off":
        return EXACT_OFF
    return exact_text(await agent.context.count_exact())


async def export_line(agent: Agent, words: str) -> str:
    """Writes the numbers, or those of a step, as JSON into the folder of exports, or where the user says, and tells
    where. Raises AgentError."""
    first, _, rest = words.partition(" ")
    number = int(first) if first.isdecimal() and len(first) < 8 else None
    where = words if number is None else rest.strip()
    path = {message.id for message in agent.conversation.path}
    data = context_json(ContextReport.compared(agent), path) if number is None else past_json(_past(agent, number))
    text = json.dumps(data, indent=2) + "\n"
    if where:
        return f"Written to {await write_told(agent, text, where)}"
    name = f"context-{agent.conversation.info.id}{'' if number is None else f'-step-{number}'}"
    return f"Written to {await write_export(text, agent.paths.exports, name, '.json')}"
