"""A planned compaction as a value: which results it clears, what it summarises, and the records that carry it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.lost import LostReasoning, lost_reasoning
from agent_tui.context.compaction.situation import CompactionReason, Situation, unseen_from
from agent_tui.context.compaction.summary_plan import SummaryPlan
from agent_tui.context.cuts import CLEARED_SUFFIX
from agent_tui.context.view import INTERRUPTED_SUFFIX
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import (
    APPROVED,
    Message,
    SummaryPart,
    new_id,
)
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.records import dataclass

PROTECT_TOKENS = 40_000
PROTECT_SHARE = 0.20
"""Newest results that are never cleared: ``min(40k tokens, 20 % of the window)``."""

MIN_FREED_TOKENS = 20_000
MIN_FREED_SHARE = 0.10
"""Clearing less than ``min(20k tokens, 10 % of the window)`` is not worth breaking the prompt cache for."""

SMALL_RESULT = 40
"""Results up to this many tokens stay: the placeholder would hardly be shorter."""

PLACEHOLDER_TOKENS = 26
"""About what a cleared result still costs: 18 tokens of text, and what most providers add to a result."""

CLIP_SPARE = 1.1
"""Results are clipped by this much more than is missing: what a text costs is not proportional to its length."""

BREATH_STEPS = 4
"""Model calls that should lie between one pruning and the next: each rewrites the provider's prompt cache."""


@dataclass(slots=True, frozen=True)
class Pruning:
    """``cleared`` are message ids sent as a placeholder, oldest first; ``clips`` maps ids to the characters kept."""

    cleared: tuple[str, ...] = ()
    clips: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.cleared or self.clips)

    def only(self, ids: frozenset[str]) -> Pruning:
        """The part of it that concerns these messages."""
        return Pruning(tuple(i for i in self.cleared if i in ids), {i: n for i, n in self.clips.items() if i in ids})

    def clipping(self, clips: Mapping[str, int]) -> Pruning:
        """The same with further clips; what is cleared needs none."""
        return Pruning(self.cleared, {**self.clips, **{i: n for i, n in clips.items() if i not in self.cleared}})


def plan_clearing(
    view: Sequence[SentMessage], tokens: Mapping[str, int], window: int, needed: int | None = None
) -> Pruning:
    """The results to clear, oldest first until about ``needed`` tokens are freed (None: all that may be).

    The newest result, those the model has not seen, the protected newest ones and plans that were approved stay.
    ``tokens`` are the costs of the messages in ``view``; ``window`` is the model's, or what stands in for it. Empty
    when too little would be freed. User and assistant messages and tool calls are never touched, and a result inside a
    long turn is as good as one of an earlier turn.
    """
    protect = min(PROTECT_TOKENS, int(window * PROTECT_SHARE))
    enough = min(MIN_FREED_TOKENS, int(window * MIN_FREED_SHARE))
    seen = unseen_from([sent.message for sent in view])
    candidates: list[tuple[str, int]] = []
    kept = 0
    newest = True
    for index in range(len(view) - 1, -1, -1):
        message, key = view[index].message, view[index].key
        if message.role != "tool" or CLEARED_SUFFIX in key or INTERRUPTED_SUFFIX in key:
            continue
        cost = tokens.get(message.id, 0)
        kept += cost
        if newest or index >= seen or kept <= protect:
            newest = False
            continue
        if cost > SMALL_RESULT and not _approved_plan(message):
            candidates.append((message.id, cost - PLACEHOLDER_TOKENS))
    cleared: list[str] = []
    freed = 0
    for message_id, gain in reversed(candidates):
        if needed is not None and freed >= needed:
            break
        cleared.append(message_id)
        freed += gain
    return Pruning(tuple(cleared)) if cleared and freed >= enough else Pruning()


def _approved_plan(message: Message) -> bool:
    """The user's version of a plan stands in the result alone."""
    result = message.tool_result
    return result is not None and bool(result.display) and APPROVED in (result.display or {})


def pruned_just_now(records: Sequence[CompactionRecord], steps: Sequence[Step]) -> bool:
    """Returns whether the newest compaction in force only cleared results and fewer than ``BREATH_STEPS`` calls were
    answered since."""
    active = [r for r in records if r.active and r.compacts]
    if not active:
        return False
    newest = max(active, key=lambda r: r.created)
    if any(r.kind != "prune" for r in active if r.operation_id == newest.operation_id):
        return False
    since = sum(s.kind == "turn" and s.status == "complete" and s.created > newest.created for s in steps)
    return since < BREATH_STEPS


