"""The report of the context as one value, which the screen, lines, the shell and JSON show: what is used, of what, when
it compacts, what the next request will cost, how the numbers were made, and what was read from the cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_tui.context.accounting.next_input import over_limit
from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.accounting.usage import Shares, row_shares, window_shares
from agent_tui.context.cache_forecast import cache_entries, expected_words, miss_sums
from agent_tui.context.row_pairs import pairs
from agent_tui.errors import OPEN_ELSEWHERE
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.rows import MESSAGES, NOTES, ROW_KINDS
from agent_tui.models.steps import CacheEntry, CacheMiss, CompactionRecord, MissCause, MissSum, Step
from agent_tui.models.usage import Prices
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import (
    duration,
    grouped,
    money,
    plural,
    share,
    signed,
    tenths_of,
    tokens,
    total_text,
    whole_percent,
)

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.engine.edits import Dropped
    from agent_tui.models.events import ContextChanged


CHANGES_SHOWN = 5
"""Rows that are named with their change since the last step."""


@dataclass(slots=True, frozen=True)
class ReportRow:
    """A row of the breakdown with its place in it."""

    row: ContextRow
    number: str
    """``7.2``: the second row below the seventh."""
    tenths: int | None
    """Tenths of a percent of the window, which add up to those of the row above; None where that is not known."""

    @property
    def mark(self) -> str:
        return "~" if estimated(self.row) else ""

    @property
    def depth(self) -> int:
        return self.number.count(".")

    def below(self) -> list[ReportRow]:
        children = self.row.children
        return _numbered(
            children, None if self.tenths is None else row_shares(self.tenths, children), f"{self.number}."
        )


@dataclass(slots=True, frozen=True)
class ContextReport:
    """All that is told of the context at one time: the session as it is now, or as it was at one of its steps."""

    usage: ContextUsage
    before: ContextUsage | None = None
    """The numbers of another moment, mostly of the step before: with them every row has its signed difference."""
    title: str = ""
    """A line above all else, such as "Step 12 of 40"; empty for the session as it is now."""
    told: tuple[str, ...] = ()
    """What else there is to say of a step, a line each."""
    problem: str = ""
    """Why there are no numbers."""
    trigger: int | None = None
    """The compactor's own total then; None where there was none to ask, and the numbers' own stands in."""
    in_flight: int = 0
    """Tokens of a running answer that no usage knows yet."""
    steps: Sequence[Step] = ()
    """The session's model calls until then, oldest first."""
    records: Sequence[CompactionRecord] = ()
    prices: Prices | None = None
    now: float = 0.0
    """The time (seconds since the epoch) that ages are counted from."""
    read_only: str = ""
    """Why nothing can be sent; empty where it can."""
    dropped: Sequence[Dropped] = ()
    """What the user dropped, or has wait for that."""

    @classmethod
    def compared(cls, agent: Agent) -> ContextReport:
        """The session as it is now, compared with what its last step sent."""
        history = agent.context.history()
        return replace(cls.of(agent), before=history.moment(history.count).usage if history.count else None)

    @classmethod
    def of(cls, agent: Agent, changed: ContextChanged | None = None, now: float = 0.0) -> ContextReport:
        """The session of an agent as it is now; ``changed`` has its numbers where it was just told of them."""
        info, conversation = agent.models.info, agent.conversation
        usage = agent.context.usage()
        return cls(
            usage if changed is None else changed.usage,
            trigger=usage.total,
            in_flight=agent.context.in_flight if changed is None else changed.in_flight,
            steps=conversation.steps,
            records=conversation.own_records,
            prices=info.prices if info is not None else None,
            now=now,
            read_only=OPEN_ELSEWHERE if conversation.read_only else "",
            dropped=agent.edits.dropped(),
        )

    def in_words(self) -> str:
        """``21.4k of 60k used. Tool results are 31.4 % of the window. Compaction in 30.6k, about 4 turns.`` Without the
        answer under way."""
        usage = self.usage
        rough = usage.approximate
        used = total_text(usage)
        of = f" of {tokens(usage.window, False)} used." if usage.window else " used, unknown window."
        said = [used + of]
        if (largest := largest_kind(usage)) is not None:
            row, tenths = largest
            said.append(
                f"{_subject(row)} {share_words(row.tokens, tenths, rough or estimated(row), used=usage.total)}."
            )
        return " ".join([*said, _compaction(usage, rough)])

    def facts(self, glance: str | None = None) -> str:
        """Returns the other facts to know at a glance: the model, the share of the window, how the number was made, and
        what the next request is expected to cost. That is left out of a step of the past, which was made. Where the
        share is told already, ``glance`` is what is to be said of the cost."""
        usage, expected = self.usage, expectation(self.usage, self.prices) if glance is None else glance
        parts = [one_line(usage.model, 60)]
        if not usage.window:
            parts.append("set context_window for this model")
        elif glance is None:
            parts.append(share_words(usage.total, tenths_of(usage.total, usage.window), usage.approximate))
        parts.append(basis_text(usage))
        parts += [] if glance is None or not self.in_flight else [f"{tokens(self.in_flight, True)} in flight"]
        parts += ["still counting…"] if usage.pending else []
        parts += [f"window {usage.window_origin}"] if usage.window_origin.startswith("learned") else []
        return " · ".join(parts + ([expected] if expected and not self.title else []))

    def changes(self) -> list[str]:
        """A line with what changed most since the step before; none where that is not known."""
        if self.before is None:
            return []
        now, then = ([row for row, _ in _kinds(usage)] for usage in (self.usage, self.before))
        changed = [pair for pair in pairs(now, then) if pair.change]
        changed.sort(key=lambda pair: -abs(pair.change))
        rows = [(pair.now or pair.before, pair.change) for pair in changed[:CHANGES_SHOWN]]
        said = [f"{one_line(row.label, 40)} {signed(change)}" for row, change in rows if row is not None]
        more = [f"{plural(len(changed) - len(said), 'more row')}"] if len(changed) > len(said) else []
        since = f"Since the last step {signed(self.usage.total - self.before.total)}"
        return [f"{since}: {', '.join([*said, *more])}." if said else "Nothing changed since the last step."]

    @property
    def whole(self) -> ContextUsage:
        """The usage with the answer under way as a row of its own, so that rows and headline are equal at all times."""
        return with_answer(self.usage, self.in_flight)

    @property
    def shares(self) -> Shares | None:
        """Shares of the window; None where that is not known."""
        return window_shares(self.usage)

    def rows(self) -> list[ReportRow]:
        """The rows at the top; others are below them."""
        shares = self.shares
        return _numbered(self.usage.rows, None if shares is None else shares.rows)

    def calls(self) -> list[CacheEntry]:
        """What each call read from the provider's cache, the newest first."""
        return cache_entries(self.steps)

    def misses(self) -> Mapping[MissCause, MissSum]:
        """What was paid anew although it had been sent before, by cause."""
        return miss_sums(self.steps)


