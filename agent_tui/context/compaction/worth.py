"""Whether to compact now or to go on, in money: what both are expected to cost over the turns that are still to come.

Pure. Where no price is known the same is said in tokens that are read anew or written.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from agent_tui.config import CompactWhen
from agent_tui.context.accounting.spending import ExpectedCall, priced_call
from agent_tui.context.cache_forecast import Moment, moment_of
from agent_tui.context.compaction.plan import CompactionPlan, message_tokens
from agent_tui.context.compaction.summary import render_message
from agent_tui.context.tokens import char_tokens, counted_chars
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message
from agent_tui.models.rows import MESSAGES
from agent_tui.models.usage import Prices
from agent_tui.records import dataclass
from agent_tui.text.numbers import clock_time, money, percent, plural, tokens

MOST_TURNS = 10
"""As many turns are expected again as there were: of something of which only its age is known, half lasts as long again
(J. R. Gott, Nature 363, 1993, p. 315). Never more than these, whose cost somebody who stops early never has."""

RECENT = 10
"""The newest turns say how many calls a turn takes, and the newest summaries how long one is."""

LEAST_SAVING = 0.05
LEAST_TOKENS = 20_000
"""Dollars, or tokens where no price is known, below which nobody is asked: reading the question costs more."""

LEAST_SHARE = 0.20
"""Of what going on costs: the numbers behind it are no surer."""

PLAINLY = 0.50
"""Compacting costs at most this share of going on where it is done unasked: it pays then even if every other session
ends before the next message."""

REQUEST = 500
"""Tokens that a request for a summary has beside what it is about."""

COMPACT_WHEN: dict[CompactWhen, str] = {
    "limit": 'compact_when = "limit": compacts only at the limit.',
    "ask": 'compact_when = "ask": offers to compact where that is cheaper; compacts without asking only at the limit.',
    "cheaper": 'compact_when = "cheaper": compacts automatically where that is clearly cheaper, else offers it.',
}
NO_WORTH = "Compacting now saves nothing."

ANEW = Prices(1.0, 1.0, 0.0)
"""One token for each that is read anew or written: what stands in for prices that are not known."""


@dataclass(slots=True, frozen=True)
class Pace:
    """The turns that are expected to follow, and how many calls of the model each takes."""

    turns: int
    calls: int

    @property
    def coming(self) -> str:
        """``turn`` or ``3 turns``, to stand after "next"."""
        return "turn" if self.turns == 1 else plural(self.turns, "turn")

    @property
    def requests(self) -> int:
        return self.turns * self.calls


def pace_of(path: Sequence[Message], turns_left: int | None) -> Pace:
    """Returns the pace of a conversation. ``turns_left`` is when it is compacted anyway (None: never)."""
    turns: list[int] = []
    for message in path:
        if message.role == "user":
            turns.append(0)
        elif message.role == "assistant" and turns:
            turns[-1] += 1
    answered = [calls for calls in turns if calls]
    most = MOST_TURNS if turns_left is None else min(MOST_TURNS, turns_left)
    calls = round(statistics.median(answered[-RECENT:])) if answered else 1
    return Pace(max(1, min(len(answered), most)), max(1, calls))


@dataclass(slots=True, frozen=True)
class Worth:
    """The inequality with its numbers: dollars, or tokens where ``priced`` is False.

    ``going_on`` are the next requests as the conversation is, ``first`` of them, of which ``first_read`` tokens are in
    the cache; ``call`` is the summary (0 where none is needed) and ``after`` the same requests with what it leaves.
    ``until`` is when the cache expires (seconds since the epoch), where that is the occasion.
    """

    moment: Moment
    pace: Pace
    before_tokens: int
    after_tokens: int
    first_read: int
    call: float
    first: float
    going_on: float
    after: float
    priced: bool = True
    until: float | None = None
    writer: str = ""
    """The model that writes the summary, where that is not the one that goes on."""

    @property
    def compacting(self) -> float:
        return self.call + self.after

    @property
    def saving(self) -> float:
        return self.going_on - self.compacting

    @property
    def worthwhile(self) -> bool:
        """True when it is worth a question."""
        least = LEAST_SAVING if self.priced else LEAST_TOKENS
        return self.saving >= max(least, LEAST_SHARE * self.going_on)

    @property
    def plainly(self) -> bool:
        """True when it may be done without one, where that is wanted."""
        return self.priced and self.worthwhile and self.compacting <= PLAINLY * self.going_on

    def line(self, doing: str = "Compact now") -> str:
        """The offer in one line, with both prices; ``doing`` is how it begins. Its first part is whole at 80 cells."""
        short = [self._amount(value).removesuffix(" tokens") for value in (self.after, self.going_on)]
        otherwise = f"as is{', uncached' if self.moment == 'cold' else ''}"
        if self.moment == "expiring" and self.until is not None:
            otherwise = f"after {clock_time(self.until)}"
        line = f"{doing} {self._amount(self.call)}, next {self.pace.coming} {short[0]}; {otherwise}: {short[1]}"
        return f"{line} · summary by {self.writer}" if self.writer else line

    def explanation(self) -> str:
        """The inequality, for whoever wants to know."""
        pace = f"{self.pace.coming} of {plural(self.pace.calls, 'call')}"
        by = f" by {self.writer}" if self.writer else ""
        unit = "" if self.priced else "\nPrice unknown: the numbers are tokens written, or read without the cache."
        sign = "<" if self.compacting < self.going_on else "≥"
        first = {
            "expiring": "uncached, as the cache expires",
            "cold": "uncached",
            "warm": f"with {tokens(self.first_read, True)} from the cache",
        }[self.moment]
        if self.pace.requests > 1:
            first = f"the first of them {first} ({self._amount(self.first)})"
        if self.worthwhile:
            verdict = "clearly cheaper" if self.plainly else "worth asking"
        else:
            least = money(LEAST_SAVING) if self.priced else f"{tokens(LEAST_TOKENS, False)} tokens"
            bounds = f"at least {least} and {percent(100 * LEAST_SHARE, 0)}"
            little = f"saves {self._amount(self.saving)}, too little to ask ({bounds})"
            verdict = little if self.saving > 0 else "saves nothing"
        return (
            f"Compacting now: summary{by} {self._amount(self.call)} + next {pace} at {tokens(self.after_tokens, True)} "
            f"{self._amount(self.after)} = {self._amount(self.compacting)}\n"
            f"Going on: next {pace} at {tokens(self.before_tokens, True)}, {first} "
            f"= {self._amount(self.going_on)}\n"
            f"{self._amount(self.compacting)} {sign} {self._amount(self.going_on)}: {verdict}.{unit}"
        )

    def _amount(self, value: float) -> str:
        # The same digits in all of it, so that sums come out as they are shown.
        return (
            f"~{money(value, 2 if self.going_on >= 1 else 3)}"
            if self.priced
            else f"{tokens(round(value), True)} tokens"
        )


def worth_of(
    plan: CompactionPlan,
    usage: ContextUsage,
    prices: Prices,
    pace: Pace,
    now: float,
    hour: bool = False,
    summary: Prices | None = None,
    warm: ExpectedCall | None = None,
) -> Worth | None:
    """Weighs a plan against going on at a time; None where it would do nothing. ``usage`` is the calculator's answer
    with its forecast; ``hour``: what is not read is kept for an hour, which may cost more; ``summary`` are the prices
    of another model that writes summaries, ``warm`` the summary's call as the next message of the conversation, where
    that is possible now."""
    if plan.action not in ("prune", "summary") or plan.expected_after is None:
        return None
    moment, forecast = moment_of(usage.forecast, now), usage.forecast
    priced = all(priced_call(one, usage.total, 0, 0).usd is not None for one in (prices, summary or prices))
    rates, writer = (prices, summary or prices) if priced else (ANEW, ANEW)
    requests = _Requests(rates, pace, hour)
    apart = summary_call(plan, usage, writer, hour)
    first_read = 0 if moment != "warm" else expected_read(usage)
    # System prompt and tools stay as they are: they are read where anything is.
    fixed = sum(row.tokens for row in usage.rows if row.id != MESSAGES.id)
    after = plan.expected_after
    return Worth(
        moment,
        pace,
        usage.total,
        after,
        first_read,
        apart.usd or 0.0 if warm is None else cheaper_form(apart, warm, writer, hour).usd or 0.0,
        requests.one(usage.total, first_read),
        requests.all(usage.total, first_read),
        requests.all(after, min(fixed, after, first_read)),
        priced,
        forecast.until if forecast is not None and moment == "expiring" else None,
    )


def cheaper_form(apart: ExpectedCall, warm: ExpectedCall, prices: Prices, hour: bool) -> ExpectedCall:
    """The form of a summary's call that costs less, in which it is then asked for: ``apart`` from the conversation, or
    as its next message, for an answer of the same length. Without prices it is the latter."""
    if not apart.input:
        return apart
    within = priced_call(prices, warm.input, warm.read, apart.output, hour)
    return min(within, apart, key=lambda call: call.usd or 0.0)


def hopeless(usage: ContextUsage, prices: Prices, pace: Pace, now: float, hour: bool = False) -> bool:
    """Returns whether all that is still to come costs too little for any plan to be worth it, without a plan."""
    priced = priced_call(prices, usage.total, 0, 0).usd is not None
    read = 0 if moment_of(usage.forecast, now) != "warm" else expected_read(usage)
    whole = _Requests(prices if priced else ANEW, pace, hour).all(usage.total, read)
    return whole < (LEAST_SAVING if priced else LEAST_TOKENS)


def expected_read(usage: ContextUsage) -> int:
    """Tokens of the next request that are in the cache now."""
    known = usage.forecast.read if usage.forecast is not None else usage.expected_read
    return min(usage.total, known or 0)


@dataclass(slots=True, frozen=True)
class _Requests:
    """What the expected requests cost, whatever is answered: that is the same on both sides."""

    prices: Prices
    pace: Pace
    hour: bool

    def one(self, total: int, read: int) -> float:
        return priced_call(self.prices, total, read, 0, self.hour).usd or 0.0

    def all(self, total: int, read: int) -> float:
        """The first has ``read`` tokens from the cache, the others all of what is there now."""
        return self.one(total, read) + (self.pace.requests - 1) * self.one(total, total)


def summary_call(plan: CompactionPlan, usage: ContextUsage, prices: Prices, hour: bool = False) -> ExpectedCall:
    """The call that writes the plan's summary, in the form that stands apart from the conversation: nothing of it is in
    a cache. A plan that needs no model costs nothing."""
    if plan.summary is None or not plan.summary.needs_model:
        return ExpectedCall(0.0, 0, 0, 0)
    sizes, length = message_tokens(usage), REQUEST + char_tokens(plan.summary.previous or "")
    for message in plan.summary.fresh:
        # Long ones are clipped, and thoughts left out.
        shown = len(render_message(message)) / max(1, counted_chars(message))
        length += sizes.get(message.id, 0) * min(1.0, shown)
    return priced_call(prices, round(length), 0, expected_length(plan), hour)


def expected_length(plan: CompactionPlan) -> int:
    """Tokens that a plan's summary is expected to have: the median of the session's newest ones, and while there is
    none as many as it may have."""
    most = plan.summary.tokens if plan.summary is not None else 0
    made = [step.counted.output for step in plan.inputs.steps if step.kind == "compaction" and step.counted is not None]
    return min(most, round(statistics.median(made[-RECENT:]))) if made else most


def _about(usd: float) -> str:
    said = money(usd)
    return said if said.startswith("<") else f"~{said}"


@dataclass(slots=True, frozen=True)
class PlanPrice:
    """Dollars that a plan is expected to cost: ``call`` for the summary; ``anew`` more (or, below 0, less) for the next
    request, as what is behind the change is read anew; ``saved`` by each later step. None where no price is
    known. ``behind``: tokens that are read anew."""

    call: float | None
    anew: float | None
    saved: float | None
    behind: int

    def line(self) -> str:
        """``~$0.02 for the summary · ~30.2k behind it are read anew, $0.01 more · each later step $0.003 less``; what
        does not apply is left out."""
        parts = [f"{_about(self.call)} for the summary"] if self.call else []
        if self.behind:
            more = "" if not self.anew or self.anew < 0 else f", {_about(self.anew)} more"
            parts.append(f"{tokens(self.behind, True)} tokens after it are no longer cached{more}")
        if self.saved and self.saved > 0:
            parts.append(f"each later step {_about(self.saved)} less")
        return " · ".join(parts)


def plan_price(plan: CompactionPlan, usage: ContextUsage, prices: Prices, call: float | None, hour: bool) -> PlanPrice:
    """Returns the price of a plan that does something. ``usage`` is the calculator's answer as things are, ``call`` the
    expected price of the summary."""
    after = usage.total if plan.expected_after is None else plan.expected_after
    costs, read = message_tokens(usage), expected_read(usage)
    changed = {*plan.pruning.cleared, *plan.pruning.clips}
    changed.update(() if plan.summary is None else plan.summary.goes(plan.inputs.view))
    before = sum(row.tokens for row in usage.rows if row.id != MESSAGES.id)
    for item in plan.inputs.view:
        if item.message.id in changed:
            break
        before += costs.get(item.message.id, 0)

    def more(then: int, now: int) -> float | None:
        first = priced_call(prices, after, min(after, then), 0, hour).usd
        second = priced_call(prices, usage.total, min(usage.total, now), 0, hour).usd
        return None if first is None or second is None else first - second

    later = more(after, usage.total)
    behind = max(0, after - before) if read > before else 0
    return PlanPrice(call, more(min(read, before), read), None if later is None else -later, behind)
