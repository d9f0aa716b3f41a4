"""One step: a request built from the conversation, its answer streamed into a stored draft, retried when safe."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Literal

from agent_tui.context.accounting.next_input import max_output_for
from agent_tui.context.accounting.reports import DOUBTS, after_step, before_step, outgrown_text, told_text
from agent_tui.context.accounting.spending import BudgetLine
from agent_tui.context.anchor import dropped_indexes, usage_problem, without
from agent_tui.context.tokens import family_of, round_up
from agent_tui.engine.calls import BegunCall, NextCall, begin_call, next_call
from agent_tui.engine.conversation import patiently, store_failure
from agent_tui.engine.retries import Interrupted, stream_with_retries
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.engine.turns.repetition import RepetitionWatch
from agent_tui.engine.turns.stream import StreamProcessor
from agent_tui.errors import StoreError, StoreLockedError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import AnswerInterrupted, Notice, PartDelta, StepEnded, StepStarted
from agent_tui.models.failure import ARRIVED_KEPT, GO_ON, Failure, make_failure, without_text_kept
from agent_tui.models.messages import Message, Origin, TextPart, ToolCallPart, new_id
from agent_tui.models.requests import (
    WITHOUT_CALL,
    Delta,
    Failed,
    Finished,
    FinishReason,
    ModelRequest,
    Reckoned,
    SentMessage,
    Started,
    UsageReport,
)
from agent_tui.models.steps import Step
from agent_tui.models.usage import TokenUsage
from agent_tui.records import dataclass
from agent_tui.text.numbers import plural
from agent_tui.tools.text_calls import find_text_calls

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.25
MOST_CALLS = 200
"""Calls of one answer: one that goes on beyond them is ended there, and they are run."""


@dataclass(slots=True)
class StepResult:
    """The result of a step: ``failure`` is None when the model ended it, and then ``finish`` says why."""

    message: Message
    step: Step
    request: ModelRequest
    usage_before: ContextUsage
    finish: FinishReason = "unknown"
    finish_words: str = ""
    """How the provider calls that."""
    failure: Failure | None = None
    received: bool = False
    repeats: str | None = None
    """The piece that the answer went on repeating, for which it was ended."""
    more_calls: bool = False
    """It was ended because it went on making calls."""
    written_calls: tuple[str, ...] = ()
    """The tools that it calls in its text, where such calls are not run."""
    usage_problem: str | None = None
    budget: BudgetLine | None = None
    """That which had no room for an answer as long as the model gives."""

    def fail_with(self, text: str, way: str = "") -> None:
        """What the turn ends with: why the step failed, with what was tried, and what can be done."""
        if self.failure is not None:
            self.failure = replace(self.failure, message=f"{text} {way}".rstrip(), way=way)


class StepRunner:
    """Runs one model call. The draft is in the store from its first delta and flushed every 250 ms.

    Cancelling ``run`` leaves the draft stored as stopped, with what had arrived. A store that cannot be written ends
    the call with a failure of kind ``store``; one that is locked is written a little later.
    """

    def __init__(self, runtime: Runtime, emit: Emit, is_tool: Callable[[str], bool] = lambda name: False) -> None:
        self._runtime = runtime
        self._emit = emit
        self._is_tool = is_tool
        self._repetition = RepetitionWatch()
        self._last_flush = 0.0
        self._last_meter = 0.0
        self._char_factor = family_of(runtime.info.target).char_factor
        self._flush_timer: asyncio.TimerHandle | None = None
        self._kept = False
        self._task: asyncio.Task[object] | None = None
        self._lost: StoreError | None = None
        self._begun: BegunCall
        self._call: NextCall
        self._usage: ContextUsage
        self._view: list[SentMessage] = []
        self._unsent: NextCall | None = None
        self._asked_twice = False

    async def begin(self, max_output: int | None = None) -> str | None:
        """Begins the call, where no budget is in its way; returns what to tell, else. The numbers are told once more:
        counts may have come in. ``max_output`` is what a refusal has said there is room for. Raises StoreError."""
        runtime = self._runtime
        usage, info = runtime.usage(), runtime.info
        runtime.show_numbers(self._emit)

        def make(_output: int | None, _capped: bool) -> Step:
            self._call = call = next_call(runtime, usage, max_output=max_output)
            before_step(call.step, usage)
            call.request.reckoned = None if usage.pending else Reckoned(usage.total, usage.limit, usage.would_compact)
            return call.step

        most = max_output_for(usage, info.limits) if max_output is None else max_output
        expected, told = runtime.expected(usage, most), (self._emit, info, "the next call")
        begun = await begin_call(runtime, expected, most, make, told)
        if isinstance(begun, str):
            return begun
        self._begun, self._usage = begun, usage
        return None

    async def run(self) -> StepResult:
        """The call that was begun."""
        runtime, conversation = self._runtime, self._runtime.conversation
        call, begun = self._call, self._begun
        step, request = call.step, call.request
        target = runtime.info.target
        origin = Origin(target.provider, target.api, target.model)
        now = time.time()
        message = Message(new_id("msg"), "assistant", status="streaming", created=now, origin=origin, step_id=step.id)
        self._unsent = call
        self._view = request.messages
        result = StepResult(message, step, request, self._usage, budget=begun.budget)
        processor = StreamProcessor(message, step.prefix_fingerprint)
        # Events are told a moment later: the message may have grown by then, and what it has would be told twice.
        self._emit(StepStarted(step, replace(message, parts=[])))
        self._task = asyncio.current_task()
        try:
            await self._stream(request, processor, result)
            processor.join()
            if self._is_empty(processor, result) and self._begun.may_repeat(None, 0.0):
                await self._ask_again(request, processor, result)
            if self._is_empty(processor, result) and message.text.strip():
                text = f"{runtime.info.spec.key} broke off its answer, and gave an empty one when it was asked again."
                result.failure = make_failure("interrupted_stream", text, GO_ON, kept=ARRIVED_KEPT)
        except asyncio.CancelledError:
            if not self._cancelled_by_timer():
                self._settle(processor, result, "stopped")
                conversation.save_if_possible()
                raise
        except StoreError as error:
            self._lost = error
        except Exception as error:
            message.note = f"{type(error).__name__}: {error}"
            self._settle(processor, result, "failed")
            conversation.save_if_possible()
            raise
        from_user = bool(self._view) and self._view[-1].message.role == "user"
        if self._lost is not None:
            result.failure = store_failure(self._lost)
        elif result.failure is not None and (runtime.parent is not None or not from_user):
            result.failure = without_text_kept(result.failure)
        self._settle(processor, result, "failed" if result.failure else "stopped" if result.repeats else "complete")
        if self._lost is not None:
            conversation.save_if_possible()
        else:
            await patiently(conversation.save)
        return result

    def _is_empty(self, processor: StreamProcessor, result: StepResult) -> bool:
        """Returns whether an answer came to its end without a word or a call: it looks like one that got lost. What
        stands there of an attempt that broke off is none of its words."""
        message = result.message
        ended = result.failure is not None or result.repeats is not None
        if ended or result.finish in ("refused", "length", "paused"):
            return False
        return processor.interrupted or not (message.text.strip() or message.tool_calls)

    async def _ask_again(self, request: ModelRequest, processor: StreamProcessor, result: StepResult) -> None:
        """An empty answer is asked for once more; what came of it is not kept."""
        text = f"{self._runtime.info.spec.key} gave an empty answer. Asking again."
        self._emit(Notice("info", text, "asked_again"))
        self._interrupt(processor, result)
        result.finish, self._asked_twice = "unknown", True
        await self._stream(request, processor, result)

    def _interrupt(self, processor: StreamProcessor, result: StepResult) -> None:
        """What came of the answer is replaced by what comes next."""
        result.usage_problem = result.message.provider_metadata = None
        result.received = False
        self._repetition = RepetitionWatch()
        if self._kept:
            processor.interrupt()
            self._emit(AnswerInterrupted(result.message.id))

    def _note(self, *notes: str) -> None:
        """Says what holds for this step, each note once in a session with this model."""
        for note in notes:
            if note not in self._runtime.told:
                self._runtime.told.add(note)
                self._emit(Notice("info", note, "step_note"))

    def _note_dropped(self, request: ModelRequest, dropped: list[str], result: StepResult) -> None:
        """Notes what the provider says it dropped: that was not counted in this step, and is not sent again."""
        step, view = result.step, request.messages
        step.sent_reasoning = without(step.sent_reasoning or [], dropped_indexes(view, dropped), len(view))
        self._note("The provider dropped reasoning made with another prompt.")

    def _cancelled_by_timer(self) -> bool:
        """Returns whether it was only the flush timer that ended the stream, and not the user as well."""
        return self._lost is not None and self._task is not None and self._task.uncancel() == 0

    async def _stream(self, request: ModelRequest, processor: StreamProcessor, result: StepResult) -> None:
        runtime, step = self._runtime, result.step
        attempts, again = runtime.settings.agent.retries, self._begun.may_repeat
        stream = stream_with_retries(runtime.provider, request, attempts, self._emit, again)
        async with aclosing(stream) as items:
            async for item in items:
                match item:
                    case Interrupted():
                        self._interrupt(processor, result)
                    case Delta():
                        result.received = True
                        if processor.is_call_after(item, MOST_CALLS):
                            result.more_calls, result.finish = True, "tool_calls"
                            return
                        if processor.interrupted:
                            # All that is stored of it goes.
                            runtime.conversation.finish(result.message)
                        processor.apply(item)
                        self._keep(processor, result)
                        self._emit(PartDelta(result.message.id, item))
                        self._meter(processor)
                        if item.kind in ("text", "reasoning") and self._repetition.add(item.text):
                            result.repeats = self._repetition.piece
                            return
                    case UsageReport(usage, cost, problem, believed, model):
                        result.usage_problem = problem
                        step.answered_by = model or None
                        step.usage = _with_input(usage, step)
                        step.believed = None if believed is None else _with_input(believed, step)
                        step.cost_usd = cost if cost is not None else runtime.info.prices.cost(usage)
                    case Started(target, notes):
                        self._store_sent()
                        result.message.origin = Origin(target.provider, target.api, target.model)
                        step.provider, step.api, step.model = target.provider, target.api, target.model
                        self._note(*notes)
                    case Finished(reason, metadata, dropped, words):
                        result.finish, result.finish_words = reason, words
                        if dropped:
                            self._note_dropped(request, dropped, result)
                        if metadata is not None:
                            result.message.provider_metadata = metadata
                    case Failed(failure):
                        result.failure = failure

    def _store_sent(self) -> None:
        """Stores what the request is made of, once it is on its way."""
        call, self._unsent = self._unsent, None
        if call is not None:
            call.remember(self._runtime)

    def _judge_cache(self, step: Step) -> None:
        """Judges what of a step's input should have been read from the cache. An answer is not lost over that."""
        runtime, conversation = self._runtime, self._runtime.conversation
        try:
            self._store_sent()
            runtime.sent_log.judge(step, conversation.steps, self._view, runtime.info, conversation.summaries)
        except Exception:
            log.exception("What step %s read from the cache cannot be judged", step.id)

    def _keep(self, processor: StreamProcessor, result: StepResult) -> None:
        """Stores the draft: at once when it is new, then at most every quarter second, with a timer for the rest."""
        conversation, since = self._runtime.conversation, time.monotonic() - self._last_flush
        if not self._kept:
            processor.take_dirty()
            conversation.keep(result.message)
            result.step.message_id = result.message.id
            conversation.save_step(result.step)
            self._kept = True
            self._flush(processor, result)
        elif since >= FLUSH_SECONDS:
            self._flush(processor, result)
        else:
            self._flush_in(FLUSH_SECONDS - since, processor, result)

    def _flush(self, processor: StreamProcessor, result: StepResult) -> None:
        """Writes what changed. Raises StoreError, but not for a lock: then it is tried again in a moment."""
        self._cancel_timer()
        self._last_flush = time.monotonic()
        conversation, dirty = self._runtime.conversation, processor.take_dirty()
        try:
            if dirty:
                conversation.flush(result.message, dirty)
            else:
                conversation.save()
        except StoreLockedError as error:
            log.info("Flushed later: %s", error)
            self._flush_in(FLUSH_SECONDS, processor, result)

    def _flush_in(self, seconds: float, processor: StreamProcessor, result: StepResult) -> None:
        if self._flush_timer is None:
            self._flush_timer = asyncio.get_running_loop().call_later(seconds, self._flush_late, processor, result)

    def _flush_late(self, processor: StreamProcessor, result: StepResult) -> None:
        """The timer's flush: nobody waits for it, so an error ends the stream."""
        try:
            self._flush(processor, result)
        except StoreError as error:
            self._lost = error
            if self._task is not None:
                self._task.cancel()

    def _cancel_timer(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None

    def _meter(self, processor: StreamProcessor) -> None:
        """Moves the status line by what is in flight, at most four times a second."""
        runtime, now = self._runtime, time.monotonic()
        runtime.streaming(max(1, round_up(processor.tokens * self._char_factor)))
        if now - self._last_meter >= FLUSH_SECONDS:
            self._last_meter = now
            runtime.show_numbers(self._emit)

    def _settle(
        self, processor: StreamProcessor, result: StepResult, status: Literal["complete", "stopped", "failed"]
    ) -> None:
        """Ends the draft and the step, in memory: this never fails. Storing them is the caller's next step."""
        self._cancel_timer()
        self._runtime.streaming(0)
        conversation, step, message = self._runtime.conversation, result.step, result.message
        processor.finish()
        whole = result.finish in ("stop", "tool_calls") or result.finish_words.endswith(WITHOUT_CALL)
        if status == "complete" and whole and not processor.interrupted:
            self._read_written_calls(result)
        self._count_late(result)
        message.status = step.status = status
        step.failure, step.finish_reason, step.finished = result.failure, result.finish, time.time()
        if result.failure is not None:
            message.note = result.failure.message
        elif status == "complete" and self._is_empty(processor, result):
            twice = " twice" if self._asked_twice else ""
            message.note = f"{self._runtime.info.spec.key} gave an empty answer{twice}. {GO_ON}"
        try:
            if status == "complete":
                self._judge_usage(processor, result)
                if (line := after_step(step)) is not None:
                    log.info("%s", line)
            self._judge_cache(step)
            self._runtime.learn_growth(step)
        finally:
            # Whatever is wrong there: calls that wait for what this one holds would wait for ever.
            if self._kept:
                conversation.finish(message)
            self._begun.ended(round_up(processor.tokens * self._char_factor))
            self._emit(StepEnded(step, message))

    def _read_written_calls(self, result: StepResult) -> None:
        """Calls that the answer holds as text are calls, where that is wanted; else it is known that it has some."""
        message = result.message
        if message.tool_calls:
            return
        for part in [part for part in message.parts if isinstance(part, TextPart)]:
            if (written := find_text_calls(part.text, self._is_tool)) is None:
                continue
            if not self._runtime.runs_text_calls:
                result.written_calls += tuple(call.name for call in written.calls)
                continue
            part.text = written.text
            if not part.text and part.provider_metadata is None:
                message.parts.remove(part)
            for call in written.calls:
                message.parts.append(ToolCallPart(new_id("call"), call.name, call.arguments))

    def _count_late(self, result: StepResult) -> None:
        """A request that went out before it was counted: its counts have come meanwhile, or nothing is learned of it.
        The answer is still a draft, so the numbers are those of what was sent, unless its fixed parts have changed."""
        if not result.usage_before.pending:
            return
        step, counted = result.step, self._runtime.usage()
        if counted.pending or self._runtime.request_prefix.fingerprint != step.fixed_fingerprint:
            step.estimated_growth = step.known_input = step.growth = None
            return
        guessed = step.estimated_input
        before_step(step, counted)
        result.usage_before = counted
        if (made := step.counted) is not None and made.source == "estimated" and made.input == guessed:
            made = replace(made, input=counted.total)
            if step.believed is None:
                step.usage = made
            else:
                step.believed = made

    def _judge_usage(self, processor: StreamProcessor, result: StepResult) -> None:
        """Takes what cannot be true for what it is: a line in the log, and for the user where it is news."""
        runtime, step, before = self._runtime, result.step, self._runtime.info.limits
        verdict, news = runtime.judge(step, round_up(processor.tokens * self._char_factor))
        if (line := outgrown_text(step, before, runtime.info.limits)) is not None and verdict.keeps is None:
            self._emit(Notice("info", line, "limit_gone"))
        if news:
            self._emit(Notice("warning", told_text(step, verdict, result.usage_problem), "usage"))
        why = DOUBTS.get(verdict.doubt) if verdict.doubt else usage_problem(step.counted, runtime.info.limits.window)
        if why is not None:
            said = result.usage_problem or f"it says {plural(step.usage.input, 'token')} of input" if step.usage else ""
            log.warning("Usage of step %s is not built on: %s (%s)", step.id, why, said)


def _with_input(usage: TokenUsage, step: Step) -> TokenUsage:
    """The usage with our estimate of the input where nobody counted it: that is the best number there is."""
    return usage if usage.source == "provider" or usage.input else replace(usage, input=step.estimated_input or 0)
