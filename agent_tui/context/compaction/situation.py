"""What a compaction is planned from: the conversation as it stands, where it may be cut, and what a summary of a part
of it keeps. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.next_input import fits_to_send, may_be_refused
from agent_tui.context.accounting.sums import NextInput
from agent_tui.context.accounting.usage import Calculator
from agent_tui.context.compaction.answers import joined, model_sections
from agent_tui.context.compaction.summary_parts import (
    TODO_TOOL,
    collect_files,
    plan_lines,
    todo_lines,
    user_words,
    within,
)
from agent_tui.context.compaction.summary_plan import ReadFacts, SummaryPlan, assembled_text
from agent_tui.context.tokens import counted_chars, family_of
from agent_tui.context.view import build_view, summaries_in_force, without_dropped
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message, pinned_text
from agent_tui.models.steps import CompactionRecord
from agent_tui.tools.aliases import own_name

CompactionReason: TypeAlias = Literal["auto", "manual", "overflow", "switch", "edit"]

GOAL_SHARE = 0.60
"""Clearing aims at this share of the limit: room for several turns, and no more is cleared than that takes."""

APPENDED_SHARE = 0.05
"""Of the limit: facts that are added to a summary, but for the user's rules, which are added in any case."""

FILES_SHARE = 0.08
TODO_SHARE = 0.05
PLAN_SHARE = 0.08
"""The list of files, the todo list and the approved plan may take up to these shares of the limit, so that they cannot
crowd out a small window."""

KEEP_TOKENS = 20_000
KEEP_SHARE = 0.25
"""The newest messages kept word for word: up to ``min(20k tokens, 25 % of the limit)``, the newest exchange in any
case where it takes at most half of the limit."""

USER_SHARE = 0.10
"""The user's own messages kept word for word in the summary message: up to this share of the limit."""

OVERFLOW_SHARE = 0.75
"""After a provider overflow the window we know is wrong: aim at this share of what was refused."""

SUMMARY_SHARE = 0.05
SUMMARY_MIN = 400
SUMMARY_MAX = 4_096
"""Tokens the model's sections may take: 5 % of the limit within these bounds."""

FOLD_SHARE = 5
FOLD_MIN = 120
"""Those of a fold: one part in this many of its messages, and at least so many."""


