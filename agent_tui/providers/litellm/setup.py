"""Importing LiteLLM so that it stays quiet, offline and out of the way. Worker only."""

from __future__ import annotations

import gc
import logging
import os
import warnings
from collections.abc import MutableMapping
from typing import Any

from agent_tui.providers.litellm import private

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


def load(encoding: Any = None) -> Any:
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
    private.shorten_the_end(litellm)
    if encoding is not None:
        private.share_the_tokenizer(encoding)
    private.mend_bedrock_redacted()
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "asyncio"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL)
        logger.propagate = False
    # What an import leaves behind stays: collecting it again and again would stall the loop.
    gc.freeze()
    return litellm
