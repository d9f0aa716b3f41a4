"""Models: which there are, by what names and keys, how much each can think, and what their servers taught."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import get_args

from agent_tui.config import ModelConfig, Settings
from agent_tui.context.accounting.reports import relearned, verified_growth
from agent_tui.context.tokens import family_of
from agent_tui.engine.accepted import NEAR, stated_window, with_taught
from agent_tui.engine.last_facts import with_last_facts
from agent_tui.errors import ConfigError, StoreError
from agent_tui.models.calibration import Calibration, usable
from agent_tui.models.failure import Adaptation, Overflow
from agent_tui.models.requests import Effort, ModelInfo, ModelRequest, ModelSpec, Provider, ReplayRule
from agent_tui.models.steps import Step
from agent_tui.models.usage import LearnedLimit
from agent_tui.providers.catalog import cache_problem, dialect_of, needs_no_key, resolve_target
from agent_tui.providers.dialects.shared import Thinking
from agent_tui.providers.listing import full_name, unknown
from agent_tui.providers.reasoning import thinking_for
from agent_tui.records import dataclass
from agent_tui.store.store import Store
from agent_tui.text.numbers import tokens

DEMO = "demo"

log = logging.getLogger(__name__)


async def no_key(provider: str) -> str | None:
    """Stands in for kept keys where there are none."""
    return None


class ModelCatalogue:
    """The configured models, what was detected on this machine, and the demo model.

    ``stored_key`` looks up the key that is kept for a provider, if there is one; it may take as long as its owner needs
    to unlock the keyring.
    """

    def __init__(self, settings: Settings, stored_key: Callable[[str], Awaitable[str | None]] = no_key) -> None:
        self._settings = settings
        self._stored_key, self._asking = stored_key, asyncio.Lock()
        self._stored: dict[str, str] = {}
        self._detected: list[ModelSpec] = []
        self._given: dict[tuple[str, str | None], str] = {}
        self.accepted: set[str] = set()
        """Names that are not on the list, of which the user knows that."""

    def use_key(self, spec: ModelSpec, key: str) -> None:
        """From now on this key goes to the model's server, whatever else is set; for as long as the program runs."""
        self._given[_server(spec)] = key

    def add_detected(self, specs: Sequence[ModelSpec]) -> None:
        """Adds the models that were found on this machine; they come after the configured ones."""
        known = {spec.key for spec in self.all()}
        self._detected += [spec for spec in specs if spec.key not in known]

    def configured(self) -> list[ModelSpec]:
        """The models of the configuration."""
        return [_configured(key, model) for key, model in self._settings.models.items()]

    def near(self) -> list[ModelSpec]:
        """The models that servers on this machine were found to have."""
        return [spec for spec in self._detected if needs_no_key(spec, resolve_target(spec).provider)]

    def has_given(self, provider: str) -> bool:
        """Says whether a key was given for a provider while the program ran."""
        return (provider, None) in self._given

    def all(self) -> list[ModelSpec]:
        """Configured first, then detected, the demo model last; no two of the same key."""
        specs = self.configured()
        known = {s.key for s in specs}
        specs += [s for s in self._detected if s.key not in known]
        if not any(s.key == DEMO for s in specs):
            specs.append(ModelSpec(DEMO, DEMO))
        return specs

    def find(self, key: str) -> ModelSpec:
        """The model of that name: a configured or detected one, ``demo``, or any LiteLLM name with its provider, which
        may be left out where the list has it.

        Raises ConfigError for a name that no model can have, and for a setting that its provider does not have.
        """
        for spec in self.all():
            if spec.key == key:
                return self._checked(spec)
        if (wrong := unknown(key, among=[s.key for s in self.all()])) is not None:
            raise ConfigError(wrong)
        name = key if "/" in key else full_name(key) or key
        return self._checked(ModelSpec(name, name))

    def served(self, key: str, named: str | None) -> ModelSpec | None:
        """Returns the model of a server on this machine that was found there before and does not answer now; None where
        the name is not that of such a model, or another one has it. ``named`` is what it was called by then."""
        if any(spec.key == key for spec in self.all()):
            return None
        from agent_tui.providers.local_servers import served_before  # it asks servers: the library of HTTP with it

        return served_before(key, named)

    def default(self) -> ModelSpec:
        """Returns the model that a new session starts with: the configured default, else the first configured, else the
        first detected, else the demo model."""
        if self._settings.default_model:
            return self.find(self._settings.default_model)
        return self._checked(self.all()[0])

    @staticmethod
    def _checked(spec: ModelSpec) -> ModelSpec:
        """Raises ConfigError for a setting that the model's provider does not have."""
        if (problem := cache_problem(spec, resolve_target(spec))) is not None:
            raise ConfigError(problem)
        return spec

    async def with_key(self, spec: ModelSpec) -> ModelSpec:
        """Adds the key that was given, or the one that is kept, where one is needed and the environment has none."""
        if (given := self._given.get(_server(spec))) is not None:
            return replace(spec, api_key=given)
        provider = resolve_target(spec).provider
        names = (spec.api_key_env,) if spec.api_key_env else dialect_of(provider).keys
        if (
            spec.model == DEMO
            or needs_no_key(spec, provider)
            or any(os.environ.get(name, "").strip() for name in names)
        ):
            return spec
        async with self._asking:
            key = self._stored.get(provider) or await self._stored_key(provider)
        if not key:
            return spec
        self._stored[provider] = key
        return replace(spec, api_key=key)


