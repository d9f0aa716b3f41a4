"""The gateway to LiteLLM: a call of a model that is not called directly, as the program makes it, and, in a child of
its own, the library that carries it out. All of its code that it does not promise is named here.

It is called with its own form of a request (``dialects.litellm``); what its stream says comes back as the events of
chat completions or of the Responses API, an error as what is seen of it. It takes 3–6 s and 165 MB to import, which
only the child does.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import logging
import os
import sys
import types
import warnings
from collections.abc import AsyncGenerator, Callable, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from agent_tui.errors import WorkerError
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ModelInfo, ModelRequest, ModelSpec, Target
from agent_tui.providers import net
from agent_tui.providers.calling import Emit, ModelAnswer
from agent_tui.providers.catalog import Key, dialect_of
from agent_tui.providers.counting import encoding
from agent_tui.providers.dialects.litellm import LibraryCall, arguments, path_for_litellm
from agent_tui.providers.dialects.outgoing import OutgoingRequest
from agent_tui.providers.dialects.parts import Event
from agent_tui.providers.direct import NoAddressError
from agent_tui.providers.errors import GatewayError, chain, seen_of
from agent_tui.providers.net import BoundError
from agent_tui.text.strict_json import DEEPEST_WHOLE, strict
from agent_tui.urls import AddressError, parse_url

log = logging.getLogger(__name__)


class Gateway(Protocol):
    """Carries out calls. What it yields are events; an error is a GatewayError, a BoundError, or a WorkerError where
    there is no gateway any more."""

    def events(self, call: LibraryCall) -> AsyncGenerator[Event, None]: ...


class GatewayAnswer(ModelAnswer):
    """The answer to a call through the gateway."""

    def __init__(self, request: ModelRequest, info: ModelInfo, emit: Emit, key: Key, gateway: Gateway) -> None:
        super().__init__(request, info, emit, key)
        self.accumulator.estimates = dialect_of(info.target.provider).guessed_reasoning
        self._gateway = gateway
        self._call = LibraryCall("", {})

    def _build(self) -> OutgoingRequest:
        made = super()._build()
        method, asked = arguments(made, self._request.spec)
        asked = {**strict(asked, DEEPEST_WHOLE), **connection(self._request, self._info.target, self._key)}
        self._call = LibraryCall(method, asked)
        return made

    async def _send(self) -> None:
        async with contextlib.aclosing(self._gateway.events(self._call)) as events:
            async for event in events:
                self._take(self.accumulator.read(event))


def connection(request: ModelRequest, target: Target, key: Key) -> dict[str, Any]:
    """LiteLLM arguments that say where to and how: address, key, time limits, streaming, no retries."""
    arguments: dict[str, Any] = {
        "stream": True,
        "max_retries": 0,
        "num_retries": 0,
        "timeout": request.timeout + 30,
    }
    if key.value:
        arguments["api_key"] = key.value
    if base := api_base(request.spec, target):
        arguments["api_base"] = base
    return arguments


def api_base(spec: ModelSpec, target: Target) -> str | None:
    """Returns the configured address as LiteLLM wants it for this provider, which appends to it."""
    if not spec.api_base:
        return None
    try:
        base = parse_url(spec.api_base.strip().rstrip("/"), login=True)
    except AddressError as error:
        raise NoAddressError(f"api_base of the model is not the address of an API. {error}") from None
    return replace(base, path=path_for_litellm(base.path, target, dialect_of(target.provider))).text


FINISH_REASONS = ("received_finish_reason", "intermittent_finish_reason")
CHUNKS = "chunks"
DEFAULT_ENCODING = "litellm.litellm_core_utils.default_encoding"

SKIP_MCP = "_skip_mcp_handler"
BEDROCK = ("BedrockConverseMessagesProcessor", "translate_thinking_blocks_to_reasoning_content_blocks")


ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
    "REPEATED_STREAMING_CHUNK_LIMIT": "1000000000",
    "LITELLM_TELEMETRY": "False",
    "DISABLE_AIOHTTP_TRANSPORT": "False",
    "RUST_BACKTRACE": "0",
}
"""Must be set before the import: else it fetches its table from the network, loads ``.env`` files of parent folders,
and raises after 100 equal chunks."""

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


YIELD_EVERY = 0.01
"""Seconds of buffered chunks after which the loop gets a turn: the library's stream hands them out without one."""


