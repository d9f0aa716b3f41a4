"""What a compaction starts from: the numbers, what may go, and what a summary of a part would consist of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_tui.context.accounting.budget import fits_to_send
from agent_tui.context.accounting.given.inputs import ContextInputs
from agent_tui.context.compaction.collected_files import collect_files, within
from agent_tui.context.compaction.cuts import cut_at_or_before, message_tokens, newest_user, valid_cuts
from agent_tui.context.compaction.plan import CompactionReason, SummaryPlan
from agent_tui.context.compaction.prune import GOAL_SHARE, unseen_from
from agent_tui.context.compaction.summary_parts import TODO_TOOL, plan_lines, todo_lines, user_words
from agent_tui.context.compaction.summary_text import joined, model_sections
from agent_tui.context.sent.view import applicable_summary
from agent_tui.context.tokens.families import family_of
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Message, SummaryPart
from agent_tui.tools.aliases import own_name

KEEP_TOKENS = 20_000
KEEP_SHARE = 0.25
"""The newest messages kept word for word: up to ``min(20k tokens, 25 % of the limit)``, the newest exchange in any
case where it takes at most half of the limit."""

USER_SHARE = 0.10
"""The user's own messages kept word for word in the summary message: up to this share of the limit."""

FILES_SHARE = 0.08
TODO_SHARE = 0.05
PLAN_SHARE = 0.08
"""The list of files, the todo list and the approved plan may take up to these shares of the limit, so that they cannot
crowd out a small window."""

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
    ) -> None:
        self.inputs, self.usage, self.reason, self.summaries = inputs, usage, reason, summaries
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
        self._read_records()

    def _read_records(self) -> None:
        records, summaries = self.inputs.records, self.summaries
        hiding = applicable_summary(self.path, records, summaries)
        self.hidden = frozenset(hiding.message_ids) if hiding is not None else frozenset[str]()
        # What was only left out is still there to be summarised.
        written = applicable_summary(self.path, [r for r in records if not r.left_out], summaries)
        self.summarised = frozenset(written.message_ids) if written is not None else frozenset[str]()
        previous = summaries.get(written.summary_id) if written is not None and written.summary_id else None
        parts = previous.parts if previous is not None else []
        text = "".join(p.text for p in parts if isinstance(p, SummaryPart))
        self.previous = (joined(model_sections(text)) or text) if previous is not None else None
        self.start = max((i + 1 for i, m in enumerate(self.path) if m.id in self.hidden), default=0)
        newest = self.path[self.newest] if self.newest is not None else None
        self.pinned = newest.id if newest is not None and newest.id not in self.hidden else None

    def fits(self, after: ContextUsage) -> bool:
        """Whether what a plan leaves can be sent, by numbers that may be wrong (``doubtful``)."""
        if self.doubtful and self.target is not None and after.total > self.target:
            return False
        return fits_to_send(after)

    @property
    def doubtful(self) -> bool:
        """Whether the provider refused as too long what fits by our numbers."""
        return self.reason == "overflow" and fits_to_send(self.usage)

    @property
    def needed(self) -> bool:
        """Whether nothing can be sent as it is."""
        return self.reason == "overflow" or not fits_to_send(self.usage)

    def replaced(self, cut: int) -> list[Message]:
        """What a summary of everything before ``cut`` stands for."""
        return [m for m in self.path[:cut] if m.id != self.pinned]

    def gone(self, cut: int) -> int:
        """Tokens of the messages that such a summary takes away."""
        return sum(self.tokens.get(m.id, 0) for m in self.replaced(cut) if m.id not in self.hidden)

    def newest_turn_tokens(self) -> int:
        """Tokens from the user's newest message on."""
        return sum(self.tokens.get(m.id, 0) for m in self.path[self.newest or 0 :])

    def keep_cut(self, asked: bool) -> int:
        """The cut that keeps as many of the newest messages as their budget allows; ``asked`` by the user, at any
        size: then a quarter, so that there is something to summarise."""
        keep = min(KEEP_TOKENS, int(self.scale * KEEP_SHARE))
        newest = self.newest_turn_tokens()
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
        """Where the newest answer begins, with the calls it belongs to."""
        last = next((i for i in range(self.tail - 1, -1, -1) if self.path[i].role == "assistant"), self.tail)
        return cut_at_or_before(self.cuts, last)

    def shorter_cuts(self, cut: int) -> list[int]:
        """Cuts after ``cut`` that keep less and less: the last answer, what is unanswered, the user's newest message
        with nothing around it."""
        places = [self._last_answer(), self.tail, self.newest or 0, len(self.path)]
        return sorted({p for p in places if self.cuts[p] and p > max(cut, self.start)})

    def turn_cuts(self) -> list[int]:
        """Cuts before a message of the user, oldest first."""
        places = range(self.start + 1, len(self.path))
        return [i for i in places if self.path[i].role == "user" and self.cuts[i]]

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

    def leaving_out(self, cut: int, *, bare: bool = False) -> SummaryPlan | None:
        """The messages before ``cut`` left out without a model's help; ``bare`` keeps nothing of them, not even of
        what an earlier summary kept. None when they are gone already."""
        replaced = self.replaced(cut)
        count = len([m for m in replaced if m.id not in self.summarised])
        if not replaced or (not bare and all(m.id in self.hidden for m in replaced)):
            return None
        if bare:
            kept = tuple(m.id for m in self.path if m.id not in {r.id for r in replaced})
            return SummaryPlan(tuple(m.id for m in replaced), kept, (), None, {}, (), 0, 0, (), len(replaced))
        return self._summary(cut, replaced, (), 0, max(1, count))

    def _summary(
        self, cut: int, replaced: list[Message], fresh: tuple[Message, ...], tokens: int, left_out: int = 0
    ) -> SummaryPlan:
        gone = {m.id for m in replaced}
        stale = any(own_name(c.name) == TODO_TOOL for m in self.path[cut:] for c in m.tool_calls)
        words, others = user_words(replaced, int(self.scale * USER_SHARE), family_of(self.inputs.model.target))
        return SummaryPlan(
            tuple(m.id for m in replaced),
            tuple(m.id for m in self.path if m.id not in gone),
            fresh,
            self.previous,
            within(collect_files(self.path[:cut]), int(self.scale * FILES_SHARE)),
            words,
            others,
            tokens,
            () if stale else todo_lines(self.path[:cut], int(self.scale * TODO_SHARE)),
            left_out,
            plan_lines(self.path, cut, int(self.scale * PLAN_SHARE)),
        )
