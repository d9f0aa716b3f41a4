"""Finds what can be used on this machine without configuration: keys in the environment, and local servers that run.

Cheap enough for the program before its first model: plain sockets in threads, at most 300 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import socket
import threading
import time
from dataclasses import field
from typing import Any

from agent_tui.models.requests import ModelSpec
from agent_tui.providers.catalog import DIALECTS, dialect_of, key_variable, variable_base
from agent_tui.providers.dialects import ollama
from agent_tui.records import dataclass
from agent_tui.urls import AddressError, parse_url, read_address

MOST_BYTES = 4_000_000
"""Bytes of an answer: a list of thousands of models."""

TIMEOUT = 2.0


def ask(url: str, data: bytes | None, timeout: float) -> tuple[int, bytes]:
    """Status and body (at most ``MOST_BYTES`` bytes) of a GET, or of a POST where there are data; no redirect is
    followed, no proxy used. Blocks for at most ``timeout`` seconds, a server that sends a byte now and then included.
    Raises OSError."""
    try:
        address = parse_url(url, login=True)
    except AddressError as error:
        raise OSError(str(error)) from None
    over = threading.Event()
    until = time.monotonic() + timeout
    try:
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        connection = kind(address.host, address.port, timeout=timeout)
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
                headers = {"Content-Type": "application/json", "Connection": "close"}
                connection.request("GET" if data is None else "POST", address.target, data, headers)
                with connection.getresponse() as answer:
                    status, body = answer.status, answer.read(MOST_BYTES)
            finally:
                watch.cancel()
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"the answer is not HTTP: {type(error).__name__}") from error
    if over.is_set():
        raise TimeoutError(f"no complete answer within {timeout:g} s")
    return status, body


def fetch_json(url: str, body: Any = None, timeout: float = TIMEOUT) -> Any:
    """The JSON at a URL of a server nearby, or None. Blocks."""
    try:
        status, answer = ask(url, None if body is None else json.dumps(body).encode(), timeout)
        return json.loads(answer) if status < 300 else None
    except (OSError, ValueError, RecursionError):
        return None


def default_base(provider: str) -> str | None:
    """Returns the address where a local provider listens: as its environment variable says, else its usual port."""
    dialect = dialect_of(provider)
    return (variable_base(dialect) or dialect.base) if dialect.local else None


def entries(data: Any, name: str) -> list[dict[str, Any]]:
    """The objects in a list of that name; none where there is no such list."""
    values = data.get(name) if isinstance(data, dict) else None
    return [v for v in values if isinstance(v, dict)] if isinstance(values, list) else []


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
        variable = key_variable(name)
        if variable is not None and dialect.default_model is not None:
            model = f"{name}/{dialect.default_model}"
            models.append(ModelSpec(model, model, api_key_env=variable))
            reasons.append(f"{variable} is set")
    for title, served in (await served_models(limit)).items():
        models += served
        reasons.append(f"{title} is running")
    if not models:
        return Detected()
    others = f" /model lists {len(models) - 1} more." if len(models) > 1 else ""
    return Detected(models, f"Using {models[0].model}: {', '.join(reasons)}.{others}")


async def served_models(limit: float = PATIENCE) -> dict[str, list[ModelSpec]]:
    """The models of servers on this machine, by the server's name. Never raises; one that takes longer than ``limit``
    seconds is left out."""
    tasks = {
        asyncio.create_task(_served(name, limit)): dialect.title for name, dialect in DIALECTS.items() if dialect.title
    }
    await asyncio.wait(tasks, timeout=limit)
    found: dict[str, list[ModelSpec]] = {}
    for task, title in tasks.items():
        if not task.done():
            task.cancel()
        elif title is not None and task.exception() is None and (served := task.result()):
            found[title] = served
    return found


async def _served(provider: str, limit: float) -> list[ModelSpec]:
    base = default_base(provider)
    address = read_address(base)
    if base is None or address is None:
        return []
    try:
        async with asyncio.timeout(limit):
            _, writer = await asyncio.open_connection(address.host, address.port)
    except (OSError, TimeoutError, ValueError):
        return []
    writer.close()
    models = await asyncio.to_thread(_models, provider, base.rstrip("/").removesuffix("/v1"), limit)
    return models[:MODELS_SHOWN]


def _models(provider: str, root: str, limit: float) -> list[ModelSpec]:
    dialect = dialect_of(provider)
    if dialect.wire is ollama.WIRE:
        listed = entries(fetch_json(f"{root}/api/tags", timeout=limit), "models")
        # Models that only embed have a family of their own, whatever they are called.
        names = [str(m["name"]) for m in listed if m.get("name") and not _embeds(m)]
        base = root
    else:
        listed = entries(fetch_json(f"{root}/v1/models", timeout=limit), "data")
        names = [str(m["id"]) for m in listed if m.get("id") and not _EMBEDDING.search(str(m["id"]))]
        base = f"{root}/v1"
    if dialect.shared_port:
        # It may be anything; llama.cpp tells its properties.
        if not isinstance(fetch_json(f"{root}/props", timeout=limit), dict):
            return []
        return [ModelSpec(f"{_ANY}/{_short(name)}", f"openai/{name}", api_base=base) for name in names[:1]]
    return [ModelSpec(f"{_shown(provider)}/{name}", f"{provider}/{name}", api_base=base) for name in names]


_ANY = "local"
"""Stands before the name of a model at the port that anything may listen on."""


def _shown(provider: str) -> str:
    return provider.removesuffix("_chat")


def served_before(key: str, named: str | None = None) -> ModelSpec | None:
    """The model that ``served_models`` had found under a name, whether its server runs now or not; None for a name that
    it gives no model. ``named`` is the model's whole name, with the provider, where that is known."""
    shown, slash, name = key.partition("/")
    for provider, dialect in DIALECTS.items():
        if not slash or dialect.title is None or shown != (_ANY if dialect.shared_port else _shown(provider)):
            continue
        root = (default_base(provider) or "").rstrip("/").removesuffix("/v1")
        base = root if dialect.wire is ollama.WIRE else f"{root}/v1"
        served = f"openai/{name}" if dialect.shared_port else f"{provider}/{name}"
        return ModelSpec(key, named or served, api_base=base)
    return None


def _embeds(model: dict[str, Any]) -> bool:
    details = model.get("details")
    families = details.get("families") or [details.get("family")] if isinstance(details, dict) else []
    named = bool(_EMBEDDING.search(str(model.get("name") or "")))
    return named or any("bert" in str(family) for family in (families if isinstance(families, list) else []))


def _short(name: str) -> str:
    return name.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".gguf")
