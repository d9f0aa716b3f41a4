"""What the user takes out of the conversation by hand, and back in: each edit is a record, and nothing is deleted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Literal

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.notices import cancelled_text, fold_text
from agent_tui.context.compaction.plan import CompactionPlan, expected_message, message_tokens, records_of
from agent_tui.context.compaction.price import PlanPrice, expected_read
from agent_tui.context.cuts import WITHOUT_SUFFIX, dropped_attachments, dropped_by, parts_of, parts_words, treated
from agent_tui.context.view import DROP_ID, RESTORE_ID, build_view, summaries_in_force
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.conversation import patiently
from agent_tui.engine.edit_targets import EditTargets
from agent_tui.engine.runner import Runner
from agent_tui.engine.state import AgentState, RunState
from agent_tui.engine.toolbox import mode_told
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import (
    CompactionEnded,
    ContextChanged,
    ContextEdited,
    Event,
    Notice,
    SessionChanged,
    TurnStarted,
)
from agent_tui.models.messages import TOLD_MODE, Message, new_id
from agent_tui.models.requests import SentMessage
from agent_tui.models.rows import MESSAGES
from agent_tui.models.steps import CompactionRecord
from agent_tui.records import dataclass
from agent_tui.text.numbers import interval, money, tokens

log = logging.getLogger(__name__)

Kind = Literal["drop", "restore"]

NOTHING_FREED = "frees nothing, as the placeholder is as long"


@dataclass(slots=True, frozen=True)
class EditPlan:
    """A drop or a fold that has not happened yet: of messages, and of attachments as ``msg_1#2``. ``freed`` tokens go
    from every request, give or take ``spread``; ``reasoning``
    of them are reasoning. ``behind``: tokens that the next request reads anew if it happens now. ``line`` says it
    all."""

    part_ids: tuple[str, ...]
    freed: int
    spread: int
    reasoning: int
    behind: int
    line: str
    more: int = 0
    """Messages of these that were not chosen, and go with those that were."""
    again: int = 0
    """Tokens of what goes that the next message of the user's tells again: the permission mode."""


@dataclass(slots=True, frozen=True)
class Dropped:
    """A message that the user dropped, or one ``attachment`` of it (from 1). ``waiting``: it goes once the cache is
    cold. ``tokens`` it would add again."""

    message: Message
    tokens: int
    record_id: str
    waiting: bool = False
    attachment: int | None = None


