"""Token usage as a provider reported it, a model's limits, and prices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

UsageSource = Literal["provider", "estimated"]
LimitSource = Literal["config", "table", "server", "assumed", "unknown", "demo"]


@dataclass(slots=True, frozen=True)
class TokenUsage:
    """Tokens of one step. ``input`` includes cache reads and writes, ``output`` includes reasoning.

    What the provider did not say is None, never 0. ``source`` is ``estimated`` when no provider number is behind it
    (the client library made it up, or the report was absurd); such usage never anchors. ``context`` is False when
    the numbers add up several hidden calls and so are not the size of one context; it does not anchor either.
    ``output_source`` is ``estimated`` where the provider counted the input but not its own answer.
    """

    input: int
    output: int
    reasoning: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    source: UsageSource = "provider"
    context: bool = True
    reasoning_source: UsageSource = "provider"
    output_source: UsageSource = "provider"

    @property
    def anchors(self) -> bool:
        return self.source == "provider" and self.context and self.input > 0


@dataclass(slots=True, frozen=True)
class Limits:
    """A model's limits in tokens; None is unknown. ``window`` is the whole context, ``max_input`` the input alone."""

    window: int | None = None
    max_input: int | None = None
    max_output: int | None = None
    source: LimitSource = "unknown"


@dataclass(slots=True, frozen=True)
class Prices:
    """US dollars per token; None where the price is not known."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None

    def cost(self, usage: TokenUsage) -> float | None:
        """Dollars of one step, or None when a price that is needed is unknown."""
        if self.input is None or self.output is None:
            return None
        read, write = usage.cache_read or 0, usage.cache_write or 0
        fresh = max(0, usage.input - read - write)
        read_price = self.input if self.cache_read is None else self.cache_read
        write_price = self.input if self.cache_write is None else self.cache_write
        return fresh * self.input + read * read_price + write * write_price + usage.output * self.output
