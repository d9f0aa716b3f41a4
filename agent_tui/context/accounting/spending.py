"""Sums over model calls, and budgets: what the next call is expected to cost, whether that would break one, and how
long an answer a budget leaves room for."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from operator import attrgetter
from typing import Any, Literal

from agent_tui.errors import ConfigError
from agent_tui.models.context import ContextUsage, KindTotals, SessionTotals
from agent_tui.models.steps import CompactionRecord, Step, StepKind
from agent_tui.models.usage import COUNTS, NO_COST, Cost, Prices, Rates, TokenUsage
from agent_tui.records import dataclass
from agent_tui.text.numbers import money, rounded_down, tokens

BudgetName = Literal["run", "turn", "session", "day"]

SETTINGS: dict[BudgetName, str] = {
    "run": "--budget",
    "turn": "budget.turn_usd",
    "session": "budget.session_usd",
    "day": "budget.day_usd",
}
"""Where each is set."""

OUTPUTS = 10
LEAST_OUTPUT = 500
"""An answer is expected to be as long as the median of the model's newest ten in the session, and at least so many
tokens: the first ones are short calls of tools more often than not."""

_TOLERANCE = 1e-9


@dataclass(slots=True, frozen=True)
class ExpectedCall:
    """A call before it is made. ``usd`` is what it is expected to cost, None where the model has no price; tokens of
    ``input`` with those ``read`` from the cache, and the ``output`` that is expected. ``cold_usd`` are the dollars of
    the input where nothing of it is read and it is as long as it may be; ``rate`` those of a token of the answer,
    thought or said, whichever is more."""

    usd: float | None
    input: int
    read: int
    output: int
    cold_usd: float = 0.0
    rate: float = 0.0

    @property
    def needed_usd(self) -> float:
        """Dollars that have to be left: those of an answer as long as expected, whatever the cache gives."""
        return self.cold_usd + self.output * self.rate


@dataclass(slots=True, frozen=True)
class BudgetLine:
    """A budget, or the absence of one (``limit`` None), and what was spent of it in dollars. ``held`` are those that
    calls are taken to cost which are under way, or never said what they cost."""

    name: BudgetName
    limit: float | None
    spent: Cost = NO_COST
    held: float = 0.0

    @property
    def left(self) -> float | None:
        """The rest of the limit; less than 0 where more was spent."""
        return None if self.limit is None else self.limit - self.spent.known - self.held

    def breaks(self, call: ExpectedCall) -> bool:
        """Returns whether the call could not be answered within the limit. One that costs nothing never breaks it; one
        without a price does when there is nothing left."""
        if self.left is None:
            return False
        if call.usd is None:
            return self.left <= _TOLERANCE
        return call.needed_usd > 0 and call.needed_usd > self.left + _TOLERANCE

    def longest(self, call: ExpectedCall) -> int | None:
        """Tokens of the longest answer with which the call stays within the limit; None where that sets none."""
        if self.left is None or call.usd is None or not call.rate:
            return None
        return max(1, int((self.left - call.cold_usd) / call.rate))


def expected_call(
    usage: ContextUsage, prices: Prices, steps: Sequence[Step], most: int | None, hour: bool = False
) -> ExpectedCall:
    """The next request: its input as the calculator has it, read from the cache as far as that is known beforehand,
    else at the full price, and at the price of writing it where writes cost more. ``most`` is the longest answer that
    is asked for; ``hour``: what is not read is kept for an hour, which may cost more."""
    read = min(usage.expected_read or 0, usage.total)
    return priced_call(prices, usage.total, read, expected_output(steps, usage.model, most), hour, usage.high)


def priced_call(
    prices: Prices, input_: int, read: int, output: int, hour: bool = False, high: int | None = None
) -> ExpectedCall:
    """A call of so many tokens, of input ``high`` at most; ``hour`` as above."""
    rates = prices.rates(input_)
    most = max(input_, high or 0)
    if rates.input is None or rates.output is None:
        return ExpectedCall(None, input_, read, output)
    fresh = _fresh(rates, hour)
    cached = rates.input if rates.cache_read is None else rates.cache_read
    usd = (input_ - read) * fresh + read * cached + output * rates.output
    # The longer input may be in a dearer tier.
    dear = prices.rates(most)
    dearest = max(
        fresh, cached, dear.input or 0.0, dear.cache_write or 0.0, (dear.cache_write_1h or 0.0) if hour else 0.0
    )
    rate = max(rates.output, rates.reasoning or 0.0, dear.output or 0.0, dear.reasoning or 0.0)
    return ExpectedCall(usd, input_, read, output, most * dearest, rate)


def _fresh(rates: Rates, hour: bool) -> float:
    """Dollars of a token of input that is not read from the cache."""
    return max(rates.input or 0.0, rates.cache_write or 0.0, (rates.cache_write_1h or 0.0) if hour else 0.0)


def expected_output(steps: Sequence[Step], model: str, most: int | None) -> int:
    """The length an answer is expected to have (see ``OUTPUTS``), at most ``most``."""
    newest: list[int] = []
    for step in reversed(steps):
        if step.kind in ("turn", "subagent") and step.model == model and step.counted is not None:
            newest.append(step.counted.output)
            if len(newest) == OUTPUTS:
                break
    length = max(LEAST_OUTPUT, int(statistics.median(newest)) if newest else 0)
    return length if most is None else min(length, most)


def dollars_of(name: BudgetName, limit: float | None, totals: SessionTotals) -> BudgetLine:
    """The line of a budget in dollars."""
    return BudgetLine(name, limit, totals.cost, totals.held_usd)


def first_broken(lines: Sequence[BudgetLine], call: ExpectedCall) -> BudgetLine | None:
    """The first budget that the call would break."""
    return next((line for line in lines if line.breaks(call)), None)


_SPAN: dict[BudgetName, str] = {
    "run": "in this run",
    "turn": "in this turn",
    "session": "in this session",
    "day": "today",
}


def amount(line: BudgetLine, value: float | Cost) -> str:
    """Dollars of a budget, with as many digits as make sums of small ones come out."""
    return money(value, _places(line))


def rest_of(line: BudgetLine) -> str:
    """Returns in words what is left of the limit, or how far it is over, so that the amounts add up as they are shown.
    Where a part of what was spent is not known, it is a bound: less is left, and more over."""
    digits = _places(line) or 2
    if line.spent.unpriced:
        return _bound_of(line, digits)
    # What is shown as less than the least is nothing in the sum; below a cent only fixed places have a least.
    least = 10**-digits if _places(line) else 0.0
    spent, held = (round(value, digits) if value >= least else 0.0 for value in (line.spent.known, line.held))
    left = round(round(line.limit or 0.0, digits) - spent - held, digits) + 0.0
    return f"{amount(line, abs(left))} {'over' if left < 0 else 'left'}"


def _bound_of(line: BudgetLine, digits: int) -> str:
    left = line.left or 0.0
    over = rounded_down(-left, digits)
    if over > 0:
        return f"at least {amount(line, over)} over"
    return f"at most {amount(line, max(0.0, -over))} left"


def _places(line: BudgetLine) -> int | None:
    return 4 if (line.limit or 0) < 1 else None


def stop_text(line: BudgetLine, call: ExpectedCall, what: str = "the next call") -> str:
    """Why the call is not made, with the numbers and the ways on."""
    cached = f"{tokens(call.read, True)} of it cached, " if call.read else ""
    size = f"{tokens(call.input, True)} in, {cached}{tokens(call.output, True)} out"
    spent = amount(line, line.spent)
    held = f" (and up to {amount(line, line.held)} pending)" if line.held else ""
    wanted = "has no known price" if call.usd is None else f"may take {amount(line, call.needed_usd)}"
    if call.usd is not None and call.usd < call.needed_usd:
        likely = amount(line, call.usd)
        wanted += f" uncached, ~{likely} otherwise" if likely not in wanted else ""
    return (
        f"Stopped at {SETTINGS[line.name]} = {amount(line, line.limit or 0)}: "
        f"{spent} used {_SPAN[line.name]}{held}, {what} {wanted} ({size}). {_ways(line)}"
    )


WAYS = "To continue: "


def without_ways(text: str) -> str:
    """Returns why a budget stopped a turn without what can be done about it, for where that is asked."""
    return text.partition(WAYS)[0].rstrip()


def _ways(line: BudgetLine) -> str:
    if line.name == "run":
        return f"{WAYS}raise --budget, use a cheaper model (-m), or start a shorter session."
    more = f"raise {SETTINGS[line.name]} (/budget {line.name} N for this session)"
    return f"{WAYS}{more}, use a cheaper model (/model), or send less (/compact)."


_NUMBER = r"((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)"
"""Commas stand between thousands alone: taken for nothing, one that was meant as a point would make it ten times as
much and more."""


def parse_limit(text: str) -> float | None:
    """Returns the limit that was typed, in dollars; None for none (``off``). Raises ConfigError for what is no
    amount."""
    text = text.strip().lower()
    if text in ("off", "none"):
        return None
    found = re.fullmatch(rf"\$?{_NUMBER}", text)
    number = 0.0 if found is None else float(found[1].replace(",", ""))
    if not 0 < number < float("inf"):
        raise ConfigError("Not an amount: use 5 or $0.50, or off for no limit.")
    return number


MORE_CALLS = 5
"""A limit that is proposed has room for so many more calls like the next one."""


def _needed(call: ExpectedCall) -> float:
    return 0.0 if call.usd is None else call.needed_usd


def next_limit(line: BudgetLine, call: ExpectedCall) -> float:
    """Returns the limit to propose where a budget is used up: at least twice as much, and round."""
    limit = line.limit or 0.0
    used = limit - (line.left or 0.0)
    least = max(2 * limit, used + MORE_CALLS * _needed(call)) or 1.0
    scale = 10.0 ** math.floor(math.log10(least))
    return float(next(round(scale * step, 9) for step in (1, 2, 5, 10) if scale * step >= least * (1 - 1e-9)))


def limit_words(limit: float | None) -> str:
    """Returns a limit in dollars, for people: ``$0.50``."""
    return "no limit" if limit is None else _shown(limit)


def _shown(amount: float | Cost) -> str:
    """Dollars with as many digits, two to four of them after the point, as an amount has."""
    small = (amount.known if isinstance(amount, Cost) else amount) < 1
    return re.sub(r"(\.\d\d\d*?)0+$", r"\1", money(amount, 4 if small else None))


def call_words(call: ExpectedCall) -> str:
    """Returns what the next call may take of a budget, for people."""
    return _shown(_needed(call))


def spent_words(line: BudgetLine) -> str:
    """Returns what of a budget was used: ``$0.21 spent``."""
    held = f", up to {_shown(line.held)} pending" if line.held else ""
    return f"{_shown(line.spent)} spent{held}"


def limit_problem(line: BudgetLine, limit: float | None, call: ExpectedCall) -> str | None:
    """Returns why the next call could not be made with another limit; None where it could."""
    wanted = replace(line, limit=limit)
    if not wanted.breaks(call):
        return None
    may = f"the next call may take {call_words(call)}"
    return f"{limit_words(limit)} is not enough: {spent_words(line)}, {may}."


def cut_text(line: BudgetLine, output: int) -> str:
    """Why an answer ended before its end: it was asked for with no more tokens than the budget had room for."""
    limit = f"{SETTINGS[line.name]} = {amount(line, line.limit or 0)}"
    return f"The answer was cut off at {output:,} tokens: {limit} has no room for more. {_ways(line)}"


def unpriced_text(model: str, names: Sequence[BudgetName]) -> str:
    """Told once: a budget in dollars does not hold for a model without a price."""
    settings = " and ".join(SETTINGS[name] for name in names)
    return (
        f"The price of {model} is unknown: only costs that the provider reports after a call count for {settings}. "
        "Set the model's price in its [models] table."
    )


class Sums:
    """Calls added up one after another, by kind."""

    def __init__(self) -> None:
        self._kinds: dict[StepKind, _Sum] = {}
        self._prepared: list[Step] = []

    def add(self, step: Step) -> None:
        kind = self._kinds.get(step.kind)
        if kind is None:
            kind = self._kinds[step.kind] = _Sum()
        kind.add(step)
        if step.prepared:
            self._prepared.append(step)

    def copy(self) -> Sums:
        copy = Sums()
        copy._prepared = list(self._prepared)
        copy._kinds = {name: replace(kind, tokens=list(kind.tokens)) for name, kind in self._kinds.items()}
        return copy

    def totals(self, records: Iterable[CompactionRecord] = ()) -> SessionTotals:
        """The sums as they stand; ``records`` are the session's compactions."""
        kinds = {name: kind.totals() for name, kind in self._kinds.items()}
        of, made = kinds.values(), list(records)
        named = {record.step_id for record in made}
        used = {step.prepared for step in self._prepared if step.id in named}
        unused = [step for step in self._prepared if step.prepared not in used]
        return SessionTotals(
            usage=_usage_of(*self._kinds.values()),
            cost=sum((k.cost for k in of), NO_COST),
            compactions=len({r.operation_id for r in made if r.active and r.compacts}),
            unused=len({step.prepared for step in unused}),
            unused_cost=sum((step.cost for step in unused), NO_COST),
            # What was made on another branch is not in force here, and was taken back by nobody.
            taken_back=len({r.operation_id for r in made if len(r.switched) % 2 and r.cost is not None}),
            steps=sum(k.calls for name, k in kinds.items() if name != "count"),
            by_kind=kinds,
            held_usd=sum(kind.held for kind in self._kinds.values()),
            doubted=sum(k.doubted for k in of),
        )


