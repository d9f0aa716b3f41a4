"""Where a configured model's requests go, read from its name alone. Pure: the client library is not needed for it."""

from __future__ import annotations

import re
from functools import cache
from urllib.parse import urlsplit

from agent_tui.models.requests import ModelSpec, Target

DEMO = "demo"

_ROUTES = frozenset({"responses", "converse", "invoke", "chat", "converse_like"})
_AZURE_HOSTS = (".azure.com", ".azure.us", ".azure.cn")
_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("claude", re.compile(r"claude")),
    ("gemini", re.compile(r"gemini|gemma")),
    ("glm", re.compile(r"(?:^|[^a-z])glm|zai-org|z-ai")),
    ("kimi", re.compile(r"kimi|moonshot")),
    ("deepseek", re.compile(r"deepseek")),
    ("mistral", re.compile(r"mi[sx]tral|magistral|codestral|devstral|ministral|pixtral")),
    ("gpt", re.compile(r"(?:^|[^a-z])(?:chat)?gpt|(?:^|[^a-z0-9])o[134](?:$|[^a-z0-9])|codex|davinci")),
)
_OPENAI_REASONING = re.compile(r"(?:^|[/.-])(?:gpt-[5-9](?!\d)|o[134](?:$|[^a-z0-9])|codex)")
_CLAUDE_NEW = re.compile(r"claude-([a-z]+)-(\d+)(?:[-.](\d{1,2}))?(?!\d)")
_CLAUDE_OLD = re.compile(r"claude-(\d)(?:[-.](\d))?(?:-([a-z]+))?")


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
        return _provider_by_name(name), name
    route, slash, rest = model.partition("/")
    if slash and route in _ROUTES:
        model = rest
    return provider, model


@cache
def model_family(model: str) -> str:
    """The family whose tokenizer and framing the model has; ``unknown`` where the name does not tell."""
    name = model.lower()
    return next((family for family, pattern in _FAMILIES if pattern.search(name)), "unknown")


@cache
def claude_version(model: str) -> tuple[str, tuple[int, int]] | None:
    """``("opus", (4, 7))`` of any spelling of a Claude model's name, None for other models."""
    name = model.lower()
    if match := _CLAUDE_NEW.search(name):
        return match[1], (int(match[2]), int(match[3] or 0))
    if match := _CLAUDE_OLD.search(name):
        return match[3] or "", (int(match[1]), int(match[2] or 0))
    return None


@cache
def gemini_major(model: str) -> int | None:
    """The first digit of a Gemini model's version, None for other models."""
    match = re.search(r"gemini-(\d+)", model.lower())
    return int(match[1]) if match else None


@cache
def is_openai_reasoning(model: str) -> bool:
    """True for OpenAI's models that reason: the GPT-5 family and the o-series, not the chat-tuned ones."""
    name = model.lower()
    return bool(_OPENAI_REASONING.search(name)) and "-chat" not in name and "gpt-oss" not in name


def _wants_responses(provider: str, model: str, api_base: str | None) -> bool:
    if provider not in ("openai", "azure") or not is_openai_reasoning(model):
        return False
    if api_base is None:
        return True
    host = urlsplit(api_base).hostname or ""
    return provider == "azure" and host.endswith(_AZURE_HOSTS)


def _provider_by_name(name: str) -> str:
    family = model_family(name)
    if family == "claude":
        return "anthropic"
    if family == "gemini" and gemini_major(name) is not None:
        return "vertex_ai"
    return "openai"
