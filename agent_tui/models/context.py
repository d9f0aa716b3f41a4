"""The result of the one calculator: what the next request will cost and of what it is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Literal

from agent_tui.models.calibration import Content
from agent_tui.models.costs import Settlement
from agent_tui.models.rows import MESSAGES, ROW_KINDS
from agent_tui.models.steps import CacheForecast, StepKind
from agent_tui.models.usage import NO_COST, Cost, TokenUsage
from agent_tui.records import dataclass
from agent_tui.text.numbers import tenths_of

Basis = Literal["measured", "derived", "estimated"]

ROUGH_SHARE = 0.005
"""Of a total: where the truth may be further from it than this, it is an estimate itself."""


@dataclass(slots=True)
class ContextRow:
    """A row of the breakdown; children add up to their parent."""

    id: str
    label: str
    tokens: int
    basis: Basis
    estimated_tokens: int
    children: list[ContextRow] = field(default_factory=list)
    deferred_tokens: int | None = None
    message_id: str | None = None
    path: str | None = None
    detail: str = ""
    cached: bool | None = None
    """Whether the newest turn step read the whole row from the provider's cache; None where nobody says."""
    replay: str | None = None
    """How its reasoning goes back, in words."""
    approximate: bool = False
    """Not counted yet: the character rule stands in."""
    cached_tokens: int | None = None
    """Those of its tokens that were read; None where the provider does not say."""
    fingerprint: str | None = None
    """Of a part that goes with every request: the agent knows the text behind it."""
    attachment: int | None = None
    """Which attachment of its message it is, from 1."""

    @property
    def part_id(self) -> str | None:
        """By what an edit names it: ``msg_1``, ``msg_1#2`` for the second attachment of that message."""
        return self.message_id if self.attachment is None else f"{self.message_id}#{self.attachment}"

    def leaves(self) -> Iterator[ContextRow]:
        """The rows below it that have none below them; itself where there are none."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(slots=True, frozen=True)
class Spreads:
    """Tokens by which the truth may differ from each term of the formula, 95 times of 100; 0 of what is measured."""

    last_output: int = 0
    dropped_reasoning: int = 0
    removed: int = 0
    fixed_delta: int = 0
    new_messages: int = 0


@dataclass(slots=True)
class Calculation:
    """The terms of the formula, and what the calibration learns from."""

    last_input: int | None
    last_output: int | None
    """Both None without an anchor; then ``new_messages`` is the whole estimate."""
    dropped_reasoning: int
    removed: int
    fixed_delta: int
    new_messages: int
    output_estimated: bool = False
    """The provider did not say how long its answer was."""
    new_estimated: int = 0
    """The new messages by what is known of the family alone."""
    content: Content | None = None
    """What is learned from consists of: the new messages, or the whole where nothing is measured; None where too much
    else is estimated."""
    known: int = 0
    """The rest of the total, in tokens."""
    all_messages: int | None = None
    """All messages as estimated; None where some of them are measured."""
    settlement: Settlement | None = None
    """What is not known of the request, as it is stored with the step that sends it."""
    spreads: Spreads = Spreads()
    """Of each term alone. They do not add up to the total's: errors partly cancel out, or come from one cause."""


@dataclass(slots=True)
class Accuracy:
    """The accuracy of the estimates for this model: errors of the newest step and over ``calls`` verified steps."""

    last_error_tokens: int | None = None
    last_error_percent: float | None = None
    median_error_percent: float | None = None
    calls: int = 0
    ratio: float = 1.0
    p95_error_tokens: int | None = None
    """The 95th percentile over the newest steps that were built on a measured one."""
    intervals: int = 0
    """Verified steps that stored their interval (``Step.estimated_spread``)."""
    inside: int = 0
    """Those of them whose truth was in it."""
    last_intervals: int = 0
    last_inside: int = 0
    """The same of the newest few."""


@dataclass(slots=True, frozen=True)
class KindTotals:
    """Sums over model calls of one kind."""

    calls: int = 0
    usage: TokenUsage | None = None
    """As it was reported (``COUNTS``); None where nothing was. An exact count uses no tokens: its number is the size of
    a request that was never sent."""
    cost: Cost = NO_COST
    doubted: int = 0
    """Calls of which the report is not believed."""


