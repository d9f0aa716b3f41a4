"""Runs a turn: user message, step, tool calls, step, … until the model is done; a request that was too long is
made shorter. An async generator of events."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

from agent_tui.context.accounting.believed import far_off
from agent_tui.context.accounting.spending import cut_text, session_totals
from agent_tui.engine.calls import fitting_output
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import patiently, store_failure
from agent_tui.engine.hooks import Hooks
from agent_tui.engine.models import NO_TOOL, learn, remember
from agent_tui.engine.request_prefix import RequestPrefix, without_tools
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.engine.toolbox import ToldMode
from agent_tui.engine.turns.step import StepResult, StepRunner
from agent_tui.engine.turns.toolrunner import ToolRunner
from agent_tui.errors import StoreError
from agent_tui.models.events import (
    AnswerInterrupted,
    ContextChanged,
    Event,
    MessageAdded,
    MessagesWithdrawn,
    Notice,
    StopReason,
    TurnEnded,
    TurnStarted,
)
from agent_tui.models.failure import ARRIVED_KEPT, TEXT_KEPT, Failure, Overflow, inner_failure
from agent_tui.models.messages import (
    MALFORMED,
    AttachmentPart,
    Message,
    ToolCallPart,
    content_fingerprint,
    new_id,
    user_message,
)
from agent_tui.models.requests import ModelInfo, OfferedTool
from agent_tui.models.steps import Step
from agent_tui.models.usage import Limits, TokenUsage
from agent_tui.providers.failure_lines import malformed_call, refused_tools
from agent_tui.records import dataclass
from agent_tui.text.clean import cut
from agent_tui.text.numbers import plural

log = logging.getLogger(__name__)

MOST_MALFORMED = 3
"""Calls in a row that a server cannot read, after which the turn ends."""

MALFORMED_CHARS = 1_000
"""Characters of what the server said of one that the model is told."""


@dataclass(slots=True, frozen=True)
class Again:
    """Send the step again; ``max_output`` is what to ask for, None for as much as there is room for."""

    max_output: int | None = None


class OverflowRecovery:
    """Tries what is left to try for one step whose request was refused for its size."""

    def __init__(self, runtime: Runtime, compaction: CompactionService, emit: Emit) -> None:
        self._runtime = runtime
        self._compaction = compaction
        self._emit = emit
        self._shortened: set[bool] = set()
        self._compacted = False

    async def next(self, result: StepResult) -> Again | None:
        """Returns how to send the step again; None when it was not refused for its size, or nothing is left to try.
        Raises StoreError."""
        failure = result.failure
        if failure is not None and failure.overflow is not None and failure.overflow.answering:
            return await self._make_room(result, failure)
        if failure is None or result.received:
            return None
        overflow = failure.overflow
        alone = overflow is not None and overflow.only_output
        if failure.kind != "context_overflow" and not alone:
            return None
        told = await self._take_in(result, overflow)
        asked = result.step.max_output
        if alone not in self._shortened and (told is not None or not self._compacted):
            self._shortened.add(alone)
            output = self._shorter(told, asked)
            if output is not None:
                less = f"at most {output:,} tokens" + (f" instead of {asked:,}" if asked is not None else "")
                text = f"Retrying with an answer of {less}, which is all that fits."
                self._emit(Notice("info", text, "less_output"))
                return Again(output)
        if alone:
            return None
        return await self._compact(result, failure)

    async def _compact(self, result: StepResult, failure: Failure) -> Again | None:
        # What the provider said, without the ways on: which are left is known in a moment.
        said = failure.message.partition(TEXT_KEPT)[0].partition(" Use /compact")[0].strip()
        stopped = await self._compaction.after_overflow(said)
        if stopped is not None:
            result.fail_with(stopped)
            return None
        self._shortened, self._compacted = set(), True
        return Again()

    async def _make_room(self, result: StepResult, failure: Failure) -> Again | None:
        """The window was full before the answer was whole. What came of it is left on a branch of its own, so that it
        is not sent with the next try; where there is none, it stays."""
        conversation, message = self._runtime.conversation, result.message
        came = bool(conversation.path) and conversation.path[-1] is message
        if came:
            conversation.go_to(message.parent_id)
        again = await self._compact(result, failure)
        if came and again is None:
            conversation.go_to(message.id)
        elif came:
            self._emit(AnswerInterrupted(message.id))
            self._emit(MessagesWithdrawn([message.id]))
        return again

    def _shorter(self, overflow: Overflow | None, asked: int | None) -> int | None:
        usage, most = self._runtime.usage(), self._runtime.info.limits.max_input
        fits = usage.limit is not None and usage.total <= usage.limit
        return fitting_output(overflow, asked, usage.total, window=usage.window, max_input=most, fits_well=fits)

    async def _take_in(self, result: StepResult, overflow: Overflow | None) -> Overflow | None:
        """Believes what can be believed; what is left of the refusal's numbers."""
        if overflow is None:
            return None
        runtime, conversation = self._runtime, self._runtime.conversation
        if not believable(overflow, runtime.usage().total, result.step.max_output):
            log.warning("Not believed, the estimate is %s: %s", runtime.usage().total, overflow.text)
            return None
        before = runtime.info.limits
        learned = learn(conversation.store, runtime.info, overflow, conversation.steps)
        if learned is not None:
            runtime.learn_limits(learned)
            self._emit(Notice("warning", learned_text(learned, before), "limit_learned"))
        if overflow.input is not None and overflow.exact:
            step = counted_by_refusal(result.step, overflow.input)
            await patiently(lambda: conversation.add_step(step))
        self._emit(runtime.changed())
        return overflow


