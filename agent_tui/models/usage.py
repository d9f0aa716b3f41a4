"""Token usage as a provider reported it, a model's limits, prices, and what calls cost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Literal

from agent_tui.models.messages import Metadata
from agent_tui.records import dataclass

UsageSource = Literal["provider", "estimated"]
LimitSource = Literal[
    "config", "table", "server", "assumed", "learned", "accepted", "last", "unknown", "demo", "chosen"
]
"""``accepted``: assumed, because more was taken than the window that was stated; ``last``: the
server does not answer, and said so before."""

ABSURD_WINDOWS = 2
"""A report over this many windows is a provider's mistake and not the size of a context."""


@dataclass(slots=True, frozen=True)
class TokenUsage:
    """Tokens of one step; what the provider did not say is None, never 0.

    A field that counts tokens is ``int`` or ``int | None``: sums, exports and JSON take all of those.
    """

    input: int
    """Cache reads and writes included."""
    output: int
    """Reasoning included."""
    reasoning: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    source: UsageSource = "provider"
    """``estimated``: no number of the provider is behind it. Such usage never anchors."""
    context: bool = True
    """False where the numbers add up several hidden calls and so are not the size of one context. Never anchors."""
    reasoning_source: UsageSource = "provider"
    output_source: UsageSource = "provider"
    """``estimated`` where the provider counted the input but not its own answer."""
    cache_write_1h: int | None = None
    """Those of ``cache_write`` that are kept for an hour, which costs more."""
    searches: int | None = field(default=None, metadata={"json": "web_searches"})
    """Searches that ran at the provider, each of which has a price."""
    service_tier: str | None = None
    """The tier of service that answered (``standard``, ``priority``, ``flex``, ``batches``, or what the provider calls
    another), which has a price of its own."""
    told: dict[str, float] | None = field(default=None, compare=False, metadata={"json": "cache_told"})
    """What else the provider says of its cache, under its own names: a second witness, which decides nothing."""
    raw: dict[str, Any] | None = field(default=None, compare=False)
    """The report as it came, under the provider's own names; None where there was none, or it was endless."""

    @property
    def anchors(self) -> bool:
        return self.source == "provider" and self.context and self.input > 0


COUNTS: tuple[str, ...] = tuple(
    f.name for f in fields(TokenUsage) if str(f.type) in ("int", "int | None") and "json" not in f.metadata
)
"""The fields of ``TokenUsage`` that count tokens."""


def usage_json(usage: TokenUsage | None) -> Metadata | None:
    """All of a usage as every JSON has it; what was not reported is null."""
    if usage is None:
        return None
    others = {f.metadata.get("json", f.name): getattr(usage, f.name) for f in fields(usage) if f.name not in COUNTS}
    return {**counts_json(usage), **others}


def counts_json(usage: TokenUsage | None) -> Metadata:
    """The numbers of tokens alone, as ``usage_json`` names them; null where nothing was reported."""
    return {f"{name}_tokens": None if usage is None else getattr(usage, name) for name in COUNTS}


@dataclass(slots=True, frozen=True)
class Limits:
    """A model's limits in tokens; None is unknown."""

    window: int | None = None
    """The whole context."""
    max_input: int | None = None
    max_output: int | None = None
    source: LimitSource = "unknown"
    """``learned`` when the window or the largest input is among ``learned``."""
    learned: tuple[str, ...] = ()
    """Names of the fields that a refusal of the server corrected."""
    learned_at: float | None = None
    """When, in seconds since the epoch; of ``last``, when it was that."""
    accepted: int | None = None
    """Where the source is ``accepted``: the tokens that were taken, which are more than was stated."""

    @property
    def origin(self) -> str:
        """The source from which the window is known, in words."""
        match self.source:
            case "chosen":
                return "chosen here, as the model is not loaded yet"
            case "learned":
                return f"learned from the server{self._day}"
            case "accepted":
                taken = "more than was stated" if self.accepted is None else f"{self.accepted:,} tokens"
                return f"assumed, as the server took {taken}{self._day}"
            case "last":
                return f"as its server said last{self._day}"
        return self.source

    @property
    def output_origin(self) -> str:
        """The same of the longest answer where a refusal corrected it; else empty."""
        return f"learned from the server{self._day}" if "max_output" in self.learned else ""

    @property
    def _day(self) -> str:
        return "" if self.learned_at is None else time.strftime(" on %Y-%m-%d", time.localtime(self.learned_at))


@dataclass(slots=True, frozen=True)
class LearnedLimit:
    """The limits of a model that a server's refusals stated, or that were seen to be larger than was stated. Tokens;
    None was not said. It is out of date where what was ``believed`` or configured then has changed."""

    model: str
    """LiteLLM's name."""
    server: str
    """The configured address, or empty."""
    window: int | None = None
    max_input: int | None = None
    max_output: int | None = None
    believed: int | None = None
    """What was thought to be the window."""
    configured_window: int | None = None
    configured_output: int | None = None
    learned_at: float = 0.0
    """Seconds since the epoch."""
    text: str = ""
    """The passage it was read from."""
    accepted: int | None = None
    """The most that was taken, input and answer, where that is more than was ``believed``."""
    raised: int | None = None
    """What is assumed to be the window since."""
    accepted_input: int | None = None
    accepted_output: int | None = None


