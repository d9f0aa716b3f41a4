"""Work beside the conversation's own steps: subagents with one task each, and the user's own shell command."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import replace
from functools import partial

from agent_tui.context.accounting.spending import session_totals
from agent_tui.context.agents import AgentType
from agent_tui.engine.agent_edits import AgentEdits
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import Conversation, patiently
from agent_tui.engine.models import facts_of, recalled_calibration, recalled_rule, refused_before
from agent_tui.engine.notes import ToldMode
from agent_tui.engine.questions import CallVerdict
from agent_tui.engine.request_prefix import build_request_prefix, fitting_tools, refused
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.engine.state import AgentState
from agent_tui.engine.toolbox import Toolbox
from agent_tui.engine.turns.executor import TurnExecutor
from agent_tui.engine.turns.toolrunner import ToolRunner
from agent_tui.errors import READ_ONLY, AgentError, ToolError
from agent_tui.models.events import (
    OWN_COMMAND,
    CompactionEnded,
    JobInfo,
    MessageAdded,
    Notice,
    StepEnded,
    SubagentFacts,
    ToolOutput,
    ToolStarted,
    TurnEnded,
)
from agent_tui.models.messages import OWN_OUTPUT, PLAN_TOOL, AttachmentPart, Message, ToolCallPart, new_id, user_message
from agent_tui.models.requests import ModelInfo, OfferedTool, SystemBlock
from agent_tui.models.usage import SubagentRef
from agent_tui.text.clean import one_line, pictured, plain_line
from agent_tui.text.numbers import money, plural
from agent_tui.tools.base import GENERAL, Intent, Task, Tool, ToolContext, ToolMemory, ToolOutcome
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.children.jobs import STARTED, Jobs
from agent_tui.tools.children.work import StoppedBy, Work
from agent_tui.tools.mcp_names import CALL, SEARCH
from agent_tui.tools.output import cap
from agent_tui.tools.registry import ToolRegistry

log = logging.getLogger(__name__)

STEP_LIMIT = 40
"""Steps a subagent may take: enough for a search through a project, too few to burn money unseen."""

NOT_OFFERED = ("ask", PLAN_TOOL)
"""What no subagent is offered, though it may be called: its answer says that nobody is there."""

SUBAGENT, TODO = "subagent", "todo"

Judge = Callable[[ToolCallPart, Tool, Intent, str], Awaitable[CallVerdict]]


class Subagents:
    """Starts subagents, each in a session of its own, with the permissions of the session that it works for and no more
    tools than that has. Their steps are added to that session as kind ``subagent``: they cost, but never anchor.

    ``counted`` is called when a call of one has ended and its cost is among the session's.
    """

    def __init__(
        self, state: AgentState, toolbox: Toolbox, jobs: Jobs, judge: Judge, counted: Callable[[], None]
    ) -> None:
        self._state = state
        self._toolbox = toolbox
        self._jobs = jobs
        self.judge = judge
        self.counted = counted
        self._working = 0
        self._alone = asyncio.Lock()
        self._told: set[str] = set()

    async def run(self, task: Task, emit: Callable[[str], None], within: Subagent | None = None) -> ToolOutcome:
        """Does a task, or begins it in the background; ``within`` is the subagent that asks for it. ``emit`` gets a
        line for each tool that is used. Raises ToolError where a limit is reached."""
        limits = self._state.parts.settings.agent
        depth = 1 if within is None else within.depth + 1
        if depth > limits.subagent_depth:
            raise ToolError(
                f"No subagent starts another one here (agent.subagent_depth = {limits.subagent_depth}). "
                "Do the task yourself."
            )
        if within is not None and task.background:
            raise ToolError("A subagent waits for those that it starts: leave background out.")
        if self._working >= limits.subagents_at_once:
            raise ToolError(
                f"{plural(self._working, 'subagent')} at work already (agent.subagents_at_once = "
                f"{limits.subagents_at_once}). Start this one when another has ended."
            )
        self._working += 1
        started = False
        try:
            subagent = await self._made(task, depth, within)
            beside = subagent.runtime.info.parallel
            if not (task.background and beside):
                # A server with one slot would answer several by turns, and keep the cache of none.
                async with nullcontext() if beside or within is not None else self._alone:
                    return await subagent.work(emit)
            context = self._toolbox.context()
            job = self._jobs.add(BackgroundSubagent(subagent, context, self._ended))
            started = True
        finally:
            self._working -= not started
        text = f"{STARTED}{job.id}; you will be told its answer when it ends. It ends with the session."
        return ToolOutcome(text, display={"kind": "text", "summary": f"{job.id} works in the background"})

    def _ended(self) -> None:
        self._working -= 1

    async def _made(self, task: Task, depth: int, within: Subagent | None) -> Subagent:
        parts, runtime, parent = self._state.parts, self._state.runtime, self._state.conversation
        types = parts.extensions.agents if parts.extensions is not None else None
        kind = types.find(task.type or GENERAL) if types is not None else None
        kinds = [*(within.kinds if within is not None else []), *([kind] if kind is not None else [])]
        info, offered = runtime.info, runtime.request_prefix.offered
        if kind is not None and kind.model and kind.model != info.spec.key:
            info = await self._model_of(kind)
        same = info is runtime.info
        system = list(runtime.request_prefix.system)
        if kind is not None:
            system.append(SystemBlock("system", pictured(kind.prompt), "subagent", f"Subagent type {kind.name}"))
        left_out = runtime.left_out if same else refused_before(parts.store, info)
        if not same:
            every = [tool for tool in self._toolbox.offered(info) if not refused(tool, left_out)]
            every = [] if recalled_rule(parts.store, info).needs("no tools") else every
            offered = fitting_tools(system, every, info.limits.window)
        deepest = depth >= parts.settings.agent.subagent_depth
        offered = _offered(kinds, [o for o in offered if not (deepest and o.schema.name == SUBAGENT)])
        session = await patiently(
            lambda: parent.store.sessions.create(
                parent.info.project, info.spec.key, parent=parent.info.id, kind="subagent"
            )
        )
        session = replace(session, title=f"↳ {task.title}"[:80])
        await patiently(lambda: parent.store.sessions.save(session))
        ref = SubagentRef(session.id, kind.name if kind is not None else GENERAL, plain_line(task.title, 80))
        settings = replace(runtime.settings, agent=replace(runtime.settings.agent, step_limit=STEP_LIMIT))
        own = Runtime(
            conversation=Conversation(parent.store, session),
            provider=runtime.provider,
            counts=runtime.counts,
            settings=settings,
            info=info,
            effort=runtime.effort if same else info.spec.reasoning_effort or "medium",
            request_prefix=build_request_prefix(system, offered),
            calibration=runtime.calibration if same else recalled_calibration(parts.store, info),
            parent=parent,
            agent=ref,
            budget=runtime.budget,
            replay=runtime.replay if same else recalled_rule(parts.store, info),
            left_out=left_out,
            is_followed=lambda: False,
        )
        return Subagent(self._state, self._toolbox, own, kind, kinds, task, depth, self)

    async def _model_of(self, kind: AgentType) -> ModelInfo:
        """The facts of a type's model; those of the session's where it cannot be had, which is told once."""
        parts, now = self._state.parts, self._state.runtime.info
        try:
            info = await facts_of(parts.provider, parts.store, parts.catalogue.find(kind.model))
            problem = info.problem
        except AgentError as error:
            info, problem = now, str(error)
        if not problem:
            return info
        line = f"Subagent type {kind.name} works with {now.spec.key}, not {kind.model}: {problem}"
        if line not in self._told:
            self._told.add(line)
            self._state.events.publish(Notice("warning", one_line(line, 300), "subagent_model"))
        return now


def _offered(kinds: Sequence[AgentType], offered: Sequence[OfferedTool]) -> list[OfferedTool]:
    """The tools that a subagent is told of, where it and those above it are of these types. One that may not have every
    tool is given its own as they are: it can search for none."""
    found = [tool for tool in offered if tool.schema.name not in NOT_OFFERED and _allowed(kinds, tool.schema.name)]
    return [replace(tool, deferred=False) for tool in found] if any(kind.restricted for kind in kinds) else found


def _allowed(kinds: Sequence[AgentType], tool: str) -> bool:
    """Returns whether a subagent may have a tool. What searches and calls deferred ones would reach all of them."""
    held = [kind for kind in kinds if kind.restricted]
    return tool not in ((TODO, SEARCH, CALL) if held else (TODO,)) and all(kind.allows(tool) for kind in held)


class Subagent:
    """A subagent with its task. ``kinds`` are its type and those of the subagents above it: it has no tool that one of
    these may not have."""

    def __init__(
        self,
        state: AgentState,
        toolbox: Toolbox,
        runtime: Runtime,
        kind: AgentType | None,
        kinds: Sequence[AgentType],
        task: Task,
        depth: int,
        starter: Subagents,
    ) -> None:
        self._state = state
        self._toolbox = toolbox
        self.runtime = runtime
        self._kind, self.kinds = kind, kinds
        self.task = task
        self.depth = depth
        self._starter = starter
        self._waited = 0.0

    @property
    def conversation(self) -> Conversation:
        return self.runtime.conversation

    @property
    def type(self) -> str:
        """The name of its type."""
        return GENERAL if self._kind is None else self._kind.name

    def facts(self) -> SubagentFacts:
        """How far it is."""
        steps, usage = self.conversation.steps, self.runtime.usage()
        turns = sum(step.kind == "turn" for step in steps)
        tokens = usage.total + self.runtime.in_flight
        return SubagentFacts(self.type, turns, tokens, usage.window, session_totals(steps).cost)

    async def work(self, emit: Callable[[str], None]) -> ToolOutcome:
        """Does its task to the end; the outcome is its answer."""
        parts, own, child = self._state.parts, self.runtime, self.conversation
        parent = own.parent
        assert parent is not None
        told_mode = ToldMode(parts.permissions, subagent=True, jail=parts.jail)
        compaction = CompactionService(own, parts.counter, self._prepare)
        hooks = self._state.hooks.inside(child.info.id, self.type)
        memory = ToolMemory()
        start = partial(self._starter.run, within=self)

        def context(calls: int = 1) -> ToolContext:
            return replace(
                self._toolbox.context(),
                session_id=child.info.id,
                config=own.tools_config(calls),
                subagent=start,
                user=None,
                memory=memory,
                past=child.past,
                own=AgentEdits(own, compaction),
            )

        runner = ToolRunner(ToolRegistry(self._tools()), context, self._judged, hooks)
        executor = TurnExecutor(own, runner, compaction, teller=told_mode.teller, hooks=hooks)
        message = user_message(self.task.prompt)
        told_mode.teller(child.view())(message)
        ended, stopped = TurnEnded("error"), ""
        with child.store.locks.take(child.info.id):
            try:
                async with aclosing(executor.run(message)) as events:
                    async for event in events:
                        if isinstance(event, ToolStarted):
                            emit(f"{event.summary}\n")
                        elif isinstance(event, StepEnded | CompactionEnded):
                            self._starter.counted()
                        elif isinstance(event, Notice) and event.code == "budget":
                            stopped = event.text
                        elif isinstance(event, TurnEnded):
                            ended = event
            finally:
                parent.save_if_possible()
        return self._outcome(ended, stopped)

    def _tools(self) -> list[Tool]:
        return [tool for tool in self._toolbox.registry.tools() if _allowed(self.kinds, tool.schema.name)]

    async def _prepare(self) -> None:
        await self.runtime.count(sends=True)

    async def _judged(self, call: ToolCallPart, tool: Tool, intent: Intent) -> CallVerdict:
        title = " ".join(pictured(self.task.title).split())[:60]
        asker = f"subagent {'' if self._kind is None else f'{self.type} '}“{title}”"
        verdict = await self._timed(self._starter.judge(call, tool, intent, asker))
        again = verdict.again
        return verdict if again is None else replace(verdict, again=lambda stopped: self._timed(again(stopped)))

    async def _timed(self, verdict: Awaitable[CallVerdict]) -> CallVerdict:
        begun = time.monotonic()
        try:
            return await verdict
        finally:
            self._waited += time.monotonic() - begun

    def _outcome(self, ended: TurnEnded, stopped: str) -> ToolOutcome:
        said = (m.text for m in reversed(self.conversation.path) if m.role == "assistant" and m.text.strip())
        answer, failed = next(said, ""), True
        if ended.failure is not None:
            text = f"The subagent failed: {ended.failure.message}\n{answer}"
        elif stopped:
            # As an error, with the numbers: another subagent would be stopped just so.
            text = f"The subagent was stopped. {stopped}\n\n{answer}"
        else:
            early = f"\n\n(The subagent stopped early: {ended.stop_reason}.)" if ended.stop_reason != "end" else ""
            text, failed = f"{answer}{early}" or "The subagent gave no answer.", not (answer or early)
        return ToolOutcome(text.strip(), is_error=failed, waited=self._waited)


LINES = 200
"""Lines on its tools that are kept for the model to look at."""
SHOWN = 200_000
"""Characters of a transcript that people can look at, the newest."""
RESULT_LINES = 12
"""Lines of a tool's result that it shows."""