def unknown_end(result: StepResult) -> Failure:
    """The failure of an answer that ended for a reason that nobody knows."""
    words = (
        f" with “{result.finish_words}”, which is no end that agent-tui knows"
        if result.finish_words
        else " without saying why"
    )
    text = f"The answer ended{words}: it may not be complete. {ARRIVED_KEPT} Send a message to continue."
    return Failure("interrupted_stream", text)


class RefusedTools:
    """Leaves the tools out of one step's request that its server refuses."""

    def __init__(self, runtime: Runtime, emit: Emit) -> None:
        self._runtime = runtime
        self._emit = emit
        self._before: RequestPrefix | None = None
        self._gone: list[OfferedTool] = []

    def next(self, result: StepResult) -> Again | None:
        """Returns how to send the step again; None when it was not refused for a tool."""
        failure, prefix = result.failure, self._runtime.request_prefix
        if failure is None or result.received:
            return None
        brought = [tool.schema.name for tool in prefix.offered if tool.group != "builtin" and not tool.deferred]
        names = refused_tools(failure, prefix.tools, brought)
        if not names:
            return None
        self._gone += [tool for tool in prefix.offered if tool.schema.name in names]
        self._runtime.begin_with(without_tools(prefix, names))
        if self._before is None:
            self._before = prefix
            said = failure.message.partition(TEXT_KEPT)[0].strip()
            self._emit(Notice("warning", f"{said} Retrying without {', '.join(names)}.", "tools_refused"))
        self._emit(self._runtime.changed())
        return Again()

    def ended(self, result: StepResult | None) -> None:
        """The step has ended. Only where the request was taken without the tools they were what was wrong with it."""
        runtime = self._runtime
        if self._before is None:
            return
        if result is None or result.failure is not None:
            runtime.begin_with(self._before)
            return
        fingerprints = [content_fingerprint(tool.schema.text) for tool in self._gone]
        runtime.offer_without(runtime.left_out.union(fingerprints))
        names = ", ".join(tool.schema.name for tool in self._gone)
        text = f"{runtime.info.spec.key} no longer gets {names}: its server refuses the definition."
        if remember(runtime.conversation.store, runtime.info, *(NO_TOOL + digest for digest in fingerprints)):
            text += " Remembered; /doctor --forget forgets it."
        self._emit(Notice("info", text, "tools_left_out"))


def believable(overflow: Overflow, estimate: int, asked: int | None = None) -> bool:
    """Returns whether the stated input can be the request's: it is not absurdly far from our own estimate, or the rest
    of what is stated, the answer that was ``asked`` for, is known to be true."""
    known = overflow.output is not None and overflow.output == asked
    return overflow.input is None or known or not far_off(estimate, overflow.input)


def counted_by_refusal(refused: Step, tokens: int) -> Step:
    """A step of kind ``count`` that says how long the refused request was."""
    count = replace(refused, id=new_id("step"), kind="count", status="complete", message_id=None, actual_input=tokens)
    return replace(count, usage=TokenUsage(tokens, 0), finished=time.time(), finish_reason=None, failure=None)


def learned_text(info: ModelInfo, before: Limits) -> str:
    """Returns what a refusal has taught, for the user."""
    words, parts = {"window": "a window of", "max_input": "input of at most", "max_output": "answers of at most"}, []
    for name, what in words.items():
        now, then = getattr(info.limits, name), getattr(before, name)
        if name in info.limits.learned and now is not None and now != then:
            parts.append(f"{what} {now:,} tokens" + (f" (not {then:,})" if then else ""))
    return f"The server says {info.spec.key} has {' and '.join(parts)}. Remembered; /doctor --forget forgets it."


