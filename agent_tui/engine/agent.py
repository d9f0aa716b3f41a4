"""The Agent: the one object the UI, the commands and headless mode talk to. Events go out to subscribers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agent_tui.config import PermissionMode
from agent_tui.context.accuracy import drift
from agent_tui.context.cache import ContextCache
from agent_tui.context.metrics import TokenCounterMetrics
from agent_tui.context.policy import reserve_problem
from agent_tui.context.usage import calculate_context_usage
from agent_tui.context.user_commands import UserCommand
from agent_tui.engine import project
from agent_tui.engine.calibration import learn
from agent_tui.engine.compaction_service import CompactionService
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.counting import CountService
from agent_tui.engine.exact import count_exactly, worth_counting
from agent_tui.engine.executor import TurnExecutor
from agent_tui.engine.extensions import ToolRow, tool_rows
from agent_tui.engine.inbox import Inbox
from agent_tui.engine.models import DEMO
from agent_tui.engine.parts import AgentParts
from agent_tui.engine.permissions import PermissionDesk
from agent_tui.engine.prelude import Prelude, build_prelude, with_documents
from agent_tui.engine.runtime import Runtime
from agent_tui.engine.sessions import Sessions
from agent_tui.engine.shell import run_shell
from agent_tui.engine.subagent import run_subagent
from agent_tui.engine.toolbox import Toolbox
from agent_tui.engine.toolrunner import ToolRunner
from agent_tui.errors import AgentError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import (
    ContextChanged,
    Event,
    MessageAdded,
    Notice,
    QueueChanged,
    SessionChanged,
    StepEnded,
    TurnEnded,
)
from agent_tui.models.messages import AttachmentPart, Message, user_message
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec
from agent_tui.models.steps import CompactionRecord, SessionInfo, Step
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.targets import resolve_target
from agent_tui.tools.base import ToolOutcome

log = logging.getLogger(__name__)

READ_ONLY = "This session is open in another window; here it can only be read. /fork continues a copy."

COUNT_PATIENCE = 0.3
"""Seconds a step waits for token counts where no decision hangs on them; a warm worker needs a few milliseconds."""

DECISION_SHARE = 0.5
"""From this share of the limit on a step waits for its counts: the compaction decision must not rest on a guess."""


class Agent:
    """A chat with one model in one project. All methods are to be called on the event loop's thread.

    Nothing here raises for what a model, a tool or a provider does: that arrives as events. AgentError is raised
    for what the user asked wrongly (an unknown model, a session that does not exist).
    """

    def __init__(self, parts: AgentParts) -> None:
        self.parts = parts
        self.settings = parts.settings
        self.paths = parts.paths
        self.root = parts.root
        self.cwd = parts.cwd
        self.store = parts.store
        self.metrics = TokenCounterMetrics()
        self._subscribers: list[Callable[[Event], None]] = []
        self._inbox = Inbox()
        self._counts = CountService(parts.counter, self.metrics)
        self._task: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[Any]] = set()
        self._executor: TurnExecutor | None = None
        self._described = asyncio.Event()
        self._started = False
        self._tools_stale = False
        self._compacting: CompactionService | None = None
        self.sessions = Sessions(parts)
        self.desk = PermissionDesk(parts.permissions, self.publish)
        self.runtime: Runtime | None = None
        self.workspace = parts.workspace
        self.toolbox = Toolbox(
            parts.settings, parts.paths, parts.root, parts.cwd, parts.added_dirs, lambda: self.conversation
        )
        self.toolbox.extra = parts.extra_tools
        self.toolbox.subagent = self._subagent
        self.toolbox.hidden = parts.permissions.denies_reading

    # What the UI reads

    @property
    def info(self) -> SessionInfo:
        return self.conversation.info

    @property
    def conversation(self) -> Conversation:
        return self.sessions.current

    @property
    def read_only(self) -> bool:
        return self.conversation.read_only

    @property
    def read_only_reason(self) -> str:
        return "open in another window" if self.read_only else ""

    @property
    def busy(self) -> bool:
        """Whether a turn or a compaction runs."""
        return self._task is not None and not self._task.done()

    @property
    def messages(self) -> list[Message]:
        return self.conversation.path

    @property
    def records(self) -> list[CompactionRecord]:
        return self.conversation.records

    @property
    def steps(self) -> list[Step]:
        return self.conversation.steps

    @property
    def spec(self) -> ModelSpec:
        return self._runtime.info.spec

    @property
    def model_info(self) -> ModelInfo | None:
        """What is known about the model; None until it has been described."""
        return self._runtime.info if self._described.is_set() else None

    @property
    def mode(self) -> PermissionMode:
        return self.desk.permissions.mode

    @property
    def effort(self) -> Effort:
        return self._runtime.effort

    @property
    def queue(self) -> list[str]:
        return self._inbox.queued_texts()

    @property
    def steering(self) -> list[str]:
        return self._inbox.steer_texts()

    @property
    def pinned(self) -> list[str]:
        return list(self.info.state.get("pinned") or [])

    @property
    def branch(self) -> str:
        """The git branch at the start of the session; empty outside a repository."""
        return self.workspace.git.branch

    @property
    def trusted(self) -> bool:
        return self.parts.trusted

    @property
    def _runtime(self) -> Runtime:
        if self.runtime is None:
            raise AgentError("The session is still opening.")
        return self.runtime

    # Events

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Calls ``callback`` with every event from now on; returns what ends that."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback) if callback in self._subscribers else None

    def publish(self, event: Event) -> None:
        for callback in tuple(self._subscribers):
            try:
                callback(event)
            except Exception:
                log.exception("A subscriber failed on %s", type(event).__name__)

    # Life

    async def start(self) -> None:
        """Opens the session and begins to warm up the worker. Raises AgentError when the session cannot be opened."""
        parts = self.parts
        self.sessions.open_first()
        await asyncio.to_thread(self.workspace.look)
        spec = self._first_model()
        self._attach(spec)
        self._started = True
        self.publish(SessionChanged(self.info, reload=True))
        self.publish(ContextChanged(self.context_usage()))
        self._spawn(self._warm_up(), "warm-up")
        if parts.extensions is not None:
            parts.extensions.mcp.on_failure = lambda name, why: self.publish(
                Notice("warning", f"MCP server {name}: {why}", "mcp")
            )
        if parts.extra_tools is not None:
            parts.extra_tools.start(self._tools_changed)
        if self.read_only:
            self.publish(Notice("warning", READ_ONLY, "read_only"))
        for notice in parts.notices:
            self.publish(notice)
        self._next()

    async def inspect(self) -> ContextUsage:
        """Opens the session asked for without changing it and says what its next request would cost.

        No MCP server is started: the tools of servers are those of the newest step.
        """
        self.sessions.open_for_reading(self.parts.resume)
        await asyncio.to_thread(self.workspace.look)
        self._attach(self._first_model())
        await self._warm_up()
        newest = next((s for s in reversed(self.steps) if s.kind == "turn" and s.fixed), None)
        if newest is not None:
            self._runtime.prelude.add_servers_of(newest)
        return self.context_usage()

    def _first_model(self) -> ModelSpec:
        catalogue, key = self.parts.catalogue, self.parts.model_key
        if key is None and self.info.model:
            try:
                return catalogue.find(self.info.model)
            except AgentError as error:
                self.publish(Notice("warning", str(error), "model_gone"))
        return catalogue.find(key) if key else catalogue.default()

    def _attach(self, spec: ModelSpec) -> None:
        """Binds the current session to a model whose facts are still to come."""
        info = provisional_info(spec)
        self.workspace.adopt(self.conversation.info.state.get("environment"))
        stored = self.conversation.info.state.get("thinking")
        self.runtime = Runtime(
            conversation=self.conversation,
            provider=self.parts.provider,
            counts=self._counts,
            settings=self.settings,
            info=info,
            effort=stored or spec.reasoning_effort or "medium",
            prelude=Prelude(),
            ratio=self.store.ratio(spec.model) or 1.0,
            cache=ContextCache(),
        )
        self._compacting = CompactionService(self.runtime, self.parts.counter, self.parts.catalogue.find)
        self._described.clear()
        self._refresh_prelude()
        if not self.read_only and self.conversation.info.model != spec.key:
            self.conversation.info.model = spec.key
            if self.conversation.path:
                self.conversation.save_info()

    async def _warm_up(self) -> None:
        await self.parts.backend.start()
        await self._describe()
        await self._count()

    async def _describe(self) -> None:
        runtime = self._runtime
        try:
            info = await self.parts.provider.describe(runtime.info.spec)
        except AgentError as error:
            info = replace(runtime.info, problem=str(error))
        if runtime is not self.runtime or info.spec.key != runtime.info.spec.key:
            return
        runtime.info = info
        self._refresh_prelude()  # which tools are deferred depends on the window
        self._described.set()
        self._tell_problems(info)
        self._prepare_backend(info)
        self.publish(ContextChanged(self.context_usage()))

    def _prepare_backend(self, info: ModelInfo) -> None:
        """Loads what the session's model needs ahead of its first call; not where the session is only looked at."""
        if self._started and info.problem is None and info.spec.model != DEMO:
            self._spawn(self._load_backend(info.spec), "prepare")

    async def _load_backend(self, spec: ModelSpec) -> None:
        try:
            await self.parts.backend.prepare(spec)
        except AgentError as error:
            log.warning("%s", error)

    async def ready(self) -> None:
        """Waits until the model's window and limits are known and everything is counted: the numbers are final."""
        await self._described.wait()
        await self._count()

    async def close(self) -> None:
        """Ends what runs, stores what is left and lets the worker go."""
        # Not ``interrupt``: that would end a compaction only, and the turn around it would go on.
        if self._executor is not None:
            self._executor.cancel()
        elif self._task is not None:
            self._task.cancel()
        await self.join()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        if self.parts.extra_tools is not None:
            await self.parts.extra_tools.close()
        await self.parts.backend.close()
        self.sessions.leave()
        self.store.close()

    async def join(self) -> None:
        """Waits until no turn runs and nothing that would start one is queued."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    def _spawn(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        self._keep(asyncio.create_task(work, name=name))

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._background.add(task)
        task.add_done_callback(self._reap)

    def _reap(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("Background task %s failed", task.get_name(), exc_info=error)
            self.publish(Notice("error", str(error) or type(error).__name__, "background"))

    # Talking

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
                        case StepEnded():
                            self._learn()
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
            conversation.set_state(environment=self.workspace.environment)
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

    # Accounting

    def context_usage(self) -> ContextUsage:
        """The calculator's answer for the next request, now."""
        return self._runtime.usage()

    def trigger_total(self) -> int:
        """The very integer the compactor compares with the limit."""
        return self._runtime.usage().total

    def _refresh_prelude(self) -> None:
        """Builds the fixed parts of the next request anew, and counts what is new in them."""
        documents, problems = self.workspace.documents(self.pinned)
        prelude = build_prelude([*self.workspace.blocks(), *documents], self.toolbox.offered(self._runtime.info.limits))
        runtime = self._runtime
        prelude.set_counts(runtime.prelude.counts())
        runtime.prelude = prelude
        for problem in problems:
            self.publish(Notice("warning", problem, "document"))

    def _refresh_documents(self) -> None:
        """Takes the pinned files as they are now; a running turn keeps its tools and memory."""
        documents, _ = self.workspace.documents(self.pinned)
        self._runtime.prelude = with_documents(self._runtime.prelude, documents)

    async def _prepare_step(self) -> None:
        """Before a step: the model's facts are known, documents are fresh, everything is counted."""
        await self._described.wait()
        documents, problems = self.workspace.documents(self.pinned)
        runtime = self._runtime
        runtime.prelude = with_documents(runtime.prelude, documents)
        for problem in problems:
            log.warning("%s", problem)
        counting = asyncio.create_task(self._count(), name="count")
        usage = runtime.usage()
        near = usage.limit is not None and usage.total > usage.limit * DECISION_SHARE
        try:
            await asyncio.wait([counting], timeout=None if near else COUNT_PATIENCE)
        except asyncio.CancelledError:
            counting.cancel()
            raise
        self._keep(counting)

    async def _count(self) -> None:
        runtime = self._runtime
        if await runtime.counts.ensure(runtime.conversation, runtime.prelude):
            self.publish(ContextChanged(self.context_usage()))

    def recount(self) -> None:
        """Shows the numbers as they are now and counts what has no count yet."""
        self.publish(ContextChanged(self.context_usage()))
        self._spawn(self._count(), "count")

    def _tools_changed(self) -> None:
        """Tools came or went. Between turns the numbers move at once; a running turn keeps its tools to its end."""
        self._tools_stale = self.busy
        if not self.busy and self.runtime is not None:
            self._refresh_prelude()
            self.recount()

    def _learn(self) -> None:
        """After a step: the calibration, and in development mode a recount from nothing."""
        learn(self._runtime)
        if self.settings.agent.development:
            tracked = self._runtime.usage().total
            recount = calculate_context_usage(replace(self._runtime.inputs(), cache=None)).total
            if (line := drift(tracked, recount)) is not None:
                log.warning("%s", line)

    async def count_exact(self) -> int | None:
        """Asks the provider for the exact size of the next request; None where it cannot say."""
        await self._described.wait()
        tokens = await count_exactly(self._runtime)
        if tokens is not None:
            self.publish(ContextChanged(self.context_usage()))
        return tokens

    def _count_exact_soon(self) -> None:
        """Where there is nothing to build on and the context is long: an exact count, off the hot path."""
        if self._described.is_set() and worth_counting(self._runtime):
            self._spawn(self.count_exact(), "exact count")

    # The model

    def models(self) -> list[ModelSpec]:
        """Configured and detected models, the demo model last."""
        return self.parts.catalogue.all()

    async def describe(self, key: str) -> ModelInfo:
        """What is known about a model. Raises ConfigError for an unknown name."""
        return await self.parts.provider.describe(self.parts.catalogue.find(key))

    async def set_model(self, key: str) -> ModelInfo:
        """Talks to another model from the next step on, after compacting with the old one where it must be.

        Raises ConfigError for an unknown name and AgentError while a turn runs.
        """
        spec = self.parts.catalogue.find(key)
        self._need_idle("switch the model")
        info = await self.parts.provider.describe(spec)
        if self.conversation.path and not self.read_only and self._described.is_set():
            await self._exclusive(self._compaction.before_switch(info, self.publish, self._prepare_step))
        self._attach(spec)
        self._runtime.info = info
        self._refresh_prelude()
        self._described.set()
        self._tell_problems(info)
        self._prepare_backend(info)
        self.publish(SessionChanged(self.info))
        self.recount()
        self._count_exact_soon()
        return info

    def set_mode(self, mode: PermissionMode) -> None:
        """Changes the permission mode, at once."""
        self.desk.permissions.mode = mode
        self.publish(SessionChanged(self.info))

    def set_effort(self, effort: Effort) -> None:
        """How much the model thinks, from the next step on; kept with the session."""
        self._runtime.effort = effort
        self.conversation.set_state(thinking=effort)
        self.publish(SessionChanged(self.info))
        self.publish(ContextChanged(self.context_usage()))

    # Compaction

    @property
    def _compaction(self) -> CompactionService:
        if self._compacting is None:
            raise AgentError("The session is still opening.")
        return self._compacting

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

    async def compact(self, focus: str = "") -> None:
        """Compacts now; ``focus`` tells the summary what matters. The outcome arrives as an event."""
        self._need_idle("compact")
        await self._described.wait()
        await self._exclusive(self._compact(focus))
        self._count_exact_soon()

    async def _compact(self, focus: str) -> None:
        await self._prepare_step()
        await self._compaction.compact("manual", self.publish, self._prepare_step, focus)

    def compact_preview(self, focus: str = "") -> str:
        """What ``/compact`` would do now, with numbers and without a model call."""
        return self._compaction.preview(focus)

    async def compact_undo(self) -> None:
        """Takes the newest compaction back. The outcome arrives as an event."""
        self._need_idle("undo a compaction")
        if self._compaction.undo(self.publish):
            self.publish(SessionChanged(self.info, reload=True))
        self.recount()

    # Sessions

    def _switched(self) -> None:
        """The current session changed: everything that hangs on it starts anew."""
        self._attach(self._runtime.info.spec if not self.info.model else self._model_of_session())
        self.toolbox.session_changed()
        self.publish(SessionChanged(self.info, reload=True))
        self.publish(ContextChanged(self.context_usage()))
        self._spawn(self._describe_and_count(), "describe")

    def _model_of_session(self) -> ModelSpec:
        try:
            return self.parts.catalogue.find(self.info.model)
        except AgentError as error:
            self.publish(Notice("warning", str(error), "model_gone"))
            return self._runtime.info.spec

    def _tell_problems(self, info: ModelInfo) -> None:
        """What the user should know of a model whose limits have just become known."""
        if info.problem:
            self.publish(Notice("warning", info.problem, "model_problem"))
        refused = reserve_problem(info.limits, self._runtime.policy())
        if refused is not None:
            self.publish(Notice("warning", refused, "reserve"))

    async def _describe_and_count(self) -> None:
        await self._describe()
        await self._count()

    async def clear(self) -> None:
        """Starts a new session; the old one stays and can be resumed."""
        self._need_idle("start a new session")
        spec = self._runtime.info.spec
        await asyncio.to_thread(self.workspace.look)
        self._need_idle("start a new session")
        self.sessions.open_new()
        self.conversation.info.model = spec.key
        self._switched()

    async def resume(self, session_id: str) -> None:
        """Continues another session. Raises StoreError when there is none of that id."""
        self._need_idle("resume a session")
        await asyncio.to_thread(self.workspace.look)
        self._need_idle("resume a session")
        self.sessions.open(session_id)
        self._switched()
        if self.read_only:
            self.publish(Notice("warning", READ_ONLY, "read_only"))

    def rename(self, title: str) -> None:
        self.conversation.rename(" ".join(title.split()))
        self.publish(SessionChanged(self.info))

    async def rewind(self, message_id: str, restore_files: bool = False) -> str:
        """Goes back to before one of the user's messages and returns its text; files too where asked."""
        self._need_idle("rewind")
        position = next((i for i, m in enumerate(self.messages) if m.id == message_id), None)
        after = [m.id for m in self.messages[position:]] if position is not None else []
        message = self.sessions.rewind(message_id)
        if restore_files:
            for line in await self.toolbox.restore_files(after):
                self.publish(Notice("info", line, "restored"))
        self.publish(SessionChanged(self.info, reload=True))
        self.recount()
        return message.text

    async def fork(self, message_id: str | None = None) -> None:
        """Continues in a copy of the session, up to and including ``message_id``."""
        self._need_idle("fork")
        self.sessions.fork(message_id)
        self._switched()

    # Documents

    def pin(self, path: str) -> None:
        """Sends a file with every request, as it is at that time. Raises AgentError when it cannot be read."""
        resolved = self.workspace.pinnable(path)
        self.conversation.set_state(pinned=[*(p for p in self.pinned if p != resolved), resolved])
        self._refresh_documents()
        self.recount()

    def unpin(self, path: str) -> None:
        """Stops sending a pinned file. Raises AgentError when it is not pinned."""
        resolved = self.workspace.resolve(path)
        matching = [p for p in self.pinned if p in (resolved, path)]
        if not matching:
            raise AgentError(f"{path} is not pinned. Pinned: {', '.join(self.pinned) or 'nothing'}.")
        self.conversation.set_state(pinned=[p for p in self.pinned if p not in matching])
        self._refresh_documents()
        self.recount()

    # The project

    def context_stats(self) -> dict[str, int | float | str | None]:
        """The token counter's metrics, in the order in which they are shown."""
        return self.metrics.as_dict()

    def reset_context_stats(self) -> None:
        self.metrics.reset()

    def permission_rules(self) -> list[project.Row]:
        """(decision, rule, source) of every rule in force."""
        return project.permission_rules(self.settings, self.store, self.root)

    def remove_permission_rule(self, rule: str) -> bool:
        """Forgets a remembered rule; False when there was none. Rules of the configuration are changed there."""
        return self.desk.permissions.forget(rule) and self.store.remove_permission_rule(self.root, rule)

    def tools(self) -> list[ToolRow]:
        """(name, group, description, tokens, enabled) of every tool."""
        disabled = self.settings.tools.disabled
        return tool_rows(self.toolbox, self._runtime.prelude, self._runtime.info.limits, disabled)

    def trust(self) -> str:
        """Trusts the project's configuration, skills, commands and MCP servers from now on; one line on what came."""
        self.store.trust(self.root)
        self.parts.trusted = True
        settings = self.parts.reload() if self.parts.reload is not None else self.settings
        line = self.parts.extensions.trust(settings) if self.parts.extensions is not None else "Trusted."
        self._tools_changed()
        self.publish(SessionChanged(self.info))
        return line

    def user_commands(self) -> list[UserCommand]:
        """The user's and the project's commands, and the prompts of MCP servers."""
        return list(self.parts.extensions.user_commands()) if self.parts.extensions is not None else []

    def skills(self) -> list[project.Row]:
        """(name, description, path) of every skill."""
        return self.parts.extensions.skill_rows() if self.parts.extensions is not None else []

    def mcp_servers(self) -> list[project.Row]:
        """(name, state, detail) of every MCP server."""
        return [*self.parts.extensions.mcp.servers()] if self.parts.extensions is not None else []

    async def mcp_reconnect(self, name: str) -> str:
        """Connects an MCP server again; one line on how that went."""
        if self.parts.extensions is None:
            return "There are no MCP servers here."
        return await self.parts.extensions.mcp.reconnect(name)

    def mcp_resources(self) -> list[tuple[str, str]]:
        """(``server:uri``, description) of every MCP resource, as it is named after ``@``."""
        extensions = self.parts.extensions
        found = extensions.mcp.resources() if extensions is not None else []
        return [(f"{r.server}:{r.uri}", r.description or r.name) for r in found]

    async def mcp_attachments(self, text: str) -> tuple[list[AttachmentPart], list[str]]:
        """The MCP resources that ``@server:uri`` words of a message name, and a line for each that failed."""
        if self.parts.extensions is None:
            return [], []
        return await self.parts.extensions.mcp.attachments(text)

    async def shell(self, command: str) -> None:
        """Runs the user's own command; command and output join the conversation."""
        self._need_idle("run a command")
        work = run_shell(command, self.toolbox.context(), self.conversation, self.publish)
        await self._exclusive(work)
        self.recount()

    async def doctor(self) -> list[project.Row]:
        """Checks of the installation: (ok, warn or fail; what; detail)."""
        info = self.model_info
        if info is None:
            spec = self.runtime.info.spec if self.runtime is not None else self.parts.catalogue.default()
            info = await self.parts.provider.describe(spec)
        return await asyncio.to_thread(project.doctor, self.parts, info)


def provisional_info(spec: ModelSpec) -> ModelInfo:
    """What is known of a model before it has been described: what the configuration says."""
    limits = Limits(spec.context_window, None, spec.max_output, "config" if spec.context_window else "unknown")
    return ModelInfo(spec, resolve_target(spec), limits, Prices())
