"""Planning a compaction: what is cleared, what is summarised, what stays word for word, and what it will bring.

Pure. Every number comes from the one calculator, asked about the conversation as it would be afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agent_tui.context.collected_files import collect_files, within
from agent_tui.context.compaction_plan import (
    Action,
    CompactionPlan,
    CompactionReason,
    SummaryPlan,
    records_of,
    undo_target,
)
from agent_tui.context.cuts import message_tokens, valid_cuts
from agent_tui.context.estimate import char_tokens, estimate_message
from agent_tui.context.families import family_of
from agent_tui.context.notices import format_tokens
from agent_tui.context.preview import preview_text
from agent_tui.context.prune import Pruning, plan_clearing, plan_clips, unseen_from
from agent_tui.context.summary_prompt import clip
from agent_tui.context.usage import ContextInputs
from agent_tui.context.validate_summary import MIN_GAIN
from agent_tui.context.view import applicable_summary
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message, SummaryPart, TextPart, new_id

__all__ = [
    "CompactionPlan",
    "CompactionReason",
    "message_tokens",
    "plan_compaction",
    "preview_text",
    "records_of",
    "undo_target",
]

KEEP_TOKENS = 20_000
KEEP_SHARE = 0.25
"""The newest messages kept word for word: up to ``min(20k tokens, 25 % of the limit)``."""

USER_SHARE = 0.10
"""The user's own messages kept word for word in the summary message: up to this share of the limit."""

FILES_SHARE = 0.08
"""The list of files may take up to this share of the limit, so that long paths cannot crowd out a small window."""

OVERFLOW_SHARE = 0.75
"""After a provider overflow the window we know is wrong: aim at this share of what was refused."""

SUMMARY_SHARE = 0.05
SUMMARY_MIN = 400
SUMMARY_MAX = 4_096
"""Tokens the model's sections may take: 5 % of the limit within these bounds."""


def plan_compaction(
    inputs: ContextInputs,
    usage: ContextUsage,
    path: Sequence[Message],
    summaries: Mapping[str, Message],
    *,
    reason: CompactionReason = "manual",
    focus: str = "",
) -> CompactionPlan:
    """What a compaction would do now.

    Old tool results first; when that is not enough (or the user asked), a summary of everything but the newest
    messages. ``usage`` must be the calculator's answer for ``inputs``.
    """
    return _Planner(inputs, usage, path, summaries, reason, focus).plan()


