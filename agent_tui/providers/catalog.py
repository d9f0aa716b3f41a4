"""The records of providers and families of models by name, and what follows from a model's name alone: where its
requests go, what is kept of its reasoning, what its cache does. Then who is called: the key and the address, in the
words of errors. LiteLLM is not needed for any of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType, ModuleType

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import Media, ModelInfo, ModelSpec, Target
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
    WebSearch,
    Wire,
)
from agent_tui.records import dataclass
from agent_tui.urls import is_loopback, read_address


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


_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def limits_in(arguments: Metadata, target: Target) -> Iterator[tuple[Metadata, str]]:
    """The places of a request to a model, or of its ``extra``, that say how long the answer may be, with their name."""
    wire, own = wire_of(target), dialect_of(target.provider).limits
    for name in (*_LIMITS, *(wire.limits if wire is not None else ()), *own):
        for place in (arguments, arguments.get("extra_body")):
            *path, last = name.split(".")
            for key in path:
                place = place.get(key) if isinstance(place, dict) else None
            if isinstance(place, dict) and place.get(last) is not None:
                yield place, last


def own_limit(spec: ModelSpec, target: Target) -> int | None:
    """Tokens of the longest answer that a model's own settings (``extra``) ask for, which stand over ours; None where
    they say nothing of it, 0 where it has no end: to servers that is -1."""
    own = [place[name] for place, name in limits_in(spec.extra, target)]
    found = [int(limit) if isinstance(limit, (int, float)) and limit > 0 else 0 for limit in own]
    return None if not found else 0 if 0 in found else max(found)


def direct_wire(spec: ModelSpec, target: Target) -> Wire | None:
    """Returns the language in which a model is called without LiteLLM; None where it is not. One whose ``extra`` speaks
    to that library is not: in a body its credentials would be told to the server as a field."""
    return None if spec.via == "litellm" or any(map(is_for_litellm, spec.extra)) else wire_of(target)


def is_direct(spec: ModelSpec, target: Target) -> bool:
    return direct_wire(spec, target) is not None


def web_search(spec: ModelSpec, target: Target) -> WebSearch | None:
    """Returns the provider's own web search where a model can be given it beside other tools; None elsewhere."""
    found = dialect_of(target.provider).search
    if found is None or found.api != target.api or not is_direct(spec, target):
        return None
    return found if found.models is None or found.models.search(target.model.lower()) else None


def is_for_litellm(name: str) -> bool:
    """Returns whether an argument speaks to LiteLLM itself: it is no field of a body, and may be a credential."""
    return name in _FOR_LITELLM or name.startswith(_FOR_LITELLM_STARTS)


_FOR_LITELLM = frozenset(
    {"organization", "project", "tenant_id", "client_id", "client_secret", "allowed_openai_params", "base_model"}
    | {"additional_drop_params", "custom_llm_provider", "fallbacks", "mock_response", "ssl_verify", "headers"}
)
_FOR_LITELLM_STARTS = ("aws_", "azure_", "vertex_", "watsonx_", "litellm_", "oci_", "input_cost_", "output_cost_")
"""Arguments of LiteLLM's calls that are no fields of a body (docs.litellm.ai, input params and provider pages)."""


@cache
def model_family(model: str) -> str:
    """Returns the name of the family that a model is of; ``unknown`` where its name does not tell."""
    name = model.lower()
    return next((f.name for f in _FAMILIES if f.pattern is not None and f.pattern.search(name)), UNKNOWN.name)


def family_record(family: str) -> ModelFamily:
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


@cache
def retention(target: Target) -> Retention:
    rule = next((rule for rule in RETENTION if _holds(rule, target)), None)
    return dialect_of(target.provider).retains.get(rule.name, rule.retention) if rule is not None else KEPT_IN_LOOP


def forgets(target: Target) -> bool:
    """Says whether resent reasoning is left out, all or a part of it, when the user speaks."""
    return retention(target)[1] < 1.0


@cache
def images_of(target: Target) -> ImageLimits:
    """Returns what a model takes of images: no more than its family takes, and than its provider does."""
    limits, own = dialect_of(target.provider).images, family_record(target.family).image_limits
    return limits.with_(own) if own is not None else limits


