"""Finds what can be used on this machine without configuration: keys in the environment, and local servers that run;
and what context those have loaded (Ollama, LM Studio, llama.cpp, vLLM).

Cheap enough for the program before its first model: plain sockets in threads, at most 300 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import socket
import threading
import time
from dataclasses import field
from typing import Any
from urllib.parse import urlsplit

from agent_tui.models.requests import ModelSpec, Target
from agent_tui.models.usage import Limits
from agent_tui.providers.catalog import DIALECTS, dialect_of, near_url, variable_base
from agent_tui.providers.dialects import ollama
from agent_tui.records import dataclass

MOST_BYTES = 4_000_000
"""Bytes of an answer: a list of thousands of models."""

TIMEOUT = 2.0
OLLAMA_CONTEXT = 32_768
"""The context that a model which is not loaded yet is loaded with. Ollama's own default, 4 096, is cut off silently
within a turn of an agent (docs.ollama.com/context-length); much more may not fit a graphics card."""

_ABSURD = 1_000_000_000_000
"""No window has so many tokens; whoever says so says nothing."""


def ask(url: str, data: bytes | None, timeout: float) -> tuple[int, bytes]:
    """Status and body (at most ``MOST_BYTES`` bytes) of a GET, or of a POST where there are data; no redirect is
    followed, no proxy used. Blocks for at most ``timeout`` seconds, a server that sends a byte now and then included.
    Raises OSError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise OSError(f"not an HTTP address: {url}")
    over = threading.Event()
    until = time.monotonic() + timeout
    try:
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.netloc.rpartition("@")[2], timeout=timeout)
        with contextlib.closing(connection):
            connection.connect()
            reached = connection.sock

            def end() -> None:
                over.set()
                with contextlib.suppress(OSError):
                    reached.shutdown(socket.SHUT_RDWR)

            watch = threading.Timer(max(0.0, until - time.monotonic()), end)
            watch.daemon = True
            watch.start()
            try:
                target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
                headers = {"Content-Type": "application/json", "Connection": "close"}
                connection.request("GET" if data is None else "POST", target, data, headers)
                with connection.getresponse() as answer:
                    status, body = answer.status, answer.read(MOST_BYTES)
            finally:
                watch.cancel()
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"the answer is no HTTP: {type(error).__name__}") from error
    if over.is_set():
        raise TimeoutError(f"no whole answer within {timeout:g} s")
    return status, body


def fetch_json(url: str, body: Any = None, timeout: float = TIMEOUT) -> Any:
    """The JSON at a URL of a server nearby, or None. Blocks."""
    try:
        status, answer = ask(url, None if body is None else json.dumps(body).encode(), timeout)
        return json.loads(answer) if status < 300 else None
    except (OSError, ValueError, RecursionError):
        return None


def server_root(spec: ModelSpec, target: Target) -> str | None:
    """The server's address without an API path, or None when nothing says where it is."""
    base = spec.api_base or default_base(target.provider)
    if not base:
        return None
    parts = urlsplit(near_url(base, dialect_of(target.provider)))
    path = re.sub(r"/(?:v1|api)/?$|/$", "", parts.path)
    return f"{parts.scheme}://{parts.netloc}{path}"


def default_base(provider: str) -> str | None:
    """Returns the address where a local provider listens: as its environment variable says, else its usual port."""
    dialect = dialect_of(provider)
    return (variable_base(dialect) or dialect.base) if dialect.local else None


async def server_limits(spec: ModelSpec, target: Target) -> Limits | None:
    """The context the server has loaded for the model; None when it does not answer or does not say."""
    root = server_root(spec, target)
    if root is None:
        return None
    dialect = dialect_of(target.provider)
    if dialect.wire is ollama.WIRE:
        return await asyncio.to_thread(_ollama, root, target.model)
    if dialect.compatible:
        # Only the language is known. Servers with a context of their own list their models; others are left alone.
        listed = await asyncio.to_thread(fetch_json, f"{root}/v1/models")
        if not isinstance(listed, dict) or not isinstance(listed.get("data"), list):
            return None
    ways = (_llama_cpp, _lm_studio, _vllm)
    asked = await asyncio.gather(*(asyncio.to_thread(way, root, target.model) for way in ways))
    return next((limits for limits in asked if limits is not None), None)


def _ollama(root: str, model: str) -> Limits | None:
    for loaded in _list(fetch_json(f"{root}/api/ps"), "models"):
        names = (loaded.get("name"), loaded.get("model"), str(loaded.get("name", "")).removesuffix(":latest"))
        if model in names and (window := _number(loaded.get("context_length"))):
            return Limits(window, source="server")
    shown = fetch_json(f"{root}/api/show", {"model": model})
    if not isinstance(shown, dict):
        return None
    match = re.search(r"^num_ctx\s+(\d{1,12})$", str(shown.get("parameters") or ""), re.MULTILINE)
    if match and (told := _number(match[1])):
        return Limits(told, source="server")
    facts = shown.get("model_info")
    lengths = [v for k, v in facts.items() if k.endswith(".context_length")] if isinstance(facts, dict) else []
    most = (_number(lengths[0]) if lengths else None) or _ABSURD
    if configured := _number(os.environ.get("OLLAMA_CONTEXT_LENGTH")):
        return Limits(min(most, configured), source="assumed")
    return Limits(min(most, OLLAMA_CONTEXT), source="chosen")


