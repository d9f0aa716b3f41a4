"""Which session and which model the Agent is bound to, and what is done to the session as a whole."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from agent_tui.config import PermissionMode
from agent_tui.context.cache import ContextCache
from agent_tui.context.policy import reserve_problem
from agent_tui.engine.agent_turns import Turns
from agent_tui.engine.calibration import recalled_ratio
from agent_tui.engine.compaction_service import CompactionService
from agent_tui.engine.models import DEMO
from agent_tui.engine.prelude import Prelude
from agent_tui.engine.runtime import Runtime
from agent_tui.errors import AgentError
from agent_tui.models.events import (
    Event,
    Notice,
    SessionChanged,
)
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.targets import resolve_target

log = logging.getLogger(__name__)

READ_ONLY = "This session is open in another window; here it can only be read. /fork continues a copy."


class SessionControl(Turns):
    """Switches models and sessions, compacts, undoes, rewinds and forks; none of it while a turn runs."""

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
            ratio=recalled_ratio(self.store, info),
            cache=ContextCache(),
        )
        self._compacting = CompactionService(self.runtime, self.parts.counter, self.parts.catalogue.find)
        self._described.clear()
        self._refresh_prelude()
        if not self.read_only and self.conversation.info.model != spec.key:
            self.conversation.info.model = spec.key
            if self.conversation.path:
                self.conversation.save_info()

    def _model_of_session(self) -> ModelSpec:
        try:
            return self.parts.catalogue.find(self.info.model)
        except AgentError as error:
            self.publish(Notice("warning", str(error), "model_gone"))
            return self._runtime.info.spec

    async def _describe(self) -> None:
        runtime = self._runtime
        try:
            info = await self.parts.provider.describe(runtime.info.spec)
        except AgentError as error:
            info = replace(runtime.info, problem=str(error))
        if runtime is not self.runtime or info.spec.key != runtime.info.spec.key:
            return
        runtime.info, runtime.ratio = info, recalled_ratio(self.store, info)
        self._refresh_prelude()  # which tools are deferred depends on the window
        self._described.set()
        self._tell_problems(info)
        self._prepare_backend(info)
        self.publish(self._runtime.changed())

    async def _describe_and_count(self) -> None:
        await self._describe()
        await self._count()

    def _tell_problems(self, info: ModelInfo) -> None:
        """What the user should know of a model whose limits have just become known."""
        if info.problem:
            self.publish(Notice("warning", info.problem, "model_problem"))
        refused = reserve_problem(info.limits, self._runtime.policy())
        if refused is not None:
            self.publish(Notice("warning", refused, "reserve"))

    def _prepare_backend(self, info: ModelInfo) -> None:
        """Loads what the session's model needs ahead of its first call; not where the session is only looked at."""
        if self._started and info.problem is None and info.spec.model != DEMO:
            self._spawn(self._load_backend(info.spec), "prepare")

    async def _load_backend(self, spec: ModelSpec) -> None:
        try:
            await self.parts.backend.prepare(spec)
        except AgentError as error:
            log.warning("%s", error)

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
        self._runtime.info, self._runtime.ratio = info, recalled_ratio(self.store, info)
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
        self.publish(self._runtime.changed())

    @property
    def _compaction(self) -> CompactionService:
        if self._compacting is None:
            raise AgentError("The session is still opening.")
        return self._compacting

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
        told: list[Event] = []
        if self._compaction.undo(told.append):
            # The transcript is built anew first: what the user is told comes below it.
            self.publish(SessionChanged(self.info, reload=True))
        for event in told:
            self.publish(event)
        self.recount()

    def _switched(self) -> None:
        """The current session changed: everything that hangs on it starts anew."""
        self._attach(self._runtime.info.spec if not self.info.model else self._model_of_session())
        self.toolbox.session_changed()
        self.publish(SessionChanged(self.info, reload=True))
        self.publish(self._runtime.changed())
        self._spawn(self._describe_and_count(), "describe")

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


def provisional_info(spec: ModelSpec) -> ModelInfo:
    """What is known of a model before it has been described: what the configuration says."""
    limits = Limits(spec.context_window, None, spec.max_output, "config" if spec.context_window else "unknown")
    return ModelInfo(spec, resolve_target(spec), limits, Prices())
