"""Streams of OpenAI's Responses API, item by item."""

from __future__ import annotations

from typing import Any

from tests.support.loopback import sse

Item = tuple[list[dict[str, Any]], dict[str, Any]]
USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 29,
}


def reasoning(item_id: str, *summaries: str) -> Item:
    parts = [{"type": "summary_text", "text": summary} for summary in summaries]
    item = {"id": item_id, "type": "reasoning", "summary": parts, "encrypted_content": f"encrypted {item_id}"}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "item": {**item, "summary": [], "encrypted_content": "unfinished"}}
    ]
    for n, summary in enumerate(summaries):
        place = {"item_id": item_id, "summary_index": n}
        events += [
            {"type": "response.reasoning_summary_part.added", **place, "part": {"type": "summary_text", "text": ""}},
            {"type": "response.reasoning_summary_text.delta", **place, "delta": summary},
            {"type": "response.reasoning_summary_text.done", **place, "text": summary},
        ]
    return [*events, {"type": "response.output_item.done", "item": item}], item


def message(item_id: str, text: str, phase: str | None = None) -> Item:
    item: dict[str, Any] = {"id": item_id, "type": "message", "role": "assistant", "status": "completed"}
    item["content"] = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    if phase:
        item["phase"] = phase
    return [
        {"type": "response.output_item.added", "item": {**item, "content": [], "status": "in_progress"}},
        {"type": "response.output_text.delta", "item_id": item_id, "content_index": 0, "delta": text, "logprobs": []},
        {"type": "response.output_item.done", "item": item},
    ], item


def call(item_id: str, call_id: str, name: str = "weather") -> Item:
    item = {"id": item_id, "type": "function_call", "status": "completed", "name": name, "call_id": call_id}
    return [
        {"type": "response.output_item.added", "item": {**item, "arguments": "", "status": "in_progress"}},
        {"type": "response.function_call_arguments.delta", "item_id": item_id, "delta": '{"a":'},
        {"type": "response.function_call_arguments.delta", "item_id": item_id, "delta": "1}"},
        {"type": "response.output_item.done", "item": {**item, "arguments": '{"a":1}'}},
    ], {**item, "arguments": '{"a":1}'}


def other(item: dict[str, Any], *kinds: str) -> Item:
    """An item of a kind of its own, with events of these kinds in between."""
    return [
        {"type": "response.output_item.added", "item": item},
        *({"type": f"response.{kind}", "item_id": item["id"]} for kind in kinds),
        {"type": "response.output_item.done", "item": item},
    ], item


def answer(*items: Item, status: str | None = "completed", **more: Any) -> bytes:
    """A whole stream; without ``status`` it has no last event. ``more`` are fields of the response at its end."""
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "tools": []}
    events: list[Any] = [{"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}]
    for index, (own, _) in enumerate(items):
        events += [{**event, "output_index": index} for event in own]
    if status:
        end = {**response, "status": status, "usage": USAGE, "output": [item for _, item in items], **more}
        events.append({"type": f"response.{status}", "response": end})
    return sse([{**event, "sequence_number": n} for n, event in enumerate(events)], named=True)
