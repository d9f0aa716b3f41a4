"""Which session and which model the Agent is bound to, and what is done to the session as a whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from agent_tui.config import PermissionMode
from agent_tui.context.accounting.budget import reserve_problem
from agent_tui.context.accounting.reuse import ContextCache
from agent_tui.engine.agent_turns import Turns
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.counts.calibration import recalled_ratio
from agent_tui.engine.models.choices import DEMO
from agent_tui.engine.models.learned import with_learned
from agent_tui.engine.models.reasoning_facts import recalled_rule
from agent_tui.engine.project.prelude import Prelude
from agent_tui.engine.turns.runtime import Runtime
from agent_tui.errors import READ_ONLY, AgentError, ConfigError
from agent_tui.models.events import (
    Event,
    Notice,
    SessionChanged,
)
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec, ReplayRule
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog.families import images_of
from agent_tui.providers.catalog.targets import resolve_target
from agent_tui.providers.dialects.image_limits import not_taken
from agent_tui.store.salvage import lacks
from agent_tui.tools.sandbox.jail import Jail

log = logging.getLogger(__name__)


class SessionControl(Turns):
    """Switches models and sessions, compacts, undoes, rewinds and forks; none of it while a turn runs."""

    def _first_model(self) -> ModelSpec:
        catalogue, key = self.parts.catalogue, self.parts.model_key
        if key is None and self.info.model:
            return self._model_of_session(catalogue.default)
        return catalogue.find(key) if key else catalogue.default()

    def _attach(self, spec: ModelSpec, chosen: bool = True) -> None:
        """Binds the current session to a model whose facts are still to come. One that was not ``chosen`` becomes the
        session's with the first message that is sent to it."""
        info = with_learned(self.store, provisional_info(spec))
        self._prefix.forget()
        self.workspace.adopt(self.conversation.info.state.environment)
        self.runtime = Runtime(
            conversation=self.conversation,
            provider=self.parts.provider,
            counts=self._counts,
            settings=self.settings,
            info=info,
            effort=self.conversation.info.state.thinking or spec.reasoning_effort or "medium",
            prelude=Prelude(),
            ratio=recalled_ratio(self.store, info),
            cache=ContextCache(),
            replay=recalled_rule(self.store, info),
        )
        self._compacting = CompactionService(self.runtime, self.parts.counter, self.parts.catalogue.find)
        self._described.clear()
        self._undescribed = False
        self._refresh_prelude()
        if chosen and not self.read_only and self.conversation.info.model != spec.key:
            self.conversation.info.model = spec.key
            if self.conversation.path:
                self.conversation.save_info()

    def _model_of_session(self, instead: Callable[[], ModelSpec]) -> ModelSpec:
        """The session's model, or ``instead`` where it is gone; the user is told by ``_tell_model_gone``. Raises
        ConfigError where nobody could read that."""
        gone = self.info.model
        try:
            return self.parts.catalogue.find(gone)
        except ConfigError as error:
            if not self.parts.can_fall_back:
                raise ConfigError(f"The model of this session is gone; name another with -m. {error}") from error
            log.warning("%s", error)
        spec = instead()
        text = f"{gone} is not configured any more; continuing with {spec.key}. /model changes it."
        self._model_gone = Notice("warning", text, "model_gone")
        return spec

    def _tell_model_gone(self) -> None:
        if self._model_gone is not None:
            notice, self._model_gone = self._model_gone, None
            self.publish(notice)

    async def _describe(self) -> None:
        """Asks for the model's facts. Where that fails, what the configuration says stands in until the next step."""
        runtime, again = self._runtime, self._undescribed
        failed: str | None = None
        try:
            info = with_learned(self.store, await self.parts.provider.describe(runtime.info.spec))
        except AgentError as error:
            failed = str(error)
        except Exception as error:
            log.exception("The model could not be described")
            failed = f"Nothing is known of {runtime.info.spec.key}: {error}."
        if failed is not None:
            info = replace(runtime.info, problem=failed)
        if runtime is not self.runtime or info.spec.key != runtime.info.spec.key:
            return
        runtime.info, runtime.ratio = info, recalled_ratio(self.store, info)
        self._refresh_prelude()  # which tools are deferred depends on the window
        self._undescribed = failed is not None
        self._described.set()
        if not (again and failed is not None):
            self._tell_problems(info)
        self._prepare_backend(info)
        self.publish(self._runtime.changed())

    async def _prepare_step(self) -> None:
        """Before a step, the model's facts are asked for again where that failed."""
        await self._described.wait()
        if self._undescribed:
            await self._describe()
        await super()._prepare_step()

    async def _describe_and_count(self) -> None:
        await self._describe()
        await self._count()
        self._count_exact_soon()

    def _tell_problems(self, info: ModelInfo) -> None:
        """What the user should know of a model whose limits have just become known."""
        if info.problem:
            self.publish(Notice("warning", info.problem, "model_problem"))
        if info.limits.source == "chosen" and info.limits.window:
            text = (
                f"{info.target.model} is not loaded yet: it is asked for with a context of {info.limits.window:,} "
                "tokens, as the server's own default is too small for an agent. context_window of the model changes it."
            )
            self.publish(Notice("info", text, "context_chosen"))
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
        return with_learned(self.store, await self.parts.provider.describe(self.parts.catalogue.find(key)))

    async def set_model(self, key: str) -> ModelInfo:
        """Talks to another model from the next step on, after compacting with the old one where it must be.

        Raises ConfigError for an unknown name and AgentError while a turn runs.
        """
        spec = self.parts.catalogue.find(key)
        self._need_idle("switch the model")
        info = await self._exclusive(self._switch_model(spec), "switch the model")
        if info is None:
            raise AgentError(f"Interrupted; the session goes on with {self.spec.key}.")
        return info

    async def _switch_model(self, spec: ModelSpec) -> ModelInfo:
        info = with_learned(self.store, await self.parts.provider.describe(spec))
        if self.conversation.path and not self.read_only and self._described.is_set():
            await self._compaction.before_switch(info, self.publish, self._prepare_step)
        self._attach(spec)
        self._runtime.info, self._runtime.ratio = info, recalled_ratio(self.store, info)
        self._refresh_prelude()
        self._described.set()
        self._tell_problems(info)
        self._tell_images(info)
        self._prepare_backend(info)
        self.publish(SessionChanged(self.info))
        self.metrics.recalculation()
        self.recount()
        self._count_exact_soon()
        return info

    def _tell_images(self, info: ModelInfo) -> None:
        """Images of the session that the model just chosen does not take."""
        count = not_taken(self.conversation.view(), images_of(info.target)) if info.images is not False else 0
        if count:
            what = "1 image of this session is" if count == 1 else f"{count} images of this session are"
            line = f"{what} more than {info.spec.key} takes; it gets a line in the place of each."
            self.publish(Notice("info", line, "images"))

    async def forget_limits(self) -> int:
        """Forgets what servers said of models' limits; how many models that was. This session's is described anew.
        Raises StoreError, and AgentError while a turn runs."""
        self._need_idle("forget limits")
        count = self.store.forget_learned_limits()
        self.store.forget_replay_facts()
        if self.runtime is not None:
            self.runtime.replay = ReplayRule()
        if count and self.runtime is not None:
            await self._describe()
            self.recount()
        return count

    def set_mode(self, mode: PermissionMode) -> None:
        """Changes the permission mode, at once."""
        self.desk.permissions.mode = mode
        self.publish(SessionChanged(self.info))
        self._tell_reach()

    def _tell_reach(self) -> None:
        """Says what the permission mode means where no sandbox holds, once that is known."""
        if self.mode == "auto" and self.parts.jail is not None:
            self._spawn(self._tell_unheld(self.parts.jail), "sandbox")

    async def _tell_unheld(self, jail: Jail) -> None:
        from agent_tui.tools.sandbox.words import unheld

        line = unheld(self.mode, await jail.ready())
        if line:
            self.publish(Notice("warning", line, "unheld"))

    def set_effort(self, effort: Effort) -> None:
        """How much the model thinks, from the next step on; kept with the session."""
        self._runtime.effort = effort
        self.conversation.set_state(replace(self.info.state, thinking=effort))
        self.publish(SessionChanged(self.info))
        self.publish(self._runtime.changed())

    @property
    def _compaction(self) -> CompactionService:
        if self._compacting is None:
            raise AgentError("The session is still opening.")
        return self._compacting

    async def compact(self, focus: str = "") -> None:
        """Compacts now; ``focus`` tells the summary what matters. The outcome arrives as an event."""
        await self._exclusive(self._compact(focus), "compact")

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
            self.metrics.recalculation()
        for event in told:
            self.publish(event)
        self.recount()

    def _switched(self) -> None:
        """The current session changed: everything that hangs on it starts anew."""
        current = self._runtime.info.spec
        spec = self._model_of_session(lambda: current) if self.info.model else current
        self._attach(spec, chosen=not self.info.model)
        self.toolbox.session_changed()
        self.publish(SessionChanged(self.info, reload=True))
        self.publish(self._runtime.changed())
        self._tell_model_gone()
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
        """Continues another session; what waits here stays with this one. Raises StoreError when there is none of that
        id."""
        self._need_idle("resume a session")
        await asyncio.to_thread(self.workspace.look)
        self._need_idle("resume a session")
        before = self.conversation
        self.sessions.open(session_id)
        changed = self.conversation is not before
        if changed:
            self._inbox.become(self.conversation.waiting)
            self._queue_changed()
        self._switched()
        if self.read_only:
            self.publish(Notice("warning", READ_ONLY, "read_only"))
        self._tell_missing()
        if changed:
            self._tell_waiting()

    def _tell_missing(self) -> None:
        """What of a damaged session could not be read."""
        conversation = self.conversation
        if conversation.missing:
            where = f"agent-tui sessions repair {conversation.info.id}"
            text = f"This session is damaged; it lacks {lacks(conversation.missing)}. `{where}` makes a sound copy."
            self.publish(Notice("warning", text, "damaged"))

    def _tell_waiting(self) -> None:
        """What was typed and not sent when the session was last left."""
        count = len(self.held)
        if count:
            waits = "1 message waits" if count == 1 else f"{count} messages wait"
            sends = "it" if count == 1 else "them"
            text = f"{waits} from when this session was left: Enter on an empty prompt sends {sends}, ↑ takes back."
            self.publish(Notice("info", text, "waiting"))
            self._queue_changed()

    def rename(self, title: str) -> None:
        self.conversation.rename(" ".join(title.split()))
        self.publish(SessionChanged(self.info))

    async def rewind(self, message_id: str, restore_files: bool = False) -> str:
        """Goes back to before one of the user's messages and returns its text; files too where asked."""
        text = await self._exclusive(self._rewind(message_id, restore_files), "rewind")
        if text is None:
            raise AgentError("Interrupted: not every file is as it was then.")
        return text

    async def _rewind(self, message_id: str, restore_files: bool) -> str:
        position = next((i for i, m in enumerate(self.messages) if m.id == message_id), None)
        after = [m.id for m in self.messages[position:]] if position is not None else []
        message = self.sessions.rewind(message_id)
        if restore_files:
            for line in await self.toolbox.restore_files(after):
                self.publish(Notice("info", line, "restored"))
        self.publish(SessionChanged(self.info, reload=True))
        self.metrics.recalculation()
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