class Edits:
    """Drops messages from what is sent and restores them, in the session that is in force. An edit holds on the branch
    that it was made on, as a compaction does."""

    def __init__(self, state: AgentState, context: ContextControl, runner: Runner) -> None:
        self._state = state
        self._context = context
        self._runner = runner
        self._targets = EditTargets(state)
        self.range = self._targets.range
        context.while_drops_wait(self._look_whether_cold)

    def plan(self, ids: Sequence[str]) -> EditPlan:
        """Returns what dropping these messages would do; ids as ``recall_id`` shows them, or whole. Raises AgentError
        where that cannot be."""
        if self._state.run.now is not RunState.LOOKING:
            self._state.conversation.require_writable()
        wanted, chosen = self._targets.droppable(ids), self._targets.message_ids(ids)
        more = sum(each.partition("#")[0] not in chosen for each in wanted)
        return self._planned(self._record("drop", wanted), more)[0]

    def refusal(self, ids: Sequence[str]) -> str:
        """Returns why these messages cannot be dropped now; empty where they can."""
        try:
            self._state.conversation.require_writable()
            self._targets.droppable(ids)
        except AgentError as error:
            return str(error)
        return ""

    @property
    def undoable(self) -> bool:
        """Whether there is an edit that ``undo`` would take back."""
        try:
            self._state.conversation.require_writable()
            self._newest()
        except AgentError:
            return False
        return True

    def _planned(self, record: CompactionRecord, more: int = 0) -> tuple[EditPlan, ContextUsage]:
        """The plan of a drop, and the numbers after it."""
        wanted, runtime, before = parts_of(record), self._state.runtime, self._context.usage()
        inputs = self._inputs_with(record)
        after = calculate_context_usage(inputs)
        freed, reasoning = before.total - after.total, _reasoning(before) - _reasoning(after)
        read = expected_read(before)
        left = min(read, self._before_first(before, set(record.message_ids)))
        behind = max(0, read - left - freed)
        prices, hour = runtime.info.prices, runtime.info.spec.cache_ttl == "1h"

        def price(total: int, cached: int) -> float | None:
            return priced_call(prices, total, min(total, cached), 0, hour).usd

        then, now = price(before.total, read), price(after.total, left)
        made = EditPlan(
            tuple(wanted),
            freed,
            after.calculation.spreads.removed or after.spread,
            max(0, reasoning),
            behind,
            "",
            more,
            self._told_again(before, inputs.view),
        )
        return replace(made, line=_plan_line(made, then, now)), after

    async def drop(self, ids: Sequence[str], *, later: bool = False) -> str:
        """Drops messages; returns the line for the user. While a turn runs that waits for the end of its step.
        ``later``: they go once dropping them costs nothing, when the provider's cache is cold. Raises AgentError."""
        self._state.conversation.require_writable()
        self._targets.droppable(ids)
        if later and not self._cold():
            plan = self.plan(ids)
            state = self._state.conversation.info.state
            waiting = dict.fromkeys(plan.part_ids, time.time()) | dict(state.drops_waiting)
            self._state.conversation.set_state(replace(state, drops_waiting=waiting))
            self._context.tell()
            return (
                f"{_count(plan.part_ids)} ({tokens(plan.freed, True)} tokens) will be dropped when the provider's "
                "cache is cold, at the next compaction or with another model."
            )
        return await self._between_steps(lambda: self._drop(ids), "drop messages")

    def _drop(self, ids: Sequence[str]) -> str:
        record = self._record("drop", self._targets.droppable(ids))
        plan, after = self._planned(record)
        self._commit(record, after)
        less = f"{tokens(plan.freed, True)} tokens less per request" if plan.freed > 0 else NOTHING_FREED
        return f"Dropped {_count(plan.part_ids)}: {less}."

    async def restore(self, ids: Sequence[str]) -> str:
        """Has dropped messages sent again; returns the line for the user. Raises AgentError."""
        self._state.conversation.require_writable()
        self._targets.restorable(ids)
        return await self._between_steps(lambda: self._restore(ids), "restore messages")

    def _restore(self, ids: Sequence[str]) -> str:
        wanted = self._targets.restorable(ids)
        self._forget_waiting(wanted)
        back = [each for each in wanted if each in self._gone()]
        if not back:
            return f"{_count(wanted)} will not be dropped."
        before, record = self._state.runtime.usage().total, self._record("restore", back)
        self._commit(record, calculate_context_usage(self._inputs_with(record)))
        if not (more := self._state.runtime.usage().total - before):
            return f"Restored {_count(back)}. A summary replaces it: run /compact undo to send the messages."
        return f"Restored {_count(back)}: {tokens(more, True)} tokens more per request."

    async def undo(self) -> str:
        """Takes the newest edit back, exactly; returns the line for the user. Raises AgentError where there is none."""
        self._state.conversation.require_writable()
        self._newest()
        return await self._between_steps(self._undo, "undo an edit")

    def _undo(self) -> str:
        conversation = self._state.conversation
        newest = self._newest()
        waiting = self._targets.waiting()
        if waiting and (asked := max(waiting.values())) > newest.created:
            taken = [each for each, at in waiting.items() if at == asked]
            self._forget_waiting(taken)
            self._context.tell()
            left = f" {_count(tuple(waiting)[len(taken) :])} still waiting." if len(taken) < len(waiting) else ""
            return f"{_count(taken)} will no longer be dropped.{left}"
        if newest.kind == "summary" and newest not in summaries_in_force(
            conversation.path, conversation.records, conversation.summaries
        ):
            raise AgentError("A later summary replaced what was folded. Run /compact undo first.")
        before = self._state.runtime.usage().total
        conversation.deactivate(newest.operation_id)
        if not self._state.run.in_turn:
            self._state.events.publish(SessionChanged(conversation.info, reload=True))  # its line changes, or goes
            if newest.kind == "summary":
                # With the messages comes the beginning with which they were sent.
                self._context.prefix.refresh()
        self._told()
        if not (change := self._state.runtime.usage().total - before):
            return "Edit undone. What is sent stays the same: a summary replaced it."
        what = {"drop": "Dropped messages restored", "restore": "Restored messages dropped again"}
        said = what.get(newest.kind, "Folded messages restored")
        more = "more" if change >= 0 else "less"
        return f"{said}: {tokens(abs(change), True)} tokens {more} per request."

    def dropped(self) -> list[Dropped]:
        """What is dropped of the conversation, and what is going to be, in its order."""
        conversation = self._state.conversation
        by: dict[str, str] = {}
        for record in conversation.records:
            if record.active and record.kind == "drop":
                by.update(dict.fromkeys(parts_of(record), record.id))
        messages, gone = {message.id: message for message in conversation.path}, self._gone()
        found: list[Dropped] = []
        for each in self._targets.dropped():
            id, _, number = each.partition("#")
            message, waits = messages[id], each not in gone
            size = self._state.runtime.size_of(message)
            if number:
                size -= self._state.runtime.size_of(treated(message, f"{WITHOUT_SUFFIX}{number}"))
            by_record = "" if waits else by[each]
            found.append(Dropped(message, max(0, size), by_record, waits, int(number) if number else None))
        return found

    def _gone(self) -> frozenset[str]:
        """What is dropped, attachments as ``msg_1#2``."""
        active = [record for record in self._state.conversation.records if record.active]
        parts = dropped_attachments(active).items()
        return dropped_by(active) | {f"{id}#{number}" for id, numbers in parts for number in numbers}

    async def plan_fold(self, first: str, last: str, focus: str = "") -> EditPlan:
        """Returns what folding the range between two messages into a summary would do, without a model call; summaries
        have ids as well. Raises AgentError."""
        if self._state.run.now is not RunState.LOOKING:
            self._state.conversation.require_writable()
        compaction = self._state.binding.compaction
        plan, price = await compaction.plan_fold(self._targets.ends_of_fold(first, last), focus, self._context.usage())
        return await asyncio.to_thread(_fold_plan, plan, price)

    async def fold(self, first: str, last: str, focus: str = "") -> str:
        """Folds the range between two messages into a summary, which a model writes; returns the line for the user.
        While a turn runs that is done at the end of its step. Raises AgentError."""
        conversation, compaction = self._state.conversation, self._state.binding.compaction
        conversation.require_writable()
        wanted = self._targets.ends_of_fold(first, last)
        if (line := await self._after_step(lambda: compaction.fold(wanted, focus))) is not None:
            return line
        result = await self._runner.exclusively(
            compaction.compact("edit", self._state.events.publish, focus, fold=wanted), "fold", RunState.COMPACTING
        )
        self._told()
        return cancelled_text(0, False, "edit") if result is None else result.text

    def _newest(self) -> CompactionRecord:
        """The newest edit that holds for the conversation. Raises AgentError where there is none."""
        conversation = self._state.conversation
        path = {message.id for message in conversation.path}
        edits = (r for r in conversation.records if r.active and r.reason == "edit")
        made = [record for record in edits if not path.isdisjoint(record.message_ids)]
        if not made and not self._targets.waiting():
            raise AgentError("Nothing to undo.")
        return max(made, key=lambda record: record.created, default=CompactionRecord("", "", "drop", []))

    def _record(self, kind: Kind, ids: Sequence[str]) -> CompactionRecord:
        newest = max((record.created for record in self._state.conversation.every_record), default=0.0)
        # It sorts after all others even when the clock was set back.
        created = max(time.time(), newest + 0.001)
        name = DROP_ID if kind == "drop" else RESTORE_ID
        whole, attachments = [each for each in ids if "#" not in each], dict[str, list[int]]()
        for id, _, number in (each.partition("#") for each in ids if "#" in each):
            attachments.setdefault(id, []).append(int(number))
        about = [*whole, *(id for id in attachments if id not in whole)]
        return CompactionRecord(
            new_id(name),
            new_id("op"),
            kind,
            about,
            created=created,
            reason="edit",
            attachments={id: numbers for id, numbers in attachments.items() if id not in whole},
        )

    def _inputs_with(self, record: CompactionRecord) -> ContextInputs:
        """What the calculator would be given with a further record."""
        runtime, conversation = self._state.runtime, self._state.conversation
        inputs = runtime.inputs().as_now()
        records = [*inputs.records, record]
        path, summaries = conversation.path, conversation.summaries
        view = build_view(path, records, summaries)
        return replace(inputs, records=records, view=view)

    def _told_again(self, usage: ContextUsage, view: Sequence[SentMessage]) -> int:
        """Tokens of the note on the permission mode, where a view without what is dropped has none any more."""
        if mode_told(view) is not None or mode_told(self._state.conversation.view()) is None:
            return 0
        rows = (leaf for row in usage.rows for leaf in row.leaves() if leaf.attachment is not None)
        return sum(leaf.tokens for leaf in rows if leaf.label == TOLD_MODE)

    def _before_first(self, usage: ContextUsage, gone: set[str]) -> int:
        """Tokens of the next request that stand before the first of these messages."""
        costs = message_tokens(usage)
        total = sum(row.tokens for row in usage.rows if row.id != MESSAGES.id)
        for item in self._state.conversation.view():
            if item.message.id in gone:
                break
            total += costs.get(item.message.id, 0)
        return total

    def _commit(self, record: CompactionRecord, after: ContextUsage) -> None:
        conversation, before = self._state.conversation, self._state.runtime.usage()
        record.before_tokens, record.before_spread = before.total, before.spread
        record.after_tokens, record.after_spread = after.total, after.spread
        record.before_estimated = before.approximate
        conversation.commit_compaction([record], None, None)
        self._state.events.publish(ContextEdited(record))
        self._told()

    def _told(self) -> None:
        self._context.metrics.recalculation()
        if self._state.run.in_turn:
            self._context.tell()
        else:
            self._context.recount()

    async def _between_steps(self, work: Callable[[], str], what: str) -> str:
        """Does it now, or at the end of the running turn's step."""

        async def do() -> str:
            return work()

        if (line := await self._after_step(do)) is not None:
            return line
        self._runner.need_idle(what)
        return await patiently(work)

    async def _after_step(self, work: Callable[[], Awaitable[str]]) -> str | None:
        """The line of what is done at the end of the running step; None where no turn runs, or it ends with that."""
        if not self._state.run.in_turn:
            return None
        self._state.events.publish(Notice("info", "Will be done when this step ends.", "edit_waits"))
        queue = self._state.binding.compaction.after_step
        waiting, turn = queue.add(work), asyncio.create_task(self._runner.join(), name="edit")
        both: list[asyncio.Future[Any]] = [waiting, turn]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            begun = not queue.forget(waiting)
            turn.cancel()
        return await waiting if begun else None

    def _look_whether_cold(self, event: Event) -> None:
        if self._state.conversation.read_only:
            return
        if isinstance(event, TurnStarted | ContextChanged | CompactionEnded) and self._targets.waiting():
            compacted = isinstance(event, CompactionEnded) and event.outcome == "done"
            if compacted or self._cold():
                self._drop_waiting()

    def _drop_waiting(self) -> None:
        ids, state = list(self._targets.waiting()), self._state.conversation.info.state
        try:
            self._forget_waiting(ids)
            line = self._drop(ids)
        except AgentError as error:
            if isinstance(error, StoreError) or self._state.run.in_turn:
                log.warning("Dropped later: %s", error)
                self._state.conversation.keep_state(state)
                return
            line = str(error)
        self._state.events.publish(Notice("info", line, "dropped"))

    def _forget_waiting(self, ids: Sequence[str]) -> None:
        conversation, gone = self._state.conversation, frozenset(ids)
        left = {i: asked for i, asked in conversation.info.state.drops_waiting.items() if i not in gone}
        conversation.keep_state(replace(conversation.info.state, drops_waiting=left))

    def _cold(self) -> bool:
        """Returns whether nothing is lost by another beginning of the next request: nothing of it is in the cache."""
        runtime = self._state.runtime
        newest = next((s for s in reversed(runtime.conversation.steps) if s.kind == "turn"), None)
        if newest is None or newest.model_key != runtime.info.spec.key:
            return True
        if self._state.run.in_turn:
            return runtime.cold_read == 0
        if not self._state.binding.described or self._context.starting or self._state.run.now is RunState.COMPACTING:
            return False
        return (forecast := self._context.usage().forecast) is None or forecast.read == 0