def _llama_cpp(root: str, model: str) -> Limits | None:
    props = fetch_json(f"{root}/props")
    settings = props.get("default_generation_settings") if isinstance(props, dict) else None
    window = _number(settings.get("n_ctx")) if isinstance(settings, dict) else None
    return Limits(window, source="server") if window else None


def _lm_studio(root: str, model: str) -> Limits | None:
    for found in _list(fetch_json(f"{root}/api/v0/models"), "data"):
        if found.get("id") == model:
            if window := _number(found.get("loaded_context_length")):
                return Limits(window, source="server")
            if window := _number(found.get("max_context_length")):
                return Limits(window, source="assumed")
    return None


def _vllm(root: str, model: str) -> Limits | None:
    for found in _list(fetch_json(f"{root}/v1/models"), "data"):
        if found.get("id") == model and (window := _number(found.get("max_model_len"))):
            return Limits(window, source="server")
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


PATIENCE = 0.3
"""Seconds detection may take in all."""

MODELS_SHOWN = 20

_EMBEDDING = re.compile(r"embed|\bbge-|\be5-|\bgte-|minilm|rerank", re.IGNORECASE)
"""Names of models that cannot chat."""


@dataclass(slots=True)
class Detected:
    """``models`` in order of preference and one line saying why they were chosen; both empty when nothing is there."""

    models: list[ModelSpec] = field(default_factory=list)
    reason: str = ""


async def detect_models(limit: float = PATIENCE) -> Detected:
    """Looks at environment keys, then at Ollama, LM Studio and llama.cpp on their usual ports. Never raises; servers
    that take longer than ``limit`` seconds are left out."""
    models: list[ModelSpec] = []
    reasons: list[str] = []
    for name, dialect in DIALECTS.items():
        variable = next((v for v in dialect.keys if os.environ.get(v)), None)
        if variable is not None and dialect.default_model is not None:
            model = f"{name}/{dialect.default_model}"
            models.append(ModelSpec(model, model, api_key_env=variable))
            reasons.append(f"{variable} is set")
    tasks = {
        asyncio.create_task(_served(name, limit)): dialect.title for name, dialect in DIALECTS.items() if dialect.title
    }
    await asyncio.wait(tasks, timeout=limit)
    for task, title in tasks.items():
        if not task.done():
            task.cancel()
        elif task.exception() is None and (served := task.result()):
            models += served
            reasons.append(f"{title} is running")
    if not models:
        return Detected()
    others = f" /model lists {len(models) - 1} more." if len(models) > 1 else ""
    return Detected(models, f"Using {models[0].model}: {', '.join(reasons)}.{others}")


async def _served(provider: str, limit: float) -> list[ModelSpec]:
    base = default_base(provider)
    if base is None:
        return []
    parts = urlsplit(base)
    try:
        async with asyncio.timeout(limit):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    except (OSError, TimeoutError, ValueError):
        return []
    writer.close()
    models = await asyncio.to_thread(_models, provider, base.rstrip("/").removesuffix("/v1"), limit)
    return models[:MODELS_SHOWN]


def _models(provider: str, root: str, limit: float) -> list[ModelSpec]:
    dialect = dialect_of(provider)
    if dialect.wire is ollama.WIRE:
        listed = _list(fetch_json(f"{root}/api/tags", timeout=limit), "models")
        # Models that only embed have a family of their own, whatever they are called.
        names = [str(m["name"]) for m in listed if m.get("name") and not _embeds(m)]
        base = root
    else:
        listed = _list(fetch_json(f"{root}/v1/models", timeout=limit), "data")
        names = [str(m["id"]) for m in listed if m.get("id") and not _EMBEDDING.search(str(m["id"]))]
        base = f"{root}/v1"
    if dialect.shared_port:
        # It may be anything; llama.cpp tells its properties.
        if not isinstance(fetch_json(f"{root}/props", timeout=limit), dict):
            return []
        return [ModelSpec(f"local/{_short(name)}", f"openai/{name}", api_base=base) for name in names[:1]]
    shown = provider.removesuffix("_chat")
    return [ModelSpec(f"{shown}/{name}", f"{provider}/{name}", api_base=base) for name in names]


def _embeds(model: dict[str, Any]) -> bool:
    details = model.get("details")
    families = details.get("families") or [details.get("family")] if isinstance(details, dict) else []
    named = bool(_EMBEDDING.search(str(model.get("name") or "")))
    return named or any("bert" in str(family) for family in (families if isinstance(families, list) else []))


def _short(name: str) -> str:
    return name.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".gguf")