def _server(spec: ModelSpec) -> tuple[str, str | None]:
    """Returns who gets the key of a model: a provider, or a server at an address of its own."""
    return resolve_target(spec).provider, spec.api_base


def _configured(key: str, model: ModelConfig) -> ModelSpec:
    return ModelSpec(key=key, **{f.name: getattr(model, f.name) for f in fields(model)})


def calibration_key(info: ModelInfo) -> str:
    """Under which name what was learned of a model is kept: LiteLLM's name and the API, which decide how text becomes
    tokens. It is kept for each server."""
    return f"{info.spec.model} {info.target.api}"


def recalled_calibration(store: Store, info: ModelInfo) -> Calibration | None:
    """What the model's reports taught, whatever session they came in; None before the first, and where another version
    knew other kinds of text, or it cannot be read."""
    try:
        return usable(store.measured.calibration(calibration_key(info), info.spec.api_base or ""))
    except StoreError as error:
        log.warning("What the reports of %s taught cannot be read: %s", info.spec.key, error)
        return None


def learned_calibration(store: Store, info: ModelInfo, step: Step, known: Calibration | None) -> Calibration | None:
    """The calibration with what a finished step teaches; ``known`` where that is nothing."""
    growth = verified_growth(step)
    if growth is None:
        return known

    def taught(before: Calibration | None) -> Calibration:
        begun = usable(before) or family_of(info.target).beginning
        return usable(begun.learned(*growth)) or begun

    try:
        return store.measured.learn(calibration_key(info), info.spec.api_base or "", taught)
    except StoreError as error:
        # The numbers stay right without it.
        log.warning("The calibration could not be stored: %s", error)
        return known


def relearned_calibration(store: Store, info: ModelInfo, steps: Sequence[Step], since: str) -> Calibration:
    """The calibration without what reports taught, from the step ``since`` on, that are not believed any more."""
    learned = relearned(steps, since, family_of(info.target).beginning)
    try:
        return store.measured.learn(calibration_key(info), info.spec.api_base or "", lambda before: learned)
    except StoreError as error:
        log.warning("What a report that was not true taught is still stored: %s", error)
        return learned


def learned_prompt(store: Store, info: ModelInfo, added: int, known: Calibration | None) -> Calibration:
    """The calibration with so many tokens that the server adds to each request."""

    def taught(before: Calibration | None) -> Calibration:
        made = (usable(before) or family_of(info.target).beginning).adding(added)
        return usable(made) or made

    try:
        return store.measured.learn(calibration_key(info), info.spec.api_base or "", taught)
    except StoreError as error:
        # It holds for this session; the next one learns it again.
        log.warning("What the server adds to requests could not be stored: %s", error)
        return taught(known)


EFFORTS: tuple[Effort, ...] = get_args(Effort)
NOT_AT_ALL = "does not think"
"""What is said of a level that switches thinking off."""


@dataclass(slots=True, frozen=True)
class EffortChoice:
    """A level that the model has."""

    effort: Effort
    words: str
    """What is asked of the provider."""
    current: bool
    names: tuple[Effort, ...]
    """All that ask for the same, its own among them."""
    only: bool = False
    """There is no other level, and ``words`` say so."""

    def told(self, name: Effort) -> str:
        """The level by one of its names, with what it is for this model where that does not say it."""
        others = " and ".join(other for other in self.names if other not in (name, "off"))
        same = f", the same as {others}" if others else ""
        return name if self.words == NOT_AT_ALL else f"{name} ({self.words}{same})"


