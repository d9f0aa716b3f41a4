"""Where a configured model's requests go, read from its name alone. Pure: the client library is not needed for it."""

from __future__ import annotations

from urllib.parse import urlsplit

from agent_tui.models.requests import ModelSpec, Target
from agent_tui.providers.catalog.families import family_record, maker_of, model_family
from agent_tui.providers.catalog.model_versions import is_openai_reasoning
from agent_tui.providers.dialects import dialect_of

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
