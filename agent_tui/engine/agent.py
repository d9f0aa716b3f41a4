"""The Agent: one chat with one model in one project, and the parts that the screen, commands and headless mode use."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from agent_tui.engine.about import Project
from agent_tui.engine.binder import Binder
from agent_tui.engine.budget import SpendingBudget
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.conversation import Conversation, patiently
from agent_tui.engine.draft import Drafting
from agent_tui.engine.edits import Edits
from agent_tui.engine.extensions import Trusting
from agent_tui.engine.handoff import Handoff
from agent_tui.engine.model_control import ModeControl, ModelControl
from agent_tui.engine.pins import Pins
from agent_tui.engine.questions import CallVerdict, PermissionDesk, QuestionDesk
from agent_tui.engine.runner import Runner, TurnRelay
from agent_tui.engine.runtime import Runtime
from agent_tui.engine.servers import ServerDesk
from agent_tui.engine.session_control import BranchControl, CompactionControl, SessionControl
from agent_tui.engine.state import AgentParts, AgentState, RunState
from agent_tui.engine.stops import Stops
from agent_tui.engine.toolbox import Background, Toolbox
from agent_tui.engine.turns.subagent import Subagents, run_shell
from agent_tui.engine.turns.toolrunner import ToolRunner
from agent_tui.engine.waiting import Waiting
from agent_tui.errors import AgentError, StoreDamagedError, StoreError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import Event, Notice, SessionChanged
from agent_tui.models.messages import Message, ToolCallPart
from agent_tui.store.backup import back_up_daily
from agent_tui.text.clean import one_line
from agent_tui.tools.base import Intent, Task, Tool, ToolOutcome

if TYPE_CHECKING:
    from agent_tui.tools.hooks import Hook
    from agent_tui.tools.mcp.client import Carry
    from agent_tui.tools.mcp.manager import McpManager
    from agent_tui.tools.starter import Ran

log = logging.getLogger(__name__)

BACKUP_AFTER = 20.0
"""Seconds after the start at which the backup of the day is made: neither a start nor a short run waits for it."""


class Agent:
    """A chat with one model in one project. All methods are to be called on the event loop's thread.

    Nothing here raises for what a model, a tool or a provider does: that arrives as events. AgentError is raised
    for what the user asked wrongly (an unknown model, a session that does not exist), and while the first session is
    still opening by what needs one.

    What is done with it is done with its parts, each of which knows only those that are made before it.
    """

    def __init__(self, parts: AgentParts) -> None:
        self.parts = parts
        self.settings, self.paths, self.store = parts.settings, parts.paths, parts.store
        self.root, self.cwd = parts.root, parts.cwd
        self._state = state = AgentState(parts)
        self._backup: asyncio.TimerHandle | None = None
        self.events = events = state.events
        """Who hears what happens, and what goes on in the background."""
        self.background = Background(events)
        """The commands and subagents that run beside the turns."""
        trusting = Trusting(parts.trust)
        self.mode = ModeControl(state)
        self.permissions = PermissionDesk(parts.permissions, events.publish, parts.jail.ready if parts.jail else None)
        """Asks whether a tool call may run."""
        self.questions = QuestionDesk(parts.permissions, events.publish, self.mode.set)
        """What tools ask the user: plans to approve, questions with choices."""
        self.toolbox = Toolbox(state, self.background.jobs, self.questions, self.mode.domain, self._subagent)
        self.servers = ServerDesk(state)
        """What MCP servers ask the user."""
        self.context = context = ContextControl(state, self.toolbox, trusting)
        """What the next request is made of, and its numbers."""
        jobs, judge = self.background.jobs, self.permissions.judge
        self._subagents = Subagents(state, self.toolbox, jobs, judge, context.tell)
        self._binder = binder = Binder(state, context)
        self.waiting = Waiting(state)
        """What the user wrote that has no answer on its way."""
        relay = TurnRelay(state, context, self.waiting, self.toolbox, self.permissions, self.background)
        self.turns = Runner(state, context, self.waiting, relay)
        self.draft = Drafting(state, context, self.waiting, relay)
        """How much what is written and not sent yet will take."""
        self.sessions = SessionControl(state, binder, context, self.waiting, self.turns, self.toolbox, self.background)
        self.handoff = Handoff(state, context, self.turns, self.sessions)
        self.compaction = CompactionControl(state, context, self.turns)
        self.branches = BranchControl(state, context, self.turns, self.toolbox)
        self.models = ModelControl(state, binder, context, self.turns)
        self.project = Project(state, context, binder, self.toolbox, trusting)
        self.pins = Pins(state, context)
        self.edits = Edits(state, context, self.turns)
        """What of the conversation the user takes out of what is sent, and back in."""
        self.stops = Stops(state, context, self.turns, self.models, self.edits, self.compaction)
        """What the user can change where a turn stopped, so that it goes on."""

    @property
    def opened(self) -> bool:
        """True when there is a session: not before ``start`` has opened one."""
        return self._state.opened

    @property
    def conversation(self) -> Conversation:
        """The session in front."""
        return self._state.conversation

    @property
    def runtime(self) -> Runtime:
        """The runtime of the session in front: what its next request is made with."""
        return self._state.runtime

    @property
    def budget(self) -> SpendingBudget:
        """The budget of the session in front: what may be spent in it."""
        budget = self.runtime.budget
        assert budget is not None, "every session of an agent has its budget"
        return budget

    def subscribe(self, callback: Callable[[Event], None], *, numbers: bool = True) -> Callable[[], None]:
        """Calls ``callback`` with every event from now on; returns what ends that. Where nobody asks for ``numbers``
        there is no ``ContextChanged``, and nothing is calculated for it."""
        return self.events.subscribe(callback, numbers=numbers)

    def bring_hooks(self, hooks: Sequence[Hook]) -> None:
        """Runs these hooks too from now on: those of the program that drives the run."""
        self._state.hooks.bring(hooks)

    def carry_to_servers(self, carry: Carry) -> None:
        """``carry`` brings messages to the MCP servers inside the program that drives the run."""
        if self.parts.extensions is not None:
            self.parts.extensions.mcp.carried_by(carry)

    async def start(self) -> None:
        """Opens the session and has the model described; nothing begins where it was closed meanwhile. Raises
        AgentError when the session cannot be opened."""
        parts = self.parts
        conversation = await patiently(
            lambda: self.sessions.opened.open_first(parts.resume, parts.session, parts.continue_newest)
        )
        await asyncio.to_thread(parts.workspace.look)
        if self._state.run.now is RunState.CLOSING:
            return
        parts.permissions.reach.load(conversation.info.state, first=True)
        chosen = parts.model_key is not None or not conversation.info.model
        self._binder.bind(conversation, self._binder.first_model(conversation), chosen=chosen)
        self._state.run.change(RunState.IDLE)
        self.events.publish(SessionChanged(conversation.info, reload=True))
        self.context.tell()
        self.events.spawn(self._binder.describe_and_count(), "warm-up")
        if parts.extensions is not None:
            parts.extensions.mcp.answers_by(self.servers.reply)
            parts.extensions.mcp.on_failure(
                lambda name, why: self.events.publish(Notice("warning", f"MCP server {name}: {why}", "mcp"))
            )
            parts.extensions.run_commands_with(self._output_of)
        if parts.extra_tools is not None:
            parts.extra_tools.start(self.context.tools_changed)
        if parts.extensions is not None:
            self.events.spawn(self._tell_idle_rules(parts.extensions.mcp), "rules")
        self._tell_of_database()
        if parts.store.folder is None:
            loop = asyncio.get_running_loop()
            self._backup = loop.call_later(BACKUP_AFTER, lambda: self.events.spawn(self._back_up(), "backup"))
        self.sessions.tell_standing()
        self._binder.tell_model_gone()
        for notice in parts.notices:
            self.events.publish(notice)
        self.mode.tell_reach()
        self._state.hooks.begin("resume" if conversation.path else "startup")
        self.turns.opened()

    def _tell_of_database(self) -> None:
        if self.parts.store.notice is not None:
            self.events.publish(Notice("warning", self.parts.store.notice, "database"))

    async def _back_up(self) -> None:
        """Makes the backup of the day; the user hears where the database is found to be damaged."""
        try:
            await asyncio.to_thread(back_up_daily, self.parts.store.file)
        except StoreDamagedError as error:
            self.events.publish(Notice("warning", str(error), "database"))
        except StoreError as error:
            log.warning("No backup: %s", error)

    async def _tell_idle_rules(self, mcp: McpManager) -> None:
        """Says which rules are about no MCP server that there is, or no tool of one that is connected."""
        rules = self.parts.permissions.rules
        told = rules.idle(mcp.known_tools())
        self._tell_rules("warning", told)
        await mcp.settled()
        known = mcp.known_tools()
        self._tell_rules("warning", [line for line in rules.idle(known) if line not in told])
        self._tell_rules("info", rules.waiting([name for name, tools in known.items() if tools is None]))

    def _tell_rules(self, level: Literal["info", "warning"], lines: Iterable[str]) -> None:
        for line in lines:
            said = one_line(line, 300)
            self.events.publish(Notice(level, f"Permissions: {said}{'' if said.endswith('?') else '.'}", "rules"))

    async def inspect(self, *, editing: bool = False) -> ContextUsage:
        """Opens the session asked for without changing it, or ``editing`` what of it is sent, and returns what its next
        request would cost.

        No MCP server is started: what they offer is what they offered when they were last seen; where that is not
        known, their tools are those of the newest step.
        """
        opened, resume = self.sessions.opened, self.parts.resume
        conversation = (
            opened.open_first(resume, None, True, talks=False) if editing else opened.open_for_reading(resume)
        )
        await asyncio.to_thread(self.parts.workspace.look)
        known = self.parts.extra_tools is not None and self.parts.extra_tools.recall()
        self._binder.bind(conversation, self._binder.first_model(conversation))
        self._state.run.change(RunState.IDLE if editing else RunState.LOOKING)
        self._tell_of_database()
        await self._binder.describe_and_count(every=True)
        newest = next((s for s in reversed(conversation.steps) if s.kind == "turn" and s.fixed), None)
        if newest is not None and not known:
            self.runtime.request_prefix.add_servers_of(newest)
        else:
            await self.context.count_nearby()
        return self.context.usage()

    async def close(self) -> None:
        """Ends what runs, stores what is left and lets go of the models. Raises StoreError, once all is closed, when
        something could not be stored to the last."""
        parts, opened = self.parts, self.sessions.opened
        if self._backup is not None:
            self._backup.cancel()
        await self.turns.close()
        if self.opened:
            await self._state.binding.compaction.close()
            await self._state.hooks.end("prompt_input_exit" if parts.is_chat else "other")
        await self.background.jobs.close()
        await self.events.close()
        if parts.extra_tools is not None:
            await parts.extra_tools.close()
        await parts.backend.close()
        if self.opened:
            await self.waiting.save_rest(self.conversation)
        opened.leave()
        if parts.jail is not None:
            parts.jail.close()
        parts.store.close()
        if opened.lost is not None:
            raise opened.lost

    async def run_beside(self, line: str, told: bytes, seconds: float) -> Ran:
        """Runs a line of shell of the user's configuration, with all that their own commands have."""
        return await self._state.starter.run(line, told, self.cwd, self._state.environment(True), seconds)

    async def shell(self, command: str) -> None:
        """Runs the user's own command; command and output join the conversation."""
        self.turns.need_idle("run a command")
        work = run_shell(command, self.toolbox.context(), self.conversation, self.events.publish)
        await self.turns.exclusively(work, "run a command")
        self.context.recount()

    async def _output_of(self, command: str) -> str:
        """What a command says that stands in a slash command; it is judged as if the model had asked for it. Raises
        AgentError where it may not run."""
        verdicts: list[CallVerdict] = []

        async def judge(call: ToolCallPart, tool: Tool, intent: Intent) -> CallVerdict:
            verdicts.append(await self.permissions.judge(call, tool, intent))
            return verdicts[-1]

        results: list[Message] = []
        call = ToolCallPart("", "bash", json.dumps({"command": command}))  # no model can be told what to do instead
        runner = ToolRunner(self.toolbox.registry, self.toolbox.context, judge)
        await runner.run([call], lambda event: None, results.append)
        if not verdicts or not verdicts[-1].allowed:
            raise AgentError(f"Not sent: `{one_line(command, 80)}` in it may not run.")
        part = results[0].tool_result
        return part.text if part is not None else ""

    async def _subagent(self, task: Task, emit: Callable[[str], None]) -> ToolOutcome:
        return await self._subagents.run(task, emit)
