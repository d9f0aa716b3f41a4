"""A planned compaction as a value: where it may cut, which results it clears, and the records that carry it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.lost import LostReasoning, lost_reasoning
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.answers import DONE, model_sections
from agent_tui.context.compaction.summary import assemble, cut_message, facts_added, introduction_text
from agent_tui.context.compaction.summary_parts import file_lines
from agent_tui.context.cuts import CLEARED_SUFFIX
from agent_tui.context.tokens import char_tokens
from agent_tui.context.view import INTERRUPTED_SUFFIX, build_view
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import (
    APPROVED,
    RECALL_TOOL,
    SUMMARY_ID,
    Message,
    Part,
    SummaryPart,
    TextPart,
    new_id,
    summary_text,
)
from agent_tui.models.requests import SentMessage
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.records import dataclass
from agent_tui.text.numbers import interval, plural

if TYPE_CHECKING:
    from agent_tui.context.compaction.facts import Fact
    from agent_tui.context.compaction.ledger import Ledger

PROTECT_TOKENS = 40_000
PROTECT_SHARE = 0.20
"""Newest results that are never cleared: ``min(40k tokens, 20 % of the window)``."""

MIN_FREED_TOKENS = 20_000
MIN_FREED_SHARE = 0.10
"""Clearing less than ``min(20k tokens, 10 % of the window)`` is not worth breaking the prompt cache for."""

GOAL_SHARE = 0.60
"""Clearing aims at this share of the limit: room for several turns, and no more is cleared than that takes."""

SMALL_RESULT = 40
"""Results up to this many tokens stay: the placeholder would hardly be shorter."""

PLACEHOLDER_TOKENS = 26
"""About what a cleared result still costs: 18 tokens of text, and what most providers add to a result."""

APPENDED_SHARE = 0.05
"""Of the limit: facts that are added to a summary, but for the user's rules, which are added in any case."""

FILES_SHARE = 0.08
TODO_SHARE = 0.05
PLAN_SHARE = 0.08
"""The list of files, the todo list and the approved plan may take up to these shares of the limit, so that they cannot
crowd out a small window."""

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


