"""Calls to ourselves: the first call through LiteLLM to a provider costs 0.1–0.7 s, and this is it.

They take the very way of real calls, with a server of our own on loopback in the provider's place and no real key.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections.abc import Sequence
from typing import Any

from agent_tui.models.messages import user_message
from agent_tui.models.requests import Failed, ModelRequest, ModelSpec, SentMessage, StreamItem, SystemBlock, ToolSchema
from agent_tui.providers.catalog.keys import DUMMY_KEY
from agent_tui.providers.catalog.limits import describe
from agent_tui.providers.dialects import dialect_of

log = logging.getLogger(__name__)

TIMEOUT = 10.0
_PLAIN = ModelSpec("warm", "openai/warm")
_TOOL = ToolSchema("noop", "Does nothing.", {"type": "object", "properties": {}})
_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


async def warm_up(litellm: Any, spec: ModelSpec | None = None) -> None:
    """Makes one call as for ``spec`` (without one: to an OpenAI-compatible server). A failure costs only the warmth."""
    from agent_tui.providers.calling import run as call

    if spec is None or dialect_of(describe(spec).target.provider).credentials_elsewhere:
        spec = _PLAIN
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    request = _request(spec, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    info = describe(request.spec)
    info.problem = None
    ends: list[StreamItem] = []

    async def load() -> Any:
        return litellm

    try:
        await call.run(request, info, ends.append, load)
        if ends and isinstance(ends[-1], Failed):
            log.info("Warm-up of %s failed: %s", info.target.provider, ends[-1].failure.detail[:300])
    except Exception as error:
        log.warning("Warm-up failed: %s", error)
    finally:
        server.close()


def _request(spec: ModelSpec, base: str) -> ModelRequest:
    api: Any = describe(spec).target.api
    own = dataclasses.replace(
        spec,
        api_base=base,
        api_key=DUMMY_KEY,
        api=api,
        extra={},
    )
    return ModelRequest(
        id="warm",
        spec=own,
        session_id="warm",
        system=[SystemBlock("system", "Be brief.")],
        messages=[SentMessage(user_message("hi"), "warm")],
        tools=[_TOOL],
        max_output=1024,
        effort="off",
        timeout=TIMEOUT,
    )


async def read_request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """Path and body of an HTTP request that says how long it is. Raises EOFError when the client leaves."""
    head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    fields = [line.lower() for line in head]
    length = next((int(line.partition(b":")[2]) for line in fields if line.startswith(b"content-length:")), 0)
    return head[0].split(b" ")[1].decode("latin-1"), await reader.readexactly(length)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        path, _ = await read_request(reader)
        body = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in _answer(path.partition("?")[0]))
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n"
        writer.write(head.format(len(body)).encode() + body)
        await writer.drain()
    except (OSError, EOFError):
        log.debug("A warm-up call broke off", exc_info=True)
    finally:
        writer.close()


def _answer(path: str) -> Sequence[dict[str, Any]]:
    """The shortest complete answer in the protocol that the path belongs to."""
    if path.endswith("/messages"):
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "m", "type": "message", "role": "assistant", "model": "warm", "content": [], "usage": usage}
        return [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
            {"type": "message_stop"},
        ]
    if path.endswith("GenerateContent"):
        candidate = {"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return [{"candidates": [candidate], "usageMetadata": usage}]
    if path.endswith("/responses"):
        response = {"id": "r", "object": "response", "created_at": 1, "model": "warm", "output": []}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return [
            {"type": "response.created", "response": {**response, "status": "in_progress"}},
            {"type": "response.completed", "response": {**response, "status": "completed", "usage": usage}},
        ]
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "warm"}
    text = {"index": 0, "delta": {"role": "assistant", "content": "ok"}, "finish_reason": None}
    return [
        {**chunk, "choices": [text]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**chunk, "choices": [], "usage": _USAGE},
    ]