def row_notes(row: ContextRow) -> list[str]:
    """Returns the notes on a row beside its number: how that was made, what of it was read from the cache, and how it
    goes back."""
    notes: list[str] = [row.basis]
    if row.estimated_tokens and row.basis != "estimated":
        notes.append(f"{tokens(row.estimated_tokens, True, full=True)} estimated")
    if row.deferred_tokens:
        notes.append(f"{tokens(row.deferred_tokens, True, full=True)} more once loaded")
    if row.cached_tokens is not None and row.tokens:
        part = f"{row.cached_tokens:,} cached" if row.cached_tokens else "not cached"
        notes.append("cached" if row.cached else part)
    if row.replay:
        notes.append(one_line(row.replay, 200))
    return notes


def _numbered(rows: Sequence[ContextRow], shares: Sequence[int] | None, above: str = "") -> list[ReportRow]:
    return [ReportRow(row, f"{above}{at + 1}", None if shares is None else shares[at]) for at, row in enumerate(rows)]


ANSWER = "answer"
"""The row of the answer under way."""


def with_answer(usage: ContextUsage, in_flight: int) -> ContextUsage:
    """The usage with so many tokens of a running answer among its messages."""
    if in_flight <= 0:
        return usage
    answer = ContextRow(ANSWER, "answer in progress", in_flight, "estimated", in_flight, approximate=True)
    rows = [
        row
        if row.id != MESSAGES.id
        else replace(
            row,
            tokens=row.tokens + in_flight,
            estimated_tokens=row.estimated_tokens + in_flight,
            approximate=True,
            children=[*(row.children or ([replace(row)] if row.tokens else [])), answer],
        )
        for row in usage.rows
    ]
    total, limit = usage.total + in_flight, usage.limit
    if limit is None:
        return replace(usage, rows=rows, total=total)
    free, over = max(0, limit - total), max(0, total - limit)
    return replace(usage, rows=rows, total=total, free=free, over=over)


def shown(row: ContextRow) -> bool:
    """Returns whether there is anything to tell of a row at the top."""
    return bool(row.tokens or row.children or row.deferred_tokens)


def basis_text(usage: ContextUsage) -> str:
    """Returns how the total was made, and how much of it is estimate."""
    if usage.estimated_tokens and usage.basis != "estimated":
        return f"{usage.basis}, {tokens(usage.estimated_tokens, True)} estimated"
    return usage.basis


