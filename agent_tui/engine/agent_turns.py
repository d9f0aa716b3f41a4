"""Talking: messages in, turns one after the other, and what must not overlap with them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any

from agent_tui.engine.agent_accounting import Accounting
from agent_tui.engine.executor import TurnExecutor
from agent_tui.engine.parts import AgentParts
from agent_tui.engine.shell import run_shell
from agent_tui.engine.subagent import run_subagent
from agent_tui.engine.toolrunner import ToolRunner
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.events import (
    MessageAdded,
    Notice,
    QueueChanged,
    StepEnded,
    TurnEnded,
)
from agent_tui.models.messages import AttachmentPart, Message, user_message
from agent_tui.tools.base import ToolOutcome

log = logging.getLogger(__name__)


class Turns(Accounting):
    """Runs one turn (or one exclusive piece of work) at a time; what the user types meanwhile waits."""

    def __init__(self, parts: AgentParts) -> None:
        super().__init__(parts)
        self.toolbox.subagent = self._subagent

    def submit(self, text: str, attachments: Sequence[AttachmentPart] = ()) -> None:
        """Sends a message, or queues it while a turn runs or the session is still opening."""
        if self._started and self.read_only:
            self.publish(
                Notice("warning", "Read-only: this session is open in another window. /fork continues a copy.")
            )
            return
        self._inbox.queue(user_message(text, attachments=list(attachments)))
        self._queue_changed()
        self._next()

    def steer(self, text: str) -> None:
        """A message that goes in before the next step of the running turn."""
        if not self.busy:
            self.submit(text)
            return
        self._inbox.steer(user_message(text))
        self._queue_changed()

    def unqueue(self) -> str | None:
        """Takes the newest message that waits back; None when none does."""
        text = self._inbox.take_back()
        self._queue_changed()
        return text

    def _queue_changed(self) -> None:
        self.publish(QueueChanged(self.queue, self.steering))

    def _next(self) -> None:
        if not self._started or self.busy or self.read_only:
            return
        message = self._inbox.next()
        if message is not None:
            self._queue_changed()
            self._task = asyncio.create_task(self._run(message), name="run")

    async def _run(self, message: Message | None) -> None:
        while True:
            stop = await self._turn(message)
            if stop == "interrupted":
                return
            message = self._inbox.next()
            if message is None:
                return
            self._queue_changed()

    async def _turn(self, message: Message | None) -> str:
        runtime, compacting = self._runtime, self._compacting
        assert compacting is not None
        if message is not None:
            self._tell_environment(message)
        self._refresh_prelude()
        runner = ToolRunner(self.toolbox.registry, self.toolbox.context, self.desk.judge)
        executor = TurnExecutor(runtime, runner, compacting, self._prepare_step, self._take_steering)
        self._executor = executor
        stop = "error"
        try:
            async with aclosing(executor.run(message)) as events:
                async for event in events:
                    self.publish(event)
                    match event:
                        case StepEnded(step, _):
                            self._learn(step)
                        case TurnEnded(reason, _):
                            stop = reason
                        case MessageAdded(added):
                            self.toolbox.message_added(added)
        finally:
            self._executor = None
            self.desk.dismiss()
            if self._tools_stale:
                self._tools_stale = False
                self._refresh_prelude()
                self.recount()
        return stop

    def _tell_environment(self, message: Message) -> None:
        """Keeps the environment's text with the session, so that the prompt stays the same bytes; the message brings
        what has changed since."""
        conversation = self.conversation
        if conversation.info.state.get("environment") is None:
            try:
                conversation.set_state(environment=self.workspace.environment)
            except StoreError as error:
                # The turn will not get far, and says why.
                log.warning("The environment could not be stored: %s", error)
        update = self.workspace.environment_update(conversation.view())
        if update is not None:
            message.parts.insert(0, update)

    async def _subagent(self, title: str, prompt: str, emit: Callable[[str], None]) -> ToolOutcome:
        return await run_subagent(self._runtime, self.toolbox, self.parts.counter, self.desk.judge, title, prompt, emit)

    def _take_steering(self) -> list[Message]:
        taken = self._inbox.take_steering()
        if taken:
            self._queue_changed()
        return taken

    def interrupt(self) -> bool:
        """Ends the running turn, compaction or wait; queued messages stay. False when nothing runs."""
        if self._compacting is not None and self._compacting.cancel():
            return True
        if self._executor is not None:
            return self._executor.cancel()
        if self.busy and self._task is not None:
            return self._task.cancel()
        return False

    def answer_permission(self, request_id: str, allow: bool, pattern: str | None = None, feedback: str = "") -> None:
        """The user's word on a PermissionAsked; ``pattern`` is remembered for the project."""
        self.desk.answer(request_id, allow, pattern, feedback)

    async def shell(self, command: str) -> None:
        """Runs the user's own command; command and output join the conversation."""
        self._need_idle("run a command")
        work = run_shell(command, self.toolbox.context(), self.conversation, self.publish)
        await self._exclusive(work)
        self.recount()

    async def join(self) -> None:
        """Waits until no turn runs and nothing that would start one is queued."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    def _need_idle(self, what: str) -> None:
        if self.busy:
            raise AgentError(f"Cannot {what} while the model works. Esc interrupts it.")
        if self.runtime is None:
            raise AgentError("The session is still opening.")

    async def _exclusive(self, work: Coroutine[Any, Any, Any]) -> None:
        """Runs work that must not overlap with a turn; an interrupt ends it."""
        self._task = asyncio.create_task(work, name="exclusive")
        try:
            await asyncio.wait([self._task])
            if not self._task.cancelled() and (error := self._task.exception()) is not None:
                raise error
        finally:
            self._task = None
        self._next()
