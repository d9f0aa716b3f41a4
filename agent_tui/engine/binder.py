"""Binds a session to a model: which one it is, what is known of it, and what the user should know of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from agent_tui.context.accounting.next_input import reserve_problem
from agent_tui.engine.budget import SpendingBudget
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.models import (
    DEMO,
    facts_of,
    recalled_calibration,
    recalled_rule,
    refused_before,
    setting_problem,
    with_learned,
)
from agent_tui.engine.request_prefix import RequestPrefix
from agent_tui.engine.runtime import Runtime
from agent_tui.engine.state import AgentState, Binding, RunState
from agent_tui.errors import AgentError, ConfigError
from agent_tui.models.events import Notice
from agent_tui.models.requests import ModelInfo, ModelSpec
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog import dialect_of, resolve_key, resolve_target, shown_address, variable_base

log = logging.getLogger(__name__)


class Binder:
    """Builds bindings whole, and completes the one in force when the model's facts come."""

    def __init__(self, state: AgentState, context: ContextControl) -> None:
        self._state = state
        self._parts = state.parts
        self._context = context
        self._model_gone: Notice | None = None
        self._budget: SpendingBudget | None = None
        self._told: set[str] = set()
        self._asking: Binding | None = None

    def first_model(self, conversation: Conversation) -> ModelSpec:
        """Returns the model that the first session is continued with: the one asked for, else the session's own, else
        the default. Raises ConfigError for an unknown name."""
        catalogue, key = self._parts.catalogue, self._parts.model_key
        if key is not None:
            return catalogue.find(key)
        return self.model_of(conversation, catalogue.default)

    def model_of(self, conversation: Conversation, instead: Callable[[], ModelSpec]) -> ModelSpec:
        """The session's model, or ``instead`` where it has none or that is gone; the user is told of the latter by
        ``tell_model_gone``. Raises ConfigError where nobody could read that."""
        gone = conversation.info.model
        if not gone:
            return instead()
        newest = next((s for s in reversed(conversation.steps) if s.kind == "turn" and s.model_key == gone), None)
        try:
            named = None if newest is None else f"{newest.provider}/{newest.model}"
            return self._parts.catalogue.served(gone, named) or self._parts.catalogue.find(gone)
        except ConfigError as error:
            if not self._parts.is_chat:
                raise ConfigError(f"The model of this session is gone; choose another with -m. {error}") from error
            log.warning("%s", error)
        spec = instead()
        text = f"{gone} is no longer configured; continuing with {spec.key}. Run /model to change it."
        self._model_gone = Notice("warning", text, "model_gone")
        return spec

    def tell_model_gone(self) -> None:
        notice, self._model_gone = self._model_gone, None
        if notice is not None:
            self._state.events.publish(notice)

    def bind(
        self, conversation: Conversation, spec: ModelSpec, *, chosen: bool = True, info: ModelInfo | None = None
    ) -> None:
        """Puts a session with a model in force; ``info`` are its facts where they are known already. A model that was
        not ``chosen`` becomes the session's with the first message that is sent to it."""
        parts = self._parts
        known = info or with_learned(parts.store, provisional_info(spec))
        stored = conversation.info.state.thinking
        runtime = Runtime(
            conversation=conversation,
            provider=parts.provider,
            counts=self._context.counts,
            settings=parts.settings,
            info=known,
            effort=stored or spec.reasoning_effort or "medium",
            request_prefix=RequestPrefix(),
            calibration=recalled_calibration(parts.store, known),
            replay=recalled_rule(parts.store, known),
            left_out=refused_before(parts.store, known),
            budget=self._budget_of(conversation),
            is_followed=self._state.events.is_followed,
        )
        find, hooks = parts.catalogue.find, self._state.hooks
        service = CompactionService(runtime, parts.counter, self.prepare_step, find, hooks)
        binding = Binding(runtime, service)
        if info is not None:
            binding.describe_as(info)
        self._state.bind(binding)
        self._context.prefix.begin()
        if chosen:
            conversation.bind_model(spec.key)

    def _budget_of(self, conversation: Conversation) -> SpendingBudget:
        """The session's budget, which another model goes on with; one that is opened knows what the run has spent."""
        if self._budget is None or self._budget.conversation is not conversation:
            parts = self._parts
            self._budget = SpendingBudget(conversation, parts.settings.budget, parts.run_budget, self._budget)
        return self._budget

    async def facts_of(self, spec: ModelSpec) -> ModelInfo:
        """Returns what is known about a model, with what its server taught."""
        return await facts_of(self._parts.provider, self._parts.store, spec)

    async def describe(self) -> None:
        """Asks for the model's facts. Where that fails, what the configuration says stands in until the next step."""
        binding = self._state.binding
        runtime, again = binding.runtime, binding.failed
        failed: str | None = None
        try:
            info = await self.facts_of(runtime.info.spec)
        except AgentError as error:
            failed = str(error)
        except Exception as error:
            log.exception("The model could not be described")
            failed = f"No information about {runtime.info.spec.key}: {error}."
        if failed is not None:
            info = replace(runtime.info, problem=failed)
        binding.describe_as(info, failed is not None)
        if self._state.binding is not binding:
            return
        self._context.prefix.refresh()  # which tools are deferred depends on the window
        if not (again and failed is not None):
            self.tell_problems(info)
        self.prepare_backend(info)
        self._context.tell()
        if failed is None:
            self._ask_again_soon(binding)

    async def describe_and_count(self, *, every: bool = False) -> None:
        """All that is to be known of a binding that has just come into force; ``every``: the counts that do not matter
        yet as well."""
        await self.describe()
        await self._context.count(every=every)
        self._context.count_exact_soon()

    async def prepare_step(self) -> None:
        """Before a step the model's facts are known, or asked for again where that failed, and the numbers final."""
        binding = self._state.binding
        await binding.until_described()
        if binding.failed:
            await self.describe()
        else:
            self._ask_again_soon(binding)
        await self._context.prepare_step()

    def _ask_again_soon(self, binding: Binding) -> None:
        """Asks for the model's facts once more, beside what goes on, where its server could say more."""
        if binding.runtime.info.silent and self._asking is not binding:
            self._asking = binding
            self._state.events.spawn(self._ask_again(binding), "facts")

    async def _ask_again(self, binding: Binding) -> None:
        """The server did not answer when it was asked for the model's facts, or was not waited for. A step that begins
        does not wait for it, nor does a turn that runs change its tools for what it says."""
        try:
            info = await self.facts_of(binding.runtime.info.spec)
        except AgentError as error:
            log.info("The server was asked again in vain: %s", error)
            return
        finally:
            self._asking = None
        if info != binding.runtime.info and self._state.binding is binding:
            binding.describe_as(info)
            self._context.tools_changed()
            self.tell_problems(info)
            self._context.tell()

    def tell_problems(self, info: ModelInfo) -> None:
        """Tells the user what they should know of a model whose limits have just become known."""
        if info.problem:
            lacks = resolve_key(info.spec, info.target.provider).missing and self._parts.is_chat
            way = f" /model {info.spec.key} asks for one." if lacks else ""
            self._state.events.publish(Notice("warning", f"{info.problem}{way}", "model_problem"))
        elif info.doubt and info.spec.key not in self._parts.catalogue.accepted:
            self._parts.catalogue.accepted.add(info.spec.key)
            self._state.events.publish(Notice("warning", info.doubt, "model_unlisted"))
        if info.limits.source == "chosen" and info.limits.window:
            text = (
                f"{info.target.model} is not loaded yet: it is asked for with a context of {info.limits.window:,} "
                "tokens, as the server's own default is too small for an agent. context_window of the model changes it."
            )
            self._state.events.publish(Notice("info", text, "context_chosen"))
        unheard = None if info.problem else setting_problem(info)
        if unheard is not None and unheard not in self._told:
            self._told.add(unheard)
            self._state.events.publish(Notice("warning", unheard, "thinking_setting"))
        if info.unreachable and (text := gone_text(info)) not in self._told:
            self._told.add(text)
            self._state.events.publish(Notice("warning", text, "server_gone"))
        if (
            info.tools is False
            and (text := self._no_tools_text(info)) not in self._told
            and not self._went_without_tools()
        ):
            self._told.add(text)
            self._state.events.publish(Notice("warning", text, "no_tools"))
        refused = reserve_problem(info.limits, self._state.runtime.policy())
        if refused is not None:
            self._state.events.publish(Notice("warning", refused, "reserve"))

    def _no_tools_text(self, info: ModelInfo) -> str:
        """What a user is told once of a model that cannot call tools, with what works instead."""
        why = "its provider takes none" if dialect_of(info.target.provider).no_tools else "its chat template has none"
        runs = " A call that it writes as text is run." if self._state.runtime.runs_text_calls else ""
        return (
            f"{info.spec.key} cannot call tools: {why}, so none are sent or counted. It answers from what you send: "
            f"@FILE attaches a file, !COMMAND runs a command and passes its output on.{runs}"
        )

    def _went_without_tools(self) -> bool:
        """Returns whether the session's newest request had no tools either: the user was told then."""
        steps, key = self._state.conversation.steps, self._state.runtime.info.spec.key
        newest = next((step for step in reversed(steps) if step.kind == "turn"), None)
        return newest is not None and newest.model_key == key and not any(part.row == "tools" for part in newest.fixed)

    def prepare_backend(self, info: ModelInfo) -> None:
        """Loads what the session's model needs ahead of its first call; not where the session is only looked at."""
        if self._state.run.now is not RunState.LOOKING and info.problem is None and info.spec.model != DEMO:
            self._state.events.spawn(self._load_backend(info.spec), "prepare")

    async def _load_backend(self, spec: ModelSpec) -> None:
        try:
            await self._parts.backend.prepare(spec)
        except AgentError as error:
            log.warning("%s", error)


def gone_text(info: ModelInfo) -> str:
    """What a user is told where nothing listens at the address of a model's server."""
    dialect = dialect_of(info.target.provider)
    where = shown_address(info.spec.api_base or variable_base(dialect) or dialect.base or "")
    limits = info.limits
    known = "its window is not known"
    if limits.window is not None:
        known = f"its window is shown as {limits.window:,} ({limits.origin})"
    return f"No answer from the server of {info.spec.key} at {where}; {known}."


def provisional_info(spec: ModelSpec) -> ModelInfo:
    """Returns the facts of a model before it has been described: what the configuration says."""
    limits = Limits(spec.context_window, None, spec.max_output, "config" if spec.context_window else "unknown")
    return ModelInfo(spec, resolve_target(spec), limits, Prices())
