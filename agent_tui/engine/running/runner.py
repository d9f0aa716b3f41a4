"""Runs turns one after the other, and what must not overlap with them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Literal, TypeVar

from agent_tui.engine.running.relay import TurnRelay
from agent_tui.engine.running.waiting import Waiting
from agent_tui.engine.state.binding import STILL_OPENING, Bindings
from agent_tui.engine.state.hub import Hub
from agent_tui.engine.state.run import RunState, RunStates
from agent_tui.engine.turns.executor import TurnExecutor
from agent_tui.engine.turns.toolrunner import mask_attachments
from agent_tui.errors import READ_ONLY, AgentError
from agent_tui.models.events import Notice
from agent_tui.models.messages import AttachmentPart, Message, Written, user_message, written_in
from agent_tui.providers.secrets import Redactor

log = logging.getLogger(__name__)

T = TypeVar("T")


class Runner:
    """Runs one turn (or one exclusive piece of work) at a time; what the user types meanwhile waits."""

    def __init__(
        self, hub: Hub, states: RunStates, bindings: Bindings, waiting: Waiting, relay: TurnRelay, secrets: Redactor
    ) -> None:
        self._hub = hub
        self._states = states
        self._bindings = bindings
        self._waiting = waiting
        self._relay = relay
        self._secrets = secrets
        self._task: asyncio.Task[Any] | None = None
        self._executor: TurnExecutor | None = None
        self._goes_on = False  # the user's word, given while an interrupted turn comes to its end

    def opened(self) -> None:
        """The first session is in force: what was typed meanwhile is sent."""
        self._waiting.opened()
        self._next()
        self._waiting.keep()

    @property
    def busy(self) -> bool:
        """Whether a turn or a compaction runs."""
        return self._states.busy

    def submit(
        self,
        text: str,
        attachments: Sequence[AttachmentPart] = (),
        pasted: Sequence[list[int]] = (),
        behind: str | None = None,
    ) -> None:
        """Sends a message, or queues it while a turn runs or the session is still opening: as the last, or right
        ``behind`` another one that waits. One that comes when the turn was interrupted already goes out after it: it is
        what the user wants instead. ``pasted``: see ``Written``."""
        if self._bindings.opened and self._bindings.current.conversation.read_only:
            self._hub.publish(Notice("warning", READ_ONLY))
            return
        message = self._message(text, attachments, pasted)
        self._waiting.add(message, behind=behind)
        self._goes_on = self._goes_on or self._states.now is RunState.INTERRUPTED
        self._next()
        self._waiting.keep([message])
        if behind is not None:
            self._waiting.keep_order()

    def steer(self, text: str, attachments: Sequence[AttachmentPart] = (), pasted: Sequence[list[int]] = ()) -> None:
        """A message that goes in before the next step of the running turn."""
        if not self._states.busy:
            self.submit(text, attachments, pasted)
            return
        message = self._message(text, attachments, pasted)
        self._waiting.add(message, steering=True)
        self._waiting.keep([message])

    def _message(self, text: str, attachments: Sequence[AttachmentPart], pasted: Sequence[list[int]]) -> Message:
        masked = mask_attachments(list(attachments), self._secrets)
        return user_message(text, attachments=masked, pasted=list(pasted))

    def send_waiting(self, message_id: str | None = None) -> bool:
        """Sends what waits, what could not be sent before included, or first of all the one of that id; right after the
        turn where one has been interrupted and is coming to its end. While a turn runs one goes in at its next step.
        False when nothing waits, or something else runs."""
        if self._states.now is RunState.TURN and message_id is not None:
            return self._waiting.into_turn(message_id)
        if self._states.now not in (RunState.IDLE, RunState.INTERRUPTED):
            return False
        if self._bindings.current.conversation.read_only or not self._waiting.release(message_id):
            return False
        self._goes_on = True
        self._next()
        return True

    def take_back(self, message_id: str | None = None) -> Written | None:
        """Takes a message that waits back, the newest where none is named, with what was attached to it; None when it
        waits no more."""
        message = self._waiting.take_back(message_id, idle=self._states.now is RunState.IDLE)
        return None if message is None else written_in(message)

    def _next(self) -> None:
        if self._states.now is not RunState.IDLE or self._bindings.current.conversation.read_only:
            return
        message = self._waiting.next()
        if message is not None:
            self._states.change(RunState.TURN)
            self._task = asyncio.create_task(self._run(message), name="run")

    async def _run(self, message: Message | None) -> None:
        try:
            while message is not None and (await self._turn(message) or self._goes_on):
                message = None if self._states.now is RunState.CLOSING else self._waiting.next()
        finally:
            self._rest()

    async def _turn(self, message: Message) -> bool:
        """One turn; False when what is queued has to wait for the user."""
        self._goes_on = False
        executor = self._relay.begin(message)
        if executor is None:
            return False
        self._executor = executor
        if self._states.now in (RunState.INTERRUPTED, RunState.CLOSING):
            executor.cancel()
        try:
            return await self._relay.run(executor, message)
        finally:
            self._executor = None
            if self._states.now is RunState.INTERRUPTED:
                # The interrupt was for this turn alone.
                self._states.change(RunState.TURN)
            self._relay.ended()

    def _rest(self) -> None:
        if self._states.now is not RunState.CLOSING:
            self._states.change(RunState.IDLE)
            self._waiting.rest()
            self._relay.rested()

    def interrupt(self) -> bool:
        """Ends the running turn, compaction or wait; queued messages stay. False when nothing runs."""
        if not self._states.busy:
            return False
        if self._bindings.current.compaction.cancel():
            return True
        if self._states.now in (RunState.COMPACTING, RunState.WORKING):
            return self._task is not None and self._task.cancel()
        # Without an executor the first step is still to come: the message is stored, and then the turn ends.
        if self._executor is not None and not self._executor.cancel():
            return False
        if self._states.now is RunState.TURN:
            self._states.change(RunState.INTERRUPTED)
        return True

    async def exclusively(
        self,
        work: Coroutine[Any, Any, T],
        what: str,
        state: Literal[RunState.COMPACTING, RunState.WORKING] = RunState.WORKING,
    ) -> T | None:
        """Runs work that must not overlap with a turn, and then what was submitted meanwhile. An interrupt ends the
        work; None is returned then. Raises AgentError, without doing anything, while something else runs."""
        try:
            self.need_idle(what)
        except AgentError:
            work.close()
            raise
        waiting = self._waiting.count
        self._states.change(state)
        task = self._task = asyncio.create_task(work, name="exclusive")
        try:
            await asyncio.wait([task])
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            self._rest()
            self._relay.catch_up()
            if self._waiting.count > waiting:
                self._next()
        return None if task.cancelled() else task.result()

    def need_idle(self, what: str, *, looking: bool = False) -> None:
        """Raises AgentError while something runs, or the session is still opening; also where a session is only read,
        unless ``looking`` says that this is no hindrance."""
        if self._states.busy:
            raise AgentError(f"Cannot {what} while the model works. Esc interrupts it.")
        if self._states.now is RunState.OPENING:
            raise AgentError(STILL_OPENING)
        if self._states.now is not RunState.IDLE and not (looking and self._states.now is RunState.LOOKING):
            raise AgentError(f"Cannot {what} now: the session is {self._states.now.value}.")

    async def join(self) -> None:
        """Waits until no turn runs and nothing that would start one is queued."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Ends what runs and begins nothing any more."""
        running = self._states.now
        if running is not RunState.CLOSING:
            self._states.change(RunState.CLOSING)
        # A compaction inside a turn is not ended alone: the turn around it would go on.
        if self._executor is not None:
            self._executor.cancel()
        elif self._task is not None and running in (RunState.COMPACTING, RunState.WORKING):
            self._task.cancel()
        await self.join()