async def library_events(litellm: Any, call: LibraryCall) -> AsyncGenerator[Event, None]:
    """What the library streams. Usage and the reason for the end come last, and only where the provider said them: the
    library makes them up. Raises GatewayError."""
    asked = {**call.arguments, **(lean_arguments(litellm) if call.method == "acompletion" else {})}
    loop, stream, ended = asyncio.get_running_loop(), None, Ended()
    try:
        stream = await getattr(litellm, call.method)(**asked)
        turn = loop.time()
        async for chunk in stream:
            yield ended.without(_as_event(chunk))
            if loop.time() - turn > YIELD_EVERY:
                await asyncio.sleep(0)
                turn = loop.time()
        for event in ended.events(stream):
            yield event
    except Exception as error:
        if (bound := next((one for one in chain(error) if isinstance(one, BoundError)), None)) is not None:
            raise bound from error
        raise GatewayError(seen_of(unwrap(error))) from error
    finally:
        # ``break`` alone leaves the connection open.
        if (close := getattr(stream, "aclose", None)) is not None:
            try:
                await close()
            except Exception:  # the answer is there, or why it is not
                log.debug("The connection of a call could not be closed", exc_info=True)


class Ended:
    """What the library says of the end of an answer of chat completions."""

    def __init__(self) -> None:
        self._reason: Any = None
        self._counted: Metadata = {}

    def without(self, event: Event) -> Event:
        """A chunk without it."""
        if "choices" in event:
            self._counted = event.pop("usage", None) or self._counted
            for choice in event["choices"]:
                self._reason = choice.pop("finish_reason", None) or self._reason
        return event

    def events(self, stream: Any) -> list[Event]:
        """It, as far as the provider said it: the library keeps the chunks as they came."""
        found: list[Event] = []
        if self._reason and any(getattr(stream, name, None) for name in FINISH_REASONS):
            found.append({"choices": [{"index": 0, "delta": {}, "finish_reason": self._reason}]})
        usage: Metadata = {}
        for chunk in getattr(stream, CHUNKS, None) or ():
            if (told := getattr(chunk, "usage", None)) is not None:
                usage |= _as_event(told)
        if usage:
            # A price in its own count is the library's guess.
            usage |= {name: value for name, value in self._counted.items() if value is not None and name != "cost"}
            found.append({"choices": [], "usage": usage})
        return found


def _as_event(chunk: Any) -> Event:
    dump = getattr(chunk, "model_dump", None)
    event: Event = dump(mode="json", warnings=False) if dump else dict(chunk) if isinstance(chunk, dict) else {}
    return event


def unwrap(error: BaseException) -> BaseException:
    """Returns the error that happened in truth: the library wraps errors of a running stream in
    ``MidStreamFallbackError``, whose own status and class (503, unavailable) say nothing."""
    for _ in range(5):
        original = getattr(error, "original_exception", None)
        if type(error).__name__ != "MidStreamFallbackError" or not isinstance(original, BaseException):
            return error
        error = original
    return error


def load_litellm() -> Any:
    """Imports the library. Blocks for seconds; run it in a thread. Raises ImportError."""
    try:
        tokenizer = encoding()
    except WorkerError:
        tokenizer = None
    return import_quietly(tokenizer)


def prepare_environment(environment: MutableMapping[str, str]) -> None:
    """Sets what LiteLLM reads at import, and keeps proxies away from this machine's own servers."""
    environment.update(ENVIRONMENT)
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [h for h in environment.get(name, "").split(",") if h.strip()]
        environment[name] = ",".join(dict.fromkeys([*hosts, *LOOPBACK_HOSTS]))


def import_quietly(encoding: Any) -> Any:
    """Imports LiteLLM (3–6 s the first time), silences and mends it. ``encoding`` is the tokenizer it is to use instead
    of one of its own. Blocks; run it in a thread. Raises ImportError."""
    prepare_environment(os.environ)
    warnings.filterwarnings("ignore")
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True
    litellm.num_retries = 0
    litellm.disable_streaming_logging = True
    litellm.modify_params = False
    # It would ask Hugging Face for the tokenizer of a model with the name of one, to guess usage.
    litellm.disable_hf_tokenizer_download = True
    shorten_the_end(litellm)
    if encoding is not None:
        share_the_tokenizer(encoding)
    mend_bedrock_redacted()
    replace_send(bounded, bounded_blocking)
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "asyncio"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL)
        logger.propagate = False
    # What an import leaves behind stays: collecting it again and again would stall the loop.
    gc.freeze()
    return litellm


