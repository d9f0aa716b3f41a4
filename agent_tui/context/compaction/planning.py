"""Planning a compaction: what is cleared, what is summarised, what stays word for word, and what it will bring. Pure.
Every number comes from the one calculator, asked about the conversation as it would be afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.next_input import may_be_refused
from agent_tui.context.accounting.sums import NextInput
from agent_tui.context.compaction.judge import MIN_GAIN
from agent_tui.context.compaction.notices import stuck_why, too_little_why
from agent_tui.context.compaction.plan import (
    CLIP_SPARE,
    Action,
    CompactionPlan,
    Pruning,
    plan_clearing,
    pruned_just_now,
    records_of,
)
from agent_tui.context.compaction.situation import USER_SHARE, CompactionReason, Situation, cut_at_or_before
from agent_tui.context.compaction.summary_plan import ReadFacts, SummaryPlan, expected_message, facts_of
from agent_tui.context.cuts import plan_clips
from agent_tui.errors import AgentError
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message, new_id, pinned_text
from agent_tui.models.steps import CompactionRecord
from agent_tui.text.numbers import percent, plural, tokens

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
    now = plan.now.after(records, summary) if records else plan.now
    made = _Planner(now, plan.focus, True).plan()
    earlier = next((r for r in records if r.kind == "prune"), None)
    if earlier is not None:
        clips = {**earlier.clips, **made.pruning.clips}
        cleared = (*(i for i in earlier.message_ids if i not in earlier.clips), *made.pruning.cleared)
        made = replace(made, pruning=Pruning(cleared, {i: n for i, n in clips.items() if i not in cleared}))
    return replace(made, now=plan.now)


class _Planner:
    def __init__(self, situation: Situation, focus: str, without_model: bool) -> None:
        self.s, self.focus, self.without_model = situation, focus, without_model
        self.asked = situation.reason == "manual"
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
        plan = CompactionPlan(action, why, self.s, pruning or Pruning(), summary, focus=self.focus)
        if action in ("nothing", "not_worth_it"):
            return plan
        after = expected_size(plan)
        return replace(plan, expected_after=after.total, fits=self.s.fits(after), why=self._why(after.total))

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
            fixed = s.before - sum(s.tokens.values())
            newest = s.tokens.get(s.pinned, 0) if s.pinned is not None else 0
            pinned = pinned_text(s.carried(s.path))
            return replace(self._plan("not_worth_it", stuck_why(s.usage, fixed, newest, pinned)), stuck=True)
        if not tried:
            return self._plan("nothing", "only the newest messages are left, which stay word for word")
        best = max(tried, key=self._gain)
        gain, of = self._gain(best), s.scale if s.usage.limit and not self.asked else None
        if gain < self._enough():
            why = too_little_why(s.usage, gain, of)
        elif s.before <= (s.usage.limit or 0):
            why = f"it would free {tokens(gain, True)}, less than {percent(100 * MUCH, 0)} of what is sent"
        else:
            after, limit = tokens(best.expected_after or 0, True), tokens(s.usage.limit or 0, False)
            why = f"{after} would be left, still over the limit of {limit}"
        return replace(self._plan("not_worth_it", why), expected_after=best.expected_after)


UNKNOWN = "No such message: {id}. It may be in another session or branch."
OPEN = "Cannot fold that: the model is still working on it."


def fold_range(situation: Situation, first_id: str, last_id: str) -> tuple[int, int]:
    """Returns where the range between two messages begins and ends (the place behind its last), in either order. The
    messages may be summaries that are sent. It is made as much larger as it takes to part no call from its result, and
    no summary from a part of what it stands for; what is still open stays outside. Raises AgentError."""
    s = situation
    stands = {record.summary_id: record for record in s.force}
    places = {message.id: place for place, message in enumerate(s.path)}
    found: list[int] = []
    for message_id in (first_id, last_id):
        ids = stands[message_id].message_ids if message_id in stands else [message_id]
        if unknown := [i for i in ids if i not in places]:
            raise AgentError(UNKNOWN.format(id=unknown[0]))
        found += [places[i] for i in ids]
    start, end = min(found), max(found) + 1
    if start >= s.tail:
        raise AgentError(OPEN)
    grown = None
    while grown != (start, end):
        grown = start, end
        start = cut_at_or_before(s.cuts, start)
        end = min(s.tail, next(place for place in range(end, len(s.cuts)) if s.cuts[place]))
        for record in s.force:
            inside = [places[i] for i in record.message_ids]
            if any(start <= place < end for place in inside):
                start, end = min(start, *inside), max(end, max(inside) + 1)
    return start, end


def plan_fold(situation: Situation, first_id: str, last_id: str, focus: str = "") -> CompactionPlan:
    """Returns the plan of a fold of the range between two messages; raises AgentError where there is nothing to gain,
    and as ``fold_range``."""
    s = situation
    start, end = fold_range(s, first_id, last_id)
    summary = s.fold(start, end)
    sent = summary.goes(s.inputs.view)
    part = sum(s.tokens.get(i, 0) for i in {*sent, *summary.message_ids})
    if not summary.fresh or (len(sent) == 1 and sent[0] in {record.summary_id for record in s.force}):
        raise AgentError("Nothing to fold: these messages are already a summary.")
    plan = CompactionPlan("summary", "asked for", s, summary=summary, focus=focus, folded_tokens=part)
    after = expected_size(plan)
    if after.total >= s.before:
        count = plural(len(summary.message_ids), "message")
        raise AgentError(f"A summary of {count} would be as long as the messages ({tokens(part, True)}).")
    return replace(plan, expected_after=after.total)


def expected_size(plan: CompactionPlan) -> NextInput:
    """The size of the next input once a plan is carried out, as far as its summary is known before it is written."""
    record_id = new_id("rec")
    message = expected_message(plan.summary, record_id) if plan.summary is not None else None
    return plan.now.size_after(records_of(plan, 0.0, "", record_id, message), message)