class BackgroundSubagent(Work):
    """One that works beside the turns. ``context`` bounds what of its answer the model is told; ``ended`` is called
    when it is no longer at work."""

    kind, letter = "subagent", "a"

    def __init__(self, subagent: Subagent, context: ToolContext, ended: Callable[[], None]) -> None:
        super().__init__(subagent.task.title)
        self._subagent = subagent
        self._context = context
        self._count_down = ended
        self._new: deque[str] = deque(maxlen=LINES)
        self._last = ""
        self._outcome = ToolOutcome("", is_error=True)
        self._task = asyncio.create_task(subagent.work(self._used), name=subagent.task.title)
        self._task.add_done_callback(self._done)

    def _used(self, line: str) -> None:
        self._last = line.strip()
        self._new.append(self._last)

    def _done(self, task: asyncio.Task[ToolOutcome]) -> None:
        if task.cancelled():
            self.stopped_by = self.stopped_by or "the end of the session"
        elif (error := task.exception()) is not None:
            log.error("Subagent %s failed", self.id, exc_info=error)
            why = one_line(str(error), 300) or type(error).__name__
            self._outcome = ToolOutcome(f"The subagent failed: {why}", is_error=True)
        else:
            self._outcome = task.result()
        secrets, config = self._context.secrets, self._context.config
        try:
            text = cap(secrets.mask(self._outcome.text), config.output_limit, self._context.spill_dir, "subagent").text
            self._outcome = replace(self._outcome, text=text)
        except ToolError as error:
            self._outcome = replace(self._outcome, text=str(error))
        finally:  # whoever stops it waits for this
            self._count_down()
            self._end()

    @property
    def info(self) -> JobInfo:
        code = None if self.running else int(self.failed)
        facts = self._subagent.facts()
        return JobInfo(
            self.id,
            self.command,
            self.state,
            self.started,
            0,
            "",
            self._last_line,
            code,
            self._finished,
            agent=facts,
        )

    @property
    def _last_line(self) -> str:
        """What it says now, else the tool that it used last."""
        newest = self._subagent.conversation.path[-1:]
        said = newest[0].text.strip() if newest and newest[0].role == "assistant" else ""
        return one_line(said.rpartition("\n")[2] or self._last, 200)

    @property
    def failed(self) -> bool:
        return not self.running and self.stopped_by is None and self._outcome.is_error

    @property
    def line(self) -> str:
        return f"{self._subagent.type}: {super().line}"

    @property
    def shown(self) -> str:
        return transcript(self._subagent.conversation.path)[-SHOWN:]

    @property
    def news(self) -> str:
        answer = self._outcome.text if not self.running else ""
        return f"{super().news}\n{answer}" if answer else super().news

    def ending(self) -> str:
        facts = self._subagent.facts()
        return f"{'failed' if self.failed else 'done'}, {plural(facts.steps, 'step')}, {money(facts.cost)}"

    def look(self) -> str:
        new = "\n".join(self._new) or "[nothing new]"
        self._new.clear()
        if self.running:
            return f"{new}\n[{self.state_line()}]"
        self.told = True
        return "\n".join(filter(None, [self._outcome.text, f"[{self.state_line()}]"]))

    async def stop(self, by: StoppedBy) -> None:
        """Ends it, with the command that it runs; what it found so far stays in its session."""
        if self.running and self.stopped_by is None:
            self.stopped_by = by
            self._task.cancel()
        await asyncio.wait({self._task})
        await self._over.wait()

    def keep(self, going_on: bool) -> None:
        raise ToolError("A subagent ends with its session; only commands can be kept.")

    async def leave(self) -> bool:
        return False


