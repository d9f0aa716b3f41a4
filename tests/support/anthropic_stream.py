"""Streams of Anthropic's Messages API, block by block."""

from __future__ import annotations

from typing import Any

from tests.support.loopback import sse

Block = tuple[dict[str, Any], list[dict[str, Any]]]


def thinking(text: str, signature: str) -> Block:
    deltas = [{"type": "thinking_delta", "thinking": text}] if text else []
    deltas.append({"type": "signature_delta", "signature": signature})
    return {"type": "thinking", "thinking": "", "signature": ""}, deltas


def redacted(data: str) -> Block:
    return {"type": "redacted_thinking", "data": data}, []


def text(value: str) -> Block:
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": value}] if value else []


def tool_use(call_id: str, name: str = "weather", arguments: str = '{"location": "Rome"}') -> Block:
    half = len(arguments) // 2
    pieces = ["", arguments[:half], arguments[half:]]
    return (
        {"type": "tool_use", "id": call_id, "name": name, "input": {}},
        [{"type": "input_json_delta", "partial_json": piece} for piece in pieces],
    )


def answer(
    *blocks: Block,
    stop: str | None = "end_turn",
    start: dict[str, Any] | None = None,
    usage: dict[str, Any] | None = None,
    end: bool = True,
) -> bytes:
    """A whole stream; ``end`` False leaves it open after the last block."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": []}
    events: list[Any] = [
        {"type": "message_start", "message": {**message, "usage": start or {"input_tokens": 11, "output_tokens": 1}}},
        {"type": "ping"},
    ]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    if end:
        events.append(
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage or {"output_tokens": 30}}
        )
        events.append({"type": "message_stop"})
    return sse(events, named=True)
