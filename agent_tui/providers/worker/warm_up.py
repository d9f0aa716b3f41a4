"""A first call through LiteLLM, to a server of our own: whatever it imports and makes for one is there when the user's
comes."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from typing import Any

from agent_tui.models.messages import user_message
from agent_tui.models.requests import (
    Failed,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    SentMessage,
    StreamItem,
    SystemBlock,
    ToolSchema,
)
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog import DUMMY_KEY, dialect_of, resolve_target
from agent_tui.providers.litellm_call import LiteLLMAnswer

log = logging.getLogger(__name__)

WARM_UP_TIMEOUT = 10.0
_PLAIN = ModelSpec("warm", "openai/warm")
_TOOL = ToolSchema("noop", "Does nothing.", {"type": "object", "properties": {}})


async def warm_up(litellm: Any, spec: ModelSpec | None) -> None:
    """Makes one call as for ``spec`` (without one: to an OpenAI-compatible server). A failure costs only the warmth."""
    if spec is None or dialect_of(resolve_target(spec).provider).credentials_elsewhere:
        spec = _PLAIN
    server = await asyncio.start_server(_answer_shortly, "127.0.0.1", 0)
    api: Any = resolve_target(spec).api
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    # What of ``extra`` speaks to the library is left out with the rest of it, so the way has to be said.
    spec = replace(spec, api_base=address, api_key=DUMMY_KEY, api=api, extra={}, via="litellm")
    request = ModelRequest(
        id="warm",
        spec=spec,
        session_id="warm",
        system=[SystemBlock("system", "Be brief.")],
        messages=[SentMessage(user_message("hi"), "warm")],
        tools=[_TOOL],
        max_output=1024,
        effort="off",
        timeout=WARM_UP_TIMEOUT,
    )
    info = ModelInfo(spec, resolve_target(spec), Limits(), Prices())
    ends: list[StreamItem] = []
    try:
        await LiteLLMAnswer(request, info, ends.append, litellm).stream()
        if ends and isinstance(ends[-1], Failed):
            log.info("Warm-up of %s failed: %s", info.target.provider, ends[-1].failure.detail[:300])
    except Exception as error:
        log.warning("Warm-up failed: %s", error)
    finally:
        server.close()


async def _answer_shortly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "warm"}
    text = {"index": 0, "delta": {"role": "assistant", "content": "ok"}, "finish_reason": None}
    events = (
        {**chunk, "choices": [text]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**chunk, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}},
    )
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n"
    body = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)
    try:
        asked = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(asked.partition(b"content-length:")[2].split()[0]))
        writer.write(head.format(len(body)).encode() + body)
        await writer.drain()
    except (OSError, EOFError, IndexError, ValueError):
        log.debug("A warm-up call broke off", exc_info=True)
    finally:
        writer.close()