def levels(request: ModelRequest, info: ModelInfo, wanted: Effort) -> list[EffortChoice]:
    """The levels that make different requests of this one, the least first. One name stands for those that are the
    same: the one in force, else the first that thinks."""
    asked = {effort: thinking_for(replace(request, effort=effort), info) for effort in EFFORTS}
    groups: list[list[Effort]] = []
    for effort in EFFORTS:
        # A level that is off in name only leads to the same request.
        same = next((group for group in groups if asked[group[0]].kwargs == asked[effort].kwargs), None)
        if same is None:
            groups.append([effort])
        else:
            same.append(effort)

    def choice(group: list[Effort]) -> EffortChoice:
        current, only = wanted in group, len(groups) == 1
        name = wanted if current else next((effort for effort in group if effort != "off"), group[0])
        words = _no_levels(info) if only else _words(asked[name], group)
        return EffortChoice(name, words, current, tuple(group), only)

    return [choice(group) for group in groups]


def setting_problem(info: ModelInfo) -> str | None:
    """Returns what to tell of a level in the configuration that this model does not have; None where it has it."""
    spec, wanted = info.spec, info.spec.reasoning_effort
    if wanted is None:
        return None
    request = ModelRequest("levels", spec, "", [], [], [], info.limits.max_output, wanted)
    chosen = next(choice for choice in levels(request, info, wanted) if choice.current)
    setting = f'models.{spec.key}.reasoning_effort = "{wanted}"'
    if chosen.only:
        return f"{setting} changes nothing: {chosen.words}."
    if wanted == "off" and chosen.words != NOT_AT_ALL:
        return f"{setting}: {spec.key} always thinks; using its lowest level."
    return None


def _no_levels(info: ModelInfo) -> str:
    if info.reasoning is None:
        return f"{info.spec.key} is not known to think, so no level is set"
    return f"{info.spec.key} has no levels of thinking"


def _words(thinking: Thinking, group: list[Effort]) -> str:
    if group == ["off"]:
        return NOT_AT_ALL if not _asks(thinking) else "as little as possible: it cannot be turned off"
    words = _asks(thinking) or "thinks"
    return f"{words}; it cannot be turned off" if "off" in group else words


def _asks(thinking: Thinking) -> str:
    """Returns in words what the request says of thinking; empty where that is nothing, or that there is to be none."""
    given = thinking.kwargs
    wanted = given.get("thinking") or (given.get("extra_body") or {}).get("thinking")
    if isinstance(wanted, dict) and wanted.get("budget_tokens"):
        return f"thinks up to {tokens(wanted['budget_tokens'], False)} tokens a step"
    reasoning = given.get("reasoning") or (given.get("extra_body") or {}).get("reasoning")
    level = given.get("reasoning_effort") or (given.get("output_config") or {}).get("effort")
    if isinstance(reasoning, dict):
        level = reasoning.get("effort")
    return f"the provider's level “{level}”" if level and level != "none" else ""


SMALLEST_WINDOW = 1_024
"""Tokens; no model that chats has less, so a smaller number is something else."""

SMALLEST_OUTPUT = 256
"""Tokens; the same of the longest answer."""


def with_learned(store: Store, info: ModelInfo) -> ModelInfo:
    """The model with what its server said before. What is out of date, because the configuration or what is known of
    the window has changed since, is forgotten."""
    spec, limits = info.spec, info.limits
    try:
        row = store.learned.limit(spec.model, spec.api_base or "")
        if row is None:
            return info
        if _outdated(row, info):
            log.info("Forgotten what was learned of %s: it is configured differently now", spec.key)
            store.learned.forget_limit(row.model, row.server)
            return info
    except StoreError as error:
        log.warning("What was learned of %s cannot be read: %s", spec.key, error)
        return info
    return replace(info, limits=with_taught(limits, row))


def learn(store: Store, info: ModelInfo, overflow: Overflow, steps: Sequence[Step] = ()) -> ModelInfo | None:
    """Takes the limits of a refusal over where they are smaller than what is known; the model with them, or None when
    there is nothing to learn. ``steps`` are the session's: no limit is below a size that was accepted, unless it was
    stated before and nothing as large was accepted since: the server was started anew with less."""
    limits, spec = info.limits, info.spec
    lowest, split = max(SMALLEST_WINDOW, _accepted(info, _since(steps, overflow))), limits.max_input is not None
    window = overflow.window if overflow.window is not None or split else overflow.max_input
    found = LearnedLimit(
        spec.model,
        spec.api_base or "",
        _smaller(window, limits.window, lowest),
        _smaller(overflow.max_input, limits.max_input, lowest) if split else None,
        _smaller(overflow.max_output, limits.max_output, SMALLEST_OUTPUT),
        limits.window,
        spec.context_window,
        spec.max_output,
        time.time(),
        overflow.text,
    )
    if found.window is None and found.max_input is None and found.max_output is None:
        return None
    try:
        before = store.learned.limit(found.model, found.server)
        if before is not None:
            found = replace(
                found,
                window=found.window or before.window,
                max_input=found.max_input or before.max_input,
                max_output=found.max_output or before.max_output,
                believed=before.believed,
                accepted=before.accepted,
                raised=before.raised,
                accepted_input=before.accepted_input,
                accepted_output=before.accepted_output,
            )
            limits = replace(limits, window=stated_window(limits, before))
        store.learned.put_limit(found)
    except StoreError as error:
        # It holds for this session; the next refusal teaches it again.
        log.warning("What was learned of %s cannot be stored: %s", spec.key, error)
    log.info("Learned of %s: %s", spec.key, overflow.text)
    return replace(info, limits=with_taught(limits, found))


