"""The calculator's answer in sentences: what is used, of what, when it compacts, what the next request will cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.accounting.usage import row_shares
from agent_tui.context.cache_forecast import expected_words
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.rows import MESSAGES, ROW_KINDS
from agent_tui.models.usage import Prices
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import money, plural, share_in, tokens, whole_percent


def in_words(usage: ContextUsage) -> str:
    """``21.4k of 60k used. Tool results are 88 % of it. Compaction in 30.6k, about 4 turns.``"""
    return " ".join(sentences(usage))


def sentences(usage: ContextUsage, in_flight: int = 0) -> list[str]:
    """How full it is, what takes most, and when it compacts.

    ``in_flight`` are tokens of the running answer that no usage knows yet.
    """
    rough = usage.approximate or in_flight > 0
    used = tokens(usage.total + in_flight, rough)
    said = [f"{used} of {tokens(usage.window, False)} used." if usage.window else f"{used} used, of an unknown window."]
    largest = max(_kinds(usage), key=lambda row: row.tokens, default=None)
    if largest is not None and largest.tokens > 0 and usage.total > 0:
        mark = "~" if rough or estimated(largest) else ""
        said.append(f"{_subject(largest)} {mark}{whole_percent(largest.tokens, usage.total)} of it.")
    said.append(_compaction(usage, in_flight, rough))
    return said


def facts(usage: ContextUsage, in_flight: int = 0, prices: Prices | None = None, *, ahead: bool = True) -> str:
    """What else there is to know at a glance: the model, the share of the window, how the number was made, and
    what the next request is expected to cost; not ``ahead``: it was made, and what came of it is known."""
    rough, total = usage.approximate or in_flight > 0, usage.total + in_flight
    parts = [one_line(usage.model, 60)]
    if usage.window:
        parts.append(f"{share_in(total, usage.window, rough)} of the window")
    else:
        parts.append("set context_window for this model")
    parts.append(basis_text(usage))
    if in_flight:
        parts.append(f"{tokens(in_flight, True)} in flight")
    if usage.pending:
        parts.append("still counting…")
    if usage.window_origin.startswith("learned"):
        parts.append(f"window {usage.window_origin}")
    if ahead and (expected := expectation(usage, prices)):
        parts.append(expected)
    return " · ".join(parts)


def row_notes(row: ContextRow) -> list[str]:
    """What is said of a row beside its number: how that was made, what of it was read from the cache, and how it goes
    back."""
    notes: list[str] = [row.basis]
    if row.estimated_tokens and row.basis != "estimated":
        notes.append(f"{tokens(row.estimated_tokens, True, full=True)} estimated")
    if row.deferred_tokens:
        notes.append(f"{tokens(row.deferred_tokens, True, full=True)} more once it is loaded")
    if row.cached_tokens is not None and row.tokens:
        part = f"{row.cached_tokens:,} of its tokens cached last" if row.cached_tokens else "not cached last"
        notes.append("cached last" if row.cached else part)
    if row.replay:
        notes.append(one_line(row.replay, 200))
    return notes


def child_shares(row: ContextRow, tenths: int | None) -> Sequence[int | None]:
    """The part of the window of each row below one that has ``tenths`` of a percent of it; None where that is not
    known."""
    return [None] * len(row.children) if tenths is None else row_shares(tenths, row.children)


def basis_text(usage: ContextUsage) -> str:
    """How the total was made, and how much of it is estimate."""
    if usage.estimated_tokens and usage.basis != "estimated":
        return f"{usage.basis}, {tokens(usage.estimated_tokens, True)} estimated"
    return usage.basis


def expectation(usage: ContextUsage, prices: Prices | None) -> str:
    """What the next request's input is expected to cost and to find in the provider's cache; empty where nothing is
    known. What will be answered to it is not in it.

    Where the provider does not report what it writes to its cache, nobody knows what the next request will find
    there: what the last one found is said, and named as that.
    """
    if usage.outlook is not None and usage.total:
        return expected_words(usage.outlook, usage.total)
    read = usage.expected_read
    last = read_last(usage)
    parts = []
    assumed = read if read is not None else last
    cost = None if prices is None else priced_call(prices, usage.total, min(assumed or 0, usage.total), 0).usd
    if cost is not None:
        parts.append(f"~{money(cost)}" if cost else money(cost))
    if usage.total and read is not None:
        parts.append(f"{whole_percent(read, usage.total)} cached")
    said = [f"next input: expected {', '.join(parts)}"] if parts else []
    if read is None and last is not None and usage.total:
        said.append(f"last request: {whole_percent(last, usage.calculation.last_input or usage.total)} cached")
    return " · ".join(said)


def read_last(usage: ContextUsage) -> int | None:
    """Tokens of the rows that the last request read from the provider's cache; None where it did not say."""
    known = [read for row in usage.rows if (read := cached_tokens(row)) is not None]
    return sum(known) if known else None


def cached_tokens(row: ContextRow) -> int | None:
    """How many of a row's tokens the last request read from the provider's cache; None when that is not known."""
    if row.cached_tokens is not None:
        return row.cached_tokens
    if row.cached is not None:
        return row.tokens if row.cached else 0
    if not row.children:
        return None
    known = [read for child in row.children if (read := cached_tokens(child)) is not None]
    return sum(known) if known else None


def total_mark(usage: ContextUsage, in_flight: int = 0) -> str:
    """``~`` where the total is an estimate, or grows while it is shown."""
    return "~" if in_flight or usage.approximate else ""


def estimated(row: ContextRow) -> bool:
    """Whether a row's number is an estimate, which ``~`` says wherever it is shown."""
    return row.approximate or row.basis == "estimated"


def _kinds(usage: ContextUsage) -> Iterator[ContextRow]:
    for row in usage.rows:
        if row.id == MESSAGES.id and row.children:
            yield from row.children
        else:
            yield row


def _subject(row: ContextRow) -> str:
    kind = ROW_KINDS.get(row.id)
    return kind.subject if kind is not None and kind.subject else f"{one_line(row.label, 40)} is"


def _compaction(usage: ContextUsage, in_flight: int, rough: bool) -> str:
    if usage.limit is None or usage.free is None:
        return "It is never compacted by itself."
    over = usage.total + in_flight - usage.limit
    if over >= 0:
        end = "compaction is next" if usage.would_compact else usage.held or "compaction is next"
        return f"{f'{tokens(over, rough)} over' if over else 'At'} the limit: {end}."
    room = tokens(-over, rough)
    if usage.held:
        return f"{room} to the limit; {usage.held}."
    turns = f", about {plural(usage.turns_left, 'turn')}" if usage.turns_left is not None else ""
    return f"Compaction in {room}{turns}."
