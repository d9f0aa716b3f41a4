"""Steps, what they sent to a provider's cache, and compaction records: what the store keeps beside messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from agent_tui.models.calibration import Calibration, Content, raw_total, unpacked
from agent_tui.models.costs import SentKeys, Settlement
from agent_tui.models.failure import NOT_BILLED, Adaptation, Failure
from agent_tui.models.rows import RowId
from agent_tui.models.usage import NO_COST, Cost, LimitSource, SubagentRef, TokenUsage
from agent_tui.records import dataclass

MissCause = Literal["ours", "expired", "unknown"]
"""``ours``: something that we sent was another; ``expired``: the time since the last use was longer than the cache
lives; ``unknown``: our bytes were the same and nothing had expired, so it was the provider."""


@dataclass(slots=True, frozen=True)
class CacheMiss:
    """Input that a step paid anew although an earlier step had sent it."""

    cause: MissCause
    what: str
    """What of ours changed, or how long it was idle, in words; empty where nothing is to be said."""
    expected: int
    """Tokens of the input that had been sent before."""
    read: int
    """Those of them that came from the cache."""
    cost_usd: float | None = None
    """Dollars that it cost more than if they all had; None where a price is not known."""

    @property
    def tokens(self) -> int:
        """The tokens that were paid anew."""
        return max(0, self.expected - self.read)


@dataclass(slots=True)
class Sent:
    """What one step sent beside its fixed parts (``Step.fixed``) and its messages (``Step.sent_keys``)."""

    settings: dict[str, str] = field(default_factory=dict)
    """The fields of the request that a cache may depend on, by name (``model``, ``server``, ``thinking``, ``schema``,
    ``tool choice``, ``cache key``, ``others``; ``images`` is how many, where that matters): short values as they are,
    longer ones as a digest; ``program`` is the version whose digests these are."""
    marks: list[int] = field(default_factory=list)
    """The request's cache markers as the number of messages before each, ascending; 0 is behind system and tools."""


@dataclass(slots=True, frozen=True)
class ColdRequest:
    """The part of what was sent before that the next request is expected to pay anew."""

    cause: Literal["ours", "expired"]
    what: str
    tokens: int
    whole: bool
    """Nothing is read from the cache."""
    usd: float | None
    """Dollars of the whole input; None where a price is not known."""
    warm_usd: float | None
    """The same if all that was sent before had been read."""


@dataclass(slots=True, frozen=True)
class CacheForecast:
    """The forecast of what the next request will find in the provider's cache."""

    read: int
    """Tokens."""
    usd: float | None
    """Dollars of the whole input."""
    cold: ColdRequest | None = None
    """Why that is less than it could have been; None where it is not, or not worth a word."""
    until: float | None = None
    """When what the last call left there expires (seconds since the epoch); None where nobody knows, or it has."""
    at_least: bool = False
    """It may be kept for longer than ``until``."""


@dataclass(slots=True, frozen=True)
class CacheEntry:
    """One step as the views of the cache show it. None is what was not reported or cannot be known."""

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
    """Its request was a subagent's, which begins with another prompt."""


@dataclass(slots=True, frozen=True)
class MissSum:
    """Misses of one cause, or of all: how many, tokens paid anew, and what that cost more than reading them."""

    count: int
    tokens: int
    cost: Cost


Doubt = Literal[
    "doubted", "truncated", "cached twice", "cached left out", "summed", "another model", "unsteady", "absurd", "none"
]
"""Why a report is not believed (``context.accounting.believed``). ``doubted``: it does not fit, and only the next one
shows why; ``none``: there is no report."""

StepKind = Literal["turn", "compaction", "subagent", "count", "attempt"]
"""``attempt``: a call that was made again, though something had come of its answer: it broke off, or was empty."""
StepStatus = Literal["running", "complete", "stopped", "failed"]
Change = Literal["", "edited", "waiting"]


