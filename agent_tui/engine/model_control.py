"""Controls of a session: which model it talks to, how much that thinks, and what it may do without a question."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agent_tui.config import PermissionMode
from agent_tui.context.accounting.lost import LostReasoning, lost_reasoning
from agent_tui.engine.binder import Binder
from agent_tui.engine.calls import next_call
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.model_list import ModelList
from agent_tui.engine.models import EffortChoice, levels
from agent_tui.engine.runner import Runner
from agent_tui.engine.state import AgentState
from agent_tui.errors import AgentError, ConfigError
from agent_tui.models.events import Notice, SessionChanged
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec, ReplayRule
from agent_tui.providers.catalog import (
    Called,
    Key,
    dialect_of,
    images_of,
    key_variable,
    missing_key_line,
    resolve_key,
    resolve_target,
    variable_base,
)
from agent_tui.providers.images import not_taken
from agent_tui.providers.keys import pasted_key
from agent_tui.providers.listing import listed_models, unlisted
from agent_tui.records import dataclass
from agent_tui.text.numbers import plural
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain, domain_for

UNKEPT = "It is used until you quit."
"""Said of a key that is kept nowhere."""


@dataclass(slots=True, frozen=True)
class MissingKey:
    """A key that a model needs: whose it is, and the environment variable that may hold it."""

    owner: str
    variable: str


class ModelControl:
    """Switches models, none of it while a turn runs, and forgets what their servers taught."""

    def __init__(self, state: AgentState, binder: Binder, context: ContextControl, runner: Runner) -> None:
        self._state = state
        self._binder = binder
        self._context = context
        self._runner = runner
        self._catalogue = catalogue = state.parts.catalogue
        self.list = ModelList(
            catalogue.configured,
            catalogue.near,
            catalogue.has_given,
            kept=state.keys.places,
            current=lambda: self.spec if state.opened else None,
        )
        """What there is to choose from."""

    @property
    def spec(self) -> ModelSpec:
        """The model in use."""
        return self._state.runtime.info.spec

    @property
    def info(self) -> ModelInfo | None:
        """The facts known of the model; None until it has been described."""
        binding = self._state.binding if self._state.opened else None
        return binding.runtime.info if binding is not None and binding.described else None

    @property
    def effort(self) -> Effort:
        """The level of the model's thinking, from the user's next message on."""
        return self._state.runtime.wanted_effort

    async def until_described(self) -> None:
        """Waits until the model's facts have come, or could not be had."""
        await self._state.binding.until_described()

    def all(self) -> list[ModelSpec]:
        """Configured and detected models, the demo model last."""
        return self._catalogue.all()

    async def look(self) -> None:
        """Finds what there is to choose from: on the list, with a kept key, on this machine; at most some seconds."""
        from agent_tui.providers.local_servers import served_models

        served, _ = await asyncio.gather(served_models(), self.list.look())
        self._catalogue.add_detected([spec for specs in served.values() for spec in specs])

    async def named(self, name: str) -> bool:
        """Says whether a model is meant by a name for certain: False where others are more likely, or the list should
        have it and does not, unless the user knows that. Raises ConfigError for one that no model can have and that is
        like no other."""
        if any(spec.key == name for spec in self.all()):
            return True
        await asyncio.to_thread(listed_models)
        try:
            spec = self._catalogue.find(name)
        except ConfigError:
            await self.look()
            if self.list.search(name):
                return False
            raise
        return spec.key in self._catalogue.accepted or not unlisted(spec.model, spec.api_base)

    def accept(self, name: str) -> None:
        """The user wants a model that the list does not have."""
        self._catalogue.accepted.add(name)

    async def missing_key(self, name: str) -> MissingKey | None:
        """The key that a model lacks; None where it lacks none. Raises ConfigError for an unknown name."""
        spec = self._catalogue.find(name)
        variable, provider = (await self.key_of(spec)).missing, resolve_target(spec).provider
        return None if variable is None else MissingKey(Called(provider, spec.api_base).name, variable)

    async def key_of(self, spec: ModelSpec) -> Key:
        """The key that the model's server is sent."""
        return resolve_key(await self._catalogue.with_key(spec), resolve_target(spec).provider)

    async def describe(self, key: str) -> ModelInfo:
        """Returns what is known about a model. Raises ConfigError for an unknown name."""
        return await self._binder.facts_of(self._catalogue.find(key))

    async def switch(self, key: str) -> tuple[ModelInfo, LostReasoning | None]:
        """Talks to another model from the next step on, after compacting with the old one where it must be. The
        reasoning that is no longer sent then comes with the model's facts.

        Raises ConfigError for an unknown name and AgentError while a turn runs.
        """
        spec = self._catalogue.find(key)
        self._runner.need_idle("switch the model")
        switched = await self._runner.exclusively(self._switch(spec), "switch the model")
        if switched is None:
            raise AgentError(f"Interrupted; the session stays on {self._state.runtime.info.spec.key}.")
        return switched

    async def give_key(self, spec: ModelSpec, typed: str, *, keep: bool = True, check: bool = True) -> str:
        """Calls the model's server with this key from its next binding on, once the server was asked whether it takes
        it (``check``), and keeps it where keys are kept (``keep``) if it is the provider's own. Returns what was said
        of it, and where it is. Raises ConfigError for what is no key, and for one that is refused."""
        from agent_tui.providers.key_check import check_key

        provider = resolve_target(spec).provider
        dialect, called = dialect_of(provider), Called(provider, spec.api_base or variable_base(dialect_of(provider)))
        key = pasted_key(typed, provider, elsewhere=called.own)
        self._state.parts.secrets.add(key)
        said = ["The key was not checked."]
        if check:
            found = await check_key(spec, key)
            if found.result == "refused":
                raise ConfigError(f"{found.words} Nothing was stored.")
            said = [found.words]
        if Called(provider, spec.api_base).own or (spec.api_key_env and spec.api_key_env not in dialect.keys):
            keep, variable = False, spec.api_key_env or "a variable, and name that in api_key_env of the model"
        else:
            variable = dialect.key_name
        said.append(await self._keep(provider, key) if keep else f"{UNKEPT} To keep it, set {variable}.")
        self._catalogue.use_key(spec, key)
        return " ".join(said)

    async def _keep(self, provider: str, key: str) -> str:
        try:
            where = await self._state.keys.put(provider, key)
        except AgentError as error:
            return f"{UNKEPT} {error}"
        wins = key_variable(provider)
        also = f" {wins} is also set and takes precedence at the next start." if wins else ""
        return f"It is kept in {where}.{also}"

    async def take_key(self, name: str, typed: str, *, keep: bool = True) -> str:
        """The same for a model by its name; where it is not to be kept, nothing is waited for."""
        return await self.give_key(self._catalogue.find(name), typed, keep=keep, check=keep)

    async def key_problem(self) -> str | None:
        """Says that the model in use has no key, and what to do; None where it has one, or needs none."""
        spec, key = self.spec, await self.key_of(self.spec)
        return None if key.missing is None else missing_key_line(spec, resolve_target(spec).provider, key.missing)

    @property
    def known_keys(self) -> frozenset[str]:
        """The user's keys that stand in no variable, as far as they were used."""
        return self._state.parts.secrets.known()

    def lost_by(self, info: ModelInfo) -> LostReasoning | None:
        """The reasoning that would no longer be sent if this model went on."""
        now = self._state.runtime.inputs()
        return lost_reasoning(now, replace(now, model=info))

    async def _switch(self, spec: ModelSpec) -> tuple[ModelInfo, LostReasoning | None]:
        info = await self._binder.facts_of(spec)
        old = self._state.binding
        conversation = old.conversation
        before = old.runtime.inputs().as_now()
        if conversation.path and not conversation.read_only and old.described:
            await old.compaction.before_switch(info, self._state.events.publish)
        self._binder.bind(conversation, spec, info=info)
        self._binder.tell_problems(info)
        self._tell_images(info)
        self._binder.prepare_backend(info)
        self._state.events.publish(SessionChanged(conversation.info))
        self._context.metrics.recalculation()
        self._context.recount()
        self._context.count_exact_soon()
        return info, lost_reasoning(before, self._state.runtime.inputs())

    def _tell_images(self, info: ModelInfo) -> None:
        """Images of the session that the model just chosen does not take."""
        view = self._state.conversation.view()
        count = not_taken(view, images_of(info.target)) if info.images is not False else 0
        if count:
            line = f"This session has {plural(count, 'image')} that {info.spec.key} cannot take; lines replace them."
            self._state.events.publish(Notice("info", line, "images"))

    async def forget_limits(self) -> int:
        """Forgets what servers taught of models; how many models that was. This session's is described anew.
        Raises StoreError, and AgentError while a turn runs."""
        self._runner.need_idle("forget limits", looking=True)
        count = self._state.parts.store.learned.forget_all()
        self._state.runtime.send_as(replay=ReplayRule(), left_out=frozenset())
        if count:
            await self._binder.describe()
            self._context.recount()
        return count

    def set_effort(self, effort: Effort) -> LostReasoning | None:
        """Sets how much the model thinks, from the user's next message on; kept with the session. Returns the reasoning
        that is no longer sent then."""
        binding = self._state.binding
        before = replace(binding.runtime.inputs(), effort=binding.runtime.wanted_effort)
        binding.runtime.think(effort, in_turn=self._state.run.in_turn)
        binding.conversation.set_state(replace(binding.conversation.info.state, thinking=effort))
        self._state.events.publish(SessionChanged(binding.conversation.info))
        self._context.tell()
        return lost_reasoning(before, replace(binding.runtime.inputs(), effort=effort))

    def levels(self) -> list[EffortChoice]:
        """The levels of thinking that the model has, as far as its facts are known."""
        runtime = self._state.runtime
        return levels(next_call(runtime, runtime.usage()).request, runtime.info, runtime.wanted_effort)


