"""One turn from the outside: what goes into it, and what is done with its events."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from agent_tui.engine.accounts.accounts import Accounts
from agent_tui.engine.accounts.fixed import FixedParts
from agent_tui.engine.project.permissions import PermissionDesk
from agent_tui.engine.project.told_mode import ToldMode
from agent_tui.engine.project.toolbox import Toolbox
from agent_tui.engine.project.workspace import Workspace
from agent_tui.engine.running.background import Background
from agent_tui.engine.running.waiting import Waiting, wordless
from agent_tui.engine.session.storing import store_failure
from agent_tui.engine.state.binding import Bindings
from agent_tui.engine.state.hub import Hub
from agent_tui.engine.turns.executor import TurnExecutor
from agent_tui.engine.turns.toolrunner import ToolRunner
from agent_tui.errors import StoreError
from agent_tui.models.events import MessageAdded, Notice, StepEnded, TurnEnded
from agent_tui.models.failure import Failure, inner_failure
from agent_tui.models.messages import AttachmentPart, Message

log = logging.getLogger(__name__)


class TurnRelay:
    """Prepares turns and passes on what comes of them; ``prepare`` is awaited before each step."""

    def __init__(
        self,
        hub: Hub,
        bindings: Bindings,
        fixed: FixedParts,
        accounts: Accounts,
        waiting: Waiting,
        toolbox: Toolbox,
        desk: PermissionDesk,
        workspace: Workspace,
        told_mode: ToldMode,
        background: Background,
        prepare: Callable[[], Awaitable[None]],
    ) -> None:
        self._hub = hub
        self._bindings = bindings
        self._fixed = fixed
        self._accounts = accounts
        self._waiting = waiting
        self._toolbox = toolbox
        self._desk = desk
        self._workspace = workspace
        self._told_mode = told_mode
        self._background = background
        self._prepare = prepare

    def begin(self, message: Message) -> TurnExecutor | None:
        """An executor for a turn that begins with ``message``; None when it cannot begin: the message waits for the
        user's word then, and they are told."""
        try:
            return self._executor(message)
        except Exception as error:
            log.exception("The turn could not begin")
            failure = _failure(error)
            self._waiting.fail([message], failure.message)
            self._hub.publish(TurnEnded("error", failure))
            return None

    def _executor(self, message: Message) -> TurnExecutor:
        binding = self._bindings.current
        binding.conversation.set_model(binding.runtime.info.spec.key)
        self._tell_environment(message)
        self._background.attach(message, binding.conversation.view())
        self._told_mode.tell(message, binding.conversation.view)
        self._fixed.refresh(message)
        if late := self._toolbox.late():
            line = f"MCP server {', '.join(late)}: still starting; this message goes out without its tools."
            self._hub.publish(Notice("warning", line, "mcp"))
        self._accounts.foretell()
        runner = ToolRunner(self._toolbox.registry, self._toolbox.context, self._desk.judge)
        return TurnExecutor(
            binding.runtime,
            runner,
            binding.compaction,
            self._prepare,
            self._take_steering,
            self._told_mode,
            self._background.append,
        )

    async def run(self, executor: TurnExecutor, message: Message) -> bool:
        """The turn; False when what is queued has to wait for the user."""
        conversation, ended = self._bindings.current.conversation, TurnEnded("error")
        asked: list[Message] = []
        async with aclosing(executor.run(message)) as events:
            async for event in events:
                if isinstance(event, TurnEnded):
                    ended = event
                    self._keep_what_failed(event, executor.unsent, asked)
                self._hub.publish(event)
                match event:
                    case StepEnded(step, answer):
                        self._accounts.learn(step)
                        if answer.status == "complete" and answer.note:
                            self._hub.publish(Notice("info", answer.note, "empty_answer"))
                    case MessageAdded(added):
                        self._toolbox.message_added(added)
                        self._note_reach(added)
                        if added.role == "user":
                            asked.append(added)
                            self._accounts.count_exact_soon()
        unsaved = ended.failure is not None and ended.failure.kind == "store"
        if conversation.unsaved and not unsaved:
            self._hub.spawn(self._waiting.save_rest(conversation), "store")
        # What failed would fail again, and what follows may build on it.
        return ended.stop_reason not in ("interrupted", "error", "budget")

    def _note_reach(self, added: Message) -> None:
        """What the user attached of outside the project counts as read; what has been read is kept with the session."""
        permissions, conversation = self._desk.permissions, self._bindings.current.conversation
        if added.role == "user":
            permissions.attached(Path(p.path) for p in added.parts if isinstance(p, AttachmentPart) and p.path)
        state = permissions.reach.kept(conversation.info.state)
        if state != conversation.info.state:
            try:
                conversation.set_state(state)
            except StoreError as error:
                log.warning("What was read outside the project was not stored: %s", error)

    def _keep_what_failed(self, ended: TurnEnded, unsent: Sequence[Message], asked: Sequence[Message]) -> None:
        """What could not be sent waits for the user's word, and so does what got no word of an answer."""
        why = ended.failure.message if ended.failure is not None else ""
        if ended.stop_reason == "interrupted":
            self._waiting.put_back(unsent)
            return
        self._waiting.fail(unsent, why)
        path = self._bindings.current.conversation.path
        tail = path[:-1] if path and wordless(path[-1]) else path
        if ended.stop_reason in ("error", "budget") and asked and tail[-len(asked) :] == asked:
            self._waiting.leave_unanswered(why)

    def ended(self) -> None:
        """After each turn, however it ended."""
        self._desk.dismiss()
        self._bindings.current.runtime.turn_over()
        self.catch_up()

    def rested(self) -> None:
        """Nothing runs any more: the next request is the user's."""
        self._accounts.tell()

    def catch_up(self) -> None:
        """What came meanwhile counts from now on."""
        self._accounts.catch_up()

    def _take_steering(self) -> list[Message]:
        taken = self._waiting.take_steering()
        if taken:
            self._fixed.refresh_documents(taken[0])
            self._background.attach(taken[0], self._bindings.current.conversation.view())
            self._told_mode.tell(taken[0], self._bindings.current.conversation.view)
        return taken

    def _tell_environment(self, message: Message) -> None:
        """Keeps the environment's text with the session, so that the prompt stays the same bytes; the message brings
        what has changed since."""
        conversation = self._bindings.current.conversation
        if conversation.info.state.environment is None:
            try:
                conversation.set_state(replace(conversation.info.state, environment=self._workspace.environment))
            except StoreError as error:
                # The turn will not get far, and says why.
                log.warning("The environment could not be stored: %s", error)
        update = self._workspace.environment_update(conversation.view())
        if update is not None:
            message.parts.insert(0, update)


def _failure(error: Exception) -> Failure:
    """Why a turn could not begin; its message waits."""
    if isinstance(error, StoreError):
        return store_failure(error, unsent=True)
    return inner_failure(error, unsent=True)
