"""The Agent: the one object the UI, the commands and headless mode talk to. Events go out to subscribers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_tui.config import PermissionMode
from agent_tui.context.project.user_commands import UserCommand
from agent_tui.context.tokens.metrics import TokenCounterMetrics, format_metrics
from agent_tui.engine.about.facts import ProjectFacts
from agent_tui.engine.about.report import Row
from agent_tui.engine.accounts.accounts import Accounts
from agent_tui.engine.accounts.fixed import FixedParts
from agent_tui.engine.binding.binder import Binder
from agent_tui.engine.control.mode import ModeControl
from agent_tui.engine.control.models import ModelControl
from agent_tui.engine.control.sessions import SessionControl
from agent_tui.engine.parts import AgentParts
from agent_tui.engine.project.extensions import ToolRow
from agent_tui.engine.project.permissions import PermissionDesk
from agent_tui.engine.project.toolbox import Toolbox
from agent_tui.engine.project.trusting import Trusting
from agent_tui.engine.running.runner import Runner
from agent_tui.engine.running.turn import Turns
from agent_tui.engine.running.waiting import Waiting
from agent_tui.engine.runtime.runtime import Runtime
from agent_tui.engine.session.conversation import Conversation
from agent_tui.engine.session.sessions import Sessions
from agent_tui.engine.session.storing import patiently
from agent_tui.engine.state.binding import Bindings
from agent_tui.engine.state.hub import Hub
from agent_tui.engine.state.run import RunState, RunStates
from agent_tui.engine.turns.shell import run_shell
from agent_tui.engine.turns.subagent import run_subagent
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import Event, Notice, SessionChanged
from agent_tui.models.messages import AttachmentPart, Message
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec
from agent_tui.models.steps import CompactionRecord, SessionInfo, Step
from agent_tui.providers.catalog.families import images_of
from agent_tui.providers.dialects.image_limits import USUAL, ImageLimits
from agent_tui.tools.base import ToolOutcome
from agent_tui.tools.files.pictures import fit_attachments, needs_fitting


class Agent:
    """A chat with one model in one project. All methods are to be called on the event loop's thread.

    Nothing here raises for what a model, a tool or a provider does: that arrives as events. AgentError is raised
    for what the user asked wrongly (an unknown model, a session that does not exist), and while the first session is
    still opening by what needs one.

    It only delegates. ``states`` is what runs, ``bindings`` the session and the model in force, ``hub`` the subscribers
    and the background; ``fixed`` and ``accounts`` keep the numbers, ``binder`` builds bindings, ``waiting`` and
    ``runner`` hold and run what the user sends, the controls do what is done to a session as a whole.
    """

    def __init__(self, parts: AgentParts) -> None:
        self.parts = parts
        self.settings, self.paths, self.store = parts.settings, parts.paths, parts.store
        self.root, self.cwd = parts.root, parts.cwd
        self._hub = hub = Hub()
        self._states = states = RunStates()
        self._bindings = bindings = Bindings()
        self._sessions = Sessions(parts.store, str(parts.root))
        self._trusting = Trusting(parts.trust, parts.trusted)
        self._mode = ModeControl(hub, bindings, parts.permissions, parts.jail)
        self._desk = PermissionDesk(parts.permissions, hub.publish, parts.jail.ready if parts.jail else None)
        self.toolbox = toolbox = Toolbox(
            parts.settings,
            parts.paths,
            parts.root,
            parts.cwd,
            parts.added_dirs,
            lambda: bindings.current.conversation,
            extra=parts.extra_tools,
            subagent=self._subagent,
            secrets=parts.secrets,
            hidden=parts.permissions.denies_reading,
            jail=parts.jail,
            domain=self._mode.domain,
            images=lambda: self.image_limits,
        )
        workspace = parts.workspace
        self._fixed = FixedParts(hub, bindings, workspace, toolbox, self._trusting)
        self._accounts = Accounts(hub, states, bindings, self._fixed, workspace, parts.counter, parts.settings)
        self._binder = Binder(parts, hub, states, bindings, self._fixed, self._accounts)
        self._waiting = Waiting(hub, bindings)
        turns = Turns(
            hub,
            bindings,
            self._fixed,
            self._accounts,
            self._waiting,
            toolbox,
            self._desk,
            workspace,
            self._binder.prepare_step,
        )
        self._runner = Runner(hub, states, bindings, self._waiting, turns, parts.secrets)
        self._control = SessionControl(
            hub,
            bindings,
            self._sessions,
            self._binder,
            self._accounts,
            self._waiting,
            self._runner,
            toolbox,
            workspace,
        )
        self._models = ModelControl(
            hub, bindings, self._binder, self._accounts, self._runner, parts.catalogue, parts.store
        )
        self._project = ProjectFacts(
            parts, hub, bindings, self._fixed, self._accounts, self._binder, toolbox, self._trusting
        )

    async def _subagent(self, title: str, prompt: str, emit: Callable[[str], None]) -> ToolOutcome:
        return await run_subagent(self.runtime, self.toolbox, self.parts.counter, self._desk.judge, title, prompt, emit)

    async def start(self) -> None:
        """Opens the session and begins to warm up the worker. Raises AgentError when the session cannot be opened."""
        parts = self.parts
        conversation = await patiently(lambda: self._sessions.open_first(parts.resume, parts.session, parts.continue_newest))
        await asyncio.to_thread(parts.workspace.look)
        chosen = parts.model_key is not None or not conversation.info.model
        self._binder.bind(conversation, self._binder.first_model(conversation), chosen=chosen)
        self._states.change(RunState.IDLE)
        self.publish(SessionChanged(self.info, reload=True))
        self._accounts.tell()
        self._hub.spawn(self._binder.warm_up(), "warm-up")
        if parts.extensions is not None:
            parts.extensions.on_failure(
                lambda name, why: self.publish(Notice("warning", f"MCP server {name}: {why}", "mcp"))
            )
        if parts.extra_tools is not None:
            parts.extra_tools.start(self._accounts.tools_changed)
        self._control.tell_read_only()
        self._control.tell_missing()
        self._binder.tell_model_gone()
        for notice in parts.notices:
            self.publish(notice)
        self._mode.tell_reach()
        self._runner.opened()

    def _tell_server_failed(self, name: str, why: str) -> None:
        self.publish(Notice("warning", f"MCP server {name}: {why}", "mcp"))

    async def inspect(self) -> ContextUsage:
        """Opens the session asked for without changing it and says what its next request would cost.

        No MCP server is started: the tools of servers are those of the newest step.
        """
        conversation = self._sessions.open_for_reading(self.parts.resume)
        await asyncio.to_thread(self.parts.workspace.look)
        self._binder.bind(conversation, self._binder.first_model(conversation))
        self._states.change(RunState.LOOKING)
        self._control.tell_missing()
        await self._binder.warm_up()
        newest = next((s for s in reversed(self.steps) if s.kind == "turn" and s.fixed), None)
        if newest is not None:
            self.runtime.prelude.add_servers_of(newest)
        return self.context_usage()

    async def close(self) -> None:
        """Ends what runs, stores what is left and lets the worker go. Raises StoreError, once all is closed, when
        something could not be stored to the last."""
        await self._runner.close()
        await self._hub.close()
        if self.parts.extra_tools is not None:
            await self.parts.extra_tools.close()
        await self.parts.backend.close()
        if self._sessions.is_open:
            await self._waiting.save_rest(self._sessions.current)
        self._sessions.leave()
        if self.parts.jail is not None:
            self.parts.jail.close()
        self.store.close()
        if self._sessions.lost is not None:
            raise self._sessions.lost

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Calls ``callback`` with every event from now on; returns what ends that."""
        return self._hub.subscribe(callback)

    def publish(self, event: Event) -> None:
        """Tells everybody."""
        self._hub.publish(event)

    async def settled(self) -> None:
        """Waits until nothing goes on in the background."""
        await self._hub.settled()

    @property
    def runtime(self) -> Runtime:
        return self._bindings.current.runtime

    @property
    def conversation(self) -> Conversation:
        return self._bindings.current.conversation

    @property
    def info(self) -> SessionInfo:
        return self.conversation.info

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
    def read_only(self) -> bool:
        return self.conversation.read_only

    @property
    def read_only_reason(self) -> str:
        return "open in another window" if self.read_only else ""

    async def clear(self) -> None:
        """Starts a new session; the old one stays and can be resumed."""
        await self._control.clear()

    async def resume(self, session_id: str) -> None:
        """Continues another session; what waits here stays with this one. Raises StoreError when there is none of that
        id."""
        await self._control.resume(session_id)

    async def fork(self, message_id: str | None = None) -> None:
        """Continues in a copy of the session, up to and including ``message_id``."""
        await self._control.fork(message_id)

    async def rewind(self, message_id: str, restore_files: bool = False) -> str:
        """Goes back to before one of the user's messages and returns its text; files too where asked."""
        return await self._control.rewind(message_id, restore_files)

    def rename(self, title: str) -> None:
        """Gives the session a title."""
        self._control.rename(title)

    async def compact(self, focus: str = "") -> None:
        """Compacts now; ``focus`` tells the summary what matters. The outcome arrives as an event."""
        await self._control.compact(focus)

    def compact_preview(self, focus: str = "") -> str:
        """What ``/compact`` would do now, with numbers and without a model call."""
        return self._control.compact_preview(focus)

    async def compact_undo(self) -> None:
        """Takes the newest compaction back. The outcome arrives as an event."""
        await self._control.compact_undo()

    @property
    def busy(self) -> bool:
        """Whether a turn or a compaction runs."""
        return self._states.busy

    @property
    def queue(self) -> list[str]:
        return self._waiting.queue

    @property
    def steering(self) -> list[str]:
        return self._waiting.steering

    @property
    def held(self) -> list[str]:
        """What waited when the session was last left; ``send_waiting`` sends it."""
        return self._waiting.held

    def submit(self, text: str, attachments: Sequence[AttachmentPart] = ()) -> None:
        """Sends a message, or queues it while a turn runs or the session is still opening."""
        self._runner.submit(text, attachments)

    def steer(self, text: str, attachments: Sequence[AttachmentPart] = ()) -> None:
        """A message that goes in before the next step of the running turn."""
        self._runner.steer(text, attachments)

    def send_waiting(self) -> bool:
        """Sends what waits, what waited when the session was last left included; False when nothing does."""
        return self._runner.send_waiting()

    def take_back(self) -> tuple[str, list[AttachmentPart]] | None:
        """Takes the newest message that waits back, with what was attached to it; None when none does."""
        message = self._waiting.take_back()
        if message is None:
            return None
        return message.text, [p for p in message.parts if isinstance(p, AttachmentPart)]

    def unqueue(self) -> str | None:
        """The text alone of the newest message that waits, taken back; None when none does."""
        taken = self.take_back()
        return taken[0] if taken is not None else None

    def interrupt(self) -> bool:
        """Ends the running turn, compaction or wait; queued messages stay. False when nothing runs."""
        return self._runner.interrupt()

    async def join(self) -> None:
        """Waits until no turn runs and nothing that would start one is queued."""
        await self._runner.join()

    def answer_permission(self, request_id: str, allow: bool, pattern: str | None = None, feedback: str = "") -> None:
        """The user's word on a PermissionAsked; ``pattern`` is remembered for the project."""
        self._desk.answer(request_id, allow, pattern, feedback)

    async def shell(self, command: str) -> None:
        """Runs the user's own command; command and output join the conversation."""
        self._runner.need_idle("run a command")
        work = run_shell(command, self.toolbox.context(), self.conversation, self.publish)
        await self._runner.exclusively(work, "run a command")
        self._accounts.recount()

    async def fit_images(self, parts: Sequence[AttachmentPart]) -> tuple[list[AttachmentPart], list[str], list[str]]:
        """Attachments as the model in use takes them: a line for each image that was scaled down, and one for each
        that had to be left out."""
        limits = self.image_limits
        if not needs_fitting(parts, limits):
            return list(parts), [], []
        return await asyncio.to_thread(fit_attachments, parts, limits)

    @property
    def spec(self) -> ModelSpec:
        return self.runtime.info.spec

    @property
    def model_info(self) -> ModelInfo | None:
        """What is known about the model; None until it has been described."""
        return self.runtime.info if self._bindings.opened and self._bindings.current.described else None

    @property
    def image_limits(self) -> ImageLimits:
        """What the model in use takes of images; the usual while the session is still opening."""
        return images_of(self.runtime.info.target) if self._bindings.opened else USUAL

    @property
    def effort(self) -> Effort:
        return self.runtime.effort

    def set_effort(self, effort: Effort) -> None:
        """How much the model thinks, from the next step on; kept with the session."""
        self._models.set_effort(effort)

    def models(self) -> list[ModelSpec]:
        """Configured and detected models, the demo model last."""
        return self._models.all()

    async def describe(self, key: str) -> ModelInfo:
        """What is known about a model. Raises ConfigError for an unknown name."""
        return await self._models.describe(key)

    async def set_model(self, key: str) -> ModelInfo:
        """Talks to another model from the next step on, after compacting with the old one where it must be.

        Raises ConfigError for an unknown name and AgentError while a turn runs.
        """
        return await self._models.switch(key)

    async def forget_limits(self) -> int:
        """Forgets what servers said of models' limits; how many models that was. This session's is described anew.
        Raises StoreError, and AgentError while a turn runs."""
        return await self._models.forget_limits()

    @property
    def metrics(self) -> TokenCounterMetrics:
        return self._accounts.metrics

    @property
    def in_flight(self) -> int:
        """Estimated tokens of the answer that is streaming."""
        return self.runtime.in_flight if self._bindings.opened else 0

    @property
    def pinned(self) -> list[str]:
        return self._fixed.pinned

    def context_usage(self) -> ContextUsage:
        """The calculator's answer for the next request, now."""
        return self._accounts.usage()

    def trigger_total(self) -> int:
        """The very integer the compactor compares with the limit."""
        return self._accounts.usage().total

    async def refresh_context(self) -> bool:
        """Looks whether memory files or pinned files have changed and takes them as they are now; while a turn runs
        pinned files only. True when that changed what the next request is made of; then the numbers are told."""
        return await self._accounts.refresh()

    def recount(self) -> None:
        """Shows the numbers as they are now and counts what has no count yet."""
        self._accounts.recount()

    async def ready(self) -> None:
        """Waits until the model's window and limits are known and everything is counted: the numbers are final."""
        await self._accounts.ready()

    async def count_exact(self) -> int | None:
        """Asks the provider for the exact size of the next request; None where it cannot say, or must not be asked."""
        return await self._accounts.count_exact()

    def context_stats(self) -> str:
        """The token counter's metrics with what they mean, as text."""
        return format_metrics(self.metrics)

    def reset_context_stats(self) -> None:
        self.metrics.reset()

    def pin(self, path: str) -> None:
        """Sends a file with every request, as it is at that time. Raises AgentError when it cannot be read."""
        self._accounts.pin(path)

    def unpin(self, path: str) -> None:
        """Stops sending a pinned file. Raises AgentError when it is not pinned."""
        self._accounts.unpin(path)

    @property
    def branch(self) -> str:
        """The git branch at the start of the session; empty outside a repository."""
        return self.parts.workspace.git.branch

    @property
    def folders(self) -> list[Path]:
        """Where files are read and attached without asking: the project and the folders added to it."""
        return [self.root, *self.parts.added_dirs]

    @property
    def mode(self) -> PermissionMode:
        return self._mode.now

    def set_mode(self, mode: PermissionMode) -> None:
        """Changes the permission mode, at once."""
        self._mode.set(mode)

    @property
    def trusted(self) -> bool:
        return self._trusting.trusted

    def trust(self, sure: bool = False) -> str:
        """Trusts what the project brings along, from now on; ``sure`` is the answer to what was shown first."""
        return self._project.trust(sure)

    def trust_details(self) -> str:
        """What the folder brings along that is new to the user, or differs from what they trusted."""
        return self._trusting.details()

    def permission_rules(self) -> list[Row]:
        """(decision, rule, source) of every rule."""
        return self._project.permission_rules()

    def remove_permission_rule(self, rule: str) -> bool:
        """Forgets a remembered rule; False when there was none. Rules of the configuration are changed there."""
        return self._project.remove_permission_rule(rule)

    def tools(self) -> list[ToolRow]:
        """(name, group, description, tokens, enabled) of every tool."""
        return self._project.tools()

    def user_commands(self) -> list[UserCommand]:
        """The user's and the project's commands, and the prompts of MCP servers."""
        return self._project.user_commands()

    def skills(self) -> list[Row]:
        """(name, description, path) of every skill."""
        return self._project.skills()

    def mcp_servers(self) -> list[Row]:
        """(name, state, detail) of every MCP server."""
        return self._project.mcp_servers()

    async def mcp_reconnect(self, name: str) -> str:
        """Connects an MCP server again; one line on how that went."""
        return await self._project.mcp_reconnect(name)

    def mcp_resources(self) -> list[tuple[str, str]]:
        """(``server:uri``, description) of every MCP resource, as it is named after ``@``."""
        return self._project.mcp_resources()

    async def mcp_attachments(self, text: str) -> tuple[list[AttachmentPart], list[str]]:
        """The MCP resources that ``@server:uri`` words of a message name, and a line for each that failed."""
        return await self._project.mcp_attachments(text)

    async def sandbox_lines(self) -> list[str]:
        """Which sandbox holds, and what each domain means under it."""
        return await self._project.sandbox_lines()

    async def doctor(self) -> list[Row]:
        """Checks of the installation: (ok, warn or fail; what; detail)."""
        return await self._project.doctor()