class ModeControl:
    """Reads and changes the mode that the permissions judge by."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._permissions = state.parts.permissions
        self._jail = state.parts.jail

    @property
    def now(self) -> PermissionMode:
        return self._permissions.mode

    def domain(self) -> Domain:
        """Returns the domain that commands are held to that run without a question and of which nothing else is said.
        What a rule allows in ``ask`` is meant to work."""
        return "work" if self.now == "ask" else domain_for(self.now)

    def set(self, mode: PermissionMode) -> None:
        """Changes the permission mode, at once."""
        self._permissions.change_mode(mode)
        self._state.events.publish(SessionChanged(self._state.conversation.info))
        self.tell_reach()

    def tell_reach(self) -> None:
        """Says what the mode means: of ``bypass`` at once, of ``auto`` where no sandbox holds, once that is known."""
        if self.now == "bypass":
            from agent_tui.tools.sandbox.words import BYPASS

            self._state.events.publish(Notice("warning", BYPASS, "unheld"))
        elif self.now == "auto" and self._jail is not None:
            self._state.events.spawn(self._tell_unheld(self._jail), "sandbox")

    async def _tell_unheld(self, jail: Jail) -> None:
        from agent_tui.tools.sandbox.words import unheld

        line = unheld(self.now, await jail.ready())
        if line:
            self._state.events.publish(Notice("warning", line, "unheld"))