def unseen_from(messages: Sequence[Message]) -> int:
    """Index of the first message the model has not answered yet (``len`` when there is none)."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "assistant":
            return index + 1
    return 0


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


CompactionReason: TypeAlias = Literal["auto", "manual", "overflow", "switch", "edit"]
Action: TypeAlias = Literal["prune", "summary", "not_worth_it", "nothing"]


@dataclass(slots=True, frozen=True)
class SummaryPlan:
    """The messages that a summary would replace. ``message_ids`` are all messages that it stands for, those of earlier
    summaries included: everything before the cut but the newest message of the user. ``fresh`` are the ones no model
    has summarised yet; ``previous`` is what the last summary says of the others. ``user_messages`` are kept word for
    word.

    ``approved`` are the lines of the plan the user agreed to. ``left_out`` above 0: no model is asked, so many
    messages are left out behind a placeholder. ``facts`` are those of all messages it stands for; those that stand
    neither in the summary nor in the messages that stay (``kept``) are added to it within ``facts_tokens``, the user's
    rules in any case.
    """

    message_ids: tuple[str, ...]
    kept_ids: tuple[str, ...]
    fresh: tuple[Message, ...]
    previous: str | None
    files: dict[str, list[str]]
    user_messages: tuple[str, ...]
    user_left_out: int
    tokens: int
    todo: tuple[str, ...] = ()
    left_out: int = 0
    approved: tuple[str, ...] = ()
    characters: int = 0
    """Of what it stands for, where the model can have it back (``recall``); 0: it cannot."""
    user_cut: str = ""
    """What is kept of a message that is too long to be kept whole."""
    facts: tuple[Fact, ...] = ()
    kept: tuple[Message, ...] = ()
    facts_tokens: float = 0.0
    rules_tokens: float = math.inf
    """Below that the user's rules are shortened to what fits: nothing else made room."""
    pinned: str = ""
    """The words that the user pinned (``pinned_text``)."""
    fold: bool = False
    """It stands for a range that the user chose, between messages that stay."""

    @property
    def needs_model(self) -> bool:
        return not self.left_out

    def message(self, sections: Mapping[str, str], record_id: str, created: float) -> Message:
        """The summary message, assembled from the model's sections and what is kept word for word, with the facts that
        would be missing without it."""
        lines = self._added(self.ledger(self._text(sections)))
        carried: list[Part] = [SummaryPart(self.pinned, record_id, pinned=True)] if self.pinned else []
        made = SummaryPart(self._text(sections, lines), record_id)
        return Message(new_id(SUMMARY_ID), "user", [made, *carried], created=created)

    def without_model(self) -> SummaryPlan:
        """The same plan where no model writes anything: of the messages stays what is kept word for word, with as many
        more facts as its summary would have been long."""
        left_out = self.left_out or max(1, len(self.fresh))
        return replace(self, left_out=left_out, tokens=0, facts_tokens=self.facts_tokens + self.tokens)

    def goes(self, view: Sequence[SentMessage]) -> list[str]:
        """Ids of what is sent now and would not be with this summary, earlier summaries included."""
        kept, ids = frozenset(self.kept_ids), frozenset(self.message_ids)
        ours = (item.message for item in view if item.message.id not in kept)
        return [m.id for m in ours if m.id in ids or any(isinstance(part, SummaryPart) for part in m.parts)]

    def with_facts(self, facts: tuple[Fact, ...], view: Sequence[SentMessage], tokens: float) -> SummaryPlan:
        """The plan with the facts of the messages that go and, of those in ``view``, the ones that stay; ``tokens`` are
        for what is added."""
        staying = frozenset(self.kept_ids)
        kept = tuple(sent.message for sent in view if sent.message.id in staying)
        return replace(self, facts=facts, kept=kept, facts_tokens=tokens)

    def missing(self, sections: Mapping[str, str]) -> tuple[Fact, ...]:
        """The facts that matter, that a model's sections lack and that there is no room to add: what it is asked for
        once more, in words that take no more than its sections."""
        ledger = self.ledger(self._text(sections))
        return ledger.missing(self._added(ledger), self.tokens)

    def repaired(self, first: Mapping[str, str], again: Mapping[str, str]) -> dict[str, str]:
        """The sections of a second answer, with the facts that only the ``first`` has: it takes nothing away."""
        had, has = (self.ledger(self._text(sections)).kept for sections in (first, again))
        left = set(has)
        lines = [f"- {' '.join(fact.text.split())}" for fact in had if fact not in left]
        return {**again, DONE: "\n".join(filter(None, [again.get(DONE), *lines]))} if lines else dict(again)

    def _added(self, ledger: Ledger) -> tuple[str, ...]:
        from agent_tui.context.compaction.ledger import appended

        return appended(ledger, self.facts_tokens, self.rules_tokens)

    def ledger(self, text: str) -> Ledger:
        """Where each fact stands once this is the summary's text."""
        from agent_tui.context.compaction.ledger import standing

        pinned = Message("", "user", [TextPart(self.pinned)])
        return standing(self.facts, text, (*self.kept, pinned), bool(self.characters))

    def _text(self, sections: Mapping[str, str], facts: Sequence[str] = ()) -> str:
        introduction = introduction_text(len(self.message_ids), self.characters, fold=self.fold)
        if self.left_out:
            sections = model_sections(self.previous or "")
            introduction = left_out_text(self.left_out, bool(self.characters))
        text = assemble(
            sections,
            file_lines(self.files),
            self.user_messages,
            self.user_left_out,
            self.todo,
            introduction,
            self.approved,
            facts,
        )
        return text + cut_message(self.user_cut) if self.user_cut else text


ReadFacts: TypeAlias = "Callable[[Sequence[Message]], list[Fact]]"


def facts_of(messages: Sequence[Message]) -> list[Fact]:
    """The facts that messages say."""
    from agent_tui.context.compaction.facts import read_facts

    return read_facts(messages)


