"""Joins the compaction policy, the compactor and the stored conversation; the executor and the commands both use it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

from agent_tui.context.accounting.lost import lost_reasoning, lost_text
from agent_tui.context.accounting.spending import ExpectedCall
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.notices import cancelled_text, overflow_stop_text, preview_text, undone_text
from agent_tui.context.compaction.plan import CompactionReason, undo_target
from agent_tui.context.compaction.planning import plan_compaction
from agent_tui.engine.calls import BegunCall, begin_call, stream_with_retries
from agent_tui.engine.compaction.auto import AutoCompaction, Compact, Proceed, Stop, switch_check
from agent_tui.engine.compaction.compactor import CompactionResult, Compactor
from agent_tui.engine.compaction.summary_call import Ledger, MakeStep
from agent_tui.engine.conversation import patiently
from agent_tui.engine.models import with_learned
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.events import CompactionEnded, Notice
from agent_tui.models.requests import Counter, ModelInfo, ModelRequest, ModelSpec, StreamItem
from agent_tui.models.steps import Step

log = logging.getLogger(__name__)


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
    ) -> None:
        self.prepare = prepare
        self._runtime = runtime
        self._find = find
        self._compactor = Compactor(self._stream, counter, ledger=Ledger(self._begin, self._ended))
        self._emit: Emit = lambda event: None
        self._line: Notice | None = None
        self._begun: BegunCall | None = None
        self.auto = AutoCompaction.from_state(
            runtime.conversation.info.state, auto_compact=runtime.settings.context.auto_compact
        )

    def _stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """The summary call, waited for and tried again as a step is."""
        runtime, patience = self._runtime, self._runtime.settings.agent
        request = replace(
            request,
            timeout=patience.timeout,
            content_timeout=patience.content_timeout,
            answer_timeout=patience.answer_timeout,
        )
        assert self._begun is not None, "its step was begun"
        return stream_with_retries(runtime.provider, request, patience.retries, self._emit, self._begun.may_repeat)

    async def _begin(self, call: ExpectedCall, model: ModelInfo, most: int | None, make: MakeStep) -> str | None:
        """Begins a summary call, as ``Ledger`` says."""
        told = (self._emit, model.spec, "the summary call")
        begun = await begin_call(self._runtime, call, most, make, told)
        self._begun = None if isinstance(begun, str) else begun
        return begun if isinstance(begun, str) else None

    def _ended(self, step: Step, came: int) -> None:
        """A summary call has ended."""
        if self._begun is not None and self._begun.step is step:
            self._begun.ended(came)

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
        while True:
            usage = self._runtime.usage()
            decision = self.auto.before_step(usage)
            self._save_state()
            match decision:
                case Compact(reason, without_model, notice):
                    if notice is not None:
                        self._emit(notice)
                    await self.compact(reason, self._emit, without_model=without_model)
                case Stop(text):
                    self._emit(Notice("error", text, "context_full"))
                    return text
                case Proceed(notice):
                    warning = self.auto.warning(usage)
                    self._line = notice or warning  # one about the limit says how full the context is, and more
                    return None

    def tell(self, refused: bool) -> None:
        """Says what ``before_step`` found to say. Where the call itself is ``refused`` for what it costs and the
        summary was, too, that is said once."""
        line, self._line = self._line, None
        if line is not None and not (refused and line.code == "not_compacted" and self.auto.broke_budget):
            self._emit(line)

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
    ) -> CompactionResult:
        """One compaction, committed in one transaction when it succeeded. ``target`` plans for another model;
        ``without_model`` allows only what needs no call."""
        runtime, conversation = self._runtime, self._runtime.conversation
        self._emit = emit
        if summary_model is None:
            summary_model = await self._configured_model(emit)
        inputs = runtime.inputs() if target is None else replace(runtime.inputs(), model=target)
        usage = runtime.usage() if target is None else calculate_context_usage(inputs)
        plan = plan_compaction(
            inputs,
            usage,
            conversation.path,
            conversation.summaries,
            reason=reason,
            focus=focus,
            without_model=without_model,
        )
        try:
            result = await self._compactor.run(plan, summary_model, conversation.info.id, emit)
        except asyncio.CancelledError:
            # The whole turn was cancelled: what the call cost still counts, and no notice may be left open.
            conversation.save_if_possible()
            usage = runtime.usage()
            emit(CompactionEnded("cancelled", cancelled_text(usage.total, usage.approximate)))
            raise
        try:
            await self._store(result)
        except BaseException as error:
            # Why is told by whoever hears of the error.
            why = "." if isinstance(error, StoreError) else ": it was interrupted."
            emit(CompactionEnded("failed", f"Compaction was not stored, nothing has changed{why}"))
            raise
        emit(result.event())
        for notice in self.auto.compacted(result):
            emit(notice)
        self._save_state()
        await self.prepare()
        emit(runtime.changed())
        return result

    async def _store(self, result: CompactionResult) -> None:
        """Stores what the calls cost, and the compaction where there is one. Raises StoreError."""
        conversation = self._runtime.conversation
        await patiently(conversation.save)
        if result.done:
            await patiently(lambda: conversation.commit_compaction(result.records, result.summary, None))

    async def _configured_model(self, emit: Emit) -> ModelInfo | None:
        name = self._runtime.settings.context.summary_model
        if name is None or self._find is None:
            return None
        try:
            info = await self._runtime.provider.describe(self._find(name))
            return with_learned(self._runtime.conversation.store, info)
        except AgentError as error:
            text = f"context.summary_model: {error} The session's own model writes the summary."
            emit(Notice("warning", text, "summary_model"))
            return None

    async def before_switch(self, target: ModelInfo, emit: Emit) -> None:
        """Before a switch to a model the conversation does not fit: says so and compacts with the old one first."""
        usage = calculate_context_usage(replace(self._runtime.inputs(), model=target))
        text = switch_check(usage)
        if text is None:
            return
        held = self.auto.switch_held_back(usage)
        emit(Notice("warning", held or text, "compact_before_switch"))
        if held is None:
            await self.compact("switch", emit, summary_model=self._runtime.info, target=target)

    def cancel(self) -> bool:
        """Ends a running compaction; nothing of it is kept."""
        return self._compactor.cancel()

    def preview(self, focus: str = "") -> str:
        """Returns what ``/compact`` would do now, without a model call."""
        runtime, conversation = self._runtime, self._runtime.conversation
        messages, summaries = conversation.path, conversation.summaries
        return preview_text(plan_compaction(runtime.inputs(), runtime.usage(), messages, summaries, focus=focus))

    def undo(self, emit: Emit) -> bool:
        """Takes the newest compaction in force back; False when there is none."""
        conversation = self._runtime.conversation
        operation = undo_target(conversation.records, conversation.path)
        if operation is None:
            emit(CompactionEnded("nothing", "There is no compaction to undo."))
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