@functools.cache
def lean_arguments(litellm: Any) -> dict[str, Any]:
    """Arguments that spare a chat call what it does not need: its gateway to MCP servers costs 20 MB as soon as there
    are tools. Empty for versions that do not know them (they would be sent to the provider)."""
    code = getattr(inspect.unwrap(litellm.completion), "__code__", None)
    known = code is not None and SKIP_MCP in code.co_consts
    return {SKIP_MCP: True} if known else {}


def share_the_tokenizer(encoding: Any) -> None:
    """LiteLLM loads a vocabulary of its own (39 MB) to guess usage, which is never believed. It gets ours. To be called
    before anything is counted."""
    if DEFAULT_ENCODING not in sys.modules:
        shared = types.ModuleType(DEFAULT_ENCODING)
        shared.encoding = encoding  # type: ignore[attr-defined]
        sys.modules[DEFAULT_ENCODING] = shared


def shorten_the_end(litellm: Any) -> None:
    """At the end of every stream LiteLLM rebuilds the whole answer from its chunks, for logging that is off here:
    80 µs a chunk. Only usage is of interest there, so it gets the few chunks that carry it. Idempotent."""
    original = litellm.stream_chunk_builder
    if getattr(original, "_shortened", False):
        return

    def build(chunks: list[Any], *args: Any, **kwargs: Any) -> Any:
        with_usage = [chunk for chunk in chunks[:-1] if getattr(chunk, "usage", None) is not None]
        return original([*chunks[:1], *with_usage, *chunks[-1:]] if len(chunks) > 2 else chunks, *args, **kwargs)

    build._shortened = True  # type: ignore[attr-defined]
    litellm.stream_chunk_builder = build


def mend_bedrock_redacted() -> None:
    """LiteLLM up to 1.106 sends redacted thinking to Bedrock as empty text, newer ones encode its data once more.
    Bedrock wants it back as it came. Whether it gets that is tried, not read from a version. Idempotent."""
    processor, convert = bedrock_converter()
    if convert is None:
        return
    if "'UkVE'" in str(convert([{"type": "redacted_thinking", "data": "UkVE"}])):
        return

    def with_redacted(thinking_blocks: Sequence[dict[str, Any]], **further: Any) -> list[Any]:
        blocks: list[Any] = []
        for block in thinking_blocks:
            if block.get("type") == "redacted_thinking":
                blocks.append({"reasoningContent": {"redactedContent": block.get("data") or ""}})
            else:
                blocks.extend(convert([block], **further))
        return blocks

    setattr(processor, BEDROCK[1], staticmethod(with_redacted))


def bedrock_converter() -> tuple[Any, Any]:
    """The class that writes messages for Bedrock, and its function for thinking; None where this version has none."""
    from litellm.litellm_core_utils.prompt_templates import factory

    processor = getattr(factory, BEDROCK[0], None)
    return processor, getattr(processor, BEDROCK[1], None)


def replace_send(make: Callable[[Any], Any], make_blocking: Callable[[Any], Any]) -> None:
    """Puts what is made of httpx's two clients' own ``send`` in its place, for all clients there are and will be.
    Idempotent."""
    import httpx

    if getattr(httpx.AsyncClient.send, "_replaced", False):
        return
    send, blocking = make(httpx.AsyncClient.send), make_blocking(httpx.Client.send)
    send._replaced = True
    httpx.AsyncClient.send = send  # type: ignore[method-assign]
    httpx.Client.send = blocking  # type: ignore[method-assign]


def bounded(original: Any) -> Any:
    """``AsyncClient.send`` that follows no redirects and reads within bounds."""

    async def send(self: Any, request: Any, *, stream: bool = False, **kwargs: Any) -> Any:
        net.prepare(request)
        response = await original(self, request, stream=True, **{**kwargs, "follow_redirects": False})
        try:
            if (leads := net.redirect(response)) is not None:
                raise leads
            net.guard_body(response)
            if not stream:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response

    return send


def bounded_blocking(original: Any) -> Any:
    """``Client.send`` that follows no redirects."""

    def send(self: Any, request: Any, **kwargs: Any) -> Any:
        response = original(self, request, **{**kwargs, "follow_redirects": False})
        if (leads := net.redirect(response)) is not None:
            response.close()
            raise leads
        return response

    return send