class TurnExecutor:
    """Runs one turn at a time on a runtime.

    ``steering`` hands over messages the user wants in before the next step; ``remark`` may add to a tool's result
    before it is stored. ``cancel`` ends the turn at any moment; what is stored afterwards is valid to send.
    ``told_mode`` tells a model that goes on what has become of the permission mode. ``hooks`` may keep a message from
    being sent, and a turn from ending.
    """

    def __init__(
        self,
        runtime: Runtime,
        tools: ToolRunner,
        compaction: CompactionService,
        steering: Callable[[], list[Message]] = list,
        told_mode: ToldMode | None = None,
        remark: Callable[[Message], None] = lambda message: None,
        hooks: Hooks | None = None,
    ) -> None:
        self._runtime = runtime
        self._tools = tools
        self._compaction = compaction
        self._steering = steering
        self._told_mode = told_mode
        self._remark = remark
        self._hooks = hooks if hooks is not None and hooks.events else None
        self._stops = 0
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._driver: asyncio.Task[None] | None = None
        self._begun = self._cancelled = self._over = False
        self._first_step = self._malformed = 0
        self.unsent: list[Message] = []
        """Handed over and not stored: they are the caller's again when the turn has ended."""

    def cancel(self) -> bool:
        """Interrupts the turn; False when it is over. One that has not begun yet stores its message and ends."""
        if self._over:
            return False
        if self._driver is None or not self._begun:
            self._cancelled = True
            return True
        return self._driver.cancel()

    async def run(self, message: Message | None) -> AsyncGenerator[Event, None]:
        """The events of one turn that begins with ``message`` (None: continue with what is stored).

        The last event is always ``TurnEnded``. Closing the generator cancels the turn.
        """
        self._events = asyncio.Queue()
        self._begun = self._over = False
        self._first_step, self._malformed, self._stops = len(self._runtime.conversation.steps), 0, 0
        self.unsent = [] if message is None else [message]
        self._driver = asyncio.create_task(self._drive(message), name="turn")
        self._driver.add_done_callback(self._ended)
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            if not self._driver.done():
                self._driver.cancel()
            await asyncio.gather(self._driver, return_exceptions=True)

    def emit(self, event: Event) -> None:
        """Adds an event to the running turn's stream."""
        self._events.put_nowait(event)

    def _ended(self, driver: asyncio.Task[None]) -> None:
        """A task that is cancelled before its first step runs nothing, not even a ``finally``."""
        if not self._over:
            self._finish("interrupted", None)

    def _finish(self, stop: StopReason, failure: Failure | None) -> None:
        self._over, self._cancelled = True, False
        bill = session_totals(self._runtime.conversation.steps[self._first_step :])
        self.emit(TurnEnded(stop, failure, bill))
        self._events.put_nowait(None)

    async def _drive(self, message: Message | None) -> None:
        stop: StopReason = "error"
        failure: Failure | None = None
        self._begun = True
        try:
            self.emit(TurnStarted())
            if self._runtime.budget is not None and self._runtime.parent is None:
                self._runtime.budget.begin_turn(anew=message is not None)
            self._compaction.turn_started(self.emit)
            blocked = None
            if message is not None and (blocked := await self._blocked(message)) is None:
                await self._add(message)
            if self._cancelled:
                stop = "interrupted"
            elif blocked is not None:
                failure = Failure("hook", f"A hook blocked this message: {blocked}")
            else:
                stop, failure = await self._steps()
        except asyncio.CancelledError:
            stop = "interrupted"
            self._compaction.interrupted()
        except StoreError as error:
            log.warning("The turn could not be stored: %s", error)
            failure = store_failure(error, bool(self.unsent))
        except Exception as error:
            log.exception("The turn failed")
            failure = inner_failure(error)
        finally:
            try:
                self._close_open_calls()
            except Exception:
                log.exception("Open tool calls could not be closed")
            self.emit(self._runtime.changed())
            self._finish(stop, failure)

    async def _add(self, message: Message) -> None:
        await patiently(lambda: self._runtime.conversation.append(message))
        self.unsent.remove(message)
        if self._hooks is not None:
            self._hooks.sent()
        self.emit(MessageAdded(message))
        self.emit(self._runtime.changed())

    async def _blocked(self, message: Message) -> str | None:
        """Returns why a hook does not let a message of the user's be sent; None where it may be."""
        return None if self._hooks is None or self._runtime.parent is not None else await self._hooks.prompt(message)

    async def _steps(self) -> tuple[StopReason, Failure | None]:
        limit = self._runtime.settings.agent.step_limit
        for number in range(limit + 1):
            await self._steer()
            if number == limit:
                text = f"Stopped after {plural(limit, 'step')}. Send a message to continue."
                self.emit(Notice("warning", text, "step_limit"))
                return "step_limit", None
            result = await self._step()
            if result is None:
                return "budget", None
            if isinstance(result, str):
                return "error", Failure("context_overflow", result)
            if result.failure is not None and await self._told_malformed(result.failure):
                continue
            if result.failure is not None:
                refused = result.failure.kind == "content_refused"
                return ("refused" if refused else "error"), result.failure
            calls = result.message.tool_calls
            if calls:
                if await self._run_tools(calls, cut_off=result.finish == "length"):
                    return "end", None
            elif result.finish == "length" and result.budget is not None:
                self.emit(Notice("warning", cut_text(result.budget, result.step.max_output or 0), "budget"))
                return "budget", None
            elif result.finish == "length":
                text = "The answer was cut off at the output limit. Send a message to continue."
                self.emit(Notice("warning", text, "length"))
                return "length", None
            elif result.finish == "refused":
                return "refused", None
            elif result.finish == "unknown":
                return "error", unknown_end(result)
            elif result.finish == "paused":
                continue
            elif not await self._steer() and not await self._goes_on(result.message):
                return "end", None
        raise AssertionError("unreachable: the loop returns at its limit")

    async def _told_malformed(self, failure: Failure) -> bool:
        """Tells the model that its server could not read a call of its own; False where it was not that, or too often
        in a row."""
        if not malformed_call(failure) or self._malformed >= MOST_MALFORMED:
            return False
        self._malformed += 1
        text = (
            "Your last answer held a tool call that could not be read, so nothing was run. Write it again with "
            "arguments that are valid JSON and fit the tool's schema, or answer without it. The server said:\n"
            f"{cut(failure.detail or failure.message, MALFORMED_CHARS)}"
        )
        note = user_message("", attachments=[AttachmentPart(MALFORMED, "text/plain", text=text)])
        await patiently(lambda: self._runtime.conversation.append(note))
        told = f"The model wrote a tool call that its server could not read. Asking again ({self._malformed} of "
        self.emit(Notice("warning", f"{told}{MOST_MALFORMED}).", "malformed_call"))
        return True

    async def _steer(self) -> bool:
        """Adds what the user wants in before the next step; False when there is nothing."""
        waiting = self._steering()
        self.unsent += waiting
        added = False
        for message in waiting:
            if (why := await self._blocked(message)) is not None:
                self.emit(Notice("error", f"A hook blocked this message: {why}", "hook"))
            else:
                await self._add(message)
                added = True
        return added

    async def _goes_on(self, answer: Message) -> bool:
        """The model is done: adds what a hook has it do first; False where there is nothing."""
        told = await self._hooks.stop(self._stops, answer.text) if self._hooks is not None else None
        if told is None:
            return False
        self._stops += 1
        await patiently(lambda: self._runtime.conversation.append(told))
        return True

    async def _step(self) -> StepResult | str | None:
        """One step, compacting before it when the numbers say so, and recovering where the provider refuses its size.

        A string is the reason why it could not be sent; None when it would break a budget, which was told.
        """
        self._compaction.auto.step_started()
        await self._compaction.prepare()
        self.emit(self._runtime.changed())
        blocked = await self._compaction.before_step()
        if blocked is not None:
            return blocked
        result = await self._call()
        recovery = OverflowRecovery(self._runtime, self._compaction, self.emit)
        refused = RefusedTools(self._runtime, self.emit)
        while result is not None and (again := refused.next(result) or await recovery.next(result)) is not None:
            result = await self._call(again.max_output)
        refused.ended(result)
        if result is None:
            return None
        if result.failure is None:
            self._malformed = 0
            self._compaction.model_replied()
        usage = self._runtime.usage()
        for warning in usage.warnings:
            log.warning("%s", warning)
        self.emit(ContextChanged(usage))
        return result

    async def _call(self, max_output: int | None = None) -> StepResult | None:
        """One call, where no budget is in its way."""
        runner = StepRunner(self._runtime, self.emit)
        refusal = await runner.begin(max_output)
        self._compaction.tell(refusal is not None)
        if refusal is not None:
            self.emit(Notice("warning", refusal, "budget"))
            return None
        return await runner.run()

    async def _run_tools(self, calls: list[ToolCallPart], cut_off: bool) -> bool:
        """Runs the tool calls; returns whether the turn ends with what they did."""
        conversation = self._runtime.conversation

        def finished(message: Message) -> None:
            if self._told_mode is not None:
                self._told_mode.tell(message, conversation.view())
            self._remark(message)
            # What a tool did has happened, whether its result can be stored now or only later.
            conversation.keep(message)
            conversation.save_if_possible()
            self.emit(self._runtime.changed())

        ends = await self._tools.run(calls, self.emit, finished, cut_off)
        await patiently(conversation.save)
        return ends

    def _close_open_calls(self) -> None:
        """Gives every tool call without a result an ``[interrupted]`` one, so that the conversation stays valid."""
        conversation = self._runtime.conversation
        if conversation.read_only:
            return
        for call in conversation.open_calls():
            message = self._tools.interrupted(call)
            conversation.keep(message)
            self.emit(MessageAdded(message))
        conversation.save_if_possible()
