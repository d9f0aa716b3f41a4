"""Finds what can be used on this machine without configuration: keys in the environment, and local servers that run;
and what context those have loaded (Ollama, LM Studio, llama.cpp, vLLM).

Cheap enough for the UI process before its first model: plain sockets and ``urllib`` in threads, at most 300 ms.
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
import urllib.error
import urllib.request
from collections.abc import Sequence
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


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nothing."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def ask(url: str, data: bytes | None, timeout: float) -> tuple[int, bytes]:
    """Status and body (at most ``MOST_BYTES`` bytes) of a GET, or of a POST where there are data. Blocks for at most
    ``timeout`` seconds in all, a server that sends a byte now and then included. Raises OSError."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise OSError(f"not an HTTP address: {url}")
    watch = _Watch(timeout)
    opener = urllib.request.build_opener(_Stay(), urllib.request.ProxyHandler({}), *watch.handlers())
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with watch:
            try:
                answer = opener.open(request, timeout=timeout)
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                body = answer.read(MOST_BYTES)
                status = int(answer.status)
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"the answer is no HTTP: {type(error).__name__}") from error
    if watch.over:
        raise TimeoutError(f"no whole answer within {timeout:g} s")
    return status, body


def parsed(data: bytes) -> Any:
    """The JSON of a body; None where it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


class _Watch:
    """Ends the connections made through ``handlers`` when the time is over, whatever they are doing."""

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._sockets: list[socket.socket] = []

    def handlers(self) -> list[urllib.request.BaseHandler]:
        sockets = self._sockets

        class Plain(http.client.HTTPConnection):
            def connect(self) -> None:
                super().connect()
                sockets.append(self.sock)

        class Secure(http.client.HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                sockets.append(self.sock)

        class PlainHandler(urllib.request.HTTPHandler):
            def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(Plain, req)

        class SecureHandler(urllib.request.HTTPSHandler):
            def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(Secure, req)

        return [PlainHandler(), SecureHandler()]

    def _end(self) -> None:
        self.over = True
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *exc: object) -> None:
        self._timer.cancel()


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
    """Returns the address where a local provider listens: as its environment variable says, else its usual port."""
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
    if dialect.wire is ollama.WIRE:
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
        status, answer = ask(url, data, timeout)
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


PATIENCE = 0.3
"""Seconds detection may take in all."""

MODELS_SHOWN = 20

_EMBEDDING = re.compile(r"embed|\bbge-|\be5-|\bgte-|minilm|rerank", re.IGNORECASE)
"""Names of models that cannot chat."""

LOCAL_SERVERS = tuple((name, dialect.title) for name, dialect in DIALECTS.items() if dialect.title is not None)
"""Servers that are looked for, and what they are called."""


@dataclass(slots=True)
class Detected:
    """``models`` in order of preference and one line saying why they were chosen; both empty when nothing is there."""

    models: list[ModelSpec] = field(default_factory=list)
    reason: str = ""


async def detect_models(limit: float = PATIENCE) -> Detected:
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
    for name, dialect in DIALECTS.items():
        variable = next((v for v in dialect.keys if os.environ.get(v)), None)
        if variable is not None and dialect.default_model is not None:
            model = f"{name}/{dialect.default_model}"
            specs.append(ModelSpec(model, model, api_key_env=variable))
            names.append(f"{variable} is set")
    return specs, names


async def local_models(
    limit: float = PATIENCE, servers: Sequence[tuple[str, str]] = LOCAL_SERVERS
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
    if dialect.wire is ollama.WIRE:
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
