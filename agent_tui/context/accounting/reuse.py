"""What a caller may keep between two calculations so that the second costs only what is new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_tui.context.accounting.coverage import Reach
from agent_tui.context.accounting.fixed_scale import FixedScale
from agent_tui.context.accounting.reasoning import ReasoningLedger
from agent_tui.context.accounting.tally import Labels, Tally
from agent_tui.context.sent.anchor import SentPrefixes, common_prefix, extend_chain
from agent_tui.context.tokens.estimate import MessageEstimate, estimate_message
from agent_tui.context.tokens.families import Family
from agent_tui.models.messages import Message
from agent_tui.models.requests import SentMessage, Target
from agent_tui.models.steps import CompactionRecord, Step

Setting = tuple[Target, int | None, float | None]


@dataclass(slots=True)
class Seal:
    """Rows of the first messages that can be taken over as they are: steps of the chain up to number
    ``chain``, whose id is ``step``, are in them.
    ``reach`` says how they were read from the provider's cache, ``left`` what was read of the rows after them."""

    tally: Tally
    chain: int
    reach: Reach
    left: int
    last_answers: list[str] = field(default_factory=list)
    step: str = ""


@dataclass(slots=True)
class ContextCache:
    """Kept by the caller, one a session. Losing it costs time, never a different result."""

    prefixes: SentPrefixes = field(default_factory=SentPrefixes)
    ledger: ReasoningLedger = field(default_factory=ReasoningLedger)
    labels: Labels = field(default_factory=Labels)
    fixed_scale: FixedScale = field(default_factory=FixedScale)
    chain: list[Step] = field(default_factory=list)
    by_message: dict[str, Step] = field(default_factory=dict)
    seals: list[Seal] = field(default_factory=list)
    estimated: tuple[tuple[int, float, bool], Tally] | None = None
    head: tuple[tuple[int, int, Reach, int], Tally] | None = None
    dropped: tuple[str, int, int, bool] | None = None
    """Anchor, number of first messages, reasoning of theirs that was sent then and is not counted now, and whether that
    is an estimate."""

    head_estimate: tuple[int, float, int] | None = None
    """Number, calibration and estimated tokens of the messages before the first measured answer."""

    kept: int = 0
    """Leading messages whose key is as it was at the last calculation."""

    _setting: Setting | None = None
    _spoken: float = 1.0
    _records: tuple[str, ...] = ()
    _reach: int = 0
    _keys: list[str] = field(default_factory=list)
    _seen: list[str] = field(default_factory=list)
    _passed: bool = False
    _estimates: dict[str, tuple[int | None, bool, MessageEstimate]] = field(default_factory=dict)

    def follow(
        self,
        view: Sequence[SentMessage],
        steps: Sequence[Step],
        records: Sequence[CompactionRecord],
        target: Target,
        window: int | None,
        fixed_scale: float | None = None,
        spoken: float = 1.0,
    ) -> None:
        """Bring prefixes and chain up to date; drop what no longer holds."""
        known_records = tuple(r.id for r in records)
        if known_records != self._records:
            self._records, self.seals = known_records, []
        setting = (target, window, fixed_scale)
        if setting != self._setting:
            self._setting = setting
            self._estimates.clear()
            self._keys, self._reach = [], 0
            self.chain, self._seen = [], []
            self.seals, self.estimated, self.head, self.head_estimate, self.dropped = [], None, None, None, None
        if spoken != self._spoken:
            # Reasoning that nobody counted is what the text leaves of an answer.
            self._spoken = spoken
            self.seals, self.head, self.dropped = [], None, None
        length = len(self.prefixes.ids)
        extended = self.prefixes.update(view) == length
        keys = [item.key for item in view]
        self.kept = common_prefix(self._keys, keys)
        self._keys = keys
        finished = self._finished(steps)
        grown = len(view) > length
        if self._seen != finished[: len(self._seen)] or not extended or (grown and self._reach > length):
            # Steps that did not fit may fit now: after an undo, or when messages came back.
            self.chain, self._seen, self._reach = [], [], 0
            self.by_message = {}
        for step in steps[len(self._seen) :]:
            if step.message_id is not None:
                self.by_message[step.message_id] = step
        if self._passed:
            chosen = set(finished[len(self._seen) :])
            new = [s for s in steps if s.id in chosen]
        else:
            new = list(steps[len(self._seen) : len(finished)])
        self._reach = max(self._reach, *(s.sent_count + (s.kind == "turn") for s in new), 0)
        extend_chain(self.chain, new, self.prefixes, target, window)
        self._seen = finished

    def estimate(self, message: Message, key: str, family: Family, first: bool) -> MessageEstimate:
        """The message's estimate, computed once for a key and a raw count."""
        known = self._estimates.get(key)
        if known is not None and known[0] == message.raw_tokens and known[1] == first:
            return known[2]
        made = estimate_message(message, family, first)
        self._estimates[key] = (message.raw_tokens, first, made)
        return made

    def _finished(self, steps: Sequence[Step]) -> list[str]:
        """Ids of the steps that will not change any more. One that still runs is passed over (``_passed``): an exact
        count may come in meanwhile. When it ends, the list is another and the chain is made anew."""
        ids = [s.id for s in steps]
        start = 0 if self._passed else len(self._seen)
        self._passed = False
        for i, step in enumerate(steps[start:], start):
            if step.status == "running":
                self._passed = any(s.status != "running" for s in steps[i + 1 :])
                return [s.id for s in steps if s.status != "running"] if self._passed else ids[:i]
        return ids
