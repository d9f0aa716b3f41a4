"""The provider's own count of a request's input, where it has an endpoint for that: the body of the call itself, less
what the endpoint refuses."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ModelInfo, ModelRequest, Target
from agent_tui.providers.catalog.keys import resolve_key
from agent_tui.providers.dialects import Counting, dialect_of
from agent_tui.providers.direct.address import NoAddressError
from agent_tui.providers.direct.encode import HttpCall, encode
from agent_tui.providers.direct.http import Connections, HttpError, NetworkSettingsError
from agent_tui.providers.failures.secrets import redact
from agent_tui.providers.net import guard as http_guard
from agent_tui.providers.net.bounds import BoundError
from agent_tui.providers.net.httpx_private import is_of_httpx
from agent_tui.providers.wire.request import build_call

log = logging.getLogger(__name__)

TIMEOUT = 20.0
ANSWER_LIMIT = 1_000_000
"""Bytes of an answer that is one number."""

_FIELDS: Mapping[Counting, tuple[str, ...]] = MappingProxyType(
    {
        # docs.claude.com/en/api/messages-count-tokens
        "messages": ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"),
        # ai.google.dev/api/tokens
        "generate": ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig"),
        # platform.openai.com/docs/api-reference/responses/input-tokens
        "responses": ("model", "input", "instructions", "tools", "tool_choice", "reasoning", "text"),
    }
)
"""What each kind of endpoint takes."""


async def count(request: ModelRequest, info: ModelInfo, connections: Connections) -> int | None:
    """Input tokens by the provider's count; None without an endpoint, a key, or an answer."""
    target = info.target
    counting = _counting(target)
    key = resolve_key(request.spec, target.provider)
    if counting is None or key.missing or not key.value:
        return None
    try:
        call = _question(encode(build_call(request, info), request.spec, target, key.value), target, counting)
        async with asyncio.timeout(TIMEOUT), connections.post(call.url, call.headers, call.content) as response:
            pieces = [piece async for piece in http_guard.body(response, ANSWER_LIMIT)]
        return _tokens(json.loads(b"".join(pieces)))
    except HttpError as error:
        log.info("Exact count refused: %s %s", error.status_code, redact(str(error), [key.value])[:500])
    except (OSError, ValueError, BoundError, RecursionError, NoAddressError, NetworkSettingsError) as error:
        log.info("Exact count failed: %s", redact(str(error), [key.value]))
    except Exception as error:
        if not is_of_httpx(error):
            raise
        log.info("Exact count failed: %s %s", type(error).__name__, redact(str(error), [key.value]))
    return None


def _counting(target: Target) -> Counting | None:
    """The endpoint for what is sent to this target."""
    counting = dialect_of(target.provider).counting
    return None if counting == "responses" and target.api != "responses" else counting


def _question(call: HttpCall, target: Target, counting: Counting) -> HttpCall:
    """The call that asks how long ``call`` is."""
    body: Metadata = {name: call.body[name] for name in _FIELDS[counting] if name in call.body}
    parts = urlsplit(call.url)
    match counting:
        case "messages":
            path = f"{parts.path}/count_tokens"
        case "generate":
            path = f"{parts.path.rpartition(':')[0]}:countTokens"
            body = {"generateContentRequest": {"model": f"models/{target.model}", **body}}
        case "responses":
            path = f"{parts.path}/input_tokens"
    return replace(call, url=urlunsplit(parts._replace(path=path, query="")), body=body)


def _tokens(answer: Any) -> int | None:
    if not isinstance(answer, dict):
        return None
    value = answer.get("input_tokens", answer.get("totalTokens"))
    return value if isinstance(value, int) and value > 0 else None