def _outdated(row: LearnedLimit, info: ModelInfo) -> bool:
    spec, window = info.spec, info.limits.window
    if (row.configured_window, row.configured_output) != (spec.context_window, spec.max_output):
        return True
    # A server that cannot be asked just now says nothing new.
    return window is not None and window != row.believed


def _smaller(said: int | None, known: int | None, smallest: int) -> int | None:
    """A stated limit, where it can be true and is news."""
    news = said is not None and said >= smallest and (known is None or said < known * NEAR)
    return said if news else None


def _since(steps: Sequence[Step], overflow: Overflow) -> Sequence[Step]:
    """The steps since the same window was stated for the first time; all where this is the first."""
    stated = (overflow.window, overflow.max_input)
    for number, step in enumerate(steps[:-1]):
        failure = step.failure
        if failure is not None and failure.overflow is not None:
            before = failure.overflow
            if (before.window, before.max_input) == stated:
                return steps[number:]
    return steps


def _accepted(info: ModelInfo, steps: Iterable[Step]) -> int:
    """The largest input of this model that was measured in the session: a window cannot be below it."""
    target = info.target
    return max(
        (
            s.counted.input
            for s in steps
            if s.counted is not None
            and s.counted.anchors
            and s.kind == "turn"
            and s.status == "complete"
            and (s.model, s.provider, s.api) == (target.model, target.provider, target.api)
        ),
        default=0,
    )


NO_MEDIA, NO_FILES, NO_TOOL = "no_media", "no_files", "no_tool "
BOUND, NO_DROP_FIELD = "bound", "no_drop_field"
UNTIL, TEXT_UNTIL, MOST_MEDIA = "until ", "text_until ", "most_media "
"""What is kept of a server that refuses pictures or files of a model, a tool (the fingerprint of its definition
follows), reasoning behind another prefix or up to an answer, calls up to a message (its id follows), more than so many
bytes of media; the ``Adaptation`` of what else it refuses stands for itself."""


def seeing(store: Store, info: ModelInfo) -> ModelInfo:
    """The model, which does not see where its server has refused what it was shown."""
    facts = _taught(store, info)
    info = replace(info, images=False) if NO_MEDIA in facts else info
    return replace(info, files=False) if NO_FILES in facts else info


async def facts_of(provider: Provider, store: Store, spec: ModelSpec) -> ModelInfo:
    """Returns what is known about a model, with what its server taught."""
    return seeing(store, with_learned(store, with_last_facts(store, await provider.describe(spec))))


def recalled_rule(store: Store, info: ModelInfo) -> ReplayRule:
    """The rule for a model with what its server taught before."""
    facts, knows_none = _taught(store, info), info.tools is False

    def named(kind: str) -> list[str]:
        return sorted(fact.removeprefix(kind) for fact in facts if fact.startswith(kind))

    return ReplayRule(
        bound=BOUND in facts,
        ask_drop=NO_DROP_FIELD not in facts,
        adaptations=[
            name for name in get_args(Adaptation) if name in facts or (name == "calls as text" and knows_none)
        ],
        until=named(UNTIL),
        text_until=named(TEXT_UNTIL),
        most_media=min(map(int, named(MOST_MEDIA)), default=None),
    )


def refused_before(store: Store, info: ModelInfo) -> frozenset[str]:
    """The fingerprints of the tools that the model's server has refused."""
    return frozenset(fact.removeprefix(NO_TOOL) for fact in _taught(store, info) if fact.startswith(NO_TOOL))


def _taught(store: Store, info: ModelInfo) -> set[str]:
    return store.learned.replay_facts(calibration_key(info), info.spec.api_base or "")


def remember(store: Store, info: ModelInfo, *facts: str) -> bool:
    """Keeps what a server taught by refusing a request to the model; False where that cannot be stored."""
    try:
        for fact in facts:
            store.learned.add_replay_fact(calibration_key(info), info.spec.api_base or "", fact)
    except StoreError as error:
        # It holds for this session; the next refusal teaches it again.
        log.warning("What %s taught could not be stored: %s", info.spec.key, error)
        return False
    return True
