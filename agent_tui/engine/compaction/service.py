"""Joins the compaction policy, the compactor and the stored conversation; the executor and the commands both use it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from agent_tui.context.accounting.lost import lost_reasoning, lost_text
from agent_tui.context.accounting.spending import first_broken, priced_call
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.notices import cancelled_text, overflow_stop_text, preview_of, undone_text
from agent_tui.context.compaction.plan import CompactionFigures, CompactionPlan, undo_target
from agent_tui.context.compaction.price import PlanPrice, plan_price, summary_call
from agent_tui.context.compaction.situation import CompactionReason
from agent_tui.engine.cache_forecast import warm_call
from agent_tui.engine.compaction.asked import AskedCompactions
from agent_tui.engine.compaction.auto import BLOCKED, AutoCompaction, CompactNow, Proceed, Stop, switch_check
from agent_tui.engine.compaction.compactor import CompactionResult, Compactor, Planning, plan_of_now
from agent_tui.engine.compaction.context_notes import ContextNotes
from agent_tui.engine.compaction.drop_marks import DropMarks, loop_binds
from agent_tui.engine.compaction.preparing import SummaryPreparation
from agent_tui.engine.compaction.summary_call import AskWarm
from agent_tui.engine.conversation import patiently
from agent_tui.engine.hooks import Hooks
from agent_tui.engine.model_call import ModelCall, PlannedCall, open_call
from agent_tui.engine.models import with_learned
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import CompactionEnded, CompactionStarted, Event, Notice
from agent_tui.models.requests import Counter, ModelInfo, ModelSpec
from agent_tui.models.session import AskedCompaction
from agent_tui.text.clean import one_line

log = logging.getLogger(__name__)

WHY = 160
"""Characters of why something was not made that the model is told: the words may be a provider's."""


def _unheard(event: Event) -> None:
    """Takes events that nobody is told."""


def _result_of(task: asyncio.Task[CompactionResult | None]) -> CompactionResult | None:
    """What a task that has ended made; None where it failed or was ended."""
    return None if task.cancelled() or task.exception() is not None else task.result()