@dataclass(slots=True, frozen=True)
class FixedPart:
    """One part of the request prefix, sent fresh each time. It never changes: all steps that sent it hold the same."""

    row: RowId
    group: str
    """The child of its row: ``builtin``, ``mcp:github``, a file name."""
    label: str
    chars: int
    """Lets the character rule stand in until it is counted."""
    fingerprint: str
    """Identifies the content."""
    raw_tokens: int | None = None
    """Its o200k_base count; None until it is counted, 0 of a deferred tool."""
    ascii_chars: int | None = None
    deferred_tokens: int | None = None
    """What a deferred tool would cost if it were loaded."""
    path: str | None = None
    change: Change = ""
    """``edited``: the file is another now and the user's messages tell of it; ``waiting``: this is what the next one
    will tell and is not sent here."""
    text: str | None = None
    """What was sent of a memory or pinned file, so that another process can send the same bytes once the file is
    another; None of everything else."""
    added: int | None = None
    """Tokens, roughly, that its provider adds for a tool that runs there."""
    counts: tuple[int, ...] | None = None
    """Its o200k_base count by kind (``models.calibration.KINDS``), of a deferred tool what it would be; None until it
    is counted."""

    def counted(self, known: Mapping[str, tuple[int, ...]]) -> FixedPart:
        """The same with its counts, where they are among these (by content fingerprint)."""
        counts = known.get(self.fingerprint)
        if counts is None or counts == self.counts:
            return self
        if self.deferred_tokens is None:
            return replace(self, raw_tokens=raw_total(counts), counts=counts)
        return replace(self, deferred_tokens=raw_total(counts), counts=counts)


