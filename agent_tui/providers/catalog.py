"""What is known of each family of models, wherever it is served: one frozen record each, and what becomes of their
reasoning as ordered rules. The algorithms read the records and name no family.

Tokenizer constants are in ``tokens.families``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from agent_tui.models.requests import ModelSpec, Target
from agent_tui.providers.dialects import image_limits as takes
from agent_tui.providers.dialects.gateways import GATEWAYS
from agent_tui.providers.dialects.image_limits import ImageLimits
from agent_tui.providers.dialects.record import Cache, Dialect, Retention
from agent_tui.providers.dialects.table import RECORDS
from agent_tui.providers.versions import Version, claude_version, gemini_major, is_openai_reasoning

DIALECTS: Mapping[str, Dialect] = MappingProxyType({record.name: record for record in (*RECORDS, *GATEWAYS)})


def dialect_of(provider: str) -> Dialect:
    """Returns the record of a provider; of one that has none, what sends it through LiteLLM."""
    return DIALECTS.get(provider) or Dialect(provider, "gateway")


def has_record(provider: str) -> bool:
    """Says whether anything is known of a provider by this name."""
    return provider in DIALECTS


FamilyThinking = Literal["budget or effort", "budget or level", "levels"]
Images = Literal["area", "tiles of 768", "tiles of 512"]


@dataclass(slots=True, frozen=True)
class ModelFamily:
    """One family. ``pattern`` finds it in the lower-case name of a model.

    ``maker``: the provider of a name without one. ``thinking``: how it is asked to think where the provider has no
    way of its own; ``levels``: by effort, also where other models have a switch. ``thinks_from``, ``adapts_from``,
    ``binds_from``: versions (``model_versions.claude_version``) from which on models think when asked to, decide
    themselves how long and take no budget, and bind a signature to everything before it. ``loops_whole``: models that
    do not adapt think in a tool loop only where its first answer began so. ``signed_blocks``: thoughts are only taken
    back signed, and only while thinking is on. ``thought_signatures``: thoughts are never shown whole; a signature, on
    any part of the answer, stands for them. ``think_tags`` False: tags in their text are meant. ``alternates``: chat
    templates refuse two user messages in a row ("conversation roles must alternate"); ``unknown`` are open models
    under names that say nothing. ``named_results``: a tool's result carries its name. ``cache``: how its cache is
    used where the provider can. ``output``: tokens asked for where nothing says how many, for an API that insists.
    ``images``: rule for the tokens of an image; ``pdf_page``: tokens of a page (Anthropic documents 1 500 to 3 000,
    Gemini 258; others are taken like Anthropic's). ``patches``: those of its models that are trained to change
    files by patches ("V4A"). ``image_limits``: what its models take of images wherever they are served, where that is
    less than a provider takes.
    """

    name: str
    pattern: re.Pattern[str] | None = None
    maker: str | None = None
    thinking: FamilyThinking | None = None
    thinks_from: Version | None = None
    adapts_from: Version | None = None
    binds_from: Version | None = None
    loops_whole: bool = False
    signed_blocks: bool = False
    thought_signatures: bool = False
    think_tags: bool = True
    alternates: bool = False
    named_results: bool = False
    cache: Cache | None = None
    output: int | None = None
    images: Images = "tiles of 512"
    pdf_page: int = 2_250
    image_limits: ImageLimits | None = None
    patches: re.Pattern[str] | None = None


UNKNOWN = ModelFamily("unknown", alternates=True)

_FAMILIES = (
    ModelFamily(
        "claude",
        re.compile(r"claude"),
        maker="anthropic",
        thinking="budget or effort",
        # docs.claude.com, extended thinking: older ones refuse to be asked, 4.6 and newer adapt.
        thinks_from=(3, 7),
        adapts_from=(4, 6),
        # Anthropic's documentation of thinking, "prefix binding"; 4.x and 5.0 do not bind. Each case was tried live in
        # pydantic-ai's issue 7984. Later models are announced to follow.
        binds_from=(5, 1),
        loops_whole=True,
        signed_blocks=True,
        think_tags=False,
        cache="markers",
        output=8_192,
        images="area",
        image_limits=takes.CLAUDE,
    ),
    ModelFamily(
        "gemini",
        re.compile(r"gemini|gemma"),
        maker="vertex_ai",
        thinking="budget or level",
        thought_signatures=True,
        think_tags=False,
        # Gemma's templates.
        alternates=True,
        named_results=True,
        images="tiles of 768",
        pdf_page=258,
    ),
    ModelFamily("glm", re.compile(r"(?:^|[^a-z])glm|zai-org|z-ai")),
    ModelFamily("kimi", re.compile(r"kimi|moonshot")),
    ModelFamily("deepseek", re.compile(r"deepseek")),
    ModelFamily("mistral", re.compile(r"mi[sx]tral|magistral|codestral|devstral|ministral|pixtral"), alternates=True),
    ModelFamily("gpt-oss", re.compile(r"gpt-oss"), thinking="levels", think_tags=False, patches=re.compile("")),
    ModelFamily(
        "gpt",
        re.compile(r"(?:^|[^a-z])(?:chat)?gpt|(?:^|[^a-z0-9])o[134](?:$|[^a-z0-9])|codex|davinci"),
        think_tags=False,
        cache="key",
        # OpenAI's prompting guides since GPT-4.1 teach the format; its coding agent gives these models no other.
        patches=re.compile(r"gpt-(?:4\.1|[5-9])|codex|(?:^|[^a-z0-9])o[34](?:$|[^a-z0-9])"),
    ),
)
MODEL_FAMILIES: Mapping[str, ModelFamily] = MappingProxyType({f.name: f for f in (*_FAMILIES, UNKNOWN)})


@cache
def model_family(model: str) -> str:
    """The name of the family that a model is of; ``unknown`` where its name does not tell."""
    name = model.lower()
    return next((f.name for f in _FAMILIES if f.pattern is not None and f.pattern.search(name)), UNKNOWN.name)


def family_record(family: str) -> ModelFamily:
    """The record of ``Target.family``."""
    return MODEL_FAMILIES.get(family, UNKNOWN)


def patches_files(target: Target) -> bool:
    """Whether a model changes files by patches (``apply_patch``) rather than by exact strings (``edit``)."""
    trained = family_record(target.family).patches
    return trained is not None and trained.search(target.model.lower()) is not None


def maker_of(model: str) -> str:
    """The provider of a model that is named without one."""
    record = family_record(model_family(model))
    if record.thought_signatures and gemini_major(model) is None:
        return _ANY_MAKER
    return record.maker or _ANY_MAKER


_ANY_MAKER = "openai"


def at_least(target: Target, floor: Version | None) -> bool:
    """Whether a model's version is known and not below ``floor``; False without one."""
    known = claude_version(target.model) if floor is not None else None
    return known is not None and floor is not None and known[1] >= floor


@dataclass(slots=True, frozen=True)
class RetentionRule:
    """What becomes of resent reasoning where all conditions hold. ``since``: the version from which on, by the
    model's kind (``""``: any other)."""

    name: str
    retention: Retention
    family: str | None = None
    model: re.Pattern[str] | None = None
    api: str | None = None
    since: Mapping[str, Version] | None = None

    def holds(self, target: Target) -> bool:
        name = target.model.lower()
        return (
            (self.family is None or self.family == target.family)
            and (self.api is None or self.api == target.api)
            and (self.model is None or self.model.search(name) is not None)
            and (self.since is None or _new_enough(name, self.since))
        )


def _new_enough(model: str, since: Mapping[str, Version]) -> bool:
    known = claude_version(model)
    return known is not None and known[1] >= since.get(known[0], since[""])


RETENTION = (
    RetentionRule("new claude", (1.0, 1.0), "claude", since={"opus": (4, 5), "": (4, 6)}),
    RetentionRule("claude", (1.0, 0.0), "claude"),
    RetentionRule("gemini 2.5", (0.0, 0.0), "gemini", re.compile(r"^(?!.*2\.0).*gemini-2(?!\d)", re.DOTALL)),
    RetentionRule("gemini", (1.0, 0.0), "gemini"),
    RetentionRule("grok 4.3 responses", (1.0, 1.0), model=re.compile(r"grok-4\.3"), api="responses"),
    RetentionRule("grok responses", (1.0, 0.0), model=re.compile("grok"), api="responses"),
    RetentionRule("grok 3", (0.0, 0.0), model=re.compile("grok-3")),
    RetentionRule("grok", (1.0, 0.0), model=re.compile("grok")),
    RetentionRule("deepseek", (0.95, 0.0), "deepseek"),
    RetentionRule("glm", (1.0, 1.0), "glm"),
    RetentionRule("gpt chat", (0.0, 0.0), "gpt", api="chat"),
)
"""The first rule that holds says what the next input contains of resent reasoning: (inside a tool loop, after a new
user message). Measured on recorded pairs of calls as (input now − everything else) / reasoning tokens; whoever serves a
model may do otherwise (``Dialect.retains``). Where none holds: ``KEPT_IN_LOOP``."""

KEPT_IN_LOOP: Retention = (1.0, 0.0)
"""Kimi and all others."""


def retention(target: Target) -> Retention:
    """What becomes of reasoning that is resent (``RETENTION``)."""
    rule = next((rule for rule in RETENTION if rule.holds(target)), None)
    if rule is None:
        return KEPT_IN_LOOP
    return dialect_of(target.provider).retains.get(rule.name, rule.retention)


def forgets(target: Target) -> bool:
    """Whether resent reasoning is left out, all or a part of it, when the user speaks."""
    return retention(target)[1] < 1.0


def images_of(target: Target) -> ImageLimits:
    """What a model takes of images: no more than its family takes, and than its provider does."""
    limits, own = dialect_of(target.provider).images, family_record(target.family).image_limits
    return limits.with_(own) if own is not None else limits


DEMO = "demo"

_ROUTES = frozenset({"responses", "converse", "invoke", "chat", "converse_like"})


def resolve_target(spec: ModelSpec) -> Target:
    """The provider (LiteLLM's name for it), the API and the model's own name. Never raises: a name that says nothing
    is taken to be an OpenAI-compatible model."""
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
    """Whether a model's prompts are cached up to the places that are marked, and for how long can be said: only for
    Claude, and where it is not behind a server that speaks another language."""
    return dialect_of(target.provider).cache == family_record(target.family).cache == "markers"


def ttl_problem(spec: ModelSpec, target: Target) -> str | None:
    """Why a model's ``cache_ttl`` cannot be had, in one line."""
    if spec.cache_ttl is None or takes_markers(target):
        return None
    return (
        f"models.{spec.key}: cache_ttl: {target.provider} lets nobody say how long it keeps {target.model}; "
        "only for Claude it can be chosen. Take it out."
    )