class Situation:
    """Pure. ``usage`` is the calculator's answer for ``inputs``; ``path`` runs from the first message to the head.

    ``target`` is what to get below, ``goal`` what clearing aims at, ``scale`` what the shares are of. ``start`` is
    the first position that is not replaced yet, ``tail`` where the messages begin that the model has not answered,
    with the calls they belong to. ``pinned`` is the user's newest message, which always stays where it is. What the
    user dropped is in ``whole`` alone: no summary stands for it, and none says what it said.
    """

    def __init__(
        self,
        inputs: ContextInputs,
        usage: ContextUsage,
        path: Sequence[Message],
        summaries: Mapping[str, Message],
        reason: CompactionReason,
        read: ReadFacts,
        sums: Calculator | None = None,
    ) -> None:
        self.inputs, self.usage, self.reason, self.summaries, self.read = inputs, usage, reason, summaries, read
        self.sums = sums or Calculator()
        self.whole = path
        # What was dropped while a summary stood for it is still the summary's.
        stood_for = {i for r in summaries_in_force(path, inputs.records, summaries) for i in r.message_ids}
        self.path = [m for m in without_dropped(path, inputs.records, stood_for) if m.status != "streaming"]
        self.tokens = self.sums.message_tokens(inputs)
        self.before = usage.total
        # Without a known window the present size stands in for the limit, so that the shares mean something.
        self.scale = usage.limit if usage.limit else max(1, self.before)
        self.target: int | None = usage.limit
        if reason == "overflow":
            # The real window is smaller than what was refused, whatever we were told.
            self.scale = min(self.scale, max(1, self.before))
            self.target = min(self.scale, int(self.before * OVERFLOW_SHARE))
        self.goal = int(self.scale * GOAL_SHARE)
        self.cuts = valid_cuts(self.path)
        self.newest = newest_user(self.path)
        self._known: dict[int, SummaryPlan] = {}
        self._read_records()
        self.tail = cut_at_or_before(self.cuts, unseen_from(self.path))

    def _read_records(self) -> None:
        records, summaries = self.inputs.records, self.summaries
        self.force = summaries_in_force(self.path, records, summaries)
        hiding, folds = self._first_of(self.force)
        self.hidden = frozenset(hiding.message_ids) if hiding is not None else frozenset[str]()
        self.folded = {i: r.summary_id for r in folds for i in r.message_ids if r.summary_id is not None}
        inside = ""
        for index, message in enumerate(self.path):
            # A fold is kept or goes as one, and what it takes is counted where it stands.
            fold = self.folded.get(message.id, "")
            if fold and fold == inside:
                self.cuts[index] = False
            elif fold:
                self.tokens[message.id] = self.tokens.pop(fold, 0)
            inside = fold
        # What was only left out is still there to be summarised.
        written, self._written = self._first_of(
            summaries_in_force(self.path, [r for r in records if not r.left_out], summaries)
        )
        self.summarised = frozenset(written.message_ids) if written is not None else frozenset[str]()
        previous = summaries.get(written.summary_id) if written is not None and written.summary_id else None
        text = assembled_text(previous) if previous is not None else ""
        self.previous = (joined(model_sections(text)) or text) if previous is not None else None
        self.start = max((i + 1 for i, m in enumerate(self.path) if m.id in self.hidden), default=0)
        newest = self.path[self.newest] if self.newest is not None else None
        gone = newest is None or newest.id in self.hidden or newest.id in self.folded
        self.pinned = None if gone or newest is None else newest.id

    def _first_of(
        self, force: Sequence[CompactionRecord]
    ) -> tuple[CompactionRecord | None, Sequence[CompactionRecord]]:
        """The summary with which the conversation begins, and those of ranges further on."""
        begins = {message.id for message in self.path[:1]}
        first = next((r for r in force if r.reason != "edit" or not begins.isdisjoint(r.message_ids)), None)
        return first, [record for record in force if record is not first]

    def fresh(self, replaced: Sequence[Message]) -> tuple[Message, ...]:
        """Those of the messages that no summary stands for but that of a fold, which is one of them."""
        folds = {i: r.summary_id for r in self._written for i in r.message_ids if r.summary_id is not None}
        found: dict[str, Message] = {}
        for message in replaced:
            if message.id not in self.summarised:
                sent = self.summaries[folds[message.id]] if message.id in folds else message
                found.setdefault(sent.id, sent)
        return tuple(found.values())

    def inputs_after(self, records: Sequence[CompactionRecord], summary: Message | None) -> ContextInputs:
        """What would be sent with these further records, and what the calculator is given for it."""
        every = [*self.inputs.records, *records]
        return replace(self.inputs, records=every, view=build_view(self.whole, every, self._with(summary)))

    def size_after(self, records: Sequence[CompactionRecord], summary: Message | None) -> NextInput:
        """The sum of what would be sent with these further records."""
        return self.sums.size(self.inputs_after(records, summary))

    def after(self, records: Sequence[CompactionRecord], summary: Message | None) -> Situation:
        """The situation once these records are in force."""
        inputs = self.inputs_after(records, summary)
        usage = self.usage_of(self.sums.size(inputs))
        return Situation(inputs, usage, self.whole, self._with(summary), self.reason, self.read, self.sums)

    def usage_of(self, size: NextInput) -> ContextUsage:
        """The next input as it is held against limit and window were it of this size."""
        return replace(self.usage, total=size.total, spread=size.spread, pending=size.pending)

    def _with(self, summary: Message | None) -> Mapping[str, Message]:
        return self.summaries if summary is None else {**self.summaries, summary.id: summary}

    def fits(self, size: NextInput) -> bool:
        """Returns whether what a plan leaves can be sent, by numbers that may be wrong (``doubtful``)."""
        after = self.usage_of(size)
        if self.doubtful and self.target is not None and after.total > self.target:
            return False
        return not may_be_refused(after) if fits_to_send(self.usage) else fits_to_send(after)

    @property
    def doubtful(self) -> bool:
        """True when the provider refused as too long what fits by our numbers."""
        return self.reason == "overflow" and fits_to_send(self.usage)

    @property
    def needed(self) -> bool:
        """True when nothing can be sent as it is."""
        return self.reason == "overflow" or not fits_to_send(self.usage)

    @property
    def pressing(self) -> bool:
        """True when what is sent as it is may be refused: whatever helps is welcome."""
        return self.needed or may_be_refused(self.usage)

    def replaced(self, cut: int) -> list[Message]:
        """Returns the messages that a summary of everything before ``cut`` stands for."""
        return [m for m in self.path[:cut] if m.id != self.pinned]

    def carried(self, replaced: Sequence[Message]) -> list[Message]:
        """Those of them that the user pinned."""
        return [m for m in replaced if m.id in self.inputs.pinned]

    def gone(self, cut: int) -> int:
        """Tokens of the messages that such a summary takes away."""
        return sum(self.tokens.get(m.id, 0) for m in self.replaced(cut) if m.id not in self.hidden)

    def keep_cut(self, asked: bool) -> int:
        """The cut that keeps as many of the newest messages as their budget allows; ``asked`` by the user, at any
        size: then a quarter, so that there is something to summarise."""
        keep = min(KEEP_TOKENS, int(self.scale * KEEP_SHARE))
        newest = sum(self.tokens.get(m.id, 0) for m in self.path[self.newest or 0 :])
        half = self.scale // 2
        if asked:
            whole = sum(self.tokens.values())
            keep, half = min(keep, whole // 4), min(half, whole // 2)
        if newest <= half:
            keep = max(keep, newest)
        best, cost = self.tail, 0
        for index in range(len(self.path) - 1, self.start, -1):
            cost += self.tokens.get(self.path[index].id, 0)
            if cost > keep:
                break
            if self.cuts[index] and index <= self.tail:
                best = index
        answer = self._last_answer()
        if self.start < answer < best and sum(self.tokens.get(m.id, 0) for m in self.path[answer:best]) <= half:
            best = answer
        return best

    def _last_answer(self) -> int:
        last = next((i for i in range(self.tail - 1, -1, -1) if self.path[i].role == "assistant"), self.tail)
        return cut_at_or_before(self.cuts, last)

    def shorter_cuts(self, cut: int) -> list[int]:
        """Cuts after ``cut`` that keep less and less: the last answer, what is unanswered, the user's newest message
        with nothing around it."""
        places = [self._last_answer(), self.tail, self.newest or 0, len(self.path)]
        return sorted({p for p in places if self.cuts[p] and p > max(cut, self.start)})

    def newest_results(self, cut: int) -> list[Message]:
        """The results of the newest turn, as they are sent, that a cut leaves."""
        first = max(cut, min(self.newest if self.newest is not None else self.tail, self.tail))
        ids = {m.id for m in self.path[first:] if m.role == "tool"} - self.hidden
        return [s.message for s in self.inputs.view if s.message.id in ids]

    def summary(self, cut: int) -> SummaryPlan | None:
        """A summary of everything before ``cut``; None when there is nothing new to summarise."""
        replaced = self.replaced(cut)
        fresh = self.fresh(replaced)
        if not fresh:
            return None
        size = sum(self.tokens.get(m.id, 0) for m in replaced if m.id not in self.summarised)
        most = min(SUMMARY_MAX, max(SUMMARY_MIN, int(self.scale * SUMMARY_SHARE)))
        tokens = min(most, max(SUMMARY_MIN, size // 2)) if fresh[0].id not in self.hidden else most
        return self._summary(cut, replaced, fresh, tokens)

    def as_of_now(self, then: SummaryPlan) -> SummaryPlan | None:
        """The summary of an earlier plan as it would be planned now; None where a model would read something else."""
        cut = next((i for i, m in enumerate(self.path, 1) if m.id == then.message_ids[-1]), 0)
        replaced = [m for m in self.path[:cut] if m.id in then.message_ids]
        fresh = self.fresh(replaced)
        if (fresh, self.previous) != (then.fresh, then.previous):
            return None
        return self._summary(cut, replaced, fresh, then.tokens)

    def leaving_out(self, cut: int, *, rules: float | None = None) -> SummaryPlan | None:
        """The messages before ``cut`` left out without a model's help; with ``rules`` they keep nothing, not even what
        an earlier summary kept, but the user's rules, within so many tokens. None when they are gone already."""
        replaced = self.replaced(cut)
        count = len([m for m in replaced if m.id not in self.summarised])
        if not replaced or (rules is None and all(m.id in self.hidden for m in replaced)):
            return None
        if rules is not None:
            gone, carried = {m.id for m in replaced}, pinned_text(self.carried(replaced))
            ids = tuple(m.id for m in replaced)
            bared = SummaryPlan(
                ids, self.staying(gone), (), None, {}, (), 0, 0, (), len(ids), rules_tokens=rules, pinned=carried
            )
            return self._with_facts(bared, cut, replaced, 0.0)
        return self._summary(cut, replaced, (), 0, max(1, count))

    def staying(self, gone: Container[str]) -> tuple[str, ...]:
        """Ids of what is sent beside a summary of the messages that are ``gone``, earlier summaries included."""
        stands = {i: r.summary_id for r in self.force for i in r.message_ids if r.summary_id is not None}
        return tuple(dict.fromkeys(stands.get(m.id, m.id) for m in self.path if m.id not in gone))

    def fold(self, first: int, cut: int) -> SummaryPlan:
        """A summary of the messages from ``first`` up to ``cut``, in their place."""
        replaced = self.path[first:cut]
        size = sum(self.tokens.get(m.id, 0) for m in replaced)
        tokens = min(SUMMARY_MAX, max(FOLD_MIN, size // FOLD_SHARE))
        return self._summary(cut, replaced, self.fresh(replaced), tokens, first=first)

    def _summary(
        self,
        cut: int,
        replaced: list[Message],
        fresh: tuple[Message, ...],
        tokens: int,
        left_out: int = 0,
        *,
        first: int | None = None,
    ) -> SummaryPlan:
        """``first``: of a fold, where it begins."""
        gone, begin = {m.id for m in replaced}, first or 0
        stale = any(own_name(c.name) == TODO_TOOL for m in self.path[cut:] for c in m.tool_calls)
        read = self.path[begin:cut]
        carried, family = self.carried(replaced), family_of(self.inputs.model.target)
        free = [m for m in replaced if m not in carried]
        words, user_cut, others = user_words(free, int(self.scale * USER_SHARE), family)
        made = SummaryPlan(
            tuple(m.id for m in replaced),
            self.staying(gone),
            fresh,
            self.previous if begin == 0 else None,
            within(collect_files(read, recall=self.inputs.recall), int(self.scale * FILES_SHARE)),
            words,
            others,
            tokens,
            () if stale else todo_lines(read, int(self.scale * TODO_SHARE)),
            left_out,
            plan_lines(self.path[begin:], cut - begin, int(self.scale * PLAN_SHARE)),
            sum(map(counted_chars, replaced)) if self.inputs.recall else 0,
            user_cut,
            pinned=pinned_text(carried),
            fold=first is not None,
        )
        return self._with_facts(made, cut, replaced, self.scale * APPENDED_SHARE)

    def _with_facts(self, made: SummaryPlan, cut: int, replaced: list[Message], tokens: float) -> SummaryPlan:
        facts = self._known[cut].facts if cut in self._known else tuple(self.read(replaced))
        self._known[cut] = made = made.with_facts(facts, self.inputs.view, tokens)
        return made


def unseen_from(messages: Sequence[Message]) -> int:
    """Index of the first message the model has not answered yet (``len`` when there is none)."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "assistant":
            return index + 1
    return 0


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
