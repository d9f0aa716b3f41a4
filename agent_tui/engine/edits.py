"""What the user takes out of the conversation by hand, and back in: each edit is a record, and nothing is deleted. What
the model took out of it by itself is taken back here too."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.notices import cancelled_text, fold_text
from agent_tui.context.compaction.plan import CompactionPlan, records_of
from agent_tui.context.compaction.price import PlanPrice
from agent_tui.context.compaction.summary_plan import expected_message
from agent_tui.context.cuts import WITHOUT_SUFFIX, dropped_attachments, dropped_by, parts_of, treated
from agent_tui.context.view import summaries_in_force
from agent_tui.engine.compaction.drop_marks import DropMarks, cold_in_turn
from agent_tui.engine.compaction.own_results import kept_notes
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.conversation import patiently
from agent_tui.engine.edit_plan import (
    NOTHING_FREED,
    EditPlan,
    commit_edit,
    count_words,
    edit_record,
    forget_record,
    inputs_with,
    plan_edit,
)
from agent_tui.engine.edit_targets import EditTargets, marks_of
from agent_tui.engine.runner import Runner
from agent_tui.engine.state import AgentState, RunState
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import (
    CompactionEnded,
    ContextChanged,
    Event,
    Notice,
    SessionChanged,
)
from agent_tui.models.messages import Message, new_id
from agent_tui.models.session import AskedCompaction
from agent_tui.models.steps import CompactionRecord
from agent_tui.records import dataclass
from agent_tui.text.numbers import tokens

log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class _Undoable:
    """An edit that can be taken back, made ``at``; of two the later is the newer. One that ``waits`` changes nothing
    that is sent yet."""

    at: tuple[float, bool]
    take_back: Callable[[], str]
    waits: bool = False


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
        self._targets = EditTargets(lambda: state.conversation, lambda: state.run.in_turn)
        self.range = self._targets.range
        context.while_drops_wait(self._look_whether_cold)

    def plan(self, ids: Sequence[str]) -> EditPlan:
        """Returns what dropping these messages would do; ids as ``recall_id`` shows them, or whole. Raises AgentError
        where that cannot be."""
        if self._state.run.now is not RunState.LOOKING:
            self._state.conversation.require_writable()
        wanted, chosen = self._targets.droppable(ids), self._targets.message_ids(ids)
        more = sum(each.partition("#")[0] not in chosen for each in wanted)
        return self._planned(edit_record(self._state.conversation, "drop", wanted), more)

    def _planned(self, record: CompactionRecord, more: int = 0) -> EditPlan:
        return plan_edit(self._state.runtime, self._context.usage(), [record], more)[0]

    def _marks(self) -> DropMarks:
        return DropMarks(self._state.runtime, self._state.run.in_turn)

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

    async def drop(self, ids: Sequence[str], *, later: bool = False) -> str:
        """Drops messages; returns the line for the user. While a turn runs that waits for the end of its step.
        ``later``: they go once dropping them costs nothing, when the provider's cache is cold. Raises AgentError."""
        self._state.conversation.require_writable()
        self._targets.droppable(ids)
        if later and not self._cold():
            plan = self.plan(ids)
            self._marks().add(plan.part_ids, by_agent=False)
            self._context.tell()
            return (
                f"{count_words(plan.part_ids)} ({tokens(plan.freed, True)} tokens) will be dropped when that is cheap: "
                "the provider's cache is cold, a compaction is due, or it pays before the next one."
            )
        return await self._between_steps(lambda: self._drop(ids), "drop messages")

    def _drop(self, ids: Sequence[str]) -> str:
        record = edit_record(self._state.conversation, "drop", self._targets.droppable(ids))
        plan, after = plan_edit(self._state.runtime, self._context.usage(), [record])
        self._commit(record, after)
        less = f"{tokens(plan.freed, True)} tokens less per request" if plan.freed > 0 else NOTHING_FREED
        return f"Dropped {count_words(plan.part_ids)}: {less}."

    async def restore(self, ids: Sequence[str]) -> str:
        """Has dropped messages sent again; returns the line for the user. Raises AgentError."""
        self._state.conversation.require_writable()
        self._targets.restorable(ids)
        return await self._between_steps(lambda: self._restore(ids), "restore messages")

    def _restore(self, ids: Sequence[str]) -> str:
        wanted = self._targets.restorable(ids)
        self._marks().forget(wanted)
        back = [each for each in wanted if each in self._gone()]
        if not back:
            return f"{count_words(wanted)} will not be dropped."
        before, record = self._state.runtime.usage().total, edit_record(self._state.conversation, "restore", back)
        self._commit(record, calculate_context_usage(inputs_with(self._state.runtime, record)))
        if not (more := self._state.runtime.usage().total - before):
            return f"Restored {count_words(back)}. A summary replaces it: run /compact undo to send the messages."
        return f"Restored {count_words(back)}: {tokens(more, True)} tokens more per request."

    async def undo(self) -> str:
        """Takes the newest edit back, exactly; returns the line for the user. Raises AgentError where there is none."""
        self._state.conversation.require_writable()
        if self._newest().waits and self._state.binding.compaction.after_step.empty:
            return await patiently(self._undo)  # nothing that is sent changes
        return await self._between_steps(self._undo, "undo an edit")

    def _undo(self) -> str:
        return self._newest().take_back()

    def _newest(self) -> _Undoable:
        """The newest edit of the conversation that holds or waits. Raises AgentError where there is none."""
        if newest := max(self._undoable(), key=lambda each: each.at, default=None):
            return newest
        raise AgentError("Nothing to undo.")

    def _undoable(self) -> Iterator[_Undoable]:
        conversation = self._state.conversation
        path = {message.id for message in conversation.path}
        for record in conversation.records:
            edit = record.active and (record.reason == "edit" or record.by == "agent")
            if edit and not path.isdisjoint(record.message_ids):
                # Of an operation's records that of the summary stands for all.
                yield _Undoable((record.created, record.kind == "summary"), partial(self._undo_record, record))
        for asked in set(marks_of(conversation).values()):
            yield _Undoable((asked, False), partial(self._unmark, asked), waits=True)
        for wanted in self._state.binding.compaction.asked.waiting():
            yield _Undoable((wanted.asked, False), partial(self._take_back, wanted), waits=True)
        for note in kept_notes(conversation):
            yield _Undoable((note.created, False), partial(self._unkeep, note))

    def _unmark(self, asked: float) -> str:
        waiting = marks_of(self._state.conversation)
        taken = [each for each, at in waiting.items() if at == asked]
        self._marks().forget(taken)
        self._context.tell()
        left = f" {count_words([each for each in waiting if each not in taken])} still waiting."
        return f"{count_words(taken)} will no longer be dropped.{left if len(taken) < len(waiting) else ''}"

    def _take_back(self, asked: AskedCompaction) -> str:
        self._state.binding.compaction.asked.forget([asked])
        return f"The agent's {'fold' if asked.fold else 'compaction'} will not be made."

    def _unkeep(self, note: Message) -> str:
        """The note is carried no longer, nor sent by the summaries that carry it."""
        conversation, before = self._state.conversation, self._state.runtime.usage().total
        if (record := forget_record(conversation, note)) is not None:
            after = calculate_context_usage(inputs_with(self._state.runtime, record))
            commit_edit(self._state.runtime, record, after, lambda event: None)
        state = conversation.info.state
        left = tuple(each for each in state.pinned_messages if each != note.id)
        conversation.set_state(replace(state, pinned_messages=left))
        self._told()
        less = before - self._state.runtime.usage().total
        return f"The agent's note is no longer kept{f': {tokens(less, True)} tokens less per request' if less else ''}."

    def _undo_record(self, newest: CompactionRecord) -> str:
        conversation, compaction = self._state.conversation, self._state.binding.compaction
        if newest.kind == "summary" and newest not in summaries_in_force(
            conversation.path, conversation.records, conversation.summaries
        ):
            raise AgentError("A later summary replaced what was folded. Run /compact undo first.")
        before, told = self._state.runtime.usage().total, list[str]()
        if newest.reason == "edit":
            conversation.deactivate(newest.operation_id)
        else:
            told = self._undo_compaction(compaction, newest.operation_id)
        if not self._state.run.in_turn:
            self._state.events.publish(SessionChanged(conversation.info, reload=True))  # its line changes, or goes
            if newest.kind == "summary":
                # With the messages comes the beginning with which they were sent.
                self._context.prefix.refresh()
        self._told()
        if not (change := self._state.runtime.usage().total - before):
            return "Edit undone. What is sent stays the same: a summary replaced it."
        what = {
            "drop": "Dropped messages restored",
            "restore": "Restored messages dropped again",
            "prune": "Results that the agent let go of restored",
        }
        said = what.get(newest.kind, "Folded messages restored")
        if newest.reason != "edit":
            said = "The agent's compaction undone"
        more = "more" if change >= 0 else "less"
        return " ".join([f"{said}: {tokens(abs(change), True)} tokens {more} per request.", *told])

    def _undo_compaction(self, compaction: CompactionService, operation: str) -> list[str]:
        """Takes back a compaction of the agent's; returns what there is to say besides, as all of it is one line."""
        events: list[Event] = []
        compaction.undo(events.append, operation)
        for event in events:
            if isinstance(event, CompactionEnded):
                self._state.events.publish(replace(event, quiet=True))
        return [event.text for event in events if isinstance(event, Notice)]

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

    def _commit(self, record: CompactionRecord, after: ContextUsage) -> None:
        commit_edit(self._state.runtime, record, after, self._state.events.publish)
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
        if self._state.conversation.read_only or self._state.run.in_turn or not isinstance(event, ContextChanged):
            return
        if marks_of(self._state.conversation) and self._cold():
            try:
                if self._marks().carry_out(self._state.events.publish):
                    self._told()
            except AgentError as error:
                if isinstance(error, StoreError):
                    log.warning("Dropped later: %s", error)
                    return
                self._marks().forget(marks_of(self._state.conversation))
                self._state.events.publish(Notice("info", str(error), "dropped"))

    def _cold(self) -> bool:
        """Returns whether nothing is lost by another beginning of the next request: nothing of it is in the cache."""
        if cold_in_turn(self._state.runtime):
            return True
        if self._state.run.in_turn:
            return False
        if not self._state.binding.described or self._context.starting or self._state.run.now is RunState.COMPACTING:
            return False
        return (forecast := self._context.usage().forecast) is None or forecast.read == 0


def _fold_plan(plan: CompactionPlan, price: PlanPrice) -> EditPlan:
    assert plan.summary is not None
    message = expected_message(plan.summary, record_id := new_id("rec"))
    records = records_of(plan, 0.0, "", record_id, message)
    after, lost = plan.now.size_after(records, message), plan.lost(records, message)
    return EditPlan(
        plan.summary.message_ids,
        plan.before - after.total,
        after.spread,
        0 if lost is None else lost.tokens,
        price.behind,
        fold_text(plan, after.total, price, lost),
    )