@dataclass(slots=True, frozen=True)
class CompactionPlan:
    """The decision and the numbers behind it; ``expected_after`` is None when there is nothing that could be done.

    ``why`` is half a sentence for the user. ``fits``: what it leaves can be sent; ``needed``: without it nothing can.
    ``stuck``: nothing that may be taken away would make the next input fit. Holds what it was made from, so that it
    can be carried out.
    """

    action: Action
    reason: CompactionReason
    why: str
    before: int
    expected_after: int | None
    limit: int | None
    pruning: Pruning
    summary: SummaryPlan | None
    inputs: ContextInputs
    path: Sequence[Message]
    """Without what the user dropped, which is in ``whole``."""
    summaries: Mapping[str, Message]
    whole: Sequence[Message]
    focus: str = ""
    by: Literal["", "agent"] = ""
    fits: bool = True
    needed: bool = False
    stuck: bool = False
    before_estimated: bool = True
    before_spread: int = 0
    read: ReadFacts = facts_of
    folded_tokens: int | None = None
    """Of a fold: what its messages take now."""

    @property
    def before_text(self) -> str:
        """The size of what is compacted, in words."""
        return interval(self.before, self.before_spread, self.before_estimated)

    def view_after(self, records: Sequence[CompactionRecord], summary: Message | None) -> Sequence[SentMessage]:
        """Returns the messages that would be sent with these further records."""
        summaries = {**self.summaries, **({summary.id: summary} if summary is not None else {})}
        return build_view(self.whole, [*self.inputs.records, *records], summaries)

    def ledger(self, text: str) -> Ledger:
        """Where each fact stands once ``text`` is the summary's and what is pruned is gone."""
        assert self.summary is not None
        pruned = {*self.pruning.cleared, *self.pruning.clips}
        return replace(self.summary, kept=tuple(m for m in self.summary.kept if m.id not in pruned)).ledger(text)

    def usage_after(self, records: Sequence[CompactionRecord], summary: Message | None) -> ContextUsage:
        """The calculator's answer for the conversation with these further records."""
        return calculate_context_usage(self.inputs_after(records, summary))

    def lost(self, records: Sequence[CompactionRecord], summary: Message | None) -> LostReasoning | None:
        """The reasoning that is no longer sent with these further records."""
        turn_open = self.reason in ("auto", "overflow")
        return lost_reasoning(self.inputs, self.inputs_after(records, summary), turn_open=turn_open)

    def inputs_after(self, records: Sequence[CompactionRecord], summary: Message | None) -> ContextInputs:
        """What the calculator is given for it."""
        every, view = [*self.inputs.records, *records], self.view_after(records, summary)
        return replace(self.inputs, view=view, records=every)


def expected_message(summary: SummaryPlan, record_id: str) -> Message:
    """The summary as far as it is known before a model wrote its sections, as long as it is with their budget."""
    message = summary.message({}, record_id, 0.0)
    message.raw_tokens = int(char_tokens(summary_text(message))) + summary.tokens
    return message


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


def assembled_text(summary: Message) -> str:
    """The text of a summary message, without what it carries of the user's pins; empty of any other message."""
    return "".join(p.text for p in summary.parts if isinstance(p, SummaryPart) and not p.pinned)


def left_out_text(messages: int, recall: bool = False) -> str:
    """The placeholder of messages that were left out without a summary."""
    way = f" The tool {RECALL_TOOL} finds what they say." if recall else ""
    count = plural(messages, "older message")
    return f"[{count} left out here, without a summary.{way}]"


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
                facts=plan.ledger(assembled_text(summary)).counts(),
                appended=facts_added(assembled_text(summary)),
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


def valid_cuts(path: Sequence[Message]) -> list[bool]:
    """For each position, whether the conversation may be cut before it: never between a call and its result."""
    cuts = [True] * (len(path) + 1)
    result_ahead = False
    for index in range(len(path) - 1, -1, -1):
        role = path[index].role
        result_ahead = role == "tool" or (result_ahead and role == "user")
        cuts[index] = not result_ahead
    return cuts


def newest_user(path: Sequence[Message]) -> int | None:
    """Index of the newest message of the user; None without one."""
    return next((i for i in range(len(path) - 1, -1, -1) if path[i].role == "user"), None)


def cut_at_or_before(cuts: Sequence[bool], index: int) -> int:
    """The last valid cut up to an index; the beginning always is one."""
    while not cuts[index]:
        index -= 1
    return index
