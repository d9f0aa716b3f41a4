"""Planning a compaction: what is cleared, what is summarised, what stays word for word, and what it will bring. Pure.
Every number comes from the one calculator, asked about the conversation as it would be afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.next_input import fits_to_send, may_be_refused
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.answers import MIN_GAIN, joined, model_sections
from agent_tui.context.compaction.notices import stuck_why, too_little_why
from agent_tui.context.compaction.plan import (
    APPENDED_SHARE,
    CLIP_SPARE,
    FILES_SHARE,
    GOAL_SHARE,
    PLAN_SHARE,
    TODO_SHARE,
    Action,
    CompactionPlan,
    CompactionReason,
    Pruning,
    ReadFacts,
    SummaryPlan,
    assembled_text,
    cut_at_or_before,
    facts_of,
    message_tokens,
    newest_user,
    plan_clearing,
    pruned_just_now,
    records_of,
    unseen_from,
    valid_cuts,
)
from agent_tui.context.compaction.summary_parts import (
    TODO_TOOL,
    collect_files,
    plan_lines,
    todo_lines,
    user_words,
    within,
)
from agent_tui.context.tokens import char_tokens, counted_chars, family_of
from agent_tui.context.view import applicable_summary, plan_clips
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message, new_id, pinned_text, summary_text
from agent_tui.models.steps import CompactionRecord
from agent_tui.text.numbers import percent, tokens
from agent_tui.tools.aliases import own_name

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


class Situation:
    """Pure. ``usage`` is the calculator's answer for ``inputs``; ``path`` runs from the first message to the head.

    ``target`` is what to get below, ``goal`` what clearing aims at, ``scale`` what the shares are of. ``start`` is
    the first position that is not replaced yet, ``tail`` where the messages begin that the model has not answered,
    with the calls they belong to. ``pinned`` is the user's newest message, which always stays where it is.
    """

    def __init__(
        self,
        inputs: ContextInputs,
        usage: ContextUsage,
        path: Sequence[Message],
        summaries: Mapping[str, Message],
        reason: CompactionReason,
        read: ReadFacts,
    ) -> None:
        self.inputs, self.usage, self.reason, self.summaries, self.read = inputs, usage, reason, summaries, read
        self.path = [m for m in path if m.status != "streaming"]
        self.tokens = message_tokens(usage)
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
        self.tail = cut_at_or_before(self.cuts, unseen_from(self.path))
        self.newest = newest_user(self.path)
        self._known: dict[int, SummaryPlan] = {}
        self._read_records()

    def _read_records(self) -> None:
        records, summaries = self.inputs.records, self.summaries
        hiding = applicable_summary(self.path, records, summaries)
        self.hidden = frozenset(hiding.message_ids) if hiding is not None else frozenset[str]()
        # What was only left out is still there to be summarised.
        written = applicable_summary(self.path, [r for r in records if not r.left_out], summaries)
        self.summarised = frozenset(written.message_ids) if written is not None else frozenset[str]()
        previous = summaries.get(written.summary_id) if written is not None and written.summary_id else None
        text = assembled_text(previous) if previous is not None else ""
        self.previous = (joined(model_sections(text)) or text) if previous is not None else None
        self.start = max((i + 1 for i, m in enumerate(self.path) if m.id in self.hidden), default=0)
        newest = self.path[self.newest] if self.newest is not None else None
        self.pinned = newest.id if newest is not None and newest.id not in self.hidden else None

    def fits(self, after: ContextUsage) -> bool:
        """Returns whether what a plan leaves can be sent, by numbers that may be wrong (``doubtful``)."""
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
        fresh = tuple(m for m in replaced if m.id not in self.summarised)
        if not fresh:
            return None
        size = sum(self.tokens.get(m.id, 0) for m in fresh)
        most = min(SUMMARY_MAX, max(SUMMARY_MIN, int(self.scale * SUMMARY_SHARE)))
        tokens = min(most, max(SUMMARY_MIN, size // 2)) if fresh[0].id not in self.hidden else most
        return self._summary(cut, replaced, fresh, tokens)

    def as_of_now(self, then: SummaryPlan) -> SummaryPlan | None:
        """The summary of an earlier plan as it would be planned now; None where a model would read something else."""
        cut = next((i for i, m in enumerate(self.path, 1) if m.id == then.message_ids[-1]), 0)
        replaced = [m for m in self.path[:cut] if m.id in then.message_ids]
        fresh = tuple(m for m in replaced if m.id not in self.summarised)
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
            ids, kept = tuple(m.id for m in replaced), tuple(m.id for m in self.path if m.id not in gone)
            bared = SummaryPlan(ids, kept, (), None, {}, (), 0, 0, (), len(ids), rules_tokens=rules, pinned=carried)
            return self._with_facts(bared, cut, replaced, 0.0)
        return self._summary(cut, replaced, (), 0, max(1, count))

    def _summary(
        self, cut: int, replaced: list[Message], fresh: tuple[Message, ...], tokens: int, left_out: int = 0
    ) -> SummaryPlan:
        gone = {m.id for m in replaced}
        stale = any(own_name(c.name) == TODO_TOOL for m in self.path[cut:] for c in m.tool_calls)
        carried, family = self.carried(replaced), family_of(self.inputs.model.target)
        free = [m for m in replaced if m not in carried]
        words, user_cut, others = user_words(free, int(self.scale * USER_SHARE), family)
        made = SummaryPlan(
            tuple(m.id for m in replaced),
            tuple(m.id for m in self.path if m.id not in gone),
            fresh,
            self.previous,
            within(collect_files(self.path[:cut], recall=self.inputs.recall), int(self.scale * FILES_SHARE)),
            words,
            others,
            tokens,
            () if stale else todo_lines(self.path[:cut], int(self.scale * TODO_SHARE)),
            left_out,
            plan_lines(self.path, cut, int(self.scale * PLAN_SHARE)),
            sum(map(counted_chars, replaced)) if self.inputs.recall else 0,
            user_cut,
            pinned=pinned_text(carried),
        )
        return self._with_facts(made, cut, replaced, self.scale * APPENDED_SHARE)

    def _with_facts(self, made: SummaryPlan, cut: int, replaced: list[Message], tokens: float) -> SummaryPlan:
        facts = self._known[cut].facts if cut in self._known else tuple(self.read(replaced))
        self._known[cut] = made = made.with_facts(facts, self.inputs.view, tokens)
        return made


WORTH_SUMMARISING = 0.10
"""A call is the better means only where what it would summarise takes at least this share of the limit."""

MUCH = 0.20
"""Where the next input can be sent as it is and stays over the limit even then, a compaction has to free this share of
it: else every step would be preceded by one."""

MAX_TRIES = 6
"""Cuts at which leaving out old turns is worked out, the last of which keeps least."""


def plan_compaction(
    inputs: ContextInputs,
    usage: ContextUsage,
    path: Sequence[Message],
    summaries: Mapping[str, Message],
    *,
    reason: CompactionReason = "manual",
    focus: str = "",
    without_model: bool = False,
    read: ReadFacts = facts_of,
) -> CompactionPlan:
    """Returns the plan of what a compaction would do now, by the mildest means that help: clear old tool results,
    summarise, clip the newest turn's results, keep fewer messages word for word, leave out the oldest turns.

    ``usage`` must be the calculator's answer for ``inputs``. ``without_model``: the means that need no model call.
    """
    return _Planner(Situation(inputs, usage, path, summaries, reason, read), focus, without_model).plan()


def plan_without_model(
    plan: CompactionPlan, records: Sequence[CompactionRecord] = (), summary: Message | None = None
) -> CompactionPlan:
    """Returns what can still be done when a plan's summary failed, or, with the ``records`` and the ``summary`` that
    were made for it, when they are not enough. The plan for the latter stands for them as well: it is carried out
    alone."""
    every = [*plan.inputs.records, *records]
    summaries = {**plan.summaries, **({summary.id: summary} if summary is not None else {})}
    inputs = replace(plan.inputs, records=every)
    if records:
        inputs = replace(inputs, view=plan.view_after(records, summary))
    usage = calculate_context_usage(inputs)
    made = plan_compaction(inputs, usage, plan.path, summaries, reason=plan.reason, without_model=True, read=plan.read)
    earlier = next((r for r in records if r.kind == "prune"), None)
    if earlier is not None:
        clips = {**earlier.clips, **made.pruning.clips}
        cleared = (*(i for i in earlier.message_ids if i not in earlier.clips), *made.pruning.cleared)
        made = replace(made, pruning=Pruning(cleared, {i: n for i, n in clips.items() if i not in cleared}))
    return replace(made, inputs=plan.inputs, before=plan.before, focus=plan.focus)


class _Planner:
    def __init__(self, situation: Situation, focus: str, without_model: bool) -> None:
        self.s, self.focus, self.without_model = situation, focus, without_model
        self.asked = situation.reason in ("manual", "cheaper")
        window = situation.usage.window or situation.scale
        view, tokens = situation.inputs.view, situation.tokens
        missing = situation.before - situation.goal
        self.goal = plan_clearing(view, tokens, window, missing + missing // 50) if missing > 0 else Pruning()
        self.all = plan_clearing(view, tokens, window)

    def plan(self) -> CompactionPlan:
        if not self.s.path:
            return self._plan("nothing", "the conversation is empty")
        tried: list[CompactionPlan] = []
        for plan in self._means():
            if self._good(plan):
                return plan
            tried.append(plan)
        for plan in tried:
            if self._acceptable(plan):
                return plan
        best = max(tried, key=self._gain, default=None)
        if best is not None and self.s.doubtful and self._gain(best) >= self._enough():
            # It is not known how much is too much: the most that can be done is worth the one further try.
            return best
        return self._refused(tried)

    def _means(self) -> Iterator[CompactionPlan]:
        """Yields the plans that could be carried out, the preferred first. Each is worked out only when those before it
        did not do."""
        s = self.s
        if self.asked:
            cut = s.keep_cut(True)
            yield from self._left_out(cut) if self.without_model else self._summaries(cut, clipping=False)
            if not s.needed and (s.target is None or s.before <= s.target):
                yield from self._clearing(clipping=False)
                return
        if self.goal and not (pruned_just_now(s.inputs.records, s.inputs.steps) and not self.without_model):
            plan = self._plan("prune", "", self.goal)
            if (plan.expected_after or 0) <= s.goal:
                yield plan
        cut = s.keep_cut(False)
        worth = s.gone(cut) >= s.scale * WORTH_SUMMARISING
        if worth and not self.asked:
            yield from self._summaries(cut, clipping=False)
        yield from self._clearing(clipping=not (worth and not self.without_model))
        yield from self._summaries(cut, clipping=True)
        for shorter in s.shorter_cuts(cut):
            yield from self._summaries(shorter, clipping=True)
        if worth and not self.without_model:
            yield from self._clearing(clipping=True)
        if s.needed or self.without_model:
            yield from self._leaving_out()

    def _summaries(self, cut: int, *, clipping: bool) -> Iterator[CompactionPlan]:
        if self.without_model or cut < self.s.start:
            return
        if (summary := self.s.summary(cut)) is not None:
            yield from self._with_clips(summary, cut, self.all if clipping else Pruning(), clipping)

    def _clearing(self, *, clipping: bool) -> Iterator[CompactionPlan]:
        if self.all or clipping:
            yield from self._with_clips(None, self.s.start, self.all, clipping)

    def _with_clips(
        self, summary: SummaryPlan | None, cut: int, pruning: Pruning, clipping: bool
    ) -> Iterator[CompactionPlan]:
        """The plan, or with ``clipping`` the plan that clips the newest turn's results as far as it takes."""
        action: Action = "summary" if summary is not None else "prune"
        if summary is not None:
            pruning = pruning.only(frozenset(summary.kept_ids))
        plan = self._plan(action, "", pruning, summary) if pruning or summary is not None else None
        if not clipping:
            if plan is not None:
                yield plan
            return
        after = self.s.before if plan is None or plan.expected_after is None else plan.expected_after
        results = [m for m in self.s.newest_results(cut) if m.id not in pruning.cleared]
        size = sum(self.s.tokens.get(m.id, 0) for m in results)
        target = self.s.target if self.s.target is not None else after
        clips = plan_clips(results, self.s.tokens, int(size - (after - target) * CLIP_SPARE)) if after > target else {}
        if clips:
            yield self._plan(action, "", pruning.clipping(clips), summary)
        elif plan is not None:
            yield plan

    def _leaving_out(self) -> Iterator[CompactionPlan]:
        """Without the oldest turns: as few of them as reach the goal, then more, at last all but the user's newest
        message and their rules, of which some give way where there is no room for all."""
        s = self.s
        turns = [i for i in range(s.start + 1, len(s.path)) if s.path[i].role == "user" and s.cuts[i]]
        first = next((i for i, cut in enumerate(turns) if s.before - s.gone(cut) <= s.goal), len(turns))
        enough = turns[first:]
        step = max(1, len(enough) // MAX_TRIES)
        for cut in sorted({*enough[::step], *enough[-1:], *s.shorter_cuts(s.start)}):
            yield from self._left_out(cut)
        for rules in (math.inf, s.scale * USER_SHARE, 0.0) if s.needed else ():
            for cut in [*s.shorter_cuts(s.start)[-2:]] or [len(s.path)]:
                yield from self._left_out(cut, rules)

    def _left_out(self, cut: int, rules: float | None = None) -> Iterator[CompactionPlan]:
        if (summary := self.s.leaving_out(cut, rules=rules)) is not None:
            yield from self._with_clips(summary, cut, self.all, clipping=True)

    def _plan(
        self, action: Action, why: str, pruning: Pruning | None = None, summary: SummaryPlan | None = None
    ) -> CompactionPlan:
        s = self.s
        plan = CompactionPlan(
            action,
            s.reason,
            why,
            s.before,
            None,
            s.usage.limit,
            pruning or Pruning(),
            summary,
            s.inputs,
            s.path,
            s.summaries,
            self.focus,
            needed=s.needed,
            before_estimated=s.usage.approximate,
        )
        if action in ("nothing", "not_worth_it"):
            return plan
        record_id = new_id("rec")
        message = None
        if summary is not None:
            message = summary.message({}, record_id, 0.0)
            # What is known of its text, plus the budget of the sections that a model will write.
            message.raw_tokens = int(char_tokens(summary_text(message))) + summary.tokens
        records = records_of(plan, 0.0, "", record_id, message)
        after = plan.usage_after(records, message)
        return replace(plan, expected_after=after.total, fits=s.fits(after), why=self._why(after.total), read=s.read)

    def _why(self, after: int) -> str:
        s = self.s
        numbers = f"{tokens(s.before, s.usage.approximate)} → expected {tokens(after, True)}"
        if s.usage.limit is not None and s.before > s.usage.limit:
            return f"the next input is over the limit of {tokens(s.usage.limit, False)}; {numbers}"
        if s.reason == "overflow":
            return f"the provider says the request is too long; {numbers}"
        if may_be_refused(s.usage):
            return f"the next input may be as long as {tokens(s.usage.high, False)}; {numbers}"
        return f"asked for; {numbers}" if self.asked else numbers

    def _gain(self, plan: CompactionPlan) -> int:
        return self.s.before - (plan.expected_after if plan.expected_after is not None else self.s.before)

    def _enough(self) -> int:
        """Tokens a compaction has to free: 5 % of the conversation for one that was asked for, else of the limit."""
        own = int(self.s.before * MIN_GAIN)
        return max(1, own) if self.asked else max(1, own, int(self.s.scale * MIN_GAIN))

    def _good(self, plan: CompactionPlan) -> bool:
        """Returns whether a plan does all that is wanted, so that nothing further has to be looked at."""
        after = plan.expected_after
        below = after is not None and (self.s.target is None or after <= self.s.target)
        return below and plan.fits and self._gain(plan) >= (1 if self.s.pressing else self._enough())

    def _acceptable(self, plan: CompactionPlan) -> bool:
        """Returns whether a plan is better than nothing: what it leaves can be sent."""
        if not plan.fits:
            return False
        if self.s.pressing:
            return self._gain(plan) > 0
        return self._gain(plan) >= (self._enough() if self.asked else max(self._enough(), int(self.s.before * MUCH)))

    def _refused(self, tried: Sequence[CompactionPlan]) -> CompactionPlan:
        s = self.s
        if s.needed and not s.doubtful and not any(p.fits for p in tried):
            fixed = sum(r.tokens for r in s.usage.rows if r.id != "messages")
            newest = s.tokens.get(s.pinned, 0) if s.pinned is not None else 0
            pinned = pinned_text(s.carried(s.path))
            return replace(self._plan("not_worth_it", stuck_why(s.usage, fixed, newest, pinned)), stuck=True)
        if not tried:
            return self._plan("nothing", "everything is in the newest messages, which stay word for word")
        best = max(tried, key=self._gain)
        gain, of = self._gain(best), s.scale if s.usage.limit and not self.asked else None
        if gain < self._enough():
            why = too_little_why(s.usage, gain, of)
        elif s.before <= (s.usage.limit or 0):
            why = f"it would free {tokens(gain, True)}, less than {percent(100 * MUCH, 0)} of it"
        else:
            after, limit = tokens(best.expected_after or 0, True), tokens(s.usage.limit or 0, False)
            why = f"{after} would be left, still over the limit of {limit}"
        return replace(self._plan("not_worth_it", why), expected_after=best.expected_after)
