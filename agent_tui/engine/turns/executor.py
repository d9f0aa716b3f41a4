"""Runs a turn: user message, step, tool calls, step, … until the model is done; a request that was too long is
made shorter. An async generator of events."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable

from agent_tui.context.accounting.spending import session_totals
from agent_tui.engine.agent_edits import keep_note
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import patiently, store_failure
from agent_tui.engine.hooks import Hooks
from agent_tui.engine.model_call import NoRoomError
from agent_tui.engine.notes import Teller, add_to_result
from agent_tui.engine.runtime import Runtime
from agent_tui.engine.turns.ends import TurnEnd, end_of, notices_of, same_calls, step_limit
from agent_tui.engine.turns.recover import Recovery
from agent_tui.engine.turns.refused import leave_out_exchange
from agent_tui.engine.turns.repetition import CallWatch
from agent_tui.engine.turns.step import MOST_CALLS, ModelStep, StepResult
from agent_tui.engine.turns.toolrunner import ToolRunner
from agent_tui.errors import StoreError
from agent_tui.models.events import Event, MessageAdded, Notice, StopReason, TurnEnded, TurnStarted
from agent_tui.models.failure import Failure, inner_failure
from agent_tui.models.messages import Message, ToolCallPart

log = logging.getLogger(__name__)

MORE_CALLS = (
    f"[Your answer was ended at its {MOST_CALLS}th call; all up to it were run. Make what is left in further answers.]"
)
TOLD_SHARE = 9


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
        if driver is self._driver and not self._over:
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
                end = await self._steps()
                if end.notice is not None:
                    self.emit(end.notice)
                stop, failure = end.stop, end.failure
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

    async def _steps(self) -> TurnEnd:
        """The loop: what the user wants in, a step, its tools, until the model is done or something ends it."""
        limit = self._runtime.settings.agent.step_limit
        for number in range(1, limit + 1):
            await self._steer()
            result = await self._step()
            if isinstance(result, TurnEnd):
                return result
            if (end := end_of(result)) is not None:
                if end.stop == "refused":
                    await self._leave_out_exchange()
                return end
            for notice in notices_of(result):
                self.emit(notice)
            if calls := result.message.tool_calls:
                if await self._run_tools(calls, result.finish == "length", result.more_calls):
                    return TurnEnd("end")
                if self._calls.repeated is not None and number < limit:
                    return same_calls(self._calls.repeated)
            elif result.finish != "paused" and not await self._steer() and not await self._goes_on(result.message):
                return TurnEnd("end")
        await self._steer()
        return step_limit(limit)

    async def _step(self) -> StepResult | TurnEnd:
        """One step, compacting before it when the numbers say so, and made again where it is refused; the end of the
        turn where it cannot be sent."""
        self._compaction.auto.step_started()
        await self._compaction.prepare()
        self._runtime.show_numbers(self.emit)
        blocked = await self._compaction.before_step()
        if blocked is not None:
            return TurnEnd("error", Failure("context_overflow", blocked))
        await self._compaction.tell_context()
        self._recovery.begin_step()
        result: StepResult | None = None
        try:
            result = await self._call()
            while (again := await self._recovery.next(result)) is not None:
                result = await self._call(again.max_output)
        except NoRoomError as refusal:
            result = None
            return TurnEnd("budget", notice=Notice("warning", str(refusal), "budget"))
        finally:
            # Also where the user ends it in the middle: what was only tried is not in force then.
            self._recovery.end_step(result)
        if result.failure is None:
            self._compaction.model_replied()
        for warning in self._runtime.usage().warnings:
            log.warning("%s", warning)
        self._runtime.show_numbers(self.emit)
        return result

    async def _call(self, max_output: int | None = None) -> StepResult:
        """One call. Raises NoRoomError where a budget is in its way."""
        step = ModelStep(self._runtime, self.emit, self._tools.knows)
        try:
            await step.open(max_output)
        except NoRoomError:
            self._compaction.tell(True)
            raise
        self._compaction.tell(False)
        return await step.run()

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
