"""What the user takes out of the conversation by hand, and back in: each edit is a record, and nothing is deleted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from agent_tui.context.accounting.inputs import ContextInputs, edited_view
from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.notices import cancelled_text, fold_text
from agent_tui.context.compaction.plan import CompactionPlan, expected_message, message_tokens, records_of
from agent_tui.context.compaction.worth import PlanPrice, expected_read
from agent_tui.context.tidy import units_of
from agent_tui.context.tokens import estimate_message, family_of, round_up
from agent_tui.context.view import DROP_ID, RESTORE_ID, build_view, dropped_ids, for_model, summaries_in_force
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.conversation import patiently
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
    TurnEnded,
    TurnStarted,
)
from agent_tui.models.messages import Message, new_id, recall_id
from agent_tui.models.rows import MESSAGES
from agent_tui.models.steps import CompactionRecord
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import interval, money, plural, tokens

log = logging.getLogger(__name__)

Kind = Literal["drop", "restore"]

SHOWN = 60
"""Characters of a message that tell which it is."""

NOTHING_FREED = "that frees nothing, as the placeholder left in its place is no shorter"


@dataclass(slots=True, frozen=True)
class EditPlan:
    """A drop that has not happened yet. ``freed`` tokens go from every request, give or take ``spread``; ``reasoning``
    of them are reasoning. ``behind``: tokens that the next request reads anew if it happens now. By how many dollars
    that one is dearer then (``price_now``), and when it happens once the cache is cold (``price_cold``): below 0 it is
    cheaper, None where no price is known. ``line`` says it all."""

    message_ids: tuple[str, ...]
    freed: int
    spread: int
    reasoning: int
    behind: int
    price_now: float | None
    price_cold: float | None
    line: str


@dataclass(slots=True, frozen=True)
class Dropped:
    """A message that the user dropped, or that ``waiting`` for the cold cache goes then; ``tokens`` it would add
    again."""

    message: Message
    tokens: int
    record_id: str
    waiting: bool = False


class Edits:
    """Drops messages from what is sent and restores them, in the session that is in force. An edit holds on the branch
    that it was made on, as a compaction does."""

    def __init__(self, state: AgentState, context: ContextControl, runner: Runner) -> None:
        self._state = state
        self._context = context
        self._runner = runner
        self._waiting: list[tuple[Callable[[], str], asyncio.Future[str]]] = []
        self._forget: Callable[[], None] = lambda: None
        context.while_drops_wait(self._look_whether_cold)

    def plan(self, ids: Sequence[str]) -> EditPlan:
        """Returns what dropping these messages would do; ids as ``recall_id`` shows them, or whole. Raises AgentError
        where that cannot be."""
        if self._state.run.now is not RunState.LOOKING:
            self._state.conversation.require_writable()
        return self._planned(self._record("drop", self._droppable(ids)))[0]

    def _planned(self, record: CompactionRecord) -> tuple[EditPlan, ContextUsage]:
        """The plan of a drop, and the numbers after it."""
        wanted, runtime, before = record.message_ids, self._state.runtime, self._context.usage()
        after = calculate_context_usage(self._inputs_with(record))
        freed, reasoning = before.total - after.total, _reasoning(before) - _reasoning(after)
        read = expected_read(before)
        left = min(read, self._before_first(before, set(wanted)))
        behind = max(0, read - left - freed)
        prices, hour = runtime.info.prices, runtime.info.spec.cache_ttl == "1h"

        def price(total: int, cached: int) -> float | None:
            return priced_call(prices, total, min(total, cached), 0, hour).usd

        then, now = price(before.total, read), price(after.total, left)
        cold, whole = price(after.total, 0), price(before.total, 0)
        made = EditPlan(
            tuple(wanted),
            freed,
            after.calculation.spreads.removed or after.spread,
            max(0, reasoning),
            behind,
            None if now is None or then is None else now - then,
            None if cold is None or whole is None else cold - whole,
            "",
        )
        return replace(made, line=_plan_line(made, then, now)), after

    async def drop(self, ids: Sequence[str], *, later: bool = False) -> str:
        """Drops messages; returns the line for the user. While a turn runs that waits for the end of its step.
        ``later``: they go once dropping them costs nothing, when the provider's cache is cold. Raises AgentError."""
        self._state.conversation.require_writable()
        self._droppable(ids)
        if later and not self._cold():
            plan = self.plan(ids)
            state = self._state.conversation.info.state
            waiting = tuple(dict.fromkeys([*state.drops_waiting, *plan.message_ids]))
            self._state.conversation.set_state(replace(state, drops_waiting=waiting, drops_asked=time.time()))
            self._context.tell()
            return (
                f"{_count(plan.message_ids)} ({tokens(plan.freed, True)} tokens) will be dropped when the provider's "
                "cache is cold, at the next compaction or with another model."
            )
        return await self._between_steps(lambda: self._drop(ids), "drop messages")

    def _drop(self, ids: Sequence[str]) -> str:
        record = self._record("drop", self._droppable(ids))
        plan, after = self._planned(record)
        self._commit(record, after)
        less = f"{tokens(plan.freed, True)} tokens less in every request" if plan.freed > 0 else NOTHING_FREED
        return f"Dropped {_count(plan.message_ids)}: {less}."

    async def restore(self, ids: Sequence[str]) -> str:
        """Has dropped messages sent again; returns the line for the user. Raises AgentError."""
        self._state.conversation.require_writable()
        self._restorable(ids)
        return await self._between_steps(lambda: self._restore(ids), "restore messages")

    def _restore(self, ids: Sequence[str]) -> str:
        conversation, wanted = self._state.conversation, self._restorable(ids)
        self._forget_waiting(wanted)
        gone = dropped_ids(conversation.records)
        back = [i for i in wanted if i in gone]
        if not back:
            return f"{_count(wanted)} will not be dropped."
        before, record = self._state.runtime.usage().total, self._record("restore", back)
        self._commit(record, calculate_context_usage(self._inputs_with(record)))
        if not (more := self._state.runtime.usage().total - before):
            return f"Restored {_count(back)}. A summary stands for it: /compact undo sends the messages themselves."
        return f"Restored {_count(back)}: {tokens(more, True)} tokens more in every request."

    async def undo(self) -> str:
        """Takes the newest edit back, exactly; returns the line for the user. Raises AgentError where there is none."""
        self._state.conversation.require_writable()
        self._newest()
        return await self._between_steps(self._undo, "undo an edit")

    def _undo(self) -> str:
        conversation = self._state.conversation
        newest = self._newest()
        if (waiting := self._waiting_ids()) and conversation.info.state.drops_asked > newest.created:
            self._forget_waiting(waiting)
            self._context.tell()
            return f"{_count(waiting)} that waited to be dropped will not be."
        if newest.kind == "summary" and newest not in summaries_in_force(
            conversation.path, conversation.records, conversation.summaries
        ):
            raise AgentError("A later summary stands for what was folded: /compact undo takes that back first.")
        before = self._state.runtime.usage().total
        conversation.deactivate(newest.operation_id)
        if not self._state.run.in_turn:
            self._state.events.publish(SessionChanged(conversation.info, reload=True))  # its line changes, or goes
            if newest.kind == "summary":
                # With the messages comes the beginning with which they were sent.
                self._context.prefix.refresh()
        self._told()
        if not (change := self._state.runtime.usage().total - before):
            return "The edit is undone. Nothing of it was sent in any case: a summary stands for it."
        what = {"drop": "Dropped messages are back", "restore": "Restored messages are dropped again"}
        said = what.get(newest.kind, "The folded messages are back")
        more = "more" if change >= 0 else "less"
        return f"{said}: {tokens(abs(change), True)} tokens {more} in every request."

    def dropped(self) -> list[Dropped]:
        """What is dropped of the conversation, and what is going to be, in its order."""
        conversation = self._state.conversation
        by: dict[str, str] = {}
        for record in conversation.records:
            if record.active and record.kind == "drop":
                by.update(dict.fromkeys(record.message_ids, record.id))
        gone, waiting = dropped_ids(conversation.records), set(self._waiting_ids())
        return [
            Dropped(m, self._size(m), by[m.id] if m.id in gone else "", m.id not in gone)
            for m in conversation.path
            if m.id in gone or m.id in waiting
        ]

    async def plan_fold(self, first: str, last: str, focus: str = "") -> EditPlan:
        """Returns what folding the range between two messages into a summary would do, without a model call; summaries
        have ids as well. Raises AgentError."""
        if self._state.run.now is not RunState.LOOKING:
            self._state.conversation.require_writable()
        compaction = self._state.binding.compaction
        plan, price = await compaction.plan_fold(self._fold_of(first, last), focus, self._context.usage())
        return await asyncio.to_thread(_fold_plan, plan, price)

    async def fold(self, first: str, last: str, focus: str = "") -> str:
        """Folds the range between two messages into a summary, which a model writes; returns the line for the user.
        While a turn runs that is done at the end of its step. Raises AgentError."""
        conversation, compaction = self._state.conversation, self._state.binding.compaction
        conversation.require_writable()
        wanted = self._fold_of(first, last)
        if self._state.run.in_turn:
            self._state.events.publish(Notice("info", "That is done at the end of this step.", "edit_waits"))
            waiting = compaction.fold_later(wanted, focus)
            both: list[asyncio.Future[Any]] = [waiting, asyncio.create_task(self._runner.join(), name="fold")]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                begun = not compaction.forget_fold(waiting)
                both[-1].cancel()
            if begun:
                return await waiting
        result = await self._runner.exclusively(
            compaction.compact("edit", self._state.events.publish, focus, fold=wanted), "fold", RunState.COMPACTING
        )
        self._told()
        return cancelled_text(0, False, "edit") if result is None else result.text

    def _fold_of(self, first: str, last: str) -> tuple[str, str]:
        """The messages with these ids, short or long, or of what is left between them. Raises AgentError."""
        conversation = self._state.conversation
        named = {i: each for each in conversation.summaries for i in (each, recall_id(each))}
        ends = named.get(first) or self._named(first).id, named.get(last) or self._named(last).id
        gone = dropped_ids(conversation.records)
        if gone.isdisjoint(ends):
            return ends
        stands = {r.summary_id: r.message_ids for r in conversation.records if r.kind == "summary"}
        ids = [message.id for message in conversation.path]
        places = [ids.index(each) for end in ends for each in stands.get(end, [end]) if each in ids]
        if not (left := [each for each in ids[min(places) : max(places) + 1] if each not in gone]):
            raise AgentError("All of that is dropped: there is nothing left to fold.")
        return left[0], left[-1]

    def range(self, first: str, last: str) -> list[str]:
        """The ids of all messages from one to another, both included. Raises AgentError."""
        path = self._state.conversation.path
        places = sorted(path.index(self._named(each)) for each in (first, last))
        return [message.id for message in path[places[0] : places[1] + 1]]

    def _size(self, message: Message) -> int:
        """Tokens of a message as it would be sent."""
        runtime = self._state.runtime
        family = family_of(runtime.info.target)
        known = runtime.calibration or family.beginning
        return round_up(known.tokens(estimate_message(message, family).content))

    def _named(self, id: str) -> Message:
        """The message of the conversation with an id, short or long. Raises AgentError."""
        conversation, id = self._state.conversation, id.partition("#")[0]
        found = [m for m in conversation.path if id in (m.id, recall_id(m.id))]
        if len(found) == 1:
            return found[0]
        shown = one_line(id, SHOWN)
        if found:
            raise AgentError(f"Several messages have the id {shown}: {', '.join(m.id for m in found)}.")
        if any(id in (each, recall_id(each)) for each in conversation.summaries):
            raise AgentError(f"{shown} is a summary: /compact undo sends again what it stands for.")
        if any(id in (each, recall_id(each)) for each in conversation.messages):
            raise AgentError(f"{shown} is on another branch of this session: /rewind goes there.")
        raise AgentError(f"No message of this conversation has the id {shown}.")

    def _all_named(self, ids: Sequence[str]) -> set[str]:
        """The whole ids of these messages. Raises AgentError."""
        whole = {message.id for message in self._state.conversation.path}
        return {each if each in whole else self._named(each).id for each in ids}

    def _droppable(self, ids: Sequence[str]) -> list[str]:
        """The ids of all that goes with these messages, in their order. Raises AgentError where one cannot go, or
        nothing is left to go."""
        conversation, in_turn = self._state.conversation, self._state.run.in_turn
        path = conversation.path
        named = self._all_named(ids)
        sent = {item.message.id for item in conversation.view()} - dropped_ids(conversation.records)
        asked = next((m for m in reversed(path) if m.role == "user"), None)
        open_calls = {call.call_id for call in conversation.open_calls()} if in_turn else set[str]()
        wanted: list[str] = []
        for unit in (unit for unit in units_of(path) if any(m.id in named for m in unit)):
            first = unit[0]
            if first.status == "streaming" or any(call.call_id in open_calls for call in first.tool_calls):
                raise AgentError(f"{_label(first)} is at work: it can be dropped once its tools have answered.")
            if in_turn and first is asked:
                raise AgentError("Your newest message is being answered: it can be dropped after this turn.")
            if any(m.id in conversation.info.state.pinned_messages for m in unit):
                raise AgentError(f"{_label(first)} is pinned: /unpin {recall_id(first.id)} first.")
            wanted += [m.id for m in unit] if first.id in sent else []
        if not wanted:
            raise AgentError("Nothing of that is sent: it is dropped already, or a summary stands for it.")
        return wanted

    def _restorable(self, ids: Sequence[str]) -> list[str]:
        conversation = self._state.conversation
        gone = dropped_ids(conversation.records) | set(self._waiting_ids())
        named = self._all_named(ids)
        units = [unit for unit in units_of(conversation.path) if any(m.id in named for m in unit)]
        wanted = [m.id for unit in units for m in unit if m.id in gone]
        if wanted:
            return wanted
        raise AgentError("Nothing of that is dropped.")

    def _newest(self) -> CompactionRecord:
        """The newest edit that holds for the conversation. Raises AgentError where there is none."""
        conversation = self._state.conversation
        path = {message.id for message in conversation.path}
        edits = (r for r in conversation.records if r.active and r.reason == "edit")
        made = [record for record in edits if not path.isdisjoint(record.message_ids)]
        if not made and not self._waiting_ids():
            raise AgentError("There is no edit to undo.")
        return max(made, key=lambda record: record.created, default=CompactionRecord("", "", "drop", []))

    def _record(self, kind: Kind, ids: Sequence[str]) -> CompactionRecord:
        newest = max((record.created for record in self._state.conversation.every_record), default=0.0)
        # It sorts after all others even when the clock was set back.
        created = max(time.time(), newest + 0.001)
        name = DROP_ID if kind == "drop" else RESTORE_ID
        return CompactionRecord(new_id(name), new_id("op"), kind, list(ids), created=created, reason="edit")

    def _inputs_with(self, record: CompactionRecord) -> ContextInputs:
        """What the calculator would be given with a further record."""
        runtime, conversation = self._state.runtime, self._state.conversation
        inputs = runtime.inputs().as_now()
        records = [*inputs.records, record]
        path, summaries = conversation.path, conversation.summaries
        view = for_model(build_view(path, records, summaries), runtime.info)
        edited = edited_view(view, path, records, summaries, inputs.steps, runtime.info)
        return replace(inputs, records=records, view=view, edited=edited)

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
        self._told()

    def _told(self) -> None:
        self._context.metrics.recalculation()
        if self._state.run.in_turn:
            self._context.tell()
        else:
            self._context.recount()

    async def _between_steps(self, work: Callable[[], str], what: str) -> str:
        """Does it now, or at the end of the running turn's step."""
        if not self._state.run.in_turn:
            self._runner.need_idle(what)
            return await patiently(work)
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            self._forget = self._state.events.subscribe(self._turn_ended)
            self._context.before_step(self._do_waiting)
        self._waiting.append((work, done))
        self._state.events.publish(Notice("info", "That is done at the end of this step.", "edit_waits"))
        return await done

    def _turn_ended(self, event: Event) -> None:
        if isinstance(event, TurnEnded):
            self._do_waiting()

    def _do_waiting(self) -> None:
        self._forget()
        waiting, self._waiting = self._waiting, []
        for work, done in waiting:
            if done.done():
                continue
            try:
                done.set_result(work())
            except Exception as error:  # whoever waits for it is told; the turn goes on
                done.set_exception(error)

    def _look_whether_cold(self, event: Event) -> None:
        if self._state.conversation.read_only:
            return
        if isinstance(event, TurnStarted | ContextChanged | CompactionEnded) and self._waiting_ids():
            compacted = isinstance(event, CompactionEnded) and event.outcome == "done"
            if compacted or self._cold():
                self._drop_waiting()

    def _drop_waiting(self) -> None:
        ids, state = self._waiting_ids(), self._state.conversation.info.state
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

    def _waiting_ids(self) -> tuple[str, ...]:
        """What of the conversation is dropped once the cache is cold."""
        conversation = self._state.conversation
        waiting = frozenset(conversation.info.state.drops_waiting if self._state.opened else ())
        return tuple(m.id for m in conversation.path if m.id in waiting) if waiting else ()

    def _forget_waiting(self, ids: Sequence[str]) -> None:
        conversation, gone = self._state.conversation, frozenset(ids)
        left = tuple(i for i in conversation.info.state.drops_waiting if i not in gone)
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

    def whole(more: float | None) -> float | None:
        return None if more is None or price.call is None else price.call + more

    return EditPlan(
        plan.summary.message_ids,
        plan.before - after.total,
        after.spread,
        0 if lost is None else lost.tokens,
        price.behind,
        whole(price.anew),
        whole(price.cold),
        fold_text(plan, after, price, lost),
    )


def _count(ids: Sequence[str]) -> str:
    return plural(len(ids), "message")


def _label(message: Message) -> str:
    words = one_line(message.text.strip(), SHOWN)
    return f"“{words}”" if words else f"Message {recall_id(message.id)}"


def _reasoning(usage: ContextUsage) -> int:
    rows = (child for row in usage.rows if row.id == MESSAGES.id for child in row.children)
    return sum(row.tokens for row in rows if row.id == "reasoning")


def _plan_line(plan: EditPlan, then: float | None, now: float | None) -> str:
    less = f"{interval(plan.freed, plan.spread, True)} tokens less in every request"
    freed = f"Drops {_count(plan.message_ids)}: {less if plan.freed > 0 else NOTHING_FREED}"
    if plan.reasoning:
        freed += f", {tokens(plan.reasoning, True)} of them reasoning"
    if not plan.behind:
        return f"{freed}. Nothing behind it is read anew."
    anew = f"{tokens(plan.behind, True)} behind it are read anew"
    if not now or then is None:
        return f"{freed}. Now {anew}; once the cache is cold that costs nothing."
    price = f"the next request costs {money(now)} instead of {money(then)}"
    return f"{freed}. Now {anew}: {price}; once the cache is cold that costs nothing more."
