"""Runs turns one after the other, and what must not overlap with them: what goes into a turn, and what is done with
its events."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from agent_tui.context.tokens import message_text_for_count
from agent_tui.engine.calls import WORTH_TOKENS
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.conversation import store_failure
from agent_tui.engine.notes import ToldMode
from agent_tui.engine.questions import PermissionDesk
from agent_tui.engine.state import STILL_OPENING, AgentState, RunState
from agent_tui.engine.toolbox import Background, Toolbox
from agent_tui.engine.turns.executor import TurnExecutor
from agent_tui.engine.turns.toolrunner import ToolRunner, mask_attachments
from agent_tui.engine.waiting import AGAIN, Next, Waiting, wordless
from agent_tui.errors import READ_ONLY, AgentError, StoreError, ToolError
from agent_tui.models.events import MessageAdded, Notice, StepEnded, TurnEnded, WaitingMessage
from agent_tui.models.failure import GO_ON, inner_failure
from agent_tui.models.messages import (
    NESTED,
    AttachmentPart,
    Message,
    ToolResultPart,
    Written,
    attachments_of,
    user_message,
    written_in,
)
from agent_tui.models.requests import SentMessage
from agent_tui.tools.aliases import parsed, understood

log = logging.getLogger(__name__)


class TurnRelay:
    """Prepares turns and passes on what comes of them."""

    def __init__(
        self,
        state: AgentState,
        context: ContextControl,
        waiting: Waiting,
        toolbox: Toolbox,
        desk: PermissionDesk,
        background: Background,
    ) -> None:
        self._state = state
        self._workspace = state.parts.workspace
        self._context = context
        self._waiting = waiting
        self._toolbox = toolbox
        self._desk = desk
        self._told_mode = ToldMode(state.parts.permissions, jail=state.parts.jail)
        self._background = background

    def begin(self, message: Message | None) -> TurnExecutor | None:
        """An executor for a turn that begins with ``message`` (None: the newest request is made again); None when it
        cannot begin: the message waits for the user's word then, and they are told."""
        try:
            return self._executor(message)
        except Exception as error:
            log.exception("The turn could not begin")
            if isinstance(error, StoreError):
                failure = store_failure(error, unsent=True)
            else:
                failure = inner_failure(error, unsent=True)
            if message is None:
                self._waiting.leave_unanswered(failure.message)
            else:
                self._waiting.fail([message], failure.message)
            self._state.events.publish(TurnEnded("error", failure))
            return None

    def brings(self) -> list[AttachmentPart]:
        """What the next message of the user's would bring of what the model does not know yet."""
        view, message = self._state.conversation.view(), Message("", "user")
        update = self._workspace.environment_update(view)
        self._told_mode.teller(view)(message)
        told = [part for part in message.parts if isinstance(part, AttachmentPart)]
        return told if update is None else [*told, update]

    def _executor(self, message: Message | None) -> TurnExecutor:
        binding, view = self._state.binding, self._state.conversation.view()
        binding.conversation.set_model(binding.runtime.info.spec.key)
        self._context.before_news()
        if message is not None:
            self._tell_environment(message)
            self._background.attach(message, view)
            self._told_mode.teller(view)(message)
        self._context.prefix.refresh(message)
        if late := self._toolbox.late():
            line = f"MCP server {', '.join(late)} is still starting; its tools join when it is ready."
            self._state.events.publish(Notice("warning", line, "mcp"))
        self._context.foretell()
        hooks = self._state.hooks
        runner = ToolRunner(self._toolbox.registry, self._toolbox.context, self._desk.judge, hooks)
        return TurnExecutor(binding.runtime, runner, binding.compaction, self._take_steering, self._teller, hooks)

    def _teller(self, view: Sequence[SentMessage]) -> Callable[[Message], None]:
        """What adds to each result that follows ``view`` what the model does not know yet."""
        tell_mode = self._told_mode.teller(view)

        def tell(message: Message) -> None:
            tell_mode(message)
            self._remark(message)

        return tell

    def _remark(self, message: Message) -> None:
        """Adds to a tool's result what the commands in the background say, and the memory files of the folder that it
        was about, as long as no message that is sent has them."""
        self._background.append(message)
        result, extensions, conversation = message.tool_result, self._state.parts.extensions, self._state.conversation
        if result is None or result.is_error or extensions is None:
            return
        found = [one for path in self._touched(result) for one in extensions.memory.below(path)]
        if not found:
            return
        known = {part.name for sent in conversation.view() for part in attachments_of(sent.message)}
        for label, text in found:
            if f"{NESTED}{label}" not in known:
                message.parts.append(AttachmentPart(f"{NESTED}{label}", "text/plain", text=text))
                self._state.events.publish(
                    Notice("info", f"{label} is sent too: it is about the files there.", "memory")
                )

    def _touched(self, result: ToolResultPart) -> list[Path]:
        """The file that a call was about, as it names it."""
        cwd = self._state.parts.cwd
        answer = next((m for m in reversed(self._state.conversation.path) if m.role == "assistant"), None)
        calls = answer.tool_calls if answer is not None else []
        call = next((call for call in calls if call.call_id == result.call_id), None)
        try:
            arguments = {} if call is None else understood(call.name, parsed(call.name, call.arguments), cwd)[1]
        except ToolError:
            return []
        path = arguments.get("path")
        return [Path(os.path.normpath(cwd / path))] if isinstance(path, str) else []

    async def run(self, executor: TurnExecutor, message: Message | None) -> bool:
        """The turn; False when what is queued has to wait for the user."""
        conversation, ended = self._state.conversation, TurnEnded("error")
        asked: list[Message] = []
        async with aclosing(executor.run(message)) as events:
            async for event in events:
                if isinstance(event, TurnEnded):
                    ended = event
                    self._keep_what_failed(event, executor.unsent, asked, again=message is None)
                self._state.events.publish(event)
                match event:
                    case StepEnded(_, answer):
                        self._context.check_drift()
                        if answer.status == "complete" and answer.note:
                            self._state.events.publish(Notice("info", answer.note, "empty_answer", GO_ON))
                    case MessageAdded(added):
                        self._toolbox.message_added(added)
                        self._note_reach(added)
                        if added.role == "user":
                            asked.append(added)
                            if len(message_text_for_count(added)) >= WORTH_TOKENS:  # no less than a character a token
                                self._context.count_exact_soon()
        unsaved = ended.failure is not None and ended.failure.kind == "store"
        if conversation.unsaved and not unsaved:
            self._state.events.spawn(self._waiting.save_rest(conversation), "store")
        # What failed would fail again, and what follows may build on it.
        return ended.stop_reason not in ("interrupted", "error", "budget")

    def _note_reach(self, added: Message) -> None:
        """Counts what the user attached from outside the project as read, and keeps with the session what has been
        read."""
        permissions, conversation = self._desk.permissions, self._state.conversation
        if added.role == "user":
            permissions.attached(Path(p.path) for p in added.parts if isinstance(p, AttachmentPart) and p.path)
        conversation.keep_state(permissions.reach.kept(conversation.info.state))

    def _keep_what_failed(
        self, ended: TurnEnded, unsent: Sequence[Message], asked: Sequence[Message], *, again: bool
    ) -> None:
        """Makes what could not be sent wait for the user's word, and so what got no word of an answer."""
        why = ended.failure.message if ended.failure is not None else ""
        if ended.stop_reason == "interrupted":
            self._waiting.put_back(unsent)
            return
        self._waiting.fail(unsent, why)
        path = self._state.conversation.path
        tail = path[:-1] if path and wordless(path[-1]) else path
        if ended.stop_reason in ("error", "budget") and (tail[-len(asked) :] == asked if asked else again):
            self._waiting.leave_unanswered(why)

    def ended(self) -> None:
        """After each turn, however it ended."""
        self._state.runtime.turn_over()
        self._context.catch_up()

    def _take_steering(self) -> list[Message]:
        taken = self._waiting.take_steering()
        if taken:
            view = self._state.conversation.view()
            self._context.prefix.refresh_documents(taken[0])
            self._background.attach(taken[0], view)
            self._told_mode.teller(view)(taken[0])
        return taken

    def _tell_environment(self, message: Message) -> None:
        """Keeps the environment's text with the session, so that the prompt stays the same bytes; the message brings
        what has changed since."""
        conversation = self._state.conversation
        if conversation.info.state.environment is None:
            # Where it cannot be stored the turn will not get far, and says why.
            conversation.keep_state(replace(conversation.info.state, environment=self._workspace.environment))
        update = self._workspace.environment_update(conversation.view())
        if update is not None:
            message.parts.insert(0, update)


