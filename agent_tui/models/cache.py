"""What of a request a provider's prompt cache depends on, as one step sent it, and what a step paid anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from agent_tui.models.money import Cost

MissCause = Literal["ours", "expired", "unknown"]
"""``ours``: something that we sent was another; ``expired``: the time since the last use was longer than the cache
lives; ``unknown``: our bytes were the same and nothing had expired, so it was the provider."""


@dataclass(slots=True, frozen=True)
class CacheMiss:
    """Input that a step paid anew although an earlier step had sent it.

    ``what`` says in words what of ours changed, or how long it was idle; it is empty where the cause is unknown.
    ``expected`` tokens of the input had been sent before, ``read`` of them came from the cache. ``cost_usd`` are the
    dollars that it cost more than if they all had; None where a price is not known.
    """

    cause: MissCause
    what: str
    expected: int
    read: int
    cost_usd: float | None = None

    @property
    def tokens(self) -> int:
        """The tokens that were paid anew."""
        return max(0, self.expected - self.read)


@dataclass(slots=True)
class Sent:
    """What one step sent, beside its fixed parts (``Step.fixed``): stored as the difference to an earlier step.

    The first ``kept`` messages are as step ``base`` sent them (no base: none is). Of the others ``keys`` are the keys
    (``SentMessage.key``), ``digests`` tell what they were on the wire, treatment included (cleared, clipped, reasoning
    left out), and ``blocks`` how many content blocks each was there. ``marks`` are the cache markers of the request as
    the number of messages before each, ascending; 0 is the one behind system prompt and tools.
    ``settings`` are the fields of the request that a cache may depend on, by name (``model``, ``server``,
    ``thinking``, ``schema``, ``tool choice``, ``cache key``, ``others``): short values as they are, longer ones as
    a digest; ``program`` is the version whose digests these are.
    """

    settings: dict[str, str] = field(default_factory=dict)
    base: str = ""
    kept: int = 0
    keys: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class ColdRequest:
    """What the next request is expected to pay anew of what was sent before: ``tokens`` of its input; ``whole`` where
    nothing is read from the cache. ``usd`` are the dollars of its input, ``warm_usd`` those if all had been read; None
    where a price is not known."""

    cause: Literal["ours", "expired"]
    what: str
    tokens: int
    whole: bool
    usd: float | None
    warm_usd: float | None


@dataclass(slots=True, frozen=True)
class CacheOutlook:
    """What the next request is expected to find in the provider's cache: ``read`` tokens, ``usd`` for its whole input.

    ``cold`` says why that is less than it could have been; None where it is not, or not worth a word. ``until`` is when
    what the last call left there expires (seconds since the epoch); None where that is not known, or it has."""

    read: int
    usd: float | None
    cold: ColdRequest | None = None
    until: float | None = None


@dataclass(slots=True, frozen=True)
class CacheEntry:
    """One step as the views of the cache show it. None is what was not reported or cannot be known. ``subagent``: its
    request was a subagent's, which begins with another prompt."""

    step_id: str
    created: float
    model: str
    input: int | None
    read: int | None
    written: int | None
    expected: int | None
    miss: CacheMiss | None
    life: float | None
    told: tuple[tuple[str, float], ...] = ()
    subagent: bool = False


@dataclass(slots=True, frozen=True)
class MissSum:
    """Misses of one cause, or of all: how many, tokens paid anew, and what that cost more than reading them."""

    count: int
    tokens: int
    cost: Cost
