"""The one look-up of what a server says of itself and of a model it serves: window, longest answer, whether the model
sees pictures, how requests can be counted. It is asked at the address and with the key and headers of a call."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import Counting, ModelInfo, ModelSpec, Target
from agent_tui.models.usage import Limits
from agent_tui.providers import net
from agent_tui.providers.catalog import dialect_of, is_direct, resolve_key, resolve_target, variable_base
from agent_tui.providers.dialects import ollama
from agent_tui.providers.dialects.outgoing import extra_headers
from agent_tui.providers.dialects.shared import mapping
from agent_tui.providers.direct import Connections, HttpError, NetworkSettingsError, NoAddressError, headers_of, url_of
from agent_tui.providers.limits import ServerFacts, table_limits
from agent_tui.providers.local_servers import MOST_BYTES, TIMEOUT, entries
from agent_tui.providers.net import BoundError, is_nearby, is_of_httpx, origin
from agent_tui.urls import read_address

log = logging.getLogger(__name__)

OLLAMA_CONTEXT = 32_768
"""The context that a model which is not loaded yet is loaded with. Ollama's own default, 4 096, is cut off silently
within a turn of an agent (docs.ollama.com/context-length); much more may not fit a graphics card."""

_ABSURD = 1_000_000_000_000
"""No window has so many tokens; whoever says so says nothing."""

_CALL_PATH = re.compile(r"/(?:chat/completions|responses|messages|api/chat|models/[^/]+:\w+)$")


async def server_facts(info: ModelInfo, connections: Connections) -> ServerFacts | None:
    """What the server of a model says; None where it is not asked. Takes at most ``TIMEOUT`` seconds, and never raises:
    a server that does not answer, or not all in that time, is ``silent``, and so is a router of llama.cpp before it has
    loaded the model."""
    if info.problem is not None or not (is_asked(info) or is_looked_up(info)):
        return None
    server = Server(info.spec, info.target, connections)
    if not is_asked(info):
        return await _of_provider(server, info.target)
    facts = await _facts(server, info.target)
    unloaded = facts.counting == "input_tokens" and facts.limits is None
    gone = server.unreachable and not server.answered
    return replace(facts, silent=unloaded or server.late or not server.answered, unreachable=gone)


def is_asked(info: ModelInfo) -> bool:
    """Returns whether a server is asked: one that people run themselves, or one at an address of its own that speaks a
    common language; one that speaks a provider's own where no table has the model."""
    dialect = dialect_of(info.target.provider)
    if dialect.local:
        return True
    address = info.spec.api_base or variable_base(dialect)
    if not address or dialect.deployments or (dialect.base is not None and origin(address) == origin(dialect.base)):
        return False
    return dialect.compatible or (dialect.wire is not None and info.limits.window is None)


def is_looked_up(info: ModelInfo) -> bool:
    """Returns whether a provider's own API is asked what it says of a model: where neither the configuration nor a
    table knows its limits. Nobody waits for that, and it is asked once."""
    dialect = dialect_of(info.target.provider)
    named = info.limits.source in ("assumed", "unknown") and not dialect.deployments
    return info.problem is None and named and not is_asked(info) and is_direct(info.spec, info.target)


def api_root(spec: ModelSpec, target: Target) -> str:
    """What the paths of a model's API come behind; empty where there is no address, or none that can be called."""
    try:
        url = read_address(url_of(spec, target))
    except NoAddressError:
        # If there is one, the call says what is wrong with it.
        url = read_address(spec.api_base)
    return (
        "" if url is None else replace(url, path=_CALL_PATH.sub("", url.path).rstrip("/"), query="", fragment="").text
    )


class Server:
    """A server that is asked for facts. Keys go where calls go, and nowhere else: no redirect is followed."""

    def __init__(self, spec: ModelSpec, target: Target, connections: Connections) -> None:
        self._connections = connections
        self._headers = headers_of(target, resolve_key(spec, target.provider).value, extra_headers(spec.extra))
        self.base = api_root(spec, target)
        """What the paths of the API come behind."""
        self.root = self.base.removesuffix("/v1")
        """The same without the API's version."""
        self.answered = not self.base
        """It said something, be it that it does not know; not that it is not ready yet."""
        self.unreachable = False
        """No connection came about."""
        self.late = False
        """Its time was over before it had said all."""
        self._until = asyncio.get_running_loop().time() + TIMEOUT

    async def json(self, url: str, body: Metadata | None = None) -> Any:
        """The JSON at a URL, or None; a POST where there is a body."""
        content = None if body is None else json.dumps(body).encode()
        try:
            async with (
                asyncio.timeout_at(self._until),
                self._connections.post(url, self._headers, content) as response,
            ):
                data = b"".join([piece async for piece in net.body(response, MOST_BYTES)])
            self.answered = True
            return json.loads(data)
        except TimeoutError:
            self.late = True
        except HttpError as error:
            self.answered = self.answered or error.status_code < 500
            log.info("No facts at %s: HTTP %s", url.removeprefix(self.root), error.status_code)
        except (BoundError, NetworkSettingsError, ValueError, RecursionError):
            self.answered = True
        except Exception as error:
            if not (isinstance(error, OSError) or is_of_httpx(error)):
                raise
            self.unreachable = True
            log.info("No facts from the server: %s", type(error).__name__)
        return None