class FixedSets:
    """Thousands of steps send the same few sets of fixed parts: equal sets become one object, and equal parts do."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def one(self, parts: Iterable[FixedPart]) -> tuple[FixedPart, ...]:
        """These parts, as they were first given."""
        known = self._known
        same = tuple([known.setdefault(part, part) for part in parts])
        found: tuple[FixedPart, ...] = known.setdefault(same, same)
        return found


SentRun = tuple[int, float, int]
"""``(index, share, resent)``: from the message at this index on, ``share`` of each answer's reasoning counts, and it
was sent or not (``context.anchor.runs_of``)."""


@dataclass(slots=True, frozen=True)
class Given:
    """The inputs that the calculator was given for a step beside what is stored anyway, so that its answer can be made
    again: those of the model, the limits as far as they were known, and when it would compact."""

    head: str | None
    """Id of the last message of the conversation then."""
    effort: str
    family: str
    """Of tokenizers."""
    bound: bool = False
    ask_drop: bool = True
    adaptations: list[Adaptation] = field(default_factory=list)
    until: list[str] = field(default_factory=list)
    text_until: list[str] = field(default_factory=list)
    """These five as in ``ReplayRule``."""
    max_input: int | None = None
    max_output: int | None = None
    limit_source: LimitSource = "unknown"
    learned_at: float | None = None
    """When the server stated a limit, in seconds since the epoch."""
    compact_at: float | None = None
    reserve: int = 0
    auto_compact: bool = True
    paused: bool = False
    off: bool = False
    seeing: bool = True
    files: bool = True
    """The model takes pictures, and its server had not refused PDF files, as far as was known."""
    calibrated: str | None = None
    """The calibration, packed: every step has another one, and few are ever asked for. None where nothing was learned
    before: what is known of the family stands in."""

    @property
    def calibration(self) -> Calibration | None:
        return None if self.calibrated is None else unpacked(self.calibrated)


@dataclass(slots=True)
class Step:
    """One model call and everything needed to anchor on it later. Times are seconds since the epoch."""

    id: str
    kind: StepKind
    model_key: str
    provider: str
    api: str
    model: str
    message_id: str | None = None
    status: StepStatus = "running"
    created: float = 0.0
    finished: float | None = None
    usage: TokenUsage | None = None
    """As the provider reported it; our estimate (``source``) where it reported nothing."""
    believed: TokenUsage | None = None
    doubt: Doubt | None = None
    """What the calculator goes on with instead, and why; None where the report is believed."""
    answered_by: str | None = None
    """The model as the answer names it."""
    sent_count: int = 0
    fixed_fingerprint: str = ""
    """Of the request's system prompt and tools."""
    anchor_step: str | None = None
    """The step that its estimate was built on."""
    fixed: tuple[FixedPart, ...] = ()
    prune_ids: list[str] = field(default_factory=list)
    """The records in force that clear results, drop messages and restore them."""
    estimated_input: int | None = None
    estimated_rows: dict[str, int] | None = None
    """What that is made of: tokens by the row that draws them (``models.rows.STACKED``)."""
    estimated_spread: int | None = None
    """By how much the input was said to differ from that at most, 95 times of 100."""
    estimated_growth: int | None = None
    """Of the new messages, by what is known of the family alone."""
    built_on: int | None = None
    """The input of the step that its estimate was built on, as it was believed then."""
    estimated_change: tuple[int, int, int] | None = None
    """Of the prefix parts that came and went since the step it was built on: tokens, their spread, and the spread of
    everything else; None where they are the same."""
    known_input: int | None = None
    """All of the input that is not learned from."""
    actual_growth: int | None = None
    """What was measured beside ``known_input``."""
    growth: Content | None = None
    """What the rest consists of."""
    actual_input: int | None = None
    max_output: int | None = None
    """As it was asked for."""
    thinking: str | None = None
    finish_reason: str | None = None
    cost_usd: float | None = None
    failure: Failure | None = None
    window: int | None = None
    sent_keys: SentKeys | None = None
    settlement: Settlement | None = None
    """What was not known of the request when it was sent, and what its report made of that."""
    sent_reasoning: list[SentRun] | None = None
    """Which reasoning of earlier answers was sent and counted."""
    sent: Sent | None = None
    """What the request was made of; None where nothing was sent, too."""
    expected_read: int | None = None
    """Tokens of it that an earlier step had sent to the same cache."""
    miss: CacheMiss | None = None
    """What of them was paid anew."""
    cache_life: float | None = None
    """Seconds that what it left in the cache is kept there without being used, where that is known for sure."""
    given: Given | None = None
    """What else its estimate was made with."""
    assumed_usd: float | None = None
    """Dollars that budgets take it to cost while it runs, and for good where it never said what it cost; None where
    there is no price."""
    prepared: str = ""
    """A summary that was written before the limit was reached: the last message it stands for. It is used where a
    compaction names the step, or another one of the same preparation."""
    agent: SubagentRef | None = None
    """The subagent that made it; None of every other kind of step."""

    @property
    def counted(self) -> TokenUsage | None:
        """The usage that the calculator builds on."""
        return self.usage if self.believed is None else self.believed

    @property
    def cost(self) -> Cost:
        """The cost of the call; while it runs, what is known by now.

        An exact count costs nothing: counting is free to use at Anthropic (docs.anthropic.com, token counting), not
        billed at Gemini (ai.google.dev, pricing), and OpenAI lists no price for ``responses/input_tokens``.
        A call that was cut off has cost at least what was reported of it.
        """
        if self.kind == "count":
            return NO_COST
        if self.status == "running":
            return Cost(self.cost_usd or 0.0)
        if self.cost_usd is None:
            return Cost(unpriced=0 if self._refused else 1)
        return Cost(self.cost_usd, 0 if self._ended or self.cost_usd == 0 else 1)

    @property
    def held_usd(self) -> float:
        """Dollars that a budget counts for this call beyond what is known of its cost: while it runs, and where it
        never said what it cost, or is not believed."""
        sure = self.status != "running" and not self.cost.unpriced and self.believed is None
        return 0.0 if self.assumed_usd is None or sure else max(0.0, self.assumed_usd - self.cost.known)

    def end_as(self, step: Step) -> None:
        """This step stands for ``step`` in another session and was begun as a copy of it: it ends as that one did."""
        self.status, self.finished, self.message_id = step.status, step.finished, step.message_id
        self.provider, self.api, self.model = step.provider, step.api, step.model
        self.usage, self.believed, self.doubt = step.usage, step.believed, step.doubt
        self.actual_input, self.cost_usd = step.actual_input, step.cost_usd
        self.finish_reason, self.failure = step.finish_reason, step.failure
        self.assumed_usd = step.assumed_usd
        self.expected_read, self.miss, self.cache_life = step.expected_read, step.miss, step.cache_life

    @property
    def _ended(self) -> bool:
        """True when the answer came to its end, which is when the provider reports the whole of it."""
        return self.status == "complete" or self.finish_reason not in (None, "unknown")

    @property
    def _refused(self) -> bool:
        nothing_came = self.usage is None and self.message_id is None
        return nothing_came and self.failure is not None and self.failure.kind in NOT_BILLED