def transcript(path: Sequence[Message]) -> str:
    """A conversation in short, for people: what was asked and answered, and each tool with the first lines of its
    result."""
    blocks: list[str] = []
    for message in path:
        if (result := message.tool_result) is not None:
            lines = result.text.strip().split("\n")
            more = [f"  … {plural(len(lines) - RESULT_LINES, 'more line')}"] if len(lines) > RESULT_LINES else []
            blocks.append("\n".join([*(f"  {line}" for line in lines[:RESULT_LINES]), *more]))
            continue
        if message.text.strip():
            blocks.append(("# Task\n" if message.role == "user" else "") + message.text.strip())
        blocks += [f"▸ {call.name} {one_line(call.arguments, 200)}" for call in message.tool_calls]
    return "\n\n".join(blocks)


TIMEOUT = 3_600.0
"""Seconds a user's command may run: they can interrupt it."""


async def run_shell(command: str, context: ToolContext, conversation: Conversation, publish: Emit) -> None:
    """Runs ``command`` without asking and outside the sandbox: it is the user's. Its output arrives as events and is
    added to the conversation with it, so the model sees it with the next message. Cancelling ends it; what it said so
    far is kept.

    Raises AgentError when the conversation is read-only or the command cannot be started.
    """
    if conversation.read_only:
        raise AgentError(READ_ONLY)
    command = command.strip()
    if not command:
        raise AgentError("! needs a command, e.g. !git status.")
    call = new_id("shell")
    kept: list[str] = []
    line = " ".join(pictured(command).split())
    publish(ToolStarted(call, OWN_COMMAND, f"! {line if len(line) <= 100 else line[:99] + '…'}"))
    try:
        context = replace(context, emit=lambda text: publish(ToolOutput(call, text)), keep=kept.append)
        text = (await BashTool(own=True).run({"command": command, "timeout": TIMEOUT}, context)).text
    except asyncio.CancelledError:
        text = context.secrets.mask("".join(kept))
        _add(conversation, publish, command, f"{text}\n[interrupted by the user]".lstrip("\n"))
        raise
    except ToolError as error:
        text = context.secrets.mask(str(error))
    _add(conversation, publish, command, text)


def _add(conversation: Conversation, publish: Emit, command: str, text: str) -> None:
    output = AttachmentPart(OWN_OUTPUT, "text/plain", text=text)
    message = user_message(f"!{command}", attachments=[output])
    # The text comes first here: the output belongs to the command.
    message.parts.reverse()
    conversation.append(message)
    publish(MessageAdded(message))