@dataclass(slots=True, frozen=True)
class Rates:
    """US dollars per token; None where the price is not known."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    """Of entries that live an hour."""
    reasoning: float | None = None
    """Where thinking costs other than text."""


@dataclass(slots=True, frozen=True)
class PriceTier:
    """The prices of a request whose input, cache included, is longer than ``above`` tokens."""

    above: int
    rates: Rates


STANDARD = "standard"
"""The tier of service that is meant where none is named."""


@dataclass(slots=True, frozen=True)
class ServicePrices:
    """The prices of another tier of service than the one that is asked for."""

    service: str
    rates: Rates
    tiers: tuple[PriceTier, ...] = ()


@dataclass(slots=True, frozen=True)
class Prices(Rates):
    """The rates of a model; ``tiers``, ascending, are for longer inputs."""

    tiers: tuple[PriceTier, ...] = ()
    search: float | None = None
    """Of one web search of the provider's."""
    service: str | None = None
    """The tier of service that they are of; None: of any."""
    others: tuple[ServicePrices, ...] = ()
    """Those of other tiers: the provider may answer by another one than was asked for."""

    def of_service(self, service: str | None) -> Prices | None:
        """The prices of a tier of service (None: it is not said which); None where they are not known."""
        if service is None or self.service is None or service == self.service:
            return self
        found = next((other for other in self.others if other.service == service), None)
        if found is None:
            return None
        each = {f.name: getattr(found.rates, f.name) for f in fields(Rates)}
        return Prices(**each, tiers=found.tiers, search=self.search, service=service)

    @classmethod
    def per_million(cls, said: Mapping[str, float]) -> Prices:
        """Prices as people write them, in dollars per million tokens, by the names of the fields."""
        each: dict[str, Any] = {name: price / 1_000_000 for name, price in said.items()}
        return cls(**each)

    def rates(self, length: int) -> Rates:
        """The prices of a request with so many input tokens."""
        return next((tier.rates for tier in reversed(self.tiers) if length > tier.above), self)

    @property
    def free(self) -> bool:
        """True when calls are known to cost nothing."""
        longer = any(tier.rates.input or tier.rates.output for tier in self.tiers)
        return self.input == 0 and self.output == 0 and not longer

    @property
    def unreported(self) -> float | None:
        """Dollars of a call of which nothing is reported (it was interrupted, or failed): None where calls cost."""
        return 0.0 if self.free else None

    def cost(self, usage: TokenUsage) -> float | None:
        """Dollars of one step, or None when a price that is needed is unknown, or nobody reported what it used: an
        estimate is no bill. The length of the input decides the price of the whole request, and so does the tier of
        service that answered."""
        prices = self.of_service(usage.service_tier)
        if prices is not self:
            return None if prices is None else prices.cost(usage)
        rates = self.rates(usage.input)
        if rates.input is None or rates.output is None:
            return None
        if self.free:
            return 0.0
        if usage.source == "estimated" or usage.output_source == "estimated":
            return None
        if usage.searches and self.search is None:
            return None
        if not usage.context and rates is not self.rates(0):
            # Which of several rounds was that long is not told.
            return None
        read, write = usage.cache_read or 0, usage.cache_write or 0
        fresh, hour = max(0, usage.input - read - write), min(write, usage.cache_write_1h or 0)
        thought = min(usage.output, usage.reasoning or 0)
        write_price = _known(rates.cache_write, rates.input)
        return (
            fresh * rates.input
            + read * _known(rates.cache_read, rates.input)
            + (write - hour) * write_price
            + hour * _known(rates.cache_write_1h, write_price)
            + (usage.output - thought) * rates.output
            + thought * _known(rates.reasoning, rates.output)
            + (usage.searches or 0) * (self.search or 0.0)
        )


def _known(price: float | None, otherwise: float) -> float:
    return otherwise if price is None else price


@dataclass(slots=True, frozen=True)
class Cost:
    """US dollars of some model calls."""

    known: float = 0.0
    """Of what has a price."""
    unpriced: int = 0
    """Calls that have none, or are known in part alone."""

    @property
    def whole(self) -> float | None:
        """All of it; None when a call has no price."""
        return None if self.unpriced else self.known

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.known + other.known, self.unpriced + other.unpriced)


NO_COST = Cost()


def cost_fields(cost: Cost) -> Metadata:
    """The cost as JSON has it wherever it stands: ``cost_usd`` is null when anything is unknown."""
    return {"cost_usd": cost.whole, "cost_known_usd": cost.known, "unpriced_calls": cost.unpriced}


@dataclass(slots=True, frozen=True)
class SubagentRef:
    """A subagent whose calls count in the session it worked for: the ``id`` of its own session, its ``type``, and its
    task in a few words."""

    id: str
    type: str
    title: str