@dataclass(slots=True)
class CompactionRecord:
    """One compaction: nothing is deleted, the record says what is sent differently while it is active."""

    id: str
    operation_id: str
    """Records that share it are undone together."""
    kind: Literal["prune", "summary", "drop", "restore"]
    """``prune``: the tool results of ``message_ids`` are sent as a placeholder; ``summary``: ``message_ids`` are
    replaced by the message ``summary_id``, where the first of them stood; ``drop``: the user has them sent no longer;
    ``restore``: and again."""
    message_ids: list[str]
    active: bool = True
    created: float = 0.0
    reason: Literal["auto", "manual", "overflow", "switch", "edit"] = "auto"
    """``edit``: the user or the agent chose the messages, of any place."""
    by: Literal["", "agent"] = ""
    """Who asked for it: ``agent``, the model itself, with its tool ``context``; empty: the user, or the limit."""
    summary_id: str | None = None
    clips: dict[str, int] = field(default_factory=dict)
    """Those of a ``prune`` that are sent cut to that many characters instead."""
    before_tokens: int | None = None
    after_tokens: int | None = None
    """Always an estimate; ``before_tokens`` where ``before_estimated`` says so."""
    before_spread: int | None = None
    after_spread: int | None = None
    """Tokens by which the truth may be more or less."""
    kept_messages: int | None = None
    seconds: float | None = None
    cost: Cost | None = None
    """Of its model calls; None where it made none."""
    model: str | None = None
    focus: str | None = None
    files: list[str] = field(default_factory=list)
    step_id: str | None = None
    left_out: int = 0
    """Above 0: no model wrote the summary, so many messages were left out behind a placeholder."""
    before_estimated: bool = True
    switched: list[float] = field(default_factory=list)
    """When it was put out of force, and back, in turn (seconds since the epoch)."""
    warm: bool = False
    """The summary was asked for as the next message of the conversation, all of which the provider had in its cache."""
    input_tokens: int | None = None
    """Of its model calls, of which ``cache_read`` came from a cache; None where nobody told."""
    cache_read: int | None = None
    recall: bool = False
    """What stands in the place of a ``prune``'s results says by which id the tool ``recall`` brings them back: it was
    offered then."""
    beside: list[str] = field(default_factory=list)
    """First messages of the branches that had been left when it was made: it does not hold on them, so that each goes
    on as it was left."""
    attachments: dict[str, list[int]] = field(default_factory=dict)
    """Those of the messages of a ``drop`` or ``restore`` of which only the attachments with these numbers are meant."""

    @property
    def compacts(self) -> bool:
        """True of a compaction, or a range that was folded; False where messages were dropped or restored, and where
        the agent let go of results."""
        return self.kind == "summary" or (self.kind == "prune" and self.reason != "edit")

    @property
    def cleared(self) -> int:
        """Results that are sent as a placeholder; ``clipped``, of those that are cut."""
        return len(self.message_ids) - self.clipped

    @property
    def clipped(self) -> int:
        return sum(message_id in self.clips for message_id in self.message_ids)


def inherited(steps: Sequence[Step], since: float) -> int:
    """Returns how many leading steps were begun before the session was made that has them: those of the conversation it
    is a copy of. They measure what they sent, but were paid for there."""
    return next((place for place, step in enumerate(steps) if step.created >= since), len(steps))
