"""The records of providers and families of models by name, and what follows from a model's name alone: where its
requests go, what is kept of its reasoning, what its cache does. Pure: the client library is not needed for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType, ModuleType
from urllib.parse import urlsplit

from agent_tui.models.requests import ModelSpec, Target
from agent_tui.providers.dialects import anthropic, bedrock, cohere, gemini, ollama, openai, responses, table
from agent_tui.providers.dialects.chat import is_openai_reasoning
from agent_tui.providers.dialects.gemini import gemini_major
from agent_tui.providers.dialects.record import (
    UNSAID,
    Caching,
    Dialect,
    ImageLimits,
    ModelFamily,
    Retention,
    RetentionRule,
    Version,
    Wire,
)


def by_name(modules: Iterable[ModuleType]) -> Mapping[str, Dialect]:
    """Returns the records of the dialects' files. Raises ValueError where one name is recorded twice."""
    found: dict[str, Dialect] = {}
    places: dict[str, str] = {}
    for module in modules:
        for record in module.RECORDS:
            if record.name in found:
                raise ValueError(f"{record.name} is recorded twice: in {places[record.name]} and {module.__name__}")
            found[record.name], places[record.name] = record, module.__name__
    return MappingProxyType(found)


DIALECTS = by_name((anthropic, openai, gemini, bedrock, cohere, ollama, table))
UNKNOWN = ModelFamily("unknown", alternates=True)
"""Open models under names that say nothing."""
_FAMILIES = (anthropic.CLAUDE, gemini.GEMINI, *table.FAMILIES, openai.GPT_OSS, openai.GPT)
MODEL_FAMILIES: Mapping[str, ModelFamily] = MappingProxyType({f.name: f for f in (*_FAMILIES, UNKNOWN)})
RETENTION: tuple[RetentionRule, ...] = (
    *anthropic.RETENTION,
    *gemini.RETENTION,
    *table.RETENTION,
    *openai.RETENTION,
)
"""The first rule that holds says what the next input contains of resent reasoning: (inside a tool loop, after a new
user message). Measured on recorded pairs of calls as (input now − everything else) / reasoning tokens; whoever serves a
model may do otherwise (``Dialect.retains``). Where none holds: ``KEPT_IN_LOOP``."""

KEPT_IN_LOOP: Retention = (1.0, 0.0)
"""Kimi and all others."""

ANY_MAKER = "openai"


def dialect_of(provider: str) -> Dialect:
    """Returns the record of a provider; of one that has none, what sends it through LiteLLM."""
    return DIALECTS.get(provider) or Dialect(provider)


def has_record(provider: str) -> bool:
    """Says whether anything is known of a provider by this name."""
    return provider in DIALECTS


def wire_of(target: Target) -> Wire | None:
    """Returns the language that is spoken to a model; None where only LiteLLM can."""
    wire = dialect_of(target.provider).wire
    return responses.WIRE if wire is not None and target.api == "responses" else wire


@cache
def model_family(model: str) -> str:
    """Returns the name of the family that a model is of; ``unknown`` where its name does not tell."""
    name = model.lower()
    return next((f.name for f in _FAMILIES if f.pattern is not None and f.pattern.search(name)), UNKNOWN.name)


def family_record(family: str) -> ModelFamily:
    """Returns the record of ``Target.family``."""
    return MODEL_FAMILIES.get(family, UNKNOWN)


def patches_files(target: Target) -> bool:
    """Says whether a model changes files by patches (``apply_patch``) rather than by exact strings (``edit``)."""
    trained = family_record(target.family).patches
    return trained is not None and trained.search(target.model.lower()) is not None


def maker_of(model: str) -> str:
    """Returns the provider of a model that is named without one."""
    record = family_record(model_family(model))
    if record.thought_signatures and gemini_major(model) is None:
        return ANY_MAKER
    return record.maker or ANY_MAKER


