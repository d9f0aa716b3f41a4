"""The provider's own count of a request's input: the counting endpoints of Anthropic, Gemini and OpenAI Responses.

The body is what LiteLLM sends for the request, less what the endpoint refuses. To have it, the call is made to a
server of our own on loopback, which keeps the body and refuses: LiteLLM's ``return_raw_request`` knows only chat calls
and differs from what is sent.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from agent_tui.models.requests import ModelInfo, ModelRequest, Target
from agent_tui.providers.call import api_base
from agent_tui.providers.keys import DUMMY_KEY, resolve_key
from agent_tui.providers.plain_http import ask, parsed
from agent_tui.providers.secrets import redact
from agent_tui.providers.warmup import read_request
from agent_tui.providers.wire import WireCall, build_call

log = logging.getLogger(__name__)

TIMEOUT = 20.0
_ANTHROPIC_FIELDS = ("model", "messages", "system", "tools", "tool_choice", "thinking")
"""What ``/v1/messages/count_tokens`` takes (docs.claude.com/en/api/messages-count-tokens)."""
_GEMINI_FIELDS = ("contents", "systemInstruction", "system_instruction", "tools", "toolConfig", "generationConfig")
_RESPONSES_FIELDS = ("model", "input", "instructions", "tools", "tool_choice", "reasoning", "text")
"""What ``/v1/responses/input_tokens`` takes (platform.openai.com/docs/api-reference/responses/input-tokens)."""


async def count(request: ModelRequest, info: ModelInfo, load: Callable[[], Awaitable[Any]]) -> int | None:
    """Input tokens by the provider's count; None without an endpoint, a key, or an answer."""
    target = info.target
    key = resolve_key(request.spec, target.provider)
    if not _has_endpoint(target) or key.missing or not key.value:
        return None
    body = await _body(await load(), build_call(request, info), target)
    if body is None:
        return None
    url, headers, body = _question(target, api_base(request.spec, target), key.value, body)
    answer = await asyncio.to_thread(_post, url, headers, body, key.value)
    return _tokens(answer)


def _has_endpoint(target: Target) -> bool:
    return target.provider in ("anthropic", "gemini") or (target.provider == "openai" and target.api == "responses")


async def _body(litellm: Any, wire: WireCall, target: Target) -> dict[str, Any] | None:
    """The JSON body LiteLLM sends for a call."""
    bodies: list[bytes] = []

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            bodies.append((await read_request(reader))[1])
            writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
        except (OSError, EOFError, asyncio.LimitOverrunError):
            log.debug("The call for its body broke off", exc_info=True)
        finally:
            writer.close()

    server = await asyncio.start_server(keep, "127.0.0.1", 0)
    root = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    own = {"api_base": root, "api_key": DUMMY_KEY, "num_retries": 0, "timeout": TIMEOUT}
    try:
        async with asyncio.timeout(TIMEOUT):
            stream = await getattr(litellm, wire.method)(**{**wire.kwargs, **own})
            # Gemini's connection opens with the first chunk.
            async for _ in stream:
                break
    except Exception as error:
        log.debug("Refused, as meant: %s", type(error).__name__)
    finally:
        server.close()
    try:
        body = json.loads(bodies[0])
    except (IndexError, ValueError):
        log.info("No body to count for %s", target.provider)
        return None
    return body if isinstance(body, dict) else None


def _question(
    target: Target, base: str | None, key: str, body: dict[str, Any]
) -> tuple[str, dict[str, str], dict[str, Any]]:
    if target.provider == "anthropic":
        root = base or "https://api.anthropic.com"
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        return f"{root}/v1/messages/count_tokens", headers, _only(body, _ANTHROPIC_FIELDS)
    if target.provider == "gemini":
        root = base or "https://generativelanguage.googleapis.com/v1beta"
        inner = {"model": f"models/{target.model}", **_only(body, _GEMINI_FIELDS)}
        url = f"{root}/models/{target.model}:countTokens"
        return url, {"x-goog-api-key": key}, {"generateContentRequest": inner}
    root = base or "https://api.openai.com/v1"
    headers = {"Authorization": f"Bearer {key}"}
    return f"{root}/responses/input_tokens", headers, {**_only(body, _RESPONSES_FIELDS), "model": target.model}


def _only(body: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: body[name] for name in names if name in body}


def _post(url: str, headers: dict[str, str], body: dict[str, Any], key: str) -> Any:
    try:
        status, answer = ask(url, json.dumps(body).encode(), headers, TIMEOUT, proxies=True)
    except OSError as error:
        log.info("Exact count failed: %s", redact(str(error), [key]))
        return None
    if status >= 300:
        log.info("Exact count refused: %s %s", status, redact(answer[:500].decode("utf-8", "replace"), [key]))
        return None
    return parsed(answer)


def _tokens(answer: Any) -> int | None:
    if not isinstance(answer, dict):
        return None
    value = answer.get("input_tokens", answer.get("totalTokens"))
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12 else None
