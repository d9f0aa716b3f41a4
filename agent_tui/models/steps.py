"""Steps, what they sent to a provider's cache, and compaction records: what the store keeps beside messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from agent_tui.models.failure import NOT_BILLED, Failure
from agent_tui.models.rows import RowId
from agent_tui.models.usage import NO_COST, Cost, LimitSource, TokenUsage
from agent_tui.records import dataclass

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
    """The content that one step sent, beside its fixed parts (``Step.fixed``): stored as the difference to an earlier
    step.

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
    """The part of what was sent before that the next request is expected to pay anew: ``tokens`` of its input;
    ``whole`` where nothing is read from the cache. ``usd`` are the dollars of its input, ``warm_usd`` those if all had
    been read; None where a price is not known."""

    cause: Literal["ours", "expired"]
    what: str
    tokens: int
    whole: bool
    usd: float | None
    warm_usd: float | None


@dataclass(slots=True, frozen=True)
class CacheForecast:
    """The forecast of what the next request will find in the provider's cache: ``read`` tokens, ``usd`` for its whole
    input.

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


StepKind = Literal["turn", "compaction", "subagent", "count"]
StepStatus = Literal["running", "complete", "stopped", "failed"]
Change = Literal["", "edited", "waiting"]


@dataclass(slots=True, frozen=True)
class FixedPart:
    """One part of the request prefix: never part of history, sent fresh each time. It never changes, so that all
    steps that sent it can hold the same one.

    ``group`` is the child of its row (``builtin``, ``mcp:github``, a file name). ``raw_tokens`` is the o200k_base
    count, None until counted; ``chars`` lets the character rule stand in for it. ``deferred_tokens`` is what a
    deferred tool would cost if it were loaded; its own raw count is then 0. ``fingerprint`` identifies the content.
    ``change``: ``edited``, the file is another now and the user's messages tell of it, or ``waiting``, this is what the
    next one will tell and is not sent here. ``text`` is what was sent of a memory or pinned file, so that another
    process can send the same bytes once the file is another; None of everything else.
    """

    row: RowId
    group: str
    label: str
    chars: int
    fingerprint: str
    raw_tokens: int | None = None
    ascii_chars: int | None = None
    deferred_tokens: int | None = None
    path: str | None = None
    change: Change = ""
    text: str | None = None

    @property
    def count(self) -> int | None:
        """Its o200k_base count; of a deferred tool what it would cost."""
        return self.raw_tokens if self.deferred_tokens is None else self.deferred_tokens

    def counted(self, counts: Mapping[str, int]) -> FixedPart:
        """The same with its count, where that is among these (by content fingerprint)."""
        count = counts.get(self.fingerprint)
        if count is None or count == self.count:
            return self
        return replace(self, raw_tokens=count) if self.deferred_tokens is None else replace(self, deferred_tokens=count)


class FixedSets:
    """Thousands of steps send the same few sets of fixed parts: equal sets become one object, and so do equal parts of
    sets that differ."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def one(self, parts: Iterable[FixedPart]) -> tuple[FixedPart, ...]:
        """These parts, as they were first given."""
        known = self._known
        same = tuple([known.setdefault(part, part) for part in parts])
        found: tuple[FixedPart, ...] = known.setdefault(same, same)
        return found


SentRun = tuple[int, float, int]
"""``(index, share, resent)``, see ``context.sent``."""


@dataclass(slots=True, frozen=True)
class Given:
    """The inputs that the calculator was given for a step beside what is stored anyway, so that its answer can be made
    again.

    ``head`` is the id of the last message of the conversation then; ``ratio`` the calibration; ``effort`` and
    ``family`` the thinking and the tokenizer of the model; ``bound`` and ``ask_drop`` what was known of how its server
    takes reasoning back. The limits (tokens) are those of the model as far as they were known, ``learned_at`` (seconds
    since the epoch) when the server stated one. ``compact_at``, ``reserve``, ``auto_compact``, ``paused`` and ``off``
    say when it would compact.
    """

    head: str | None
    ratio: float
    effort: str
    family: str
    bound: bool = False
    ask_drop: bool = True
    max_input: int | None = None
    max_output: int | None = None
    limit_source: LimitSource = "unknown"
    learned_at: float | None = None
    compact_at: float | None = None
    reserve: int = 0
    auto_compact: bool = True
    paused: bool = False
    off: bool = False


