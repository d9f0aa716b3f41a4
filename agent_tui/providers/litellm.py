"""LiteLLM: imported quietly and offline, mended where it must be; and everything of its code that it does not promise.

The one place to look at when a new version changes. Importing this does not import LiteLLM.

It (seen in 1.105–1.109) loses parts of what providers stream: redacted blocks on Bedrock, details-only chunks of
OpenRouter, the order of interleaved thinking, message ids of the Responses API, usage in vendor fields. It and the
OpenAI SDK below it make httpx clients of their own, so the class is the only way to all of them: there a copy of the
bytes is taken (``listen``), and what is read is bounded. Nothing changes for LiteLLM.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import logging
import os
import sys
import types
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping, Sequence
from contextvars import ContextVar
from typing import Any

from agent_tui.providers import net
from agent_tui.providers.net import BoundError, Tap

DEFAULT_ENCODING = "litellm.litellm_core_utils.default_encoding"

FINISH_REASONS = ("received_finish_reason", "intermittent_finish_reason")
CHUNKS = "chunks"
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
    replace_send(tapped, guarded)
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "asyncio"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL)
        logger.propagate = False
    # What an import leaves behind stays: collecting it again and again would stall the loop.
    gc.freeze()
    return litellm


def kept_chunks(stream: Any) -> Any:
    """The chunks as the provider sent them: usage in one of them is no invention of LiteLLM's."""
    return getattr(stream, CHUNKS, None) or ()


def said_why(stream: Any) -> bool:
    """Returns whether the provider said why its answer ended; LiteLLM makes up a reason where none came."""
    return any(getattr(stream, name, None) for name in FINISH_REASONS)


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


_listener: ContextVar[Tap | None] = ContextVar("provider_tap", default=None)


@contextlib.contextmanager
def listen(tap: Tap) -> Iterator[None]:
    """Responses that are requested inside this context (and task) are copied into ``tap``."""
    token = _listener.set(tap)
    try:
        yield
    finally:
        _listener.reset(token)


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


def tapped(original: Any) -> Any:
    """``AsyncClient.send`` that follows no redirects, and reads within bounds, into the tap where one listens."""

    async def send(self: Any, request: Any, *, stream: bool = False, **kwargs: Any) -> Any:
        net.prepare(request)
        tap = _listener.get()
        response = await original(self, request, stream=True, **{**kwargs, "follow_redirects": False})
        try:
            if (leads := net.redirect(response)) is not None:
                if tap is not None:
                    tap.broken = leads
                raise leads
            if tap is not None and response.status_code == 200:
                _copy(response, tap)
            else:
                net.guard_body(response)
            if not stream:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response

    return send


def guarded(blocking: Any) -> Any:
    """``Client.send`` that follows no redirects."""

    def send(self: Any, request: Any, **kwargs: Any) -> Any:
        response = blocking(self, request, **{**kwargs, "follow_redirects": False})
        if (leads := net.redirect(response)) is not None:
            response.close()
            raise leads
        return response

    return send


def _copy(response: Any, tap: Tap) -> None:
    """Shadows ``aiter_bytes``, which every other way of reading a response goes through."""
    tap.begin(response.headers.get("content-type", ""))

    async def bounded() -> AsyncIterator[bytes]:
        try:
            async for data in net.body(response, tap.limit):
                yield data
        except BoundError as error:
            tap.broken = error
            raise

    def below(data: bytes) -> bytes:
        return b"".join(map(_json_line, data.split(b"\n"))) if tap.json_lines else data

    async def aiter_bytes(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        async for data in tap.watch(bounded()):
            if given := below(tap.feed(data)):
                yield given
        if last := below(tap.close()):
            yield last

    response.aiter_bytes = aiter_bytes


def _json_line(line: bytes) -> bytes:
    payload = line.strip().removeprefix(b"data:").strip()
    return payload + b"\n" if payload.startswith(b"{") else b""