def sees(info: ModelInfo) -> Media:
    """Returns what a model is shown: what it can see, what its API takes, and what its server has not refused."""
    return Media(info.images is not False, info.files and not dialect_of(info.target.provider).no_files)


DEMO = "demo"

_ROUTES = frozenset({"responses", "converse", "invoke", "chat", "converse_like"})


def resolve_target(spec: ModelSpec) -> Target:
    """Returns the provider (LiteLLM's name for it), the API and the model's own name. Never raises: a name that says
    nothing is taken to be an OpenAI-compatible model."""
    if spec.model == DEMO:
        return Target(DEMO, "chat", DEMO, DEMO)
    provider, model = split_model(spec.model)
    api: str = spec.api
    if api == "auto":
        routed = spec.model.partition("/")[2].startswith("responses/")
        api = "responses" if routed or _wants_responses(provider, model, spec.api_base) else "chat"
    return Target(provider, api, model, model_family(model))


def split_model(name: str) -> tuple[str, str]:
    """``provider, model`` of LiteLLM's name: ``azure/responses/gpt-5`` is ``azure``, ``gpt-5``."""
    provider, slash, model = name.partition("/")
    if not slash:
        return maker_of(name), name
    route, slash, rest = model.partition("/")
    return provider, rest if slash and route in _ROUTES else model


def _wants_responses(provider: str, model: str, api_base: str | None) -> bool:
    dialect = dialect_of(provider)
    if not dialect.openai or not is_openai_reasoning(model):
        return False
    return api_base is None or _host(api_base).endswith(dialect.responses_hosts)


def takes_markers(target: Target) -> bool:
    """Says whether a model's prompts are cached up to the places that are marked, and for how long can be said: only
    for Claude, and where it is not behind a server that speaks another language."""
    return dialect_of(target.provider).cache == family_record(target.family).cache == "markers"


def cache_problem(spec: ModelSpec, target: Target) -> str | None:
    """Says why a model's ``cache_ttl`` cannot be had, in one line."""
    if spec.cache_ttl is not None and not takes_markers(target):
        return (
            f"models.{spec.key}: cache_ttl works only for Claude, not for {target.model} of "
            f"{target.provider}. Remove it."
        )
    return None


def caching_of(target: Target, own_server: bool = False) -> Caching:
    """Returns how the prompts of a model are cached where it is called."""
    if own_server:
        return UNSAID
    if takes_markers(target) and (marked := family_record(target.family).caching) is not None:
        return marked.of(target.model)
    told = dialect_of(target.provider).caching
    # A provider that marks is silent about models that take no markers.
    return UNSAID if told.keeping == "markers" else told.of(target.model)


DUMMY_KEY = "no-key"
"""Sent to local servers, which ignore it; LiteLLM insists on some value."""

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {name: dialect.keys for name, dialect in DIALECTS.items() if dialect.keys}
)
"""Of every provider whose key has a variable of its own."""


@dataclass(slots=True, frozen=True)
class Key:
    """The key to use. ``value`` None: LiteLLM finds credentials by itself (AWS, Google). ``missing`` names the
    environment variable to set when a key is needed and there is none."""

    value: str | None = None
    missing: str | None = None

    @property
    def unfit(self) -> bool:
        """True when it has characters that no header can carry: something else was pasted, or a part of it garbled."""
        return self.value is not None and not (self.value.isascii() and self.value.isprintable())


def needs_no_key(spec: ModelSpec, provider: str) -> bool:
    """Returns whether a model is served by a program of the user's own, which must not be sent a provider's key."""
    if spec.api_key_env:
        return False
    dialect = dialect_of(provider)
    return dialect.local or (dialect.compatible and is_loopback(spec.api_base))


def resolve_key(spec: ModelSpec, provider: str) -> Key:
    """The key for a model: what it was given, from the variable the configuration names, or from the usual ones. White
    space around it is none of it: files that keys are read from end with a newline."""
    for given in (spec.api_key, spec.extra.get("api_key")):
        if isinstance(given, str) and (key := given.strip()):
            return Key(key)
    dialect = dialect_of(provider)
    names = (spec.api_key_env,) if spec.api_key_env else dialect.keys or (dialect.key_name,)
    if needs_no_key(spec, provider):
        return Key((_variable(dialect.key_name) if dialect.local else None) or DUMMY_KEY)
    if found := next((value for name in names if (value := _variable(name))), None):
        return Key(found)
    return Key(missing=names[0] if spec.api_key_env or dialect.keys else None)