def expectation(usage: ContextUsage, prices: Prices | None) -> str:
    """Returns words for what the next request's input is expected to cost and to find in the provider's cache; empty
    where nothing is known. What will be answered to it is not in it.

    Where the provider does not report what it writes to its cache, nobody knows what the next request will find
    there: what the last one found is said, and named as that.
    """
    if usage.forecast is not None and usage.total:
        return expected_words(usage.forecast, usage.total)
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
    """Returns how many of a row's tokens the last request read from the provider's cache; None when that is not
    known."""
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
    """Returns whether a row's number is an estimate, which ``~`` says wherever it is shown."""
    return row.approximate or row.basis == "estimated"


def _kinds(usage: ContextUsage) -> Iterator[tuple[ContextRow, int | None]]:
    """The rows, messages by kind, with the shares of the window that the breakdown has for them, in tenths."""
    for part in ContextReport(usage).rows():
        below = part.below() if part.row.id == MESSAGES.id else []
        yield from ((each.row, each.tenths) for each in below or [part])


def largest_kind(usage: ContextUsage) -> tuple[ContextRow, int | None] | None:
    """Returns what there is most of, with its share of the window; None of an empty context."""
    largest = max(_kinds(usage), key=lambda each: each[0].tokens, default=None)
    return largest if largest is not None and largest[0].tokens > 0 else None


def share_words(count: int, tenths: int | None, rough: bool = False, *, used: int = 0) -> str:
    """Returns a share with what it is of: ``20.5 % of the window``; where the window is not known ``49 % of what is
    used``, of so many tokens; ``~`` before an estimate."""
    text = f"{share(tenths, count > 0)} of the window"
    if tenths is None:
        text = f"{whole_percent(count, used)} of what is used"
    return f"~{text}" if rough and not text.startswith("<") else text


def _subject(row: ContextRow) -> str:
    kind = NOTES if row.label == NOTES.label else ROW_KINDS.get(row.id)
    return kind.subject if kind is not None and kind.subject else f"{one_line(row.label, 40)} is"


def _compaction(usage: ContextUsage, rough: bool) -> str:
    if usage.limit is None or usage.free is None:
        return "No automatic compaction."
    over = usage.total - usage.limit
    if over >= 0:
        end = usage.held or "compaction is next"
        return f"{f'{tokens(over, rough)} over' if over else 'At'} the limit: {end}."
    room = tokens(-over, rough)
    if over_limit(usage):
        return f"It may reach {tokens(usage.high, False)}: {usage.held or 'compaction is next'}."
    if usage.held:
        return f"{room} to the limit; {usage.held}."
    turns = f", about {plural(usage.turns_left, 'turn')}" if usage.turns_left else ""
    return f"Compaction in {room}{', probably in the next turn' if usage.turns_left == 0 else turns}."


def miss_words(miss: CacheMiss) -> str:
    """Why, in a few words: ``tools changed: MCP server github added``, ``expired: idle for 6 min``."""
    if miss.cause == "unknown":
        return f"provider's side: {one_line(miss.what, 200) or 'the prompt was unchanged'}"
    return one_line(f"expired: {miss.what}" if miss.cause == "expired" else miss.what, 200)


def read_words(entry: CacheEntry) -> str:
    """Returns words for the part of a call's input that was read from the cache."""
    if entry.read is None or not entry.input:
        return "not reported"
    return f"{tokens(entry.read, False)} ({whole_percent(entry.read, entry.input)})"


def entry_details(entry: CacheEntry) -> str:
    """All that is known of one call and the cache."""
    lines = [
        f"Input     {_count(entry.input)} tokens to {one_line(entry.model, 60)}{' by a subagent' * entry.subagent}",
        f"Read      {_count(entry.read)}",
        f"Written   {_count(entry.written)}",
        f"Expected  {_count(entry.expected)}",
    ]
    if entry.miss is not None:
        lines.append(f"Missed    {_count(entry.miss.tokens)}, extra {money(entry.miss.cost_usd)}")
        lines.append(f"Why       {miss_words(entry.miss)}")
    if entry.life is not None:
        lines.append(f"Kept      {duration(entry.life)} from the start of the call")
    told = " · ".join(f"{one_line(name, 40)} {_number(value)}" for name, value in entry.told)
    if told:
        lines.append(f"Provider  {told}")
    return "\n".join(lines)


def _number(value: float) -> str:
    return grouped(int(value)) if value == int(value) else f"{value:g}"


def _count(value: int | None) -> str:
    return "unknown" if value is None else grouped(value)
