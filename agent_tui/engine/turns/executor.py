"""Runs a turn: user message, step, tool calls, step, … until the model is done; a request that was too long is
made shorter. An async generator of events."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable

from agent_tui.context.accounting.spending import cut_text, session_totals
from agent_tui.engine.agent_edits import keep_note
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import patiently, store_failure
from agent_tui.engine.hooks import Hooks
from agent_tui.engine.notes import Teller, add_to_result
from agent_tui.engine.runtime import Runtime
from agent_tui.engine.turns.recover import Recovery
from agent_tui.engine.turns.refused import leave_out_exchange
from agent_tui.engine.turns.repetition import SAME_CALLS, CallWatch
from agent_tui.engine.turns.step import MOST_CALLS, StepResult, StepRunner
from agent_tui.engine.turns.toolrunner import ToolRunner
from agent_tui.errors import StoreError
from agent_tui.models.events import Event, MessageAdded, Notice, StopReason, TurnEnded, TurnStarted
from agent_tui.models.failure import ARRIVED_KEPT, GO_ON, Failure, inner_failure, make_failure
from agent_tui.models.messages import (
    Message,
    ToolCallPart,
)
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural

log = logging.getLogger(__name__)

MORE_CALLS = (
    f"[Your answer was ended at its {MOST_CALLS}th call; all up to it were run. Make what is left in further answers.]"
)
TOLD_SHARE = 9
NOT_RUN = "It was not run; with `[tools] text_calls = true` such calls are."


def unknown_end(result: StepResult) -> Failure:
    """The failure of an answer that ended for a reason that nobody knows."""
    words = (
        f" with “{result.finish_words}”, which is no end that agent-tui knows"
        if result.finish_words
        else " without saying why"
    )
    text = f"The answer ended{words}: it may not be complete."
    return make_failure("interrupted_stream", text, GO_ON, kept=ARRIVED_KEPT)


class ChangedNumbers:
    """Has ``tell`` called soon after each change, but for so few of them that no more than about a tenth of the time
    goes into it: each takes as long as the conversation is."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def change(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            if (left := self._next - loop.time()) <= 0:
                self._now()
            else:
                self._timer = loop.call_later(left, self._now)

    def close(self) -> None:
        """What is not told by now is not told any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _now(self) -> None:
        self.close()
        began = time.monotonic()
        self._tell()
        ended = time.monotonic()
        self._next = ended + TOLD_SHARE * (ended - began)


class TurnExecutor:
    """Runs one turn at a time on a runtime.

    ``steering`` hands over messages the user wants in before the next step; ``teller`` adds to tools'
    results what the model does not know yet, before they are stored. ``cancel`` ends the turn at any moment; what is
    stored afterwards is valid to send. ``hooks`` may keep a message from being sent, and a turn from ending.
    """

    def __init__(
        self,
        runtime: Runtime,
        tools: ToolRunner,
        compaction: CompactionService,
        steering: Callable[[], list[Message]] = list,
        teller: Teller = lambda view: lambda message: None,
        hooks: Hooks | None = None,
    ) -> None:
        self._runtime = runtime
        self._tools = tools
        self._compaction = compaction
        self._steering = steering
        self._teller = teller
        self._hooks = hooks if hooks is not None and hooks.events else None
        self._stops = 0
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._driver: asyncio.Task[None] | None = None
        self._begun = self._cancelled = self._over = False
        self._first_step = 0
        self._recovery = Recovery(runtime, compaction, self.emit)
        self._calls = CallWatch()
        self._numbers = ChangedNumbers(lambda: runtime.show_numbers(self.emit))
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
        self._first_step, self._stops = len(self._runtime.conversation.steps), 0
        self._recovery = Recovery(self._runtime, self._compaction, self.emit)
        self._calls = CallWatch()
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
        self._numbers.close()
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
            self._runtime.show_numbers(self.emit)
            self._finish(stop, failure)

    async def _add(self, message: Message) -> None:
        await patiently(lambda: self._runtime.conversation.append(message))
        self.unsent.remove(message)
        if self._hooks is not None:
            self._hooks.sent()
        self.emit(MessageAdded(message))
        self._runtime.show_numbers(self.emit)

    async def _blocked(self, message: Message) -> str | None:
        """Returns why a hook does not let a message of the user's be sent; None where it may be."""
        return None if self._hooks is None or self._runtime.parent is not None else await self._hooks.prompt(message)

    async def _steps(self) -> tuple[StopReason, Failure | None]:
        limit = self._runtime.settings.agent.step_limit
        for number in range(limit + 1):
            await self._steer()
            if number == limit:
                text = f"Stopped after {plural(limit, 'step')}. {GO_ON}"
                self.emit(Notice("warning", text, "step_limit", GO_ON))
                return "step_limit", None
            result = await self._step()
            if result is None:
                return "budget", None
            if isinstance(result, str):
                return "error", Failure("context_overflow", result)
            if result.failure is not None and result.failure.kind != "content_refused":
                return "error", result.failure
            if result.failure is not None or result.finish == "refused":
                await self._leave_out_exchange()
                return "refused", result.failure
            if result.repeats is not None:
                text = f"The answer went on repeating “{one_line(result.repeats, 60)}” and was ended."
                self.emit(Notice("warning", f"{text} {GO_ON}", "repeated_answer", GO_ON))
                return "length", None
            if result.written_calls:
                names = " and ".join(dict.fromkeys(result.written_calls))
                self.emit(Notice("warning", f"The model wrote a call of {names} as text. {NOT_RUN}", "written_call"))
            calls = result.message.tool_calls
            if calls:
                if result.more_calls:
                    text = f"The answer was ended at its {MOST_CALLS}th tool call: no more are run in one step."
                    self.emit(Notice("warning", text, "many_calls"))
                if await self._run_tools(calls, result.finish == "length", result.more_calls):
                    return "end", None
                if self._calls.repeated is not None and number + 1 < limit:
                    text = f"The model made the same call {SAME_CALLS} times in a row and got the same result: "
                    self.emit(Notice("warning", f"{text}{self._calls.repeated}. {GO_ON}", "repeated_call", GO_ON))
                    return "step_limit", None
            elif result.finish == "length" and result.budget is not None:
                self.emit(Notice("warning", cut_text(result.budget, result.step.max_output or 0), "budget"))
                return "budget", None
            elif result.finish == "length":
                text = f"The answer was cut off at the output limit. {GO_ON}"
                self.emit(Notice("warning", text, "length", GO_ON))
                return "length", None
            elif result.finish == "unknown":
                return "error", unknown_end(result)
            elif result.finish == "paused":
                continue
            elif not await self._steer() and not await self._goes_on(result.message):
                return "end", None
        raise AssertionError("unreachable: the loop returns at its limit")

    async def _leave_out_exchange(self) -> None:
        if self._runtime.parent is None and (notice := await leave_out_exchange(self._runtime)) is not None:
            self.emit(notice)
            self._runtime.show_numbers(self.emit)

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
                # What was asked for again may be done again.
                self._calls = CallWatch()
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
        self._runtime.show_numbers(self.emit)
        blocked = await self._compaction.before_step()
        if blocked is not None:
            return blocked
        await self._compaction.tell_context()
        self._recovery.begin_step()
        result: StepResult | None = None
        try:
            result = await self._call()
            while result is not None and (again := await self._recovery.next(result)) is not None:
                result = await self._call(again.max_output)
        finally:
            # Also where the user ends it in the middle: what was only tried is not in force then.
            self._recovery.end_step(result)
        if result is None:
            return None
        if result.failure is None:
            self._compaction.model_replied()
        usage = self._runtime.usage()
        for warning in usage.warnings:
            log.warning("%s", warning)
        self._runtime.show_numbers(self.emit)
        return result

    async def _call(self, max_output: int | None = None) -> StepResult | None:
        """One call, where no budget is in its way."""
        runner = StepRunner(self._runtime, self.emit, self._tools.knows)
        refusal = await runner.begin(max_output)
        self._compaction.tell(refusal is not None)
        if refusal is not None:
            self.emit(Notice("warning", refusal, "budget"))
            return None
        return await runner.run()

    async def _run_tools(self, calls: list[ToolCallPart], cut_off: bool, more: bool) -> bool:
        """Runs the tool calls, of which the model began ``more``; returns whether the turn ends with what they did."""
        conversation = self._runtime.conversation

        results: list[Message] = []
        tell = self._teller(conversation.view())

        def finished(message: Message) -> None:
            results.append(message)
            if more and len(results) == len(calls):
                add_to_result(message, MORE_CALLS)
            tell(message)
            keep_note(conversation, message)
            # What a tool did has happened, whether its result can be stored now or only later.
            conversation.keep(message)
            conversation.save_if_possible()
            self._numbers.change()

        ends = await self._tools.run(calls, self.emit, finished, cut_off)
        self._calls.add(calls, results)
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
