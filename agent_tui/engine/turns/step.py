"""One step: the conversation's next call, whose answer streams into a stored draft."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

from agent_tui.context.accounting.believed import Verdict
from agent_tui.context.accounting.reports import DOUBTS, after_step, before_step, outgrown_text, told_text
from agent_tui.context.accounting.spending import BudgetLine
from agent_tui.context.anchor import dropped_indexes, usage_problem, without
from agent_tui.engine.calls import next_call
from agent_tui.engine.conversation import patiently, store_failure
from agent_tui.engine.model_call import CallStatus, Interrupted, ModelCall, open_call
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.engine.turns.repetition import RepetitionWatch
from agent_tui.engine.turns.stream import FLUSH_SECONDS, StoredDraft, StreamProcessor
from agent_tui.errors import StoreError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import AnswerInterrupted, Notice, PartDelta, StepEnded, StepStarted
from agent_tui.models.failure import ARRIVED_KEPT, GO_ON, Failure, make_failure, without_text_kept
from agent_tui.models.messages import Message, Origin, TextPart, ToolCallPart, new_id
from agent_tui.models.requests import WITHOUT_CALL, Delta, Finished, FinishReason, ModelRequest, Reckoned, Started
from agent_tui.models.steps import Step
from agent_tui.providers.reasoning import prefix_fingerprint
from agent_tui.records import dataclass
from agent_tui.text.numbers import plural
from agent_tui.tools.text_calls import find_text_calls

log = logging.getLogger(__name__)

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
    budget: BudgetLine | None = None
    """That which had no room for an answer as long as the model gives."""

    def fail_as(self, failure: Failure) -> None:
        """What the turn ends with, in the place of why the step failed in the end."""
        self.failure = failure

    def fail_with(self, text: str, way: str = "") -> None:
        """What the turn ends with: why the step failed, with what was tried, and what can be done."""
        if self.failure is not None:
            self.failure = replace(self.failure, message=f"{text} {way}".rstrip(), way=way)


class ModelStep:
    """One call for the conversation's next answer. The draft is in the store from its first delta.

    Cancelling ``run`` leaves the draft stored as stopped, with what had arrived. A store that cannot be written ends
    the call with a failure of kind ``store``.
    """

    def __init__(self, runtime: Runtime, emit: Emit, is_tool: Callable[[str], bool] = lambda name: False) -> None:
        self._runtime = runtime
        self._emit = emit
        self._is_tool = is_tool
        self._repetition = RepetitionWatch()
        self._last_meter = 0.0
        self._asked_twice = False
        self._call: ModelCall
        self._usage: ContextUsage
        self._processor: StreamProcessor
        self._draft: StoredDraft

    async def open(self, max_output: int | None = None) -> None:
        """Begins the call. The numbers are told once more: counts may have come in. ``max_output`` is what a refusal
        has said there is room for. Raises NoRoomError where a budget is in its way, and StoreError."""
        runtime = self._runtime
        usage = runtime.usage()
        runtime.show_numbers(self._emit)
        planned = next_call(runtime, usage, max_output=max_output)
        before_step(planned.step, usage)
        planned.request.reckoned = None if usage.pending else Reckoned(usage.total, usage.limit, usage.would_compact)
        self._call, self._usage = await open_call(runtime, planned, self._emit), usage

    async def run(self) -> StepResult:
        """The answer to the call that was opened."""
        runtime, conversation, call = self._runtime, self._runtime.conversation, self._call
        step, target = call.step, runtime.info.target
        origin = Origin(target.provider, target.api, target.model)
        now = time.time()
        message = Message(new_id("msg"), "assistant", status="streaming", created=now, origin=origin, step_id=step.id)
        result = StepResult(message, step, call.request, self._usage, budget=call.limited_by)
        self._processor = StreamProcessor(
            message, prefix_fingerprint(call.request.messages, call.request.fixed_fingerprint)
        )
        self._draft = StoredDraft(conversation, self._processor, step)
        # Events are told a moment later: the message may have grown by then, and what it has would be told twice.
        self._emit(StepStarted(step, replace(message, parts=[])))
        lost: StoreError | None = None
        try:
            await self._stream(result)
            self._processor.join()
            if self._is_empty(result) and call.may_repeat():
                await self._ask_again(result)
            if self._is_empty(result) and message.text.strip():
                text = f"{runtime.info.spec.key} broke off its answer, and gave an empty one when it was asked again."
                call.failure = make_failure("interrupted_stream", text, GO_ON, kept=ARRIVED_KEPT)
        except asyncio.CancelledError:
            if not self._draft.has_ended_task():
                call.failure = None  # it was to be tried again
                self._settle(result, "stopped")
                conversation.save_if_possible()
                raise
            lost = self._draft.lost
        except StoreError as error:
            lost = error
        except Exception as error:
            message.note = f"{type(error).__name__}: {error}"
            self._settle(result, "failed")
            conversation.save_if_possible()
            raise
        from_user = bool(call.request.messages) and call.request.messages[-1].message.role == "user"
        if lost is not None:
            call.failure = store_failure(lost)
        elif call.failure is not None and (runtime.parent is not None or not from_user):
            call.failure = without_text_kept(call.failure)
        self._settle(result, "failed" if call.failure else "stopped" if result.repeats else "complete")
        if lost is not None:
            conversation.save_if_possible()
        else:
            await patiently(conversation.save)
        return result

    async def _stream(self, result: StepResult) -> None:
        """Has the answer grow, to its end or to where it is ended."""
        runtime, call, message = self._runtime, self._call, result.message
        async with aclosing(call.items()) as items:
            async for item in items:
                match item:
                    case Interrupted():
                        self._interrupt(result)
                    case Delta():
                        result.received = True
                        if self._processor.is_call_after(item, MOST_CALLS):
                            result.more_calls, call.finish = True, "tool_calls"
                            return
                        if self._processor.interrupted:
                            # All that is stored of it goes.
                            runtime.conversation.finish(message)
                        self._processor.apply(item)
                        self._draft.store()
                        self._emit(PartDelta(message.id, item))
                        self._meter()
                        if item.kind in ("text", "reasoning") and self._repetition.add(item.text):
                            result.repeats = self._repetition.piece
                            return
                    case Started(target, notes):
                        message.origin = Origin(target.provider, target.api, target.model)
                        self._note(*notes)
                    case Finished(message_metadata=metadata, dropped=dropped):
                        if dropped:
                            self._note_dropped(dropped)
                        if metadata is not None:
                            message.provider_metadata = metadata

    def _is_empty(self, result: StepResult) -> bool:
        """Returns whether an answer came to its end without a word or a call: it looks like one that got lost. What
        stands there of an attempt that broke off is none of its words."""
        message, call = result.message, self._call
        if call.failure is not None or result.repeats is not None or call.finish in ("refused", "length", "paused"):
            return False
        return self._processor.interrupted or not (message.text.strip() or message.tool_calls)

    async def _ask_again(self, result: StepResult) -> None:
        """An empty answer is asked for once more; what came of it is not kept."""
        text = f"{self._runtime.info.spec.key} gave an empty answer. Asking again."
        self._emit(Notice("info", text, "asked_again"))
        self._interrupt(result)
        self._asked_twice = True
        await self._stream(result)

    def _interrupt(self, result: StepResult) -> None:
        """What came of the answer is replaced by what comes next."""
        result.message.provider_metadata = None
        result.received = False
        self._repetition = RepetitionWatch()
        if self._draft.is_stored:
            self._processor.interrupt()
            self._emit(AnswerInterrupted(result.message.id))

    def _note(self, *notes: str) -> None:
        """Says what holds for this step, each note once in a session with this model."""
        for note in notes:
            if note not in self._runtime.told:
                self._runtime.told.add(note)
                self._emit(Notice("info", note, "step_note"))

    def _note_dropped(self, dropped: list[str]) -> None:
        """Notes what the provider says it dropped: that was not counted in this step, and is not sent again."""
        step, view = self._call.step, self._call.request.messages
        step.sent_reasoning = without(step.sent_reasoning or [], dropped_indexes(view, dropped), len(view))
        self._note("The provider dropped reasoning made with another prompt.")

    def _meter(self) -> None:
        """Moves the status line by what is in flight, at most four times a second."""
        runtime, now = self._runtime, time.monotonic()
        runtime.streaming(max(1, self._call.answer_tokens))
        if now - self._last_meter >= FLUSH_SECONDS:
            self._last_meter = now
            runtime.show_numbers(self._emit)

    def _settle(self, result: StepResult, status: CallStatus) -> None:
        """Ends the draft and the call, in memory: this never fails. Storing them is the caller's next step."""
        self._draft.close()
        self._runtime.streaming(0)
        call, message = self._call, result.message
        result.failure, result.finish, result.finish_words = call.failure, call.finish or "unknown", call.finish_words
        self._processor.finish()
        whole = result.finish in ("stop", "tool_calls") or result.finish_words.endswith(WITHOUT_CALL)
        if status == "complete" and whole and not self._processor.interrupted:
            self._read_written_calls(result)
        self._count_late(result)
        message.status = status
        if result.failure is not None:
            message.note = result.failure.message
        elif status == "complete" and self._is_empty(result):
            twice = " twice" if self._asked_twice else ""
            message.note = f"{self._runtime.info.spec.key} gave an empty answer{twice}. {GO_ON}"
        try:
            call.settle(status, lambda: self._judge(result))
        finally:
            self._emit(StepEnded(result.step, message))

    def _judge(self, result: StepResult) -> None:
        """What the report of the step that has ended says, and teaches."""
        step = result.step
        try:
            if step.status == "complete":
                verdict = self._judge_usage(result)
                if (line := after_step(step)) is not None:
                    log.info("%s", line)
                self._runtime.settle(step, result.message, verdict)
            self._judge_cache(step)
            self._runtime.learn_growth(step)
        finally:
            self._draft.finish()

    def _judge_cache(self, step: Step) -> None:
        """Judges what of a step's input should have been read from the cache. An answer is not lost over that."""
        runtime, conversation, view = self._runtime, self._runtime.conversation, self._call.request.messages
        try:
            lists = runtime.calculator.lists
            runtime.sent_log.judge(step, conversation.steps, view, runtime.info, conversation.summaries, lists)
        except Exception:
            log.exception("What step %s read from the cache cannot be judged", step.id)

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
        self._call.count_anew(guessed, counted.total)

    def _judge_usage(self, result: StepResult) -> Verdict:
        """Takes what cannot be true for what it is: a line in the log, and for the user where it is news."""
        runtime, step, before = self._runtime, result.step, self._runtime.info.limits
        verdict, news = runtime.judge(step, self._call.answer_tokens)
        problem = self._call.usage_problem
        if (line := outgrown_text(step, before, runtime.info.limits)) is not None and verdict.keeps is None:
            self._emit(Notice("info", line, "limit_gone"))
        if news:
            self._emit(Notice("warning", told_text(step, verdict, problem), "usage"))
        why = DOUBTS.get(verdict.doubt) if verdict.doubt else usage_problem(step.counted, runtime.info.limits.window)
        if why is not None:
            said = problem or f"it says {plural(step.usage.input, 'token')} of input" if step.usage else ""
            log.warning("Usage of step %s is not built on: %s (%s)", step.id, why, said)
        return verdict