T = TypeVar("T")


class Runner:
    """Runs one turn (or one exclusive piece of work) at a time; what the user types meanwhile waits."""

    def __init__(self, state: AgentState, context: ContextControl, waiting: Waiting, relay: TurnRelay) -> None:
        self._state = state
        self._context = context
        self._waiting = waiting
        self._relay = relay
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
        """True when a turn or a compaction runs."""
        return self._state.run.busy

    def submit(
        self,
        text: str,
        attachments: Sequence[AttachmentPart] = (),
        pasted: Sequence[list[int]] = (),
        behind: str | None = None,
        typed: Sequence[list[int]] | None = None,
    ) -> None:
        """Sends a message, or queues it while a turn runs or the session is still opening: as the last, or right
        ``behind`` another one that waits. One that comes when the turn was interrupted already goes out after it: it is
        what the user wants instead. ``pasted`` and ``typed``: see ``TextPart``."""
        if self._state.opened and self._state.conversation.read_only:
            self._state.events.publish(Notice("warning", READ_ONLY))
            return
        message = self._message(text, attachments, pasted, typed)
        if self._state.run.now is RunState.IDLE and (same := self._waiting.repeats(message)) is not None:
            self.send_waiting(same)
            return
        self._waiting.add(message, behind=behind)
        self._goes_on = self._goes_on or self._state.run.now is RunState.INTERRUPTED
        self._next()
        self._waiting.keep([message])
        if behind is not None:
            self._waiting.keep_order()

    def steer(
        self,
        text: str,
        attachments: Sequence[AttachmentPart] = (),
        pasted: Sequence[list[int]] = (),
        typed: Sequence[list[int]] | None = None,
    ) -> None:
        """A message that goes in before the next step of the running turn."""
        if not self._state.run.busy:
            self.submit(text, attachments, pasted, typed=typed)
            return
        message = self._message(text, attachments, pasted, typed)
        self._waiting.add(message, steering=True)
        self._waiting.keep([message])

    def _message(
        self,
        text: str,
        attachments: Sequence[AttachmentPart],
        pasted: Sequence[list[int]],
        typed: Sequence[list[int]] | None,
    ) -> Message:
        masked = mask_attachments(list(attachments), self._state.parts.secrets)
        marks = None if typed is None else list(typed)
        return user_message(text, attachments=masked, pasted=list(pasted), typed=marks)

    def send_waiting(self, message_id: str | None = None) -> bool:
        """Sends what waits, what could not be sent before included, or first of all the one of that id; right after the
        turn where one has been interrupted and is coming to its end. While a turn runs one goes in at its next step.
        False when nothing waits, or something else runs."""
        if self._state.run.now is RunState.TURN and message_id is not None:
            return self._waiting.into_turn(message_id)
        if self._state.run.now not in (RunState.IDLE, RunState.INTERRUPTED):
            return False
        if self._state.conversation.read_only or not self._waiting.release(message_id):
            return False
        self._goes_on = True
        self._next()
        return True

    def go_on(self) -> bool:
        """Makes the newest request again, without another word of the user's: that of a turn which ended before its
        model was done. False where there is none, or something runs."""
        if self._state.run.now is not RunState.IDLE or self._state.conversation.read_only or not self._waiting.go_on():
            return False
        self._next()
        return True

    def can_send(self, waits: WaitingMessage) -> bool:
        """Returns whether ``send_waiting`` would send this one now."""
        now, unanswered = self._state.run.now, waits.kind == "unanswered"
        if now is RunState.TURN:
            return not unanswered
        return now in (RunState.IDLE, RunState.INTERRUPTED) and not self._state.conversation.read_only

    def can_take_back(self, waits: WaitingMessage) -> bool:
        """Returns whether ``take_back`` would give this one back now."""
        return waits.kind != "unanswered" or self._state.run.now is RunState.IDLE

    def take_back(self, message_id: str | None = None) -> Written | None:
        """Takes a message that waits back, the newest where none is named, with what was attached to it; None when it
        waits no more."""
        message = self._waiting.take_back(message_id, idle=self._state.run.now is RunState.IDLE)
        return None if message is None else written_in(message)

    def _next(self) -> None:
        if self._state.run.now is not RunState.IDLE or self._state.conversation.read_only:
            return
        begun = self._waiting.next()
        if begun is not None:
            self._state.run.change(RunState.TURN)
            self._task = asyncio.create_task(self._run(begun), name="run")

    async def _run(self, begun: Next | None) -> None:
        try:
            while begun is not None and (await self._turn(None if begun == AGAIN else begun) or self._goes_on):
                begun = None if self._state.run.now is RunState.CLOSING else self._waiting.next()
        finally:
            self._rest()

    async def _turn(self, message: Message | None) -> bool:
        """One turn; False when what is queued has to wait for the user."""
        self._goes_on = False
        executor = self._relay.begin(message)
        if executor is None:
            return False
        self._executor = executor
        if self._state.run.now in (RunState.INTERRUPTED, RunState.CLOSING):
            executor.cancel()
        try:
            return await self._relay.run(executor, message)
        finally:
            self._executor = None
            if self._state.run.now is RunState.INTERRUPTED:
                # The interrupt was for this turn alone.
                self._state.run.change(RunState.TURN)
            self._relay.ended()

    def _rest(self) -> None:
        if self._state.run.now is not RunState.CLOSING:
            self._state.run.change(RunState.IDLE)
            self._waiting.rest()
            self._context.tell()

    def interrupt(self) -> bool:
        """Ends the running turn, compaction or wait; queued messages stay. False when nothing runs."""
        if not self._state.run.busy:
            return False
        if self._state.binding.compaction.cancel():
            return True
        if self._state.run.now in (RunState.COMPACTING, RunState.WORKING):
            return self._task is not None and self._task.cancel()
        # Without an executor the first step is still to come: the message is stored, and then the turn ends.
        if self._executor is not None and not self._executor.cancel():
            return False
        if self._state.run.now is RunState.TURN:
            self._state.run.change(RunState.INTERRUPTED)
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
        self._state.run.change(state)
        task = self._task = asyncio.create_task(work, name="exclusive")
        try:
            await asyncio.wait([task])
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            self._rest()
            self._context.catch_up()
            if self._waiting.count > waiting:
                self._next()
        return None if task.cancelled() else task.result()

    def need_idle(self, what: str, *, looking: bool = False) -> None:
        """Raises AgentError while something runs, or the session is still opening; also where a session is only read,
        unless ``looking`` says that this is no hindrance."""
        if self._state.run.busy:
            raise AgentError(f"Cannot {what} while the model works. Esc interrupts it.")
        if self._state.run.now is RunState.OPENING:
            raise AgentError(STILL_OPENING)
        if self._state.run.now is not RunState.IDLE and not (looking and self._state.run.now is RunState.LOOKING):
            raise AgentError(f"Cannot {what} now: the session is {self._state.run.now.value}.")

    async def join(self) -> None:
        """Waits until no turn runs and nothing that would start one is queued."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Ends what runs and begins nothing any more."""
        running = self._state.run.now
        if running is not RunState.CLOSING:
            self._state.run.change(RunState.CLOSING)
        # A compaction inside a turn is not ended alone: the turn around it would go on.
        if self._executor is not None:
            self._executor.cancel()
        elif self._task is not None and running in (RunState.COMPACTING, RunState.WORKING):
            self._task.cancel()
        await self.join()