def sums_of(steps: Iterable[Step]) -> Sums:
    """The sums of these calls."""
    sums = Sums()
    for step in steps:
        sums.add(step)
    return sums


def session_totals(steps: Iterable[Step], records: Iterable[CompactionRecord] = ()) -> SessionTotals:
    """Returns what these calls used and cost; what none of them reported stays None."""
    return sums_of(steps).totals(records)


@dataclass(slots=True)
class _Sum:
    """``KindTotals`` that grow."""

    calls: int = 0
    tokens: list[int | None] = field(default_factory=lambda: [None] * len(COUNTS))
    reports: int = 0
    made_up: int = 0
    doubted: int = 0
    known: float = 0.0
    unpriced: int = 0
    held: float = 0.0

    def add(self, step: Step) -> None:
        cost, usage = step.cost, step.usage
        self.calls += 1
        self.known += cost.known
        self.unpriced += cost.unpriced
        self.held += step.held_usd
        self.doubted += step.believed is not None
        if usage is None or step.kind == "count":
            return
        self.reports += 1
        self.made_up += usage.source == "estimated"
        self.tokens = [
            before if value is None else value + (before or 0)
            for before, value in zip(self.tokens, _counts_of(usage), strict=True)
        ]

    def totals(self) -> KindTotals:
        return KindTotals(self.calls, _usage_of(self), Cost(self.known, self.unpriced), self.doubted)


_counts_of = attrgetter(*COUNTS)


def _usage_of(*sums: _Sum) -> TokenUsage | None:
    if not any(one.reports for one in sums):
        return None
    tokens: dict[str, Any] = {name: _sum(one.tokens[at] for one in sums) for at, name in enumerate(COUNTS)}
    return TokenUsage(**tokens, source="estimated" if any(one.made_up for one in sums) else "provider", context=False)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
