"""What can be used on this machine without configuration: keys in the environment, and local servers that run.

Cheap enough for the UI process before its first model: plain sockets and ``urllib`` in threads, at most 300 ms.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from agent_tui.models.requests import ModelSpec
from agent_tui.providers.catalog.servers import default_base, fetch_json
from agent_tui.providers.dialects import dialect_of

LIMIT = 0.3
"""Seconds detection may take in all."""

MODELS_SHOWN = 20

_EMBEDDING = re.compile(r"embed|\bbge-|\be5-|\bgte-|minilm|rerank", re.IGNORECASE)
"""Names of models that cannot chat."""

DEFAULT_MODELS: dict[str, str] = {
    "anthropic": "anthropic/claude-sonnet-4-6",
    "openai": "openai/gpt-5",
    "gemini": "gemini/gemini-2.5-pro",
    "openrouter": "openrouter/anthropic/claude-sonnet-4.5",
    "mistral": "mistral/mistral-medium-latest",
    "deepseek": "deepseek/deepseek-chat",
    "xai": "xai/grok-4",
    "groq": "groq/openai/gpt-oss-120b",
    "zai": "zai/glm-4.7",
    "moonshot": "moonshot/kimi-k2.5",
    "cerebras": "cerebras/gpt-oss-120b",
}
"""A capable model for each provider whose key may be found in the environment, in order of preference."""

LOCAL_SERVERS: tuple[tuple[str, str], ...] = (
    ("ollama_chat", "Ollama"),
    ("lm_studio", "LM Studio"),
    ("llamafile", "llama.cpp"),
)


@dataclass(slots=True)
class Detected:
    """``models`` in order of preference and one line saying why they were chosen; both empty when nothing is there."""

    models: list[ModelSpec] = field(default_factory=list)
    reason: str = ""


async def detect_models(limit: float = LIMIT) -> Detected:
    """Looks at environment keys, then at Ollama, LM Studio and llama.cpp on their usual ports. Never raises; servers
    that take longer than ``limit`` seconds are left out."""
    keyed, names = environment_models()
    served = await local_models(limit)
    models = [*keyed, *(spec for _, specs in served for spec in specs)]
    if not models:
        return Detected()
    sources = [*names, *(f"{name} is running" for name, _ in served)]
    first = models[0].model
    others = f" /model lists {len(models) - 1} more." if len(models) > 1 else ""
    return Detected(models, f"Using {first}: {', '.join(sources)}.{others}")


def environment_models() -> tuple[list[ModelSpec], list[str]]:
    """A model for every provider whose key is in the environment, and the names of those variables."""
    specs: list[ModelSpec] = []
    names: list[str] = []
    for provider, model in DEFAULT_MODELS.items():
        variable = next((v for v in dialect_of(provider).keys if os.environ.get(v)), None)
        if variable is not None:
            specs.append(ModelSpec(model, model, api_key_env=variable))
            names.append(f"{variable} is set")
    return specs, names


async def local_models(
    limit: float = LIMIT, servers: Sequence[tuple[str, str]] = LOCAL_SERVERS
) -> list[tuple[str, list[ModelSpec]]]:
    """The models of each local server that answers in time, by the server's name."""
    tasks = [asyncio.create_task(_ask(provider, limit)) for provider, _ in servers]
    await asyncio.wait(tasks, timeout=limit)
    found: list[tuple[str, list[ModelSpec]]] = []
    for task, (_, name) in zip(tasks, servers, strict=True):
        if not task.done():
            task.cancel()
        elif task.exception() is None and (specs := task.result()):
            found.append((name, specs))
    return found


async def _ask(provider: str, limit: float) -> list[ModelSpec]:
    base = default_base(provider)
    if base is None or not await _listens(base, limit):
        return []
    models = await asyncio.to_thread(_models, provider, base.rstrip("/").removesuffix("/v1"), limit)
    return models[:MODELS_SHOWN]


async def _listens(base: str, limit: float) -> bool:
    parts = urlsplit(base)
    try:
        async with asyncio.timeout(limit):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    except (OSError, TimeoutError, ValueError):
        return False
    writer.close()
    return True


def _models(provider: str, root: str, limit: float) -> list[ModelSpec]:
    dialect = dialect_of(provider)
    if dialect.wire == "ollama":
        listed = fetch_json(f"{root}/api/tags", timeout=limit)
        # Models that only embed have a family of their own, whatever they are called.
        names = [m.get("name") for m in _dicts(listed, "models") if not _embeds(m)]
        return [_spec(provider, str(n), root) for n in names if n]
    listed = fetch_json(f"{root}/v1/models", timeout=limit)
    names = [m.get("id") for m in _dicts(listed, "data")]
    chat = [str(n) for n in names if n and not _EMBEDDING.search(str(n))]
    if dialect.shared_port:
        # It may be anything; llama.cpp tells its properties.
        if not isinstance(fetch_json(f"{root}/props", timeout=limit), dict):
            return []
        return [ModelSpec(f"local/{_short(n)}", f"openai/{n}", api_base=f"{root}/v1") for n in chat[:1]]
    return [_spec(provider, n, f"{root}/v1") for n in chat]


def _embeds(model: dict[str, object]) -> bool:
    details = model.get("details")
    families = details.get("families") or [details.get("family")] if isinstance(details, dict) else []
    named = bool(_EMBEDDING.search(str(model.get("name") or "")))
    return named or any("bert" in str(family) for family in (families if isinstance(families, list) else []))


def _spec(provider: str, name: str, base: str) -> ModelSpec:
    return ModelSpec(f"{provider.removesuffix('_chat')}/{name}", f"{provider}/{name}", api_base=base)


def _short(name: str) -> str:
    return name.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".gguf")


def _dicts(data: object, key: str) -> list[dict[str, object]]:
    values = data.get(key) if isinstance(data, dict) else None
    return [v for v in values if isinstance(v, dict)] if isinstance(values, list) else []
