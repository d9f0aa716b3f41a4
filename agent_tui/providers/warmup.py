"""One model call to ourselves: the first call through LiteLLM costs 0.4–0.7 s, and this is it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

log = logging.getLogger(__name__)

TIMEOUT = 20.0
_ANSWER = (
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"warm","choices":'
    b'[{"index":0,"delta":{"role":"assistant","content":"ok"},"finish_reason":null}]}\n\n'
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"warm","choices":'
    b'[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"warm","choices":[],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\n\ndata: [DONE]\n\n'
)
_TOOL = {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object"}}}


async def warm_up(litellm: Any) -> None:
    """Streams a fixed answer from a server of our own on loopback. A failure costs only the warmth."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with asyncio.timeout(TIMEOUT):
            stream = await litellm.acompletion(
                model="openai/warm",
                api_base=f"http://127.0.0.1:{port}/v1",
                api_key="none",
                messages=[{"role": "user", "content": "hi"}],
                tools=[_TOOL],
                stream=True,
                stream_options={"include_usage": True},
                max_retries=0,
                timeout=TIMEOUT,
            )
            async for _ in stream:
                pass
    except Exception as error:
        log.warning("Warm-up failed: %s", error)
    finally:
        server.close()


async def read_body(reader: asyncio.StreamReader) -> bytes:
    """The body of an HTTP request that says how long it is. Raises EOFError when the client leaves."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
    length = next((int(line.partition(b":")[2]) for line in head if line.startswith(b"content-length:")), 0)
    return await reader.readexactly(length)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await read_body(reader)
        status = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        )
        writer.write(status % len(_ANSWER) + _ANSWER)
        await writer.drain()
    finally:
        writer.close()