def _variable(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None


def key_variable(provider: str) -> str | None:
    """The variable that holds a provider's key, which wins over a stored one."""
    return next(filter(_variable, dialect_of(provider).keys), None)


@dataclass(slots=True, frozen=True)
class Called:
    """``address`` is the configured one, if any, and ``key_env`` the configured variable of the key."""

    provider: str
    address: str | None = None
    key_env: str | None = None

    @property
    def own(self) -> bool:
        """True when the provider's name only says which language a server at a configured address speaks."""
        dialect = dialect_of(self.provider)
        if not dialect.compatible or not self.address:
            return False
        usual = dialect.base
        return usual is None or _host(usual) != _host(self.address)

    @property
    def name(self) -> str:
        if self.own and self.address:
            return f"the server at {shown_address(self.address, whole=False)}"
        return self.provider

    @property
    def first(self) -> str:
        """The name where a sentence begins with it. Providers' names are written as they are configured."""
        return self.name[:1].upper() + self.name[1:] if self.own else self.name

    @property
    def place(self) -> str:
        """The name with all of the configured address, which may be what is wrong."""
        if not self.address:
            return self.provider
        shown = shown_address(self.address)
        return f"the server at {shown}" if self.own else f"{self.provider} at {shown}"

    @property
    def first_place(self) -> str:
        return self.place[:1].upper() + self.place[1:] if self.own else self.place

    @property
    def give_key(self) -> str:
        """The advice on a key that is refused."""
        if self.key_env:
            return f"Check the key in {self.key_env}."
        if self.own:
            return "Check the key: set api_key_env of the model to the variable that holds it."
        return f"Check the key: set {dialect_of(self.provider).key_name} or run `agent-tui auth set {self.provider}`."


def missing_key_line(spec: ModelSpec, provider: str, variable: str) -> str:
    """The one line for a missing key, naming the ways to give it. ``variable`` is the one that was looked for."""
    called = Called(provider, spec.api_base, spec.api_key_env)
    # No word of the keyring for a server of one's own: what is stored there is meant for the provider itself.
    if not called.own:
        other = f"or run `agent-tui auth set {provider}`"
    elif spec.api_key_env:
        other = "the variable in api_key_env of the model"
    else:
        other = "or set api_key_env of the model to the variable that holds it"
    if variable in os.environ:
        return f"No API key for {called.name}: {variable} is set, but empty. Give it a value, {other}."
    return f"No API key for {called.name}: set {variable}, {other}."


def shown_address(url: str, whole: bool = True) -> str:
    """A server's address without user, password, query and fragment; ``whole`` False: without its path, too."""
    found = read_address(url)
    if found is None:
        return "the address in api_base"
    return found.origin + (found.path if whole else "")


def _host(url: str) -> str:
    found = read_address(url)
    return found.host if found is not None else ""


_EVERYWHERE = "0.0.0.0"


def variable_base(dialect: Dialect) -> str | None:
    """The address in the first of a provider's variables that is set, as a URL."""
    value = next(filter(None, map(_variable, dialect.base_variables)), None)
    return None if value is None else near_url(value, dialect)


def near_url(value: str, dialect: Dialect) -> str:
    """A URL of a value like ``localhost``, ``:11434`` or ``0.0.0.0:11434``. What it lacks is as usual for a server
    that people run themselves: Ollama reads its own variable so (docs.ollama.com/faq)."""
    whole = "://" in value
    # A host that is left out is this machine.
    found = read_address(re.sub("(?<=//)(?=[:/]|$)", "127.0.0.1", value if whole else f"http://{value}", count=1))
    if found is None:
        return value
    usual = read_address(dialect.base) if dialect.local and not whole else None
    host = "127.0.0.1" if found.host == _EVERYWHERE else found.host
    port = found.written_port or (usual.written_port if usual is not None else None)
    return replace(found, host=host, written_port=port).text
