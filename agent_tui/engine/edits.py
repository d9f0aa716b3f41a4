"""What the user takes out of the conversation by hand, and back in: each edit is a record, and nothing is deleted. What
the model took out of it by itself is taken back here too."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.notices import cancelled_text, fold_text
from agent_tui.context.compaction.plan import CompactionPlan, expected_message, records_of
from agent_tui.context.compaction.price import PlanPrice
from agent_tui.context.cuts import WITHOUT_SUFFIX, dropped_attachments, dropped_by, parts_of, treated
from agent_tui.context.view import summaries_in_force
from agent_tui.engine.compaction.drop_marks import DropMarks, cold_in_turn
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.conversation import patiently
from agent_tui.engine.edit_plan import (
    NOTHING_FREED,
    EditPlan,
    commit_edit,
    count_words,
    edit_record,
    inputs_with,
    plan_edit,
)
from agent_tui.engine.edit_targets import EditTargets, marks_of
from agent_tui.engine.runner import Runner
from agent_tui.engine.state import AgentState, RunState
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import (
    ContextChanged,
    Event,
    Notice,
    SessionChanged,
)
from agent_tui.models.messages import Message, new_id
from agent_tui.models.steps import CompactionRecord
from agent_tui.records import dataclass
from agent_tui.text.numbers import tokens

log = logging.getLogger(__name__)


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
        self._newest()
        return await self._between_steps(self._undo, "undo an edit")

    def _undo(self) -> str:
        conversation = self._state.conversation
        newest = self._newest()
        waiting = marks_of(conversation)
        if (note := self._newest_note()) is not None and note.created > max([newest.created, *waiting.values()]):
            state = conversation.info.state
            left_pinned = tuple(each for each in state.pinned_messages if each != note.id)
            conversation.set_state(replace(state, pinned_messages=left_pinned))
            return "The agent's note is no longer kept."
        if waiting and (asked := max(waiting.values())) > newest.created:
            taken = [each for each, at in waiting.items() if at == asked]
            self._marks().forget(taken)
            self._context.tell()
            left = f" {count_words(tuple(waiting)[len(taken) :])} still waiting." if len(taken) < len(waiting) else ""
            return f"{count_words(taken)} will no longer be dropped.{left}"
        if newest.kind == "summary" and newest not in summaries_in_force(
            conversation.path, conversation.records, conversation.summaries
        ):
            raise AgentError("A later summary replaced what was folded. Run /compact undo first.")
        before = self._state.runtime.usage().total
        if newest.reason == "edit":
            conversation.deactivate(newest.operation_id)
        else:
            self._state.binding.compaction.undo(self._state.events.publish, newest.operation_id)
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
        edits = (r for r in conversation.records if r.active and (r.reason == "edit" or r.by == "agent"))
        made = [record for record in edits if not path.isdisjoint(record.message_ids)]
        if not made and not marks_of(conversation) and self._newest_note() is None:
            raise AgentError("Nothing to undo.")
        return max(
            made,
            key=lambda record: (record.created, record.kind == "summary"),
            default=CompactionRecord("", "", "drop", []),
        )

    def _newest_note(self) -> Message | None:
        """The newest note that the model keeps in this conversation."""
        conversation = self._state.conversation
        pinned = conversation.info.state.pinned_messages
        return next((m for m in reversed(conversation.path) if m.role == "tool" and m.id in pinned), None)

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
    after, lost = plan.usage_after(records, message), plan.lost(records, message)
    return EditPlan(
        plan.summary.message_ids,
        plan.before - after.total,
        after.spread,
        0 if lost is None else lost.tokens,
        price.behind,
        fold_text(plan, after, price, lost),
    )
