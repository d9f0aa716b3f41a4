"""Asking a running local server what context it has loaded: Ollama, LM Studio, llama.cpp, vLLM."""

from __future__ import annotations

import asyncio
import json
import os
import re
from typing import Any
from urllib.parse import urlsplit

from agent_tui.models.requests import ModelSpec, Target
from agent_tui.models.usage import Limits
from agent_tui.providers.dialects import dialect_of
from agent_tui.providers.net.addresses import near_url, variable_base
from agent_tui.providers.net.plain import ask, parsed

TIMEOUT = 2.0
OLLAMA_CONTEXT = 32_768
"""The context that a model which is not loaded yet is loaded with. Ollama's own default, 4 096, is cut off silently
within a turn of an agent (docs.ollama.com/context-length); much more may not fit a graphics card."""

_ABSURD = 1_000_000_000_000
"""No window has so many tokens; whoever says so says nothing."""


def server_root(spec: ModelSpec, target: Target) -> str | None:
    """The server's address without an API path, or None when nothing says where it is."""
    base = spec.api_base or default_base(target.provider)
    if not base:
        return None
    parts = urlsplit(near_url(base, dialect_of(target.provider)))
    path = re.sub(r"/(?:v1|api)/?$|/$", "", parts.path)
    return f"{parts.scheme}://{parts.netloc}{path}"


def default_base(provider: str) -> str | None:
    """Where a local provider listens: as its environment variable says, else its usual port."""
    dialect = dialect_of(provider)
    if not dialect.local:
        return None
    return variable_base(dialect) or dialect.base


async def server_limits(spec: ModelSpec, target: Target) -> Limits | None:
    """The context the server has loaded for the model; None when it does not answer or does not say."""
    root = server_root(spec, target)
    if root is None:
        return None
    dialect = dialect_of(target.provider)
    if dialect.wire == "ollama":
        return await asyncio.to_thread(_ollama, root, target.model)
    if dialect.compatible:
        # Only the language is known. Servers with a context of their own list their models; others are left alone.
        listed = await asyncio.to_thread(fetch_json, f"{root}/v1/models")
        if not isinstance(listed, dict) or not isinstance(listed.get("data"), list):
            return None
    asked = await asyncio.gather(
        asyncio.to_thread(_llama_cpp, root),
        asyncio.to_thread(_lm_studio, root, target.model),
        asyncio.to_thread(_vllm, root, target.model),
    )
    return next((limits for limits in asked if limits is not None), None)


def fetch_json(url: str, body: Any = None, timeout: float = TIMEOUT) -> Any:
    """The JSON at a URL, or None. Proxies are not used: this is for servers nearby. Blocks."""
    data = None if body is None else json.dumps(body).encode()
    try:
        status, answer = ask(url, data, {}, timeout)
    except OSError:
        return None
    return parsed(answer) if status < 300 else None


def _ollama(root: str, model: str) -> Limits | None:
    running = fetch_json(f"{root}/api/ps")
    for loaded in _list(running, "models"):
        names = (loaded.get("name"), loaded.get("model"), str(loaded.get("name", "")).removesuffix(":latest"))
        if model in names and (window := _number(loaded.get("context_length"))):
            return Limits(window, None, None, "server")
    shown = fetch_json(f"{root}/api/show", {"model": model})
    if not isinstance(shown, dict):
        return None
    match = re.search(r"^num_ctx\s+(\d{1,12})$", str(shown.get("parameters") or ""), re.MULTILINE)
    if match and (told := _number(match.group(1))):
        return Limits(told, None, None, "server")
    facts = shown.get("model_info")
    facts = facts if isinstance(facts, dict) else {}
    most = next((_number(v) for k, v in facts.items() if k.endswith(".context_length")), None)
    if configured := _number(os.environ.get("OLLAMA_CONTEXT_LENGTH")):
        return Limits(min(most, configured) if most else configured, None, None, "assumed")
    return Limits(min(most, OLLAMA_CONTEXT) if most else OLLAMA_CONTEXT, None, None, "chosen")


def _llama_cpp(root: str) -> Limits | None:
    props = fetch_json(f"{root}/props")
    settings = props.get("default_generation_settings") if isinstance(props, dict) else None
    window = _number(settings.get("n_ctx")) if isinstance(settings, dict) else None
    return Limits(window, None, None, "server") if window else None


def _lm_studio(root: str, model: str) -> Limits | None:
    for found in _list(fetch_json(f"{root}/api/v0/models"), "data"):
        if found.get("id") == model:
            if window := _number(found.get("loaded_context_length")):
                return Limits(window, None, None, "server")
            if window := _number(found.get("max_context_length")):
                return Limits(window, None, None, "assumed")
    return None


def _vllm(root: str, model: str) -> Limits | None:
    for found in _list(fetch_json(f"{root}/v1/models"), "data"):
        if found.get("id") == model and (window := _number(found.get("max_model_len"))):
            return Limits(window, None, None, "server")
    return None


def _list(data: Any, name: str) -> list[dict[str, Any]]:
    values = data.get(name) if isinstance(data, dict) else None
    return [v for v in values if isinstance(v, dict)] if isinstance(values, list) else []


def _number(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 < number < _ABSURD else None