async def _facts(server: Server, target: Target) -> ServerFacts:
    if not server.base:
        return ServerFacts()
    dialect = dialect_of(target.provider)
    if dialect.wire is ollama.WIRE:
        return await _ollama(server, target.model)
    models = entries(await server.json(f"{server.base}/models"), "data")
    if not models and not dialect.local:
        # Only the language is known. Servers with facts of their own list their models; others are left alone.
        return ServerFacts()
    own = _entry(models, target.model)
    said = _listed(own) if own is not None else ServerFacts()
    if said.counting == "tokenize" or (said.counting is None and said.limits is not None and said.images is not None):
        return said
    ways = (_llama_cpp, _lm_studio, _litellm)
    return _together([*await asyncio.gather(*(way(server, target.model) for way in ways)), said])


async def _of_provider(server: Server, target: Target) -> ServerFacts:
    """What a provider's list says of a model: its own entry, else where that says nothing of limits the list's."""
    if not server.base:
        return ServerFacts()
    own = await server.json(f"{server.base}/models/{quote(target.model, safe='/:@')}")
    facts = _listed(own) if isinstance(own, dict) else ServerFacts()
    if facts.limits is None and not server.late:
        listed = await server.json(f"{server.base}/models")
        # Some send the list as it is.
        models = entries({"data": listed} if isinstance(listed, list) else listed, "data")
        entry = next((model for model in models if model.get("id") == target.model), None)
        facts = facts if entry is None else _listed(entry)
    return facts


def _together(found: Iterable[ServerFacts]) -> ServerFacts:
    """What several answers say; the earlier one wins, but a limit that is only assumed gives way to a later one."""
    whole = ServerFacts()
    for facts in found:
        known, new = whole.limits, facts.limits
        whole = ServerFacts(
            new if known is None or (known.source == "assumed" and new is not None) else known,
            facts.images if whole.images is None else whole.images,
            whole.counting or facts.counting,
            tools=facts.tools if whole.tools is None else whole.tools,
            parallel=facts.parallel if whole.parallel is None else whole.parallel,
        )
    return whole


