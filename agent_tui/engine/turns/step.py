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
from agent_tui.context.tokens import char_tokens, family_of, round_up
from agent_tui.engine.calls import BegunCall, NextCall, begin_call, next_call, stream_with_retries, without_own
from agent_tui.engine.conversation import patiently, store_failure
from agent_tui.engine.models import NO_FILES, NO_MEDIA, adapt, remember
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.errors import StoreError, StoreLockedError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import ContextChanged, Notice, PartDelta, StepEnded, StepStarted
from agent_tui.models.failure import TEXT_KEPT, Failure, without_text_kept
from agent_tui.models.messages import Message, Origin, ReasoningPart, SearchPart, TextPart, ToolCallPart, new_id
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    FinishReason,
    ModelInfo,
    ModelRequest,
    Reckoned,
    SentMessage,
    Started,
    UsageReport,
)
from agent_tui.models.steps import Step
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.catalog import sees
from agent_tui.providers.failure_lines import only_files, refuses_media, refuses_schema
from agent_tui.records import dataclass
from agent_tui.text.numbers import plural


class StreamProcessor:
    """Builds ``message`` from deltas. ``prefix`` is the fingerprint of everything sent before this answer; each
    reasoning part remembers it. ``clock`` gives seconds."""

    def __init__(self, message: Message, prefix: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.message = message
        self.prefix = prefix
        self.tokens = 0.0
        """How long the answer is so far by the character rule, before the family's factor."""
        self._clock = clock
        self._since = 0.0
        self._dirty: set[int] = set()
        self._pieces: dict[int, list[str]] = {}

    def apply(self, delta: Delta) -> None:
        """Adds a delta. Raises ValueError when its index skips a part or its kind is not the part's."""
        parts = self.message.parts
        if delta.index == len(parts):
            self._end_reasoning()
            self._since = self._clock()
            parts.append(self._new_part(delta))
        elif delta.index > len(parts):
            raise ValueError(f"delta for part {delta.index} of {len(parts)}")
        part = parts[delta.index]
        if isinstance(part, TextPart) and delta.kind == "reasoning":
            self.take_dirty()
            part = parts[delta.index] = ReasoningPart(part.text, prefix=self.prefix)
        if part.type != delta.kind:
            raise ValueError(f"{delta.kind} delta for a {part.type} part")
        if delta.text:
            self.tokens += char_tokens(delta.text)
            self._pieces.setdefault(delta.index, []).append(delta.text)
        if isinstance(part, ToolCallPart):
            part.call_id = delta.call_id or part.call_id
            part.name = delta.name or part.name
        if delta.metadata is not None:
            part.provider_metadata = delta.metadata
        self._dirty.add(delta.index)
        if delta.closed and delta.index == len(parts) - 1:
            self._end_reasoning()

    def _end_reasoning(self) -> None:
        """The newest part is complete; where it is a thought, its time is taken."""
        part = self.message.parts[-1] if self.message.parts else None
        if isinstance(part, ReasoningPart) and part.seconds is None:
            part.seconds = round(self._clock() - self._since, 3)
            self._dirty.add(len(self.message.parts) - 1)

    def _new_part(self, delta: Delta) -> TextPart | ReasoningPart | ToolCallPart | SearchPart:
        if delta.kind == "text":
            return TextPart("")
        if delta.kind == "reasoning":
            return ReasoningPart("", prefix=self.prefix)
        return SearchPart() if delta.kind == "search" else ToolCallPart(delta.call_id or "", delta.name or "", "")

    def take_dirty(self) -> set[int]:
        """Joins the pieces received so far into the parts and returns the indexes to flush."""
        for index, pieces in self._pieces.items():
            match part := self.message.parts[index]:
                case ToolCallPart():
                    part.arguments += "".join(pieces)
                case TextPart() | ReasoningPart():
                    part.text += "".join(pieces)
        self._pieces.clear()
        dirty, self._dirty = self._dirty, set()
        return dirty

    def finish(self) -> None:
        """Settles the message: no part without content, and every tool call with an id of its own."""
        self._end_reasoning()
        self.take_dirty()
        said = (TextPart, ReasoningPart)
        self.message.parts = [p for p in self.message.parts if p.provider_metadata or not isinstance(p, said) or p.text]
        seen: set[str] = set()
        for call in self.message.tool_calls:
            if not call.call_id or call.call_id in seen:
                call.call_id = new_id("call")
            seen.add(call.call_id)


log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.25

MOST_ADAPTED = 3
"""Things that a request may be refused for and made again without: the schema of its answer, reasoning, pictures."""


@dataclass(slots=True)
class StepResult:
    """The result of a step: ``failure`` is None when the model ended it, and then ``finish`` says why."""

    message: Message
    step: Step
    usage_before: ContextUsage
    finish: FinishReason = "unknown"
    failure: Failure | None = None
    received: bool = False
    usage_problem: str | None = None
    budget: BudgetLine | None = None
    """That which had no room for an answer as long as the model gives."""

    def fail_with(self, text: str) -> None:
        """What the turn ends with: why the step failed, with what was tried."""
        if self.failure is not None:
            self.failure = replace(self.failure, message=text)


class StepRunner:
    """Runs one model call. The draft is in the store from its first delta and flushed every 250 ms.

    Cancelling ``run`` leaves the draft stored as stopped, with what had arrived. A store that cannot be written ends
    the call with a failure of kind ``store``; one that is locked is written a little later.
    """

    def __init__(self, runtime: Runtime, emit: Emit) -> None:
        self._runtime = runtime
        self._emit = emit
        self._last_flush = 0.0
        self._last_meter = 0.0
        self._char_factor = family_of(runtime.info.target).char_factor
        self._flush_timer: asyncio.TimerHandle | None = None
        self._kept = False
        self._task: asyncio.Task[object] | None = None
        self._lost: StoreError | None = None
        self._may_adapt = True
        self._begun: BegunCall
        self._call: NextCall
        self._usage: ContextUsage
        self._view: list[SentMessage] = []
        self._unsent: NextCall | None = None
        self._diagnosis: str | None = None
        self._refused: tuple[str, ...] = ()

    async def begin(self, max_output: int | None = None) -> str | None:
        """Begins the call, where no budget is in its way; returns what to tell, else. The numbers are told once more:
        counts may have come in. ``max_output`` is what a refusal has said there is room for. Raises StoreError."""
        runtime = self._runtime
        usage, info = runtime.usage(), runtime.info
        self._emit(ContextChanged(usage, runtime.in_flight))

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
        result = StepResult(message, step, self._usage, budget=begun.budget)
        processor = StreamProcessor(message, step.prefix_fingerprint)
        # Events are told a moment later: the message may have grown by then, and what it has would be told twice.
        self._emit(StepStarted(step, replace(message, parts=[])))
        self._task = asyncio.current_task()
        try:
            await self._stream(request, processor, result)
            for _ in range(MOST_ADAPTED):
                if not await self._once_more(call, processor, result):
                    break
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
        self._settle(processor, result, "failed" if result.failure else "complete")
        if self._lost is not None:
            conversation.save_if_possible()
        else:
            await patiently(conversation.save)
        return result

    async def _once_more(self, call: NextCall, processor: StreamProcessor, result: StepResult) -> bool:
        """A request that was refused for the schema or the reasoning in it is made again without that; False when it
        was not."""
        if result.failure is None or result.received:
            return False
        request, failure, before = call.request, result.failure, self._runtime.info
        notice = self._without_schema(request, failure) or self._without_reasoning(request, failure)
        notice = notice or self._without_media(call, failure) or without_own(self._runtime, call, failure)
        if notice is None:
            return False
        self._emit(notice)
        call.decide()
        self._unsent = call
        self._runtime.conversation.save_step(result.step)
        result.failure = None
        await self._stream(request, processor, result)
        if notice.code in ("media_refused", "native_compaction"):
            self._learn_media(result.failure, before)
        return True

    def _without_reasoning(self, request: ModelRequest, failure: Failure) -> Notice | None:
        runtime = self._runtime
        told = adapt(runtime.conversation.store, runtime.info, request, failure) if self._may_adapt else None
        if told is None:
            return None
        self._may_adapt = False
        runtime.replay_by(replace(request.replay, left_out=[]))
        return Notice("warning", told, "reasoning")

    def _without_media(self, call: NextCall, failure: Failure) -> Notice | None:
        """What the server refuses to be shown is told in words, as long as it is this model: files, or all there is."""
        runtime, request = self._runtime, call.request
        parts = [part for sent in request.messages for part in sent.message.parts]
        shown = [part for part in parts if part.type == "attachment" and request.media.takes(part)]
        if not shown or not (why := refuses_media(failure)):
            return None
        files = [part for part in shown if not part.is_image]
        images = len(files) < len(shown) and not (files and only_files(failure))
        gone = shown if images else files
        self._refused = () if why == "these" else (NO_MEDIA,) if images else (NO_FILES,)
        call.info = replace(runtime.info, images=False if images else runtime.info.images, files=False)
        runtime.learn_limits(call.info)
        request.media = sees(call.info)
        what = gone[-1].name + (f" and {plural(len(gone) - 1, 'other')}" if len(gone) > 1 else "")
        told = f"The server refused {what} ({failure.message.partition(TEXT_KEPT)[0].strip()}). "
        told += f"This model gets {'pictures and files' if images else 'files'} described as text from now on."
        return Notice("warning", f"{told} Retrying.", "media_refused")

    def _learn_media(self, failure: Failure | None, before: ModelInfo) -> None:
        """The request went out again without pictures and files, or what its provider had made: only where it was taken
        so, they were what was wrong with it."""
        runtime = self._runtime
        if failure is not None:
            runtime.learn_limits(replace(before, limits=runtime.info.limits))
        elif self._refused and remember(runtime.conversation.store, runtime.info, *self._refused):
            what = f"{runtime.info.spec.key} takes no {'pictures' if NO_MEDIA in self._refused else 'files'}"
            self._emit(Notice("info", f"Remembered: {what}. /doctor --forget forgets it.", "media_remembered"))

    def _without_schema(self, request: ModelRequest, failure: Failure) -> Notice | None:
        if request.output_schema is None or not refuses_schema(failure):
            return None
        request.output_schema = None
        self._runtime.without_schema()
        text = "The server does not support answer schemas; agent-tui checks the answer instead. Retrying."
        return Notice("info", text, "schema_refused")

    def _note(self, *notes: str) -> None:
        """Says what holds for this step, each note once in a session with this model."""
        for note in notes:
            if note not in self._runtime.told:
                self._runtime.told.add(note)
                self._emit(Notice("info", note, "step_note"))

    def _note_dropped(self, request: ModelRequest, dropped: list[str], result: StepResult) -> None:
        """Notes what the provider says it dropped: that was not counted in this step, and is not sent again."""
        step, view = result.step, request.messages
        step.dropped_blocks = len(dropped)
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
                    case Delta():
                        result.received = True
                        processor.apply(item)
                        self._keep(processor, result)
                        self._emit(PartDelta(result.message.id, item))
                        self._meter(processor)
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
                    case Finished(reason, metadata, dropped, response_id, diagnosis):
                        result.finish = reason
                        if runtime.info.spec.cache_diagnostics:
                            step.response_id, self._diagnosis = response_id, diagnosis
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
            runtime.sent_log.judge(
                step, conversation.steps, self._view, runtime.info, conversation.summaries, self._diagnosis
            )
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
            self._emit(runtime.changed())

    def _settle(
        self, processor: StreamProcessor, result: StepResult, status: Literal["complete", "stopped", "failed"]
    ) -> None:
        """Ends the draft and the step, in memory: this never fails. Storing them is the caller's next step."""
        self._cancel_timer()
        self._runtime.streaming(0)
        conversation, step, message = self._runtime.conversation, result.step, result.message
        processor.finish()
        self._count_late(result)
        message.status = step.status = status
        step.failure, step.finish_reason, step.finished = result.failure, result.finish, time.time()
        wordless = not message.text.strip() and not message.tool_calls and result.finish != "paused"
        if result.failure is not None:
            message.note = result.failure.message
        elif status == "complete" and result.finish not in ("refused", "length") and wordless:
            # It looks like one that got lost.
            message.note = f"{self._runtime.info.spec.key} gave an empty answer."
        try:
            if status == "complete":
                self._judge_usage(processor, result)
                if (line := after_step(step)) is not None:
                    log.info("%s", line)
            self._judge_cache(step)
        finally:
            # Whatever is wrong there: calls that wait for what this one holds would wait for ever.
            if self._kept:
                conversation.finish(message)
            self._begun.ended(round_up(processor.tokens * self._char_factor))
            self._emit(StepEnded(step, message))

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
        if "window" in before.learned and "window" not in runtime.info.limits.learned:
            self._emit(Notice("info", outgrown_text(step, before), "limit_gone"))
        if news:
            self._emit(Notice("warning", told_text(step, verdict, result.usage_problem), "usage"))
        why = DOUBTS.get(verdict.doubt) if verdict.doubt else usage_problem(step.counted, runtime.info.limits.window)
        if why is not None:
            said = result.usage_problem or f"it says {plural(step.usage.input, 'token')} of input" if step.usage else ""
            log.warning("Usage of step %s is not built on: %s (%s)", step.id, why, said)


def _with_input(usage: TokenUsage, step: Step) -> TokenUsage:
    """The usage with our estimate of the input where nobody counted it: that is the best number there is."""
    return usage if usage.source == "provider" or usage.input else replace(usage, input=step.estimated_input or 0)