class _Planner:
    def __init__(
        self,
        inputs: ContextInputs,
        usage: ContextUsage,
        path: Sequence[Message],
        summaries: Mapping[str, Message],
        reason: CompactionReason,
        focus: str,
    ) -> None:
        self.inputs, self.usage, self.reason, self.focus = inputs, usage, reason, focus
        self.path = [m for m in path if m.status != "streaming"]
        self.summaries = summaries
        self.tokens = message_tokens(usage)
        self.before = usage.total
        # Without a known window the present size stands in for the limit, so that the shares mean something.
        self.scale = usage.limit if usage.limit else max(1, self.before)
        self.target: int | None = usage.limit
        if reason == "overflow":
            # The real window is smaller than what was refused, whatever we were told.
            self.scale = min(self.scale, max(1, self.before))
            self.target = min(self.scale, int(self.before * OVERFLOW_SHARE))
        record = applicable_summary(self.path, inputs.records, summaries)
        covered = frozenset(record.message_ids) if record is not None else frozenset()
        self.covered = max((i + 1 for i, m in enumerate(self.path) if m.id in covered), default=0)
        previous = summaries.get(record.summary_id) if record is not None and record.summary_id else None
        self.previous = (
            None if previous is None else "".join(p.text for p in previous.parts if isinstance(p, SummaryPart))
        )

    def plan(self) -> CompactionPlan:
        if not self.path:
            return self._plan("nothing", "the conversation is empty")
        clips = self._clips()
        pruning = Pruning(plan_clearing(self.inputs.view, self.tokens, self.usage.window or self.scale).cleared, clips)
        pruned: CompactionPlan | None = None
        if pruning and self.reason != "manual":
            pruned = self._plan("prune", "", pruning)
            if self._reaches(pruned):
                return pruned
        best: CompactionPlan | None = None
        for cut in self._cuts():
            summary = self._summary(cut)
            kept = frozenset(summary.kept_ids)
            best = self._plan("summary", "", pruning.only(kept), summary)
            if self._reaches(best):
                break
        if best is not None and self._worth(best):
            return best
        if pruning:
            pruned = pruned or self._plan("prune", "", pruning)
            if self._gain(pruned) >= self._enough():
                return pruned
        if best is None:
            return self._plan("nothing", "everything is in the newest messages, which stay word for word")
        return self._not_worth(best)

    def _plan(
        self, action: Action, why: str, pruning: Pruning | None = None, summary: SummaryPlan | None = None
    ) -> CompactionPlan:
        plan = CompactionPlan(
            action,
            self.reason,
            why,
            self.before,
            None,
            self.usage.limit,
            pruning or Pruning(),
            summary,
            self.inputs,
            self.path,
            self.summaries,
            self.focus,
        )
        if action in ("nothing", "not_worth_it"):
            return plan
        record_id = new_id("rec")
        message = None
        if summary is not None:
            message = summary.message({}, record_id, 0.0)
            message.raw_tokens = self._expected_raw(summary, message)
        records = records_of(plan, 0.0, "", record_id, message)
        after = plan.usage_after(records, message).total
        return replace(plan, expected_after=after, why=self._why(after))

    def _why(self, after: int) -> str:
        numbers = f"{format_tokens(self.before)} → about {format_tokens(after)}"
        if self.usage.limit is not None and self.before > self.usage.limit:
            return f"the next input is over the limit of {format_tokens(self.usage.limit)}; {numbers}"
        if self.reason == "overflow":
            return f"the provider says the request is too long; {numbers}"
        return f"asked for; {numbers}" if self.reason == "manual" else numbers

    def _expected_raw(self, summary: SummaryPlan, message: Message) -> int:
        """The o200k_base count a finished summary message may have: what is known, plus the sections' budget."""
        part = message.parts[0]
        known = char_tokens(part.text) if isinstance(part, SummaryPart) else 0.0
        return int(known) + summary.tokens

    def _gain(self, plan: CompactionPlan) -> int:
        return self.before - (plan.expected_after if plan.expected_after is not None else self.before)

    def _enough(self) -> int:
        return max(1, int(self.scale * MIN_GAIN))

    def _reaches(self, plan: CompactionPlan) -> bool:
        after = plan.expected_after
        return after is not None and (self.target is None or after <= self.target)

    def _worth(self, plan: CompactionPlan) -> bool:
        after = plan.expected_after
        fits = after is not None and (self.usage.limit is None or after <= self.usage.limit)
        return fits and self._gain(plan) >= max(self._enough(), int(self.before * MIN_GAIN))

    def _not_worth(self, plan: CompactionPlan) -> CompactionPlan:
        gain, after = self._gain(plan), plan.expected_after
        if gain < max(self._enough(), int(self.before * MIN_GAIN)):
            freed = f"only about {format_tokens(max(0, gain))} of {format_tokens(self.before)}"
            of = "the limit" if self.usage.limit else "the context"
            why = f"it would free {freed}, less than 5 % of {of} ({format_tokens(self.scale)})"
        else:
            limit = format_tokens(self.usage.limit or 0)
            why = f"even then about {format_tokens(after or 0)} would be over the limit of {limit}"
        return replace(plan, action="not_worth_it", why=why)

    def _tail_start(self) -> int:
        """Where the messages begin that must stay: what the model has not answered, with the calls it belongs to."""
        cuts = valid_cuts(self.path)
        start = unseen_from(self.path)
        while not cuts[start]:
            start -= 1
        return start

    def _cuts(self) -> Iterator[int]:
        """Cuts to try: first with as many of the newest messages as the budget allows, then with what must stay."""
        last = self._tail_start()
        if last <= self.covered:
            return
        keep = min(KEEP_TOKENS, int(self.scale * KEEP_SHARE))
        if self.reason == "manual":
            # Asked for by the user, at any size: keep a quarter, so that there is something to summarise, or the newest
            # turn where that leaves half.
            whole, newest = sum(self.tokens.values()), self._newest_turn()
            keep = min(keep, max(whole // 4, newest if newest <= whole // 2 else 0))
        cuts = valid_cuts(self.path)
        best, cost = last, 0
        for index in range(len(self.path) - 1, self.covered, -1):
            cost += self.tokens.get(self.path[index].id, 0)
            if cost > keep:
                break
            if cuts[index] and index <= last:
                best = index
        yield best
        if best != last:
            yield last

    def _newest_turn(self) -> int:
        """Tokens from the last user message on."""
        total = 0
        for message in reversed(self.path):
            total += self.tokens.get(message.id, 0)
            if message.role == "user":
                break
        return total

    def _summary(self, cut: int) -> SummaryPlan:
        before = self.path[:cut]
        kept_words, left_out = self._user_messages(before)
        tokens = min(SUMMARY_MAX, max(SUMMARY_MIN, int(self.scale * SUMMARY_SHARE)))
        return SummaryPlan(
            tuple(m.id for m in before),
            tuple(m.id for m in self.path[cut:]),
            tuple(before[self.covered :]),
            self.previous,
            within(collect_files(before), int(self.scale * FILES_SHARE)),
            kept_words,
            left_out,
            tokens,
        )

    def _user_messages(self, messages: Sequence[Message]) -> tuple[tuple[str, ...], int]:
        """The newest of the user's own words within their budget, oldest first, and how many did not fit. Only the
        very newest is cut when it is larger than the whole budget."""
        left = int(self.scale * USER_SHARE)
        family = family_of(self.inputs.model.target)
        words = [m for m in messages if m.role == "user" and m.text.strip()]
        kept: list[str] = []
        for message in reversed(words):
            text_only = all(isinstance(p, TextPart) for p in message.parts)
            raw = message.raw_tokens if text_only else None
            alone = replace(message, parts=[TextPart(message.text)], raw_tokens=raw)
            cost = estimate_message(alone, family).tokens
            if cost > left:
                if not kept and left > 0:
                    kept.append(clip(message.text, len(message.text) * left // cost))
                break
            left -= cost
            kept.append(message.text)
        kept.reverse()
        return tuple(kept), len(words) - len(kept)

    def _clips(self) -> Mapping[str, int]:
        """Cuts of results the model has not seen yet, when even alone they leave no way below the limit."""
        if self.target is None:
            return {}
        start = self._tail_start()
        tail = self.path[start:]
        fixed = self.before - sum(self.tokens.values())
        ids = {m.id for m in tail if m.role == "tool"}
        results = [s.message for s in self.inputs.view if s.message.id in ids]
        size = sum(self.tokens.get(m.id, 0) for m in results)
        summary = 0
        if start > self.covered or self.previous is not None:
            summary = int(self.scale * SUMMARY_SHARE) + int(self.scale * USER_SHARE)
        others = sum(self.tokens.get(m.id, 0) for m in tail) - size
        room = self.target - fixed - others - summary
        if size <= room:
            return {}
        return plan_clips(results, self.tokens, int(room * 0.8)).clips