def at_least(target: Target, floor: Version | None) -> bool:
    """Says whether a model's version is known and not below ``floor``; False without one."""
    known = family_record(target.family).version(target.model) if floor is not None else None
    return known is not None and floor is not None and known[1] >= floor


def _holds(rule: RetentionRule, target: Target) -> bool:
    name = target.model.lower()
    if rule.since is not None:
        known = family_record(target.family).version(name)
        if known is None or known[1] < rule.since.get(known[0], rule.since[""]):
            return False
    return (
        (rule.family is None or rule.family == target.family)
        and (rule.api is None or rule.api == target.api)
        and (rule.model is None or rule.model.search(name) is not None)
    )


def retention(target: Target) -> Retention:
    """Returns what becomes of reasoning that is resent (``RETENTION``)."""
    rule = next((rule for rule in RETENTION if _holds(rule, target)), None)
    if rule is None:
        return KEPT_IN_LOOP
    return dialect_of(target.provider).retains.get(rule.name, rule.retention)


def forgets(target: Target) -> bool:
    """Says whether resent reasoning is left out, all or a part of it, when the user speaks."""
    return retention(target)[1] < 1.0


def images_of(target: Target) -> ImageLimits:
    """Returns what a model takes of images: no more than its family takes, and than its provider does."""
    limits, own = dialect_of(target.provider).images, family_record(target.family).image_limits
    return limits.with_(own) if own is not None else limits


DEMO = "demo"

_ROUTES = frozenset({"responses", "converse", "invoke", "chat", "converse_like"})


def resolve_target(spec: ModelSpec) -> Target:
    """Returns the provider (LiteLLM's name for it), the API and the model's own name. Never raises: a name that says
    nothing is taken to be an OpenAI-compatible model."""
    if spec.model == DEMO:
        return Target(DEMO, "chat", DEMO, DEMO)
    provider, model = split_model(spec.model)
    route_responses = spec.model.partition("/")[2].startswith("responses/")
    if spec.api == "auto":
        api = "responses" if route_responses or _wants_responses(provider, model, spec.api_base) else "chat"
    else:
        api = spec.api
    return Target(provider, api, model, model_family(model))


def split_model(name: str) -> tuple[str, str]:
    """``provider, model`` of LiteLLM's name: ``azure/responses/gpt-5`` is ``azure``, ``gpt-5``."""
    provider, slash, model = name.partition("/")
    if not slash:
        return maker_of(name), name
    route, slash, rest = model.partition("/")
    if slash and route in _ROUTES:
        model = rest
    return provider, model


def _wants_responses(provider: str, model: str, api_base: str | None) -> bool:
    dialect = dialect_of(provider)
    if not dialect.openai or not is_openai_reasoning(model):
        return False
    return api_base is None or (urlsplit(api_base).hostname or "").endswith(dialect.responses_hosts)


def takes_markers(target: Target) -> bool:
    """Says whether a model's prompts are cached up to the places that are marked, and for how long can be said: only
    for Claude, and where it is not behind a server that speaks another language."""
    return dialect_of(target.provider).cache == family_record(target.family).cache == "markers"


def ttl_problem(spec: ModelSpec, target: Target) -> str | None:
    """Says why a model's ``cache_ttl`` cannot be had, in one line."""
    if spec.cache_ttl is None or takes_markers(target):
        return None
    return (
        f"models.{spec.key}: cache_ttl: {target.provider} lets nobody say how long it keeps {target.model}; "
        "only for Claude it can be chosen. Take it out."
    )


def caching_of(target: Target, own_server: bool = False) -> Caching:
    """Returns how the prompts of a model are cached where it is called."""
    if own_server:
        return UNSAID
    if takes_markers(target) and (marked := family_record(target.family).caching) is not None:
        return marked.of(target.model)
    told = dialect_of(target.provider).caching
    # A provider that marks is silent about models that take no markers.
    return UNSAID if told.keeping == "markers" else told.of(target.model)