def _fold_plan(plan: CompactionPlan, price: PlanPrice) -> EditPlan:
    assert plan.summary is not None
    message = expected_message(plan.summary, record_id := new_id("rec"))
    records = records_of(plan, 0.0, "", record_id, message)
    after, lost = plan.usage_after(records, message), plan.lost(records, message)
    return EditPlan(
        plan.summary.message_ids,
        plan.before - after.total,
        after.spread,
        0 if lost is None else lost.tokens,
        price.behind,
        fold_text(plan, after, price, lost),
    )


def _count(ids: Collection[str]) -> str:
    parts = sum("#" in each for each in ids)
    return parts_words(len(ids) - parts, parts)


def _reasoning(usage: ContextUsage) -> int:
    rows = (child for row in usage.rows if row.id == MESSAGES.id for child in row.children)
    return sum(row.tokens for row in rows if row.id == "reasoning")


def _plan_line(plan: EditPlan, then: float | None, now: float | None) -> str:
    less = f"{interval(plan.freed, plan.spread, True)} tokens less per request"
    with_it = "an answer and the results of its calls go together"
    because = f" ({plan.more:,} more than chosen: {with_it})" if plan.more else ""
    freed = f"Drops {_count(plan.part_ids)}{because}: {less if plan.freed > 0 else NOTHING_FREED}"
    if plan.again and plan.freed > 0:
        freed += f", {tokens(plan.again, True)} of which your next message sends again (the permission mode)"
    if plan.reasoning:
        freed += f", {tokens(plan.reasoning, True)} of them reasoning"
    if not plan.behind:
        return f"{freed}. Keeps the cache."
    anew = f"{tokens(plan.behind, True)} tokens after it are no longer cached"
    if not now or then is None:
        return f"{freed}. Now {anew}; free once the cache is cold."
    price = f"the next request costs {money(now)} instead of {money(then)}"
    return f"{freed}. Now {anew}: {price}; free once the cache is cold."