def _entry(models: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    """The entry of a model in a list; llama.cpp's only one, as that answers to any name."""
    own = next((m for m in models if name in (m.get("id"), *_names(m.get("aliases")))), None)
    if own is None and len(models) == 1 and (models[0].get("owned_by") == "llamacpp" or "meta" in models[0]):
        own = models[0]
    if own is not None and "max_model_len" in own and _number(own["max_model_len"]) is None:
        # vLLM says it of the model that an adapter is for.
        parent = next((m for m in models if m.get("id") == own.get("parent")), own)
        own = {**own, "max_model_len": parent.get("max_model_len")}
    return own


def _names(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _listed(entry: dict[str, Any]) -> ServerFacts:
    """What an entry of a list of models says. Its fields are those of vLLM and SGLang (``max_model_len``), llama.cpp
    (``meta``), LiteLLM's proxy (``max_input_tokens``), Anthropic (that and ``max_tokens``), Gemini
    (``inputTokenLimit``), OpenRouter, Groq, Mistral and many more."""
    meta, top, able = (mapping(entry.get(name)) for name in ("meta", "top_provider", "capabilities"))
    most = next((n for name in _OUTPUTS if (n := _number(entry.get(name)))), None)
    most = most or _number(top.get("max_completion_tokens"))
    if entry.get("type") == "model":
        # Anthropic's; elsewhere the name stands for anything.
        most = most or _number(entry.get("max_tokens"))
    shapes = mapping(entry.get("architecture")).get("input_modalities", entry.get("input_modalities"))
    images = "image" in shapes if isinstance(shapes, list) and shapes else None
    seen = mapping(able.get("image_input")).get("supported", able.get("vision"))
    takes = entry.get("supported_parameters")
    loaded = _number(entry.get("max_model_len")) or _number(meta.get("n_ctx"))
    told = next((n for name in _WINDOWS if (n := _number(entry.get(name)))), None)
    limits = None
    if loaded:
        limits = Limits(loaded, None, most, "server")
    elif told and entry.get("max_input_tokens") is not None and entry.get("type") != "model":
        limits = _of_table(entry, entry.get("id"))
    elif told:
        limits = Limits(told, None, most, "server")
    elif trained := _number(meta.get("n_ctx_train")):
        limits = Limits(trained, None, most, "assumed")
    counting: dict[Any, Counting] = {"vllm": "tokenize", "llamacpp": "input_tokens"}
    owner = str(entry.get("owned_by"))
    return ServerFacts(
        limits,
        seen if images is None and isinstance(seen, bool) else images,
        counting.get(owner),
        tools="tools" in takes if isinstance(takes, list) and takes else None,
        parallel=True if owner in _BATCHING else None,
    )


_BATCHING = ("vllm", "sglang")
_OUTPUTS = ("max_output_tokens", "max_completion_tokens", "outputTokenLimit")
_WINDOWS = ("context_length", "context_window", "max_context_length", "max_input_tokens", "inputTokenLimit")


def _of_table(entry: Metadata, model: Any) -> Limits | None:
    """The limits of an entry that is one of LiteLLM's table, as its proxy hands it on."""
    limits = table_limits(resolve_target(ModelSpec("", str(model))), dict(entry), True)
    return replace(limits, source="server") if limits.window else None


async def _llama_cpp(server: Server, model: str) -> ServerFacts:
    """The context of a slot, which is what one conversation has, however many there are, and what the model's chat
    template leaves out. A router is asked for the model without having it loaded (github.com/ggml-org/llama.cpp,
    tools/server/README.md)."""
    props = await server.json(f"{server.root}/props?model={quote(model, safe='')}&autoload=false")
    settings = mapping(props).get("default_generation_settings")
    if not isinstance(settings, dict):
        return ServerFacts()
    window = _number(settings.get("n_ctx"))
    vision = mapping(mapping(props).get("modalities")).get("vision")
    tools = mapping(mapping(props).get("chat_template_caps")).get("supports_tools")
    slots = _number(mapping(props).get("total_slots"))
    return ServerFacts(
        Limits(window, source="server") if window else None,
        vision if isinstance(vision, bool) else None,
        "input_tokens",
        tools=tools if isinstance(tools, bool) else None,
        parallel=slots > 1 if slots else None,
    )


async def _lm_studio(server: Server, model: str) -> ServerFacts:
    for found in entries(await server.json(f"{server.root}/api/v0/models"), "data"):
        if found.get("id") == model:
            images = found["type"] == "vlm" if found.get("type") in ("llm", "vlm") else None
            if window := _number(found.get("loaded_context_length")):
                return ServerFacts(Limits(window, source="server"), images)
            if window := _number(found.get("max_context_length")):
                return ServerFacts(Limits(window, source="assumed"), images)
    return ServerFacts()


async def _litellm(server: Server, model: str) -> ServerFacts:
    """What LiteLLM's proxy says of an alias: of several models behind it the one with the least window
    (docs.litellm.ai/docs/proxy/model_management)."""
    found = [
        # Earlier proxies say "no" of every model that they know nothing of.
        ServerFacts(limits, True if info.get("supports_vision") is True else None, parallel=_batches(behind))
        for listed in entries(await server.json(f"{server.root}/v1/model/info"), "data")
        if listed.get("model_name") == model and isinstance(info := listed.get("model_info"), dict)
        for behind in (mapping(listed.get("litellm_params")),)
        for limits in (_of_table(info, behind.get("model")),)
    ]
    return min(found, key=lambda facts: (facts.limits and facts.limits.window) or _ABSURD, default=ServerFacts())


def _batches(behind: Mapping[str, Any]) -> bool:
    """Returns whether what a proxy hands requests on to answers several at a time."""
    target = resolve_target(ModelSpec("", str(behind.get("model"))))
    base = behind.get("api_base")
    return dialect_of(target.provider).batches and not (isinstance(base, str) and is_nearby(base))


async def _ollama(server: Server, model: str) -> ServerFacts:
    """The context that the model is loaded with, or is to be loaded with, and what it can do. How many requests Ollama
    answers at a time it does not say; its own variable does, where it is set here."""
    several = (_number(os.environ.get("OLLAMA_NUM_PARALLEL")) or 1) > 1 and is_nearby(server.root)
    loaded = entries(await server.json(f"{server.root}/api/ps"), "models")
    shown = mapping(await server.json(f"{server.root}/api/show", {"model": model}))
    able = _names(shown.get("capabilities"))
    return ServerFacts(
        _ollama_context(model, loaded, shown),
        "vision" in able if able else None,
        tools="tools" in able if able else None,
        parallel=True if several else None,
    )


def _ollama_context(model: str, running: Iterable[Mapping[str, Any]], shown: Mapping[str, Any]) -> Limits | None:
    for loaded in running:
        names = (loaded.get("name"), loaded.get("model"), str(loaded.get("name", "")).removesuffix(":latest"))
        if model in names and (window := _number(loaded.get("context_length"))):
            return Limits(window, source="server")
    if not shown:
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


def _number(value: Any) -> int | None:
    try:
        number = 0 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 < number < _ABSURD else None
