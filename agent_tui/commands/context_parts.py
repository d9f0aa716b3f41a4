"""The parts of ``/context`` as text: its rows in sentences, one row, a step of the past, the cache, the proof."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.commands.cache_words import entry_details
from agent_tui.commands.past_words import past_json, past_text, past_view
from agent_tui.commands.usage_json import context_json
from agent_tui.commands.usage_report import ContextReport, child_shares, estimated, row_notes, total_mark
from agent_tui.commands.writing import write_export, write_told
from agent_tui.context.accounting.usage import window_shares
from agent_tui.context.cache_forecast import cache_entries
from agent_tui.context.compaction.notices import EXACT_OFF, exact_text
from agent_tui.errors import ConfigError
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.rows import FREE, RESERVE
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import clock, grouped, plural, share, tokens

if TYPE_CHECKING:
    from agent_tui.commands.past_words import PastView
    from agent_tui.engine.agent import Agent

CHILDREN = 12
"""Rows below a row that are told with all others; the row itself tells all of its own."""
CALLS = 20
"""Calls of the cache's list."""


def rows_text(agent: Agent) -> str:
    """All rows as numbered sentences, and the sum that proves them."""
    report = replace(ContextReport.of(agent), read_only="")
    return "\n".join(
        [report.in_words(), report.facts(), "", *row_sentences(report.usage), "", *proof_sentences(report)]
    )


def row_sentences(usage: ContextUsage) -> Iterator[str]:
    """A numbered sentence for each row and what stands below it, then what is free and what is kept for the answer."""
    shares = window_shares(usage)
    for number, row in enumerate(usage.rows, 1):
        if row.tokens or row.children or row.deferred_tokens:
            yield from _row(f"{number}.", row, None if shares is None else shares.rows[number - 1], CHILDREN)
    if shares is not None:
        mark = bool(total_mark(usage))
        if usage.over:
            yield f"Over the limit: {tokens(usage.over, mark, full=True)} tokens, {share(shares.over)} of the window."
        else:
            free = tokens(usage.free or 0, mark, full=True)
            yield f"{FREE.label}: {free} tokens, {share(shares.free, bool(usage.free))} of the window."
        reserve = tokens(usage.reserve or 0, False, full=True)
        yield f"{RESERVE.label}: {reserve} tokens, {share(shares.reserve, bool(usage.reserve))} of the window."


def _row(number: str, row: ContextRow, tenths: int | None, most: int) -> Iterator[str]:
    depth = number.count(".") - 1
    said = [f"{tokens(row.tokens, estimated(row), full=True)} tokens"]
    if tenths is not None:
        said.append(f"{share(tenths, bool(row.tokens))} of the window")
    said += row_notes(row)
    yield f"{'  ' * depth}{number} {one_line(row.label, 120)}: {', '.join(said)}."
    shares = child_shares(row, tenths)
    hidden = max(0, len(row.children) - most)
    for at, child in enumerate(row.children):
        if at >= hidden:
            yield from _row(f"{number}{at + 1}.", child, shares[at], 0 if most <= CHILDREN else most)
    if hidden and most:
        count = plural(hidden, "earlier one", "earlier ones")
        sum_of = sum(child.tokens for child in row.children[:hidden])
        about = any(estimated(child) for child in row.children[:hidden])
        name = number.rstrip(".")
        yield f"{'  ' * (depth + 1)}and {count}, {tokens(sum_of, about, full=True)} tokens: /context row {name}"


def proof_sentences(report: ContextReport) -> Iterator[str]:
    """The sum of the rows with every number in it, and the bookkeeping; a sum that is wrong says so."""
    usage = report.usage
    numbers = [row.tokens for row in usage.rows if row.tokens]
    whole = sum(numbers)
    sign = "=" if whole == usage.total else "≠"
    if numbers:
        yield f"Sum of the rows: {' + '.join(map(grouped, numbers))} = {grouped(whole)} {sign} total."
    for entry in report.entries():
        yield f"{entry.name}: {entry.text}"


def row_text(agent: Agent, path: str) -> str:
    """One row by its number (``3``, ``3.12``): all that is known of it, what stands below it, and what is sent behind
    it. Raises ConfigError where there is no such row."""
    from agent_tui.commands.context_texts import ADDED, part_text, row_facts, sent_text

    usage = agent.context.usage()
    rows: Sequence[ContextRow] = usage.rows
    row: ContextRow | None = None
    top = rows[0].id if rows else ""
    for at, part in enumerate(path.rstrip(".").split(".")):
        number = int(part) if part.isdecimal() and len(part) < 8 else 0
        if not 1 <= number <= len(rows):
            raise ConfigError(f"There is no row {one_line(path, 40)}; /context rows lists them.")
        row = rows[number - 1]
        top, rows = (row.id, row.children) if at == 0 else (top, row.children)
    assert row is not None
    lines = [one_line(row.label, 200), row_facts(row)]
    for at, child in enumerate(row.children, 1):
        lines += _row(f"{path.rstrip('.')}.{at}.", child, None, 0)
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
    why = report.usage.why
    return "\n".join([*proof_sentences(report), *([one_line(why, 2_000)] if why else [])])


def step_text(agent: Agent, words: str) -> str:
    """``N`` or ``N M``: the context as it was before step N was sent, compared with the one before or step M. Raises
    ConfigError."""
    numbers = words.split()
    if not 1 <= len(numbers) <= 2 or not all(n.isdecimal() and len(n) < 8 for n in numbers):
        raise ConfigError("/context step needs the number of a step, and perhaps of the one to compare it with.")
    return past_text(_past(agent, int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else None))


def _past(agent: Agent, number: int, compared: int | None = None) -> PastView:
    return past_view(agent.context.history(), number, compared, {message.id for message in agent.conversation.path})


def cache_text(agent: Agent) -> str:
    """Returns a text of what each call read from the provider's cache and should have read, the newest first."""
    entries = cache_entries(agent.conversation.steps)
    if not entries:
        return "No call has been answered yet."
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


async def export_line(agent: Agent, words: str, cwd: Path) -> str:
    """Writes the numbers, or those of a step, as JSON into the folder of exports, or where the user says, and tells
    where. Raises AgentError."""
    first, _, rest = words.partition(" ")
    number = int(first) if first.isdecimal() and len(first) < 8 else None
    where = words if number is None else rest.strip()
    data = (
        context_json(agent.context.usage(), agent.conversation.steps)
        if number is None
        else past_json(_past(agent, number))
    )
    text = json.dumps(data, indent=2) + "\n"
    if where:
        return f"Written to {await write_told(text, cwd / Path(where).expanduser())}"
    name = f"context-{agent.conversation.info.id}{'' if number is None else f'-step-{number}'}"
    return f"Written to {await write_export(text, agent.paths.exports, name, '.json')}"