@dataclass(slots=True)
class Step:
    """One model call and everything needed to anchor on it later.

    ``sent_count`` and ``sent_fingerprint`` identify the message ids that were sent (``models.fingerprint``);
    ``fixed`` the prefix parts that went with them (``fixed_fingerprint`` is the request's); ``prune_ids`` the prune
    records in force; ``anchor_step`` the step its estimate was built on. ``estimated_input`` and ``actual_input`` are
    tokens; ``estimated_growth`` is the estimate of the new text in it before any calibration, ``known_input`` all the
    rest where that is no estimate, and ``actual_growth`` what was measured beside it; ``max_output`` is what was asked
    for. ``sent_reasoning`` says which reasoning of earlier answers was sent and counted (``context.sent``; None in
    steps of versions that did not store it), ``expected_usd`` what the call was expected to cost,
    ``estimated_messages`` what the messages alone were estimated at where
    none of them was measured, ``dropped_blocks`` how many blocks of it the provider says it dropped.
    ``sent`` is what its request was made of (None in steps of versions that did not store it, and where nothing was
    sent), ``expected_read`` the tokens of it that an earlier step had sent to the same cache, ``miss`` what of them was
    paid anew, ``cache_life`` the seconds that what it left in the cache is kept there without being used, where that
    is known for sure. ``given`` is what else its estimate was made with (None in steps of versions that did not store
    it). Times are seconds since the epoch.
    """

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
    """What the calculator goes on with instead; None where the report is believed."""
    sent_count: int = 0
    sent_fingerprint: str = ""
    prefix_fingerprint: str = ""
    fixed_fingerprint: str = ""
    anchor_step: str | None = None
    fixed: tuple[FixedPart, ...] = ()
    prune_ids: list[str] = field(default_factory=list)
    estimated_input: int | None = None
    estimated_growth: int | None = None
    estimated_messages: int | None = None
    known_input: int | None = None
    actual_growth: int | None = None
    actual_input: int | None = None
    max_output: int | None = None
    thinking: str | None = None
    finish_reason: str | None = None
    cost_usd: float | None = None
    failure: Failure | None = None
    window: int | None = None
    sent_reasoning: list[SentRun] | None = None
    dropped_blocks: int = 0
    sent: Sent | None = None
    expected_read: int | None = None
    miss: CacheMiss | None = None
    cache_life: float | None = None
    given: Given | None = None
    expected_usd: float | None = None

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
        """Dollars that a budget holds back for this call beyond what is known of its cost: while it runs, and where it
        never said what it cost, or is not believed, those it was expected to cost."""
        sure = self.status != "running" and not self.cost.unpriced and self.believed is None
        if self.expected_usd is None or sure:
            return 0.0
        return max(0.0, self.expected_usd - self.cost.known)

    def end_as(self, step: Step) -> None:
        """This step stands for ``step`` in another session and was begun as a copy of it: it ends as that one did."""
        self.status, self.finished, self.message_id = step.status, step.finished, step.message_id
        self.provider, self.api, self.model = step.provider, step.api, step.model
        self.usage, self.believed = step.usage, step.believed
        self.actual_input, self.cost_usd = step.actual_input, step.cost_usd
        self.finish_reason, self.failure = step.finish_reason, step.failure
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
    """One compaction: nothing is deleted, the record says what is sent differently while it is active.

    ``prune``: the tool results of ``message_ids`` are sent as a placeholder; those in ``clips`` are sent cut to that
    many characters instead. ``summary``: ``message_ids`` are replaced by the message ``summary_id``; where ``left_out``
    is set no model wrote it: so many messages were left out behind a placeholder. ``cost_usd`` is None when a call has
    no price; ``cost_known_usd`` is then what the others cost.
    ``after_tokens`` is an estimate always, ``before_tokens`` where ``before_estimated`` says so.
    Records of one operation share ``operation_id`` and are undone together. ``switched`` are the times (seconds since
    the epoch) at which it was put out of force, and back in turn; versions that did not store them undid it unseen.
    ``beside`` are the first messages of the branches that had been left when it was made: it does not hold on them, so
    that each goes on as it was left.
    """

    id: str
    operation_id: str
    kind: Literal["prune", "summary"]
    message_ids: list[str]
    active: bool = True
    created: float = 0.0
    reason: Literal["auto", "manual", "overflow", "switch"] = "auto"
    summary_id: str | None = None
    clips: dict[str, int] = field(default_factory=dict)
    before_tokens: int | None = None
    after_tokens: int | None = None
    kept_messages: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None
    model: str | None = None
    focus: str | None = None
    files: list[str] = field(default_factory=list)
    step_id: str | None = None
    left_out: int = 0
    cost_known_usd: float | None = None
    unpriced_calls: int = 0
    before_estimated: bool = True
    switched: list[float] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)

    @property
    def cost(self) -> Cost | None:
        """The cost of its model calls; None where it made none, or an older version did not know."""
        if self.cost_known_usd is not None:
            return Cost(self.cost_known_usd, self.unpriced_calls)
        return None if self.cost_usd is None else Cost(self.cost_usd)


def inherited(steps: Sequence[Step], since: float) -> int:
    """Returns how many leading steps were begun before the session was made that has them: those of the conversation it
    is a copy of. They measure what they sent, but were paid for there."""
    return next((place for place, step in enumerate(steps) if step.created >= since), len(steps))
