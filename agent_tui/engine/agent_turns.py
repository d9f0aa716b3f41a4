"""Talking: messages in, turns one after the other, and what must not overlap with them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar

from agent_tui.engine.agent_accounting import Accounting
from agent_tui.engine.parts import AgentParts
from agent_tui.engine.project.prefix import CHANGE
from agent_tui.engine.project.workspace import UPDATE
from agent_tui.engine.session.conversation import Conversation
from agent_tui.engine.session.storing import patiently, store_failure
from agent_tui.engine.turns.executor import TurnExecutor
from agent_tui.engine.turns.shell import run_shell
from agent_tui.engine.turns.subagent import run_subagent
from agent_tui.engine.turns.toolrunner import ToolRunner, mask_attachments
from agent_tui.errors import READ_ONLY, AgentError, StoreError
from agent_tui.models.events import (
    MessageAdded,
    Notice,
    QueueChanged,
    StepEnded,
    TurnEnded,
)
from agent_tui.models.failure import Failure, inner_failure
from agent_tui.models.messages import AttachmentPart, Message, user_message
from agent_tui.tools.base import ToolOutcome

log = logging.getLogger(__name__)

T = TypeVar("T")


class Turns(Accounting):
    """Runs one turn (or one exclusive piece of work) at a time; what the user types meanwhile waits."""

    def __init__(self, parts: AgentParts) -> None:
        super().__init__(parts)
        self.toolbox.subagent = self._subagent

    def submit(self, text: str, attachments: Sequence[AttachmentPart] = ()) -> None:
        """Sends a message, or queues it while a turn runs or the session is still opening."""
        if self._started and self.read_only:
            self.publish(Notice("warning", READ_ONLY))
            return
        message = user_message(text, attachments=mask_attachments(attachments, self.parts.secrets))
        self._inbox.queue(message)
        self._queue_changed()
        self._next()
        self._keep_waiting([message])

    def steer(self, text: str, attachments: Sequence[AttachmentPart] = ()) -> None:
        """A message that goes in before the next step of the running turn."""
        if not self.busy:
            self.submit(text, attachments)
            return
        message = user_message(text, attachments=mask_attachments(attachments, self.parts.secrets))
        self._inbox.steer(message)
        self._queue_changed()
        self._keep_waiting([message])

    def send_waiting(self) -> bool:
        """Sends what waits, what waited when the session was last left included; False when nothing does."""
        if self.read_only or not (self.held or self.queue or self.steering):
            return False
        self._inbox.release()
        self._queue_changed()
        self._next()
        return True

    def take_back(self) -> tuple[str, list[AttachmentPart]] | None:
        """Takes the newest message that waits back, with what was attached to it; None when none does."""
        message = self._inbox.take_back()
        self._queue_changed()
        if message is None:
            return None
        if self._started and not self.read_only:
            self.conversation.forget_waiting(message)
            self._store_waiting()
        return message.text, [p for p in message.parts if isinstance(p, AttachmentPart)]

    def unqueue(self) -> str | None:
        """The text alone of the newest message that waits, taken back; None when none does."""
        taken = self.take_back()
        return taken[0] if taken is not None else None

    def _put_back(self, messages: Sequence[Message]) -> None:
        """Lets messages wait again that could not be sent."""
        for message in messages:
            # What has changed around the session is told when it goes out.
            message.parts = [
                p for p in message.parts if not (isinstance(p, AttachmentPart) and p.name in (UPDATE, CHANGE))
            ]
        if messages:
            self._inbox.put_back(messages)
            self._queue_changed()
            self._keep_waiting(messages)

    def _queue_changed(self) -> None:
        self.publish(QueueChanged(self.queue, self.steering, self.held))

    def _keep_waiting(self, messages: Sequence[Message]) -> None:
        """Stores those of the messages that have to wait: they are not lost with the process."""
        if not self._started or self.read_only:
            return
        waiting = {message.id for message in self._inbox.to_send()}
        kept = [message for message in messages if message.id in waiting]
        for message in kept:
            self.conversation.keep_waiting(message)
        if kept:
            self._store_waiting()

    def _store_waiting(self) -> None:
        try:
            self.conversation.save()
        except StoreError:
            self._spawn(self._save_rest(self.conversation), "store")

    def _next(self) -> None:
        if not self._started or self._closing or self.busy or self.read_only:
            return
        message = self._inbox.next()
        if message is not None:
            self._queue_changed()
            self._in_turns, self._interrupted = True, False
            self._task = asyncio.create_task(self._run(message), name="run")

    async def _run(self, message: Message | None) -> None:
        while await self._turn(message):
            message = self._inbox.next()
            if message is None:
                return
            self._queue_changed()

    async def _turn(self, message: Message | None) -> bool:
        """One turn; False when what is queued has to wait for the user."""
        conversation = self.conversation
        try:
            executor = self._prepare_turn(message)
        except Exception as error:
            log.exception("The turn could not begin")
            self._put_back([message] if message is not None else [])
            self.publish(TurnEnded("error", _failure(error)))
            return False
        self._executor = executor
        if self._interrupted:
            self._interrupted = False
            executor.cancel()
        ended = TurnEnded("error")
        try:
            async with aclosing(executor.run(message)) as events:
                async for event in events:
                    match event:
                        case TurnEnded():
                            ended = event
                            self._put_back(executor.unsent)
                    self.publish(event)
                    match event:
                        case StepEnded(step, answer):
                            self._learn(step)
                            self._tell_empty(answer)
                        case MessageAdded(added):
                            self.toolbox.message_added(added)
                            if added.role == "user":
                                self._count_exact_soon()
        finally:
            self._executor = None
            self.desk.dismiss()
            self._catch_up_with_tools()
        unsaved = ended.failure is not None and ended.failure.kind == "store"
        if conversation.unsaved and not unsaved:
            self._spawn(self._save_rest(conversation), "store")
        return ended.stop_reason != "interrupted" and not unsaved

    def _tell_empty(self, answer: Message) -> None:
        """An answer that is complete and says nothing looks like one that got lost."""
        if answer.status == "complete" and not answer.text.strip() and not answer.tool_calls:
            self.publish(Notice("info", f"{self.spec.key} answered without a word.", "empty_answer"))

    def _prepare_turn(self, message: Message | None) -> TurnExecutor:
        runtime, compacting = self._runtime, self._compacting
        assert compacting is not None
        if message is not None:
            self.conversation.set_model(runtime.info.spec.key)
            self._tell_environment(message)
        self._refresh_prelude(message)
        runner = ToolRunner(self.toolbox.registry, self.toolbox.context, self.desk.judge)
        return TurnExecutor(runtime, runner, compacting, self._prepare_step, self._take_steering)

    async def _save_rest(self, conversation: Conversation) -> None:
        """Stores what could not be stored when it arose. The user is told when it cannot be now either."""
        try:
            await patiently(conversation.save)
        except StoreError as error:
            self.publish(Notice("error", store_failure(error).message, "store"))

    def _catch_up_with_tools(self) -> None:
        if self._tools_stale:
            self._tools_stale = False
            self._refresh_prelude()
            self.recount()

    def _tell_environment(self, message: Message) -> None:
        """Keeps the environment's text with the session, so that the prompt stays the same bytes; the message brings
        what has changed since."""
        conversation = self.conversation
        if conversation.info.state.environment is None:
            try:
                state = replace(conversation.info.state, environment=self.workspace.environment)
                conversation.set_state(state)
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
            self._refresh_documents(taken[0])
        return taken

    def interrupt(self) -> bool:
        """Ends the running turn, compaction or wait; queued messages stay. False when nothing runs."""
        if self._compacting is not None and self._compacting.cancel():
            return True
        if self._executor is not None:
            return self._executor.cancel()
        if self._task is None or not self.busy:
            return False
        if self._in_turns:
            # Its first step is still to come: the message is stored, and then the turn ends.
            self._interrupted = True
            return True
        return self._task.cancel()

    def answer_permission(self, request_id: str, allow: bool, pattern: str | None = None, feedback: str = "") -> None:
        """The user's word on a PermissionAsked; ``pattern`` is remembered for the project."""
        self.desk.answer(request_id, allow, pattern, feedback)

    async def shell(self, command: str) -> None:
        """Runs the user's own command; command and output join the conversation."""
        self._need_idle("run a command")
        work = run_shell(command, self.toolbox.context(), self.conversation, self.publish)
        await self._exclusive(work, "run a command")
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

    async def _exclusive(self, work: Coroutine[Any, Any, T], what: str = "do that") -> T | None:
        """Runs work that must not overlap with a turn, and then what was submitted meanwhile. An interrupt ends the
        work; None is returned then. Raises AgentError, without doing anything, while something else runs."""
        try:
            self._need_idle(what)
        except AgentError:
            work.close()
            raise
        waiting = len(self.queue) + len(self.steering)
        self._in_turns = False
        task = asyncio.create_task(work, name="exclusive")
        self._task = task
        try:
            await asyncio.wait([task])
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            self._task = None
            self._catch_up_with_tools()
            if len(self.queue) + len(self.steering) > waiting:
                self._next()
        return None if task.cancelled() else task.result()


def _failure(error: Exception) -> Failure:
    """Why a turn could not begin; its message waits."""
    if isinstance(error, StoreError):
        return store_failure(error, unsent=True)
    return inner_failure(error, unsent=True)
