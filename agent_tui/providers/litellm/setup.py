"""Importing LiteLLM so that it stays quiet, offline and out of the way. Worker only."""

from __future__ import annotations

import functools
import gc
import inspect
import logging
import os
import sys
import types
import warnings
from collections.abc import MutableMapping
from typing import Any

from agent_tui.errors import WorkerError
from agent_tui.providers import counting
from agent_tui.providers.litellm import fixes

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


def load() -> Any:
    """Imports LiteLLM (3–6 s the first time) and silences it. Blocks; run it in a thread. Raises ImportError."""
    prepare_environment(os.environ)
    warnings.filterwarnings("ignore")
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True
    litellm.num_retries = 0
    litellm.disable_streaming_logging = True
    litellm.modify_params = False
    _shorten_the_end(litellm)
    _share_the_tokenizer()
    fixes.install()
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
    known = code is not None and "_skip_mcp_handler" in code.co_consts
    return {"_skip_mcp_handler": True} if known else {}


def _share_the_tokenizer() -> None:
    """LiteLLM loads a vocabulary of its own (39 MB) to guess usage, which is never believed. It gets ours."""
    name = "litellm.litellm_core_utils.default_encoding"
    if name in sys.modules:
        return
    try:
        shared = types.ModuleType(name)
        shared.encoding = counting.encoding()  # type: ignore[attr-defined]
    except WorkerError:
        return
    sys.modules[name] = shared


def _shorten_the_end(litellm: Any) -> None:
    """At the end of every stream LiteLLM rebuilds the whole answer from its chunks, for logging that is off here:
    80 µs a chunk. Only usage is of interest there, so it gets the few chunks that carry it."""
    original = litellm.stream_chunk_builder

    def build(chunks: list[Any], *args: Any, **kwargs: Any) -> Any:
        with_usage = [chunk for chunk in chunks[:-1] if getattr(chunk, "usage", None) is not None]
        return original([*chunks[:1], *with_usage, *chunks[-1:]] if len(chunks) > 2 else chunks, *args, **kwargs)

    litellm.stream_chunk_builder = build