Action: TypeAlias = Literal["prune", "summary", "not_worth_it", "nothing"]

UNDO = "/compact undo"
UNDO_EDIT = "/context undo"


@dataclass(slots=True, frozen=True)
class CompactionPlan:
    """The decision and the numbers behind it; ``expected_after`` is None when there is nothing that could be done.

    ``why`` is half a sentence for the user. ``now`` is what it was made from, so that it can be carried out. ``fits``:
    what it leaves can be sent. ``stuck``: nothing that may be taken away would make the next input fit.
    ``folded_tokens``: of a fold, what its messages take now.
    """

    action: Action
    why: str
    now: Situation
    pruning: Pruning = Pruning()
    summary: SummaryPlan | None = None
    expected_after: int | None = None
    focus: str = ""
    by: Literal["", "agent"] = ""
    fits: bool = True
    stuck: bool = False
    folded_tokens: int | None = None

    @property
    def reason(self) -> CompactionReason:
        return self.now.reason

    @property
    def before(self) -> int:
        return self.now.before

    @property
    def limit(self) -> int | None:
        return self.now.usage.limit

    @property
    def before_estimated(self) -> bool:
        return self.now.usage.approximate

    @property
    def inputs(self) -> ContextInputs:
        return self.now.inputs

    def lost(self, records: Sequence[CompactionRecord], summary: Message | None) -> LostReasoning | None:
        """The reasoning that is no longer sent with these further records."""
        turn_open = self.reason in ("auto", "overflow")
        return lost_reasoning(self.inputs, self.now.inputs_after(records, summary), turn_open=turn_open)


@dataclass(slots=True, frozen=True)
class CompactionFigures:
    """A compaction, made or only planned: tokens of the next input before it and ``after`` it, by the row that draws
    them (``ContextUsage.stack``), and what there is to ``say``. Empty where nothing is changed, or that is not known
    any more."""

    say: str
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)
    limit: int | None = None
    rough: bool = True
    """``before`` is an estimate; ``after`` always is."""


def stays_whole(view: Sequence[SentMessage]) -> int:
    """Returns how many of the messages that are sent are so word for word: no summary, and nothing cleared or cut."""
    return sum(
        item.stored is None and not any(isinstance(part, SummaryPart) for part in item.message.parts) for item in view
    )


def records_of(
    plan: CompactionPlan, created: float, operation_id: str, record_id: str, summary: Message | None
) -> list[CompactionRecord]:
    """The records that carry out a plan; the numbers of the outcome are filled in by the caller. They sort after all
    earlier ones even when the clock was set back."""
    newest = max((r.created for r in plan.inputs.records), default=0.0)
    created = created if created > newest else newest + 0.001
    records: list[CompactionRecord] = []
    if plan.pruning:
        ids = [*plan.pruning.cleared, *plan.pruning.clips]
        clips = dict(plan.pruning.clips)
        records.append(
            CompactionRecord(
                new_id("rec"),
                operation_id,
                "prune",
                ids,
                created=created,
                reason=plan.reason,
                by=plan.by,
                clips=clips,
                recall=plan.inputs.recall,
            )
        )
    if plan.summary is not None and summary is not None:
        records.append(
            CompactionRecord(
                record_id,
                operation_id,
                "summary",
                list(plan.summary.message_ids),
                created=created,
                reason=plan.reason,
                by=plan.by,
                summary_id=summary.id,
                kept_messages=None if plan.summary.fold else len(plan.summary.kept_ids),
                focus=plan.focus or None,
                files=list(plan.summary.files),
                left_out=plan.summary.left_out,
            )
        )
    return records


def undo_target(records: Sequence[CompactionRecord], path: Sequence[Message]) -> str | None:
    """The operation an undo takes back: the newest active one that is in force on this path; None without one."""
    on_path = {m.id for m in path}
    for record in sorted(records, key=lambda r: r.created, reverse=True):
        if not record.active or not record.message_ids or not record.compacts:
            continue
        if record.kind == "summary":
            if on_path.issuperset(record.message_ids):
                return record.operation_id
        elif not on_path.isdisjoint(record.message_ids):
            return record.operation_id
    return None


def message_tokens(usage: ContextUsage) -> dict[str, int]:
    """Returns the cost of each sent message, from the breakdown's leaves: they add up to the messages' row."""
    costs: dict[str, int] = {}
    for row in usage.rows:
        if row.id == "messages":
            for leaf in row.leaves():
                if leaf.message_id is not None:
                    costs[leaf.message_id] = costs.get(leaf.message_id, 0) + leaf.tokens
    return costs
