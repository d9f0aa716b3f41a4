"""An answer in each dialect, streamed with its usage."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.loopback import sse

_IDS = itertools.count(1)


@dataclass(slots=True)
class Call:
    """A call of the scripted model."""

    name: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class Usage:
    """The truth about a request and its answer, in tokens; ``input`` includes what was cached."""

    input: int
    output: int
    read: int = 0
    written: int = 0


def anthropic(model: str, chunks: Iterable[str], call: Call | None, usage: Usage) -> Iterator[bytes]:
    start = {
        "input_tokens": usage.input - usage.read - usage.written,
        "cache_read_input_tokens": usage.read,
        "cache_creation_input_tokens": usage.written,
    }
    message: dict[str, Any] = {
        "id": f"msg_{next(_IDS):06}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
    }
    message |= {"stop_reason": None, "stop_sequence": None, "usage": {**start, "output_tokens": 1}}
    yield sse([{"type": "message_start", "message": message}], named=True)
    index = 0
    block: dict[str, Any] = {"type": "text", "text": ""}
    for n, text in enumerate(chunks):
        if not n:
            yield sse([{"type": "content_block_start", "index": 0, "content_block": block}], named=True)
            index = 1
        delta = {"type": "text_delta", "text": text}
        yield sse([{"type": "content_block_delta", "index": 0, "delta": delta}], named=True)
    if index:
        yield sse([{"type": "content_block_stop", "index": 0}], named=True)
    if call is not None:
        block = {"type": "tool_use", "id": f"toolu_{next(_IDS):06}", "name": call.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
        yield sse(
            [
                {"type": "content_block_start", "index": index, "content_block": block},
                {"type": "content_block_delta", "index": index, "delta": delta},
                {"type": "content_block_stop", "index": index},
            ],
            named=True,
        )
    stop = {"stop_reason": "end_turn" if call is None else "tool_use", "stop_sequence": None}
    end = {**start, "output_tokens": usage.output}
    yield sse([{"type": "message_delta", "delta": stop, "usage": end}, {"type": "message_stop"}], named=True)


def anthropic_whole(model: str, text: str, call: Call | None, usage: Usage) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    if call is not None:
        content.append({"type": "tool_use", "id": f"toolu_{next(_IDS)}", "name": call.name, "input": call.arguments})
    return {
        "id": f"msg_{next(_IDS):06}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "end_turn" if call is None else "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input - usage.read - usage.written,
            "cache_read_input_tokens": usage.read,
            "cache_creation_input_tokens": usage.written,
            "output_tokens": usage.output,
        },
    }


def _chat_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.read},
    }


def chat(model: str, chunks: Iterable[str], call: Call | None, usage: Usage) -> Iterator[bytes]:
    base = {"id": f"chatcmpl-{next(_IDS)}", "object": "chat.completion.chunk", "created": 1, "model": model}

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return sse([{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}])

    yield event({"role": "assistant", "content": ""})
    for text in chunks:
        yield event({"content": text})
    if call is not None:
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        own = {"index": 0, "id": f"call_{next(_IDS):06}", "type": "function", "function": function}
        yield event({"tool_calls": [own]})
    yield event({}, "stop" if call is None else "tool_calls")
    yield sse([{**base, "choices": [], "usage": _chat_usage(usage)}, "[DONE]"])


def chat_whole(model: str, text: str, call: Call | None, usage: Usage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call is not None:
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        message["tool_calls"] = [{"id": f"call_{next(_IDS):06}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if call is None else "tool_calls"}
    base = {"id": f"chatcmpl-{next(_IDS)}", "object": "chat.completion", "created": 1, "model": model}
    return {**base, "choices": [choice], "usage": _chat_usage(usage)}


def responses(model: str, chunks: Iterable[str], call: Call | None, usage: Usage) -> Iterator[bytes]:
    base = {"id": f"resp_{next(_IDS):06}", "object": "response", "created_at": 1, "model": model, "tools": []}
    numbers = itertools.count()

    def told(kind: str, **more: Any) -> bytes:
        return sse([{"type": f"response.{kind}", "sequence_number": next(numbers), **more}], named=True)

    yield told("created", response={**base, "status": "in_progress", "output": []})
    output: list[dict[str, Any]] = []
    said, own = "", f"msg_{next(_IDS):06}"
    for n, text in enumerate(chunks):
        if not n:
            item: dict[str, Any] = {"id": own, "type": "message", "role": "assistant", "status": "in_progress"}
            yield told("output_item.added", output_index=0, item={**item, "content": []})
            part = {"type": "output_text", "text": "", "annotations": []}
            yield told("content_part.added", item_id=own, output_index=0, content_index=0, part=part)
        said += text
        yield told("output_text.delta", item_id=own, output_index=0, content_index=0, delta=text, logprobs=[])
    if said:
        part = {"type": "output_text", "text": said, "annotations": [], "logprobs": []}
        item = {"id": own, "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        yield told("output_text.done", item_id=own, output_index=0, content_index=0, text=said)
        yield told("content_part.done", item_id=own, output_index=0, content_index=0, part=part)
        yield told("output_item.done", output_index=0, item=item)
        output.append(item)
    if call is not None:
        item = {"id": f"fc_{next(_IDS):06}", "type": "function_call", "call_id": f"call_{next(_IDS):06}"}
        item |= {"name": call.name, "status": "completed", "arguments": json.dumps(call.arguments)}
        at = len(output)
        yield told("output_item.added", output_index=at, item={**item, "arguments": "", "status": "in_progress"})
        yield told("function_call_arguments.done", item_id=item["id"], output_index=at, arguments=item["arguments"])
        yield told("output_item.done", output_index=at, item=item)
        output.append(item)
    end = {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }
    yield told("completed", response={**base, "status": "completed", "output": output, "usage": end})


def _gemini_usage(usage: Usage) -> dict[str, Any]:
    return {
        "promptTokenCount": usage.input,
        "cachedContentTokenCount": usage.read,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.input + usage.output,
    }


def _gemini_answer(parts: list[dict[str, Any]], finish: str | None, usage: Usage) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": _gemini_usage(usage), "modelVersion": "gemini-2.5-pro"}


def _gemini_call(call: Call) -> dict[str, Any]:
    return {"functionCall": {"name": call.name, "args": call.arguments}}


def gemini(model: str, chunks: Iterable[str], call: Call | None, usage: Usage) -> Iterator[bytes]:
    for text in chunks:
        yield sse([_gemini_answer([{"text": text}], None, usage)])
    if call is not None:
        yield sse([_gemini_answer([_gemini_call(call)], None, usage)])
    yield sse([_gemini_answer([{"text": ""}], "STOP", usage)])


def gemini_whole(model: str, text: str, call: Call | None, usage: Usage) -> dict[str, Any]:
    parts = [{"text": text}] if text else []
    return _gemini_answer([*parts, *([_gemini_call(call)] if call else [])], "STOP", usage)