@dataclass(slots=True)
class SessionTotals:
    """Sums over the steps of a session, its subagents' included."""

    usage: TokenUsage | None = None
    """As in ``KindTotals``."""
    cost: Cost = NO_COST
    compactions: int = 0
    """Those in force."""
    steps: int = 0
    """Calls that the model was to answer: exact counts are none."""
    by_kind: dict[StepKind, KindTotals] = field(default_factory=dict)
    """Of the kinds there were; they add up to the whole."""
    held_usd: float = 0.0
    """Dollars that calls are taken to have cost which have not said it."""
    doubted: int = 0
    """Calls of which the report is not believed."""
    taken_back: int = 0
    """Compactions that were undone and had cost model calls: that is spent all the same."""
    unused: int = 0
    """Summaries that were prepared and not used, or not yet; ``unused_cost`` is theirs."""
    unused_cost: Cost = NO_COST

    @property
    def cached(self) -> tuple[int, int] | None:
        """Tokens that were read from the cache, and of how many; None where nobody said."""
        usage = self.usage
        return None if usage is None or usage.cache_read is None or not usage.input else (usage.cache_read, usage.input)


@dataclass(slots=True, frozen=True)
class Draft:
    """What is written and not sent yet: what waits for its turn and what stands in the prompt, with all that goes with
    it. In no total: it is sent after what a total is of."""

    tokens: int
    spread: int = 0
    approximate: bool = False
    """A part of it is not counted yet: its characters, or a file's size, stand in."""
    waiting: int = 0
    """How many messages of it wait."""


@dataclass(slots=True)
class ContextUsage:
    """One answer for the screen, the status line, JSON and the compactor. All tokens: the sum of the rows is the total,
    and total + free + reserve - over = window."""

    model: str
    window: int | None
    reserve: int | None
    limit: int | None
    total: int
    free: int | None
    over: int | None
    basis: Basis
    estimated_tokens: int
    would_compact: bool
    turns_left: int | None
    calculation: Calculation
    rows: list[ContextRow]
    accuracy: Accuracy
    session: SessionTotals
    pending: bool = False
    """Counts are still being made, the character rule stands in for some; a compaction decision waits for them."""
    anchor_step: str | None = None
    warnings: list[str] = field(default_factory=list)
    why: str = ""
    expected_read: int | None = None
    """What the next request will read from the provider's cache: what the last one read and wrote, as far as it begins
    the same; None where the provider does not report what it writes."""
    spread: int = 0
    """Tokens by which the truth may differ from the total, 95 times of 100; 0 where all of it is measured."""
    margin: int = 0
    """Kept free beside the next input (``next_input.room_for_answer``)."""
    max_input: int | None = None
    """The model's own limit on input, where it has one."""
    window_origin: str = ""
    """Where the window is known from, in words."""
    forecast: CacheForecast | None = None
    """What it will find in the cache if it is sent now; None while a turn runs, and where nothing is known of it."""
    growth: float | None = None
    """Tokens that a turn adds, by the last turns: ``turns_left`` is made of it."""
    held: str = ""
    """Why it would not compact by itself at the limit, in words; empty when it would."""
    draft: Draft | None = None
    """What is written beside it and not sent yet; None where nothing is, or nobody counts it."""

    def stack(self) -> dict[str, int]:
        """The total by the row that draws it (``models.rows.STACKED``), without those that are empty."""
        sizes: dict[str, int] = {}
        for row in self.rows:
            own: dict[str, int] = {}
            for child in row.children if row.id == MESSAGES.id else ():
                if (kind := ROW_KINDS.get(child.id)) is not None and not kind.drawn:
                    own[child.id] = child.tokens
            sizes.update({row.id: row.tokens - sum(own.values())}, **own)
        return {name: tokens for name, tokens in sizes.items() if tokens > 0}

    @property
    def percent(self) -> float | None:
        """The share of the window that the total is, as it is shown; None where that is not known."""
        return tenths_of(self.total, self.window) / 10 if self.window else None

    @property
    def low(self) -> int:
        """The least that the total is in truth, 95 times of 100 (with ``high``)."""
        return max(0, self.total - self.spread)

    @property
    def high(self) -> int:
        return self.total + self.spread

    @property
    def approximate(self) -> bool:
        """True when the total is an estimate, in whole or in a part that matters, so that ``~`` stands before it."""
        return self.pending or self.basis == "estimated" or self.spread > ROUGH_SHARE * self.total