class StepQueue:
    """What the user asked for while a step runs: it is done before the next one, in its order."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[str], Callable[[], Awaitable[str]]] = {}

    @property
    def empty(self) -> bool:
        return not self._waiting

    def add(self, work: Callable[[], Awaitable[str]]) -> asyncio.Future[str]:
        """Returns the future of what the work returns or raises."""
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[done] = work
        return done

    def forget(self, done: asyncio.Future[str]) -> bool:
        """Takes back what was asked for; False where it has begun."""
        return self._waiting.pop(done, None) is not None

    async def run(self) -> None:
        while self._waiting:
            done, work = next(iter(self._waiting.items()))
            del self._waiting[done]
            try:
                line = await work()
                if not done.done():
                    done.set_result(line)
            except Exception as error:  # whoever asked is told; the turn goes on
                if not done.done():
                    done.set_exception(error)
            finally:
                done.cancel()


class CompactionService:
    """Compaction of one runtime's conversation: decides with the policy, runs the compactor, commits and tells.

    ``prepare`` is awaited wherever the numbers must be final: it counts what is uncounted. ``find`` looks up the model
    that ``context.summary_model`` names; without it the session's own writes summaries.
    """

    def __init__(
        self,
        runtime: Runtime,
        counter: Counter,
        prepare: Callable[[], Awaitable[None]],
        find: Callable[[str], ModelSpec] | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self.prepare = prepare
        self._find, self._hooks = find, hooks
        self._runtime = runtime
        self._compactor = Compactor(partial(self._open, lambda event: self._emit(event)), counter)
        self._emit: Emit = _unheard
        self._line: Notice | None = None
        state, context = runtime.conversation.info.state, runtime.settings.context
        self.auto = AutoCompaction.from_state(state, auto_compact=context.auto_compact)
        self.preparing = SummaryPreparation.from_steps(runtime.conversation.steps)
        self._preparer = Compactor(partial(self._open, _unheard), counter)
        self._early: asyncio.Task[CompactionResult | None] | None = None
        self._waited_for = self._refused = False
        self._early_plan: CompactionPlan | None = None
        self._planning = Planning(runtime.conversation)
        self.after_step = StepQueue()
        self.asked = AskedCompactions(runtime.conversation)
        self._notes = ContextNotes(runtime, self.asked)

    async def _open(self, emit: Emit, planned: PlannedCall) -> ModelCall:
        return await open_call(self._runtime, planned, emit, "the summary call")

    def turn_started(self, emit: Emit) -> None:
        """Begins a turn, whose events go to ``emit``."""
        self._emit = emit
        self.auto.turn_started()

    def model_replied(self) -> None:
        """The step got its answer: what it added may have crossed the line at which the user is warned."""
        self.auto.model_replied()
        if (warning := self.auto.warning(self._runtime.usage())) is not None:
            self._emit(warning)

    async def before_step(self) -> str | None:
        """Compacts while the numbers say so; returns why the step cannot be sent, or None when it can. What there is
        to say of that waits for ``tell``."""
        self._line = None
        await self.after_step.run()
        while (waiting := self.asked.waiting()) and not loop_binds(self._runtime):
            await self._by_agent(waiting[0])
        while True:
            self._drop_marked()
            usage = self._runtime.usage()
            decision = self.auto.before_step(usage)
            self._save_state()
            match decision:
                case CompactNow(reason, without_model, notice):
                    if notice is not None:
                        self._emit(notice)
                    await self.compact(reason, self._emit, without_model=without_model)
                case Stop(text):
                    self._emit(Notice("error", text, "context_full"))
                    return text
                case Proceed(notice):
                    warning = self.auto.warning(usage)
                    self._line = notice or warning  # one about the limit says how full the context is, and more
                    if self.auto.held_back() is None:
                        await self._prepare_early(usage)
                    return None

    def tell(self, refused: bool) -> None:
        """Says what ``before_step`` found to say. Where the call itself is ``refused`` for what it costs and the
        summary was, too, that is said once."""
        line, self._line = self._line, None
        if line is not None and not (refused and line.code == "not_compacted" and self.auto.broke_budget):
            self._emit(line)

    async def fold(self, fold: tuple[str, str], focus: str) -> str:
        """Folds a range in the midst of a turn; returns the line for the user. Raises AgentError."""
        return (await self.compact("edit", self._emit, focus, fold=fold)).text

    async def _by_agent(self, asked: AskedCompaction) -> None:
        """Does what the model asked for; where that comes to nothing it is told, and so is the user."""
        reason: CompactionReason = "edit" if asked.fold else "manual"
        ends, emit = (asked.fold[0], asked.fold[-1]) if asked.fold else None, self._emit

        def tell(event: Event) -> None:
            if isinstance(event, CompactionEnded) and event.outcome != "done":
                event = replace(event, quiet=True)  # what did not come about is told below
            emit(event)

        try:
            result = await self.compact(reason, tell, asked.focus, fold=ends, asked=asked)
            why = "" if result.done else result.why
        except AgentError as error:
            why = str(error).rstrip(".")
        finally:
            self._emit = emit
        if not why:
            self.asked.forget([asked])
            return
        line = f"The {'fold' if asked.fold else 'compaction'} was not made: {one_line(why, WHY)}."
        self.asked.fail(asked, line)
        self._emit(Notice("warning", line, "agent_edit"))

    async def tell_context(self) -> None:
        """Right before a request: lets its newest message tell the model how full the context is, when that
        matters."""
        if await self._notes.tell():
            self._runtime.show_numbers(self._emit)

    def _drop_marked(self, *, compacting: bool = False, in_turn: bool = True) -> None:
        """Has what is marked go where that is cheap now, or a compaction would pay for it anyway."""
        marks = DropMarks(self._runtime, in_turn)
        try:
            if compacting or marks.due():
                marks.carry_out(self._emit)
        except AgentError as error:
            log.warning("Dropped later: %s", error)

    async def after_overflow(self, said: str) -> str | None:
        """The provider said the request was too long (``said``): one compaction a step, then None when a retry makes
        sense. Else what the user is told: that, why nothing helped, and what else there is."""
        decision = self.auto.on_overflow(self._runtime.usage(), said)
        if isinstance(decision, Stop):
            text = decision.text
        else:
            if decision.notice is not None:
                self._emit(decision.notice)
            result = await self.compact(decision.reason, self._emit, without_model=decision.without_model)
            if result.done:
                return None
            text = overflow_stop_text(self._runtime.usage(), self.auto.held_back_text(), said)
        self._emit(Notice("error", text, "context_full"))
        return text

    async def compact(
        self,
        reason: CompactionReason,
        emit: Emit,
        focus: str = "",
        summary_model: ModelInfo | None = None,
        target: ModelInfo | None = None,
        without_model: bool = False,
        fold: tuple[str, str] | None = None,
        asked: AskedCompaction | None = None,
    ) -> CompactionResult:
        """One compaction, committed in one transaction when it succeeded. ``target`` plans for another model;
        ``without_model`` allows only what needs no call; ``fold`` is the range that is folded; ``asked``: the
        model wants it, and what it wrote for it. Raises AgentError where that cannot be."""
        runtime, conversation = self._runtime, self._runtime.conversation
        conversation.require_writable()
        self._emit = emit
        if fold is None:
            self._drop_marked(compacting=True, in_turn=asked is not None or reason in ("auto", "overflow"))
        summary_model = summary_model or await self._configured_model(emit)
        inputs = runtime.inputs(target)
        usage = runtime.usage() if target is None else calculate_context_usage(inputs)
        blocked = None if self._hooks is None else await self._hooks.before_compaction(reason, focus)
        plan = await self._planning.plan(inputs, usage, reason, focus, without_model, fold) if blocked is None else None
        if plan is None:
            text = blocked or cancelled_text(usage.total, usage.approximate, reason)
            why = BLOCKED if blocked else "it was cancelled"
            return await self._told(CompactionResult("cancelled", reason, text, why, usage.total), emit)
        if asked is not None:
            if asked.fold and plan.summary is not None and plan.summary.message_ids != asked.fold:
                raise AgentError("these messages are not sent as they were any more.")
            plan = replace(plan, by="agent")
        try:
            if asked is not None and asked.text:
                return await self._told(await self._compactor.written(plan, asked.text), emit)
            writer = summary_model or runtime.info
            prepared = (
                await self._prepared(plan, writer, emit) if target is None and not focus and fold is None else None
            )
            self.drop_prepared()
            result = prepared or await self._write(plan, summary_model, emit)
        except BaseException as error:
            # The whole turn was cancelled, or a call could not be stored: what was paid still counts, and no notice may
            # be left open.
            conversation.save_if_possible()
            usage = runtime.usage()
            if isinstance(error, asyncio.CancelledError):
                emit(CompactionEnded("cancelled", cancelled_text(usage.total, usage.approximate)))
            else:
                emit(CompactionEnded("failed", "Compaction not started; nothing changed."))
            raise
        return await self._told(result, emit)

    async def _told(self, result: CompactionResult, emit: Emit) -> CompactionResult:
        """Stores what came of a compaction, and tells it."""
        try:
            await self._store(result)
        except BaseException as error:
            # Why is told by whoever hears of the error.
            why = "." if isinstance(error, StoreError) else ": it was interrupted."
            emit(CompactionEnded("failed", f"Compaction not stored; nothing changed{why}"))
            raise
        emit(result.event())
        if self._hooks is not None and result.done:
            await self._hooks.after_compaction(result.reason, result.summary)
        for notice in self.auto.compacted(result):
            emit(notice)
        self._save_state()
        await self.prepare()
        self._runtime.show_numbers(emit)
        return result

    async def _write(self, plan: CompactionPlan, model: ModelInfo | None, emit: Emit) -> CompactionResult:
        """Carries a plan out with a model, by default the session's own."""
        warm = None if plan.reason == "overflow" else self._warm(model)
        return await self._compactor.run(plan, model, self._runtime.conversation.info.id, emit, warm)

    async def _store(self, result: CompactionResult) -> None:
        """Stores what the calls cost, and the compaction where there is one. Raises StoreError."""
        conversation = self._runtime.conversation
        await patiently(conversation.save)
        if result.done:
            await patiently(lambda: conversation.commit_compaction(result.records, result.summary, None))

    async def _prepare_early(self, usage: ContextUsage) -> None:
        """Has the summary written beside the step that is sent now, where the next one may need it and the server
        answers both at a time."""
        runtime, conversation = self._runtime, self._runtime.conversation
        if runtime.parent is not None or self._early is not None or not self.preparing.near(usage, conversation.steps):
            return
        if not runtime.info.parallel and runtime.settings.context.summary_model is None:
            return
        plan = await self._planning.plan(runtime.inputs(), usage, "auto")
        if plan is None or plan.action != "summary" or plan.summary is None or not plan.summary.needs_model:
            return
        if self.preparing.begins(cut := plan.summary.message_ids[-1]):
            self._early_plan = plan
            self._early = asyncio.create_task(self._write_early(plan, usage, cut), name="prepare a summary")
            self._early.add_done_callback(self._early_ended)

    async def _write_early(self, plan: CompactionPlan, usage: ContextUsage, cut: str) -> CompactionResult | None:
        """The summary of a plan; None where it would hold up the step beside it, or a budget has no room for both."""
        runtime = self._runtime
        model = await self._configured_model(_unheard) or runtime.info
        if not model.parallel:
            return None
        step, call = runtime.expected(usage, None), summary_call(plan, usage, model.prices)
        both = replace(call, cold_usd=call.cold_usd + step.needed_usd)
        if runtime.budget is not None and first_broken(runtime.budget.lines(), both) is not None:
            return None
        session = runtime.conversation.info.id
        return await self._preparer.run(plan, model, session, warm=self._warm(model), prepared=cut)

    def _warm(self, model: ModelInfo | None) -> AskWarm | None:
        """How a summary is asked for within the conversation, where its own model writes it."""
        own = model is None or model.spec.key == self._runtime.info.spec.key
        return partial(warm_call, self._runtime) if own else None

    def _early_ended(self, task: asyncio.Task[CompactionResult | None]) -> None:
        self.preparing.ended()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("The summary could not be prepared", exc_info=error)

    async def _prepared(self, plan: CompactionPlan, writer: ModelInfo, emit: Emit) -> CompactionResult | None:
        """What was prepared, for the conversation as it is now; waits for what is on its way. None where there is
        nothing, where a model would now be asked about something else, or where not ``writer`` wrote it: then it has
        been paid for in vain."""
        task, then = self._early, self._early_plan
        if task is None or then is None or plan.action not in ("prune", "summary"):
            return None
        if task.done() and _result_of(task) is None:
            return None
        if (now := plan_of_now(plan, then)) is None:
            return None
        emit(CompactionStarted(plan.before, plan.why, plan.before_estimated))
        self._waited_for, self._refused = True, False
        try:
            await asyncio.wait({task})
        finally:
            self._waited_for = False
        if self._refused:
            text = cancelled_text(plan.before, plan.before_estimated)
            return CompactionResult("cancelled", plan.reason, text, "it was cancelled", plan.before)
        result = _result_of(task)
        if result is None or {step.model_key for step in result.steps}.difference({writer.spec.key}):
            return None
        return await self._preparer.of_now(now, result)

    def drop_prepared(self) -> None:
        """What is prepared is not used any more; one on its way ends."""
        if self._early is not None:
            self._early.cancel()
        self._early = self._early_plan = None

    def interrupted(self) -> None:
        """The user ended the turn: so does what runs beside it. What is done already stays for the next one."""
        if self._early is not None and not self._early.done():
            self.drop_prepared()

    async def close(self) -> None:
        """The session is left: nothing runs for it any more."""
        task = self._early
        self.drop_prepared()
        if task is not None:
            await asyncio.gather(task, return_exceptions=True)

    async def _configured_model(self, emit: Emit) -> ModelInfo | None:
        name = self._runtime.settings.context.summary_model
        if name is None or self._find is None:
            return None
        try:
            info = await self._runtime.provider.describe(self._find(name))
            return with_learned(self._runtime.conversation.store, info)
        except AgentError as error:
            text = f"context.summary_model: {error} Using the session's model for the summary."
            emit(Notice("warning", text, "summary_model"))
            return None

    async def before_switch(self, target: ModelInfo, emit: Emit) -> None:
        """Before a switch to a model the conversation does not fit: says so and compacts with the old one first."""
        usage = calculate_context_usage(self._runtime.inputs(target))
        if (text := switch_check(usage)) is None:
            return
        held = self.auto.switch_held_back(usage)
        emit(Notice("warning", held or text, "compact_before_switch"))
        if held is None:
            await self.compact("switch", emit, "", self._runtime.info, target, self.auto.off)

    def cancel(self) -> bool:
        """Ends a running compaction, or the one that is waited for; nothing of it is kept."""
        if self._planning.cancel():
            return True
        if self._waited_for and self._early is not None:
            self._refused = True
            return self._early.cancel()
        return self._compactor.cancel()

    async def preview(self, focus: str = "", known: ContextUsage | None = None) -> CompactionFigures:
        """Returns what ``/compact`` would do now. ``known`` is the calculator's answer with its forecast."""
        usage = known or self._runtime.usage()
        if (plan := await self._planning.plan(self._runtime.inputs(), usage, focus=focus)) is None:
            return CompactionFigures("Planning was cancelled.")
        price = await self._price_of(plan, usage)
        return await asyncio.to_thread(preview_of, plan, usage, price)

    async def plan_fold(
        self, fold: tuple[str, str], focus: str, usage: ContextUsage
    ) -> tuple[CompactionPlan, PlanPrice]:
        """Returns what folding a range would do now, and its price, without a model call. Raises AgentError."""
        if (plan := await self._planning.plan(self._runtime.inputs(), usage, "edit", focus, fold=fold)) is None:
            raise AgentError("Planning was cancelled.")
        return plan, await self._price_of(plan, usage)

    async def _price_of(self, plan: CompactionPlan, usage: ContextUsage) -> PlanPrice:
        """What a plan costs, and what it saves."""
        info, model = self._runtime.info, await self._configured_model(_unheard)
        hour = info.spec.cache_ttl == "1h"
        call = summary_call(plan, usage, (model or info).prices, hour)
        if model is None and plan.summary is not None and plan.summary.needs_model:
            warm = warm_call(self._runtime, "", plan.summary.tokens)
            if warm is not None:
                call = priced_call(info.prices, warm.expected.input, warm.expected.read, call.output, hour)
        return plan_price(plan, usage, info.prices, call.usd, hour)

    def undo(self, emit: Emit, operation: str | None = None) -> bool:
        """Takes a compaction back, by default the newest in force; False when there is none."""
        conversation = self._runtime.conversation
        operation = operation or undo_target(conversation.records, conversation.path)
        if operation is None:
            emit(CompactionEnded("nothing", "Nothing to undo."))
            return False
        before, inputs = self._runtime.usage(), self._runtime.inputs().as_now()
        undone = conversation.deactivate(operation)
        after = self._runtime.usage()
        lost = lost_text(lost_reasoning(inputs, self._runtime.inputs()))
        notice = self.auto.undone(after)
        self._save_state()
        emit(CompactionEnded("undone", f"{undone_text(before, after)} {lost}".rstrip(), undone))
        if notice is not None:
            emit(notice)
        return True

    def _save_state(self) -> None:
        conversation = self._runtime.conversation
        conversation.keep_state(self.auto.kept_in(conversation.info.state))
