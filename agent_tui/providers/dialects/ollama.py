"""Bodies of Ollama's own chat API (docs.ollama.com/api/chat)."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import FinishReason
from agent_tui.providers.catalog import family_record, model_family
from agent_tui.providers.dialects.decoding import Event, PartBuilder, TagSplitter, as_arguments
from agent_tui.providers.dialects.encoding import Fields, split_data_url

_OPTIONS = {
    "max_tokens": "num_predict",
    "num_ctx": "num_ctx",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
    "stop": "stop",
    "repeat_penalty": "repeat_penalty",
    "num_gpu": "num_gpu",
    "num_thread": "num_thread",
    "min_p": "min_p",
}


def ollama_body(fields: Fields, model: str) -> Metadata:
    """A body of ``/api/chat``."""
    rest = dict(fields.rest)
    options: Metadata = {_OPTIONS[name]: rest.pop(name) for name in list(rest) if name in _OPTIONS}
    options.update(rest.pop("options", None) or {})
    effort = rest.pop("reasoning_effort", None)
    if effort is not None:
        off, by_level = effort == "none", family_record(model_family(model)).thinking == "levels"
        rest["think"] = ("low" if off else effort) if by_level else not off
    wanted = rest.get("response_format")
    if isinstance(wanted, dict) and isinstance(form := wanted.get("json_schema"), dict):
        del rest["response_format"]
        rest["format"] = form.get("schema")
    body: Metadata = {"model": model, "messages": [_message(m) for m in fields.messages], "stream": True}
    if options:
        body["options"] = options
    if fields.tools:
        body["tools"] = fields.tools
    return {**body, **rest, **fields.extra_body}


def _message(message: Metadata) -> Metadata:
    made: Metadata = {"role": message["role"], "content": ""}
    content = message.get("content")
    if isinstance(content, str):
        made["content"] = content
    elif content:
        made["content"] = "\n\n".join(b["text"] for b in content if b["type"] == "text")
        pictures = [split_data_url(b["image_url"]["url"])[1] for b in content if b["type"] == "image_url"]
        if pictures:
            made["images"] = pictures
    if thoughts := message.get("reasoning_content") or message.get("thinking"):
        made["thinking"] = thoughts
    if calls := message.get("tool_calls"):
        made["tool_calls"] = [
            {"function": {"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])}}
            for c in calls
        ]
    if message["role"] == "tool":
        made["tool_call_id"] = message["tool_call_id"]
        if message.get("name"):
            made["tool_name"] = message["name"]
    return made


_COHERE_STOP: dict[str, FinishReason] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "TOOL_CALL": "tool_calls",
    "MAX_TOKENS": "length",
    "ERROR_TOXIC": "refused",
}
_COHERE = ("message-", "content-", "tool-", "citation-")


class CohereStream:
    """Content blocks and tool calls by index, each numbered on its own. The tool plan is reasoning."""

    def __init__(self, out: PartBuilder) -> None:
        self.out = out

    @staticmethod
    def knows(event: Event) -> bool:
        return str(event.get("type") or "").startswith(_COHERE)

    def event(self, event: Event) -> None:
        kind, index = str(event["type"]), event.get("index", 0)
        delta = event.get("delta") or {}
        message = delta.get("message") or {}
        if kind in ("content-start", "content-delta"):
            content = message.get("content") or {}
            if "thinking" in content:
                self._think(("content", index), content.get("thinking") or "", "content")
            else:
                self.out.add(("content", index), "text", content.get("text") or "")
        elif kind == "content-end":
            self.out.close(("content", index))
        elif kind == "tool-plan-delta":
            self._think("plan", message.get("tool_plan") or "", "tool_plan")
        elif kind in ("tool-call-start", "tool-call-delta"):
            call = message.get("tool_calls") or {}
            function = call.get("function") or {}
            self.out.close("plan")
            if kind == "tool-call-start":
                self.out.call(("call", index), call.get("id"), str(function.get("name") or ""))
            self.out.add(("call", index), "tool_call", as_arguments(function.get("arguments")))
        elif kind == "tool-call-end":
            self.out.close(("call", index))
        elif kind == "message-end":
            self.out.report(delta.get("usage"))
            reason = delta.get("finish_reason")
            if reason:
                self.out.finish = _COHERE_STOP.get(str(reason), "unknown")
            if delta.get("error"):
                self.out.error = {"message": str(delta["error"])}

    def _think(self, key: Hashable, text: str, field: str) -> None:
        self.out.add(key, "reasoning", text, {"field": field} if text and not self.out.has(key) else None)


class OllamaStream:
    """One object a piece; tool calls come whole, without ids."""

    def __init__(self, out: PartBuilder, tags: bool = False) -> None:
        self.out = out
        self._tags = TagSplitter(out, tags)
        self._calls = 0

    @staticmethod
    def knows(event: Event) -> bool:
        return "done" in event and isinstance(event.get("message"), dict)

    def event(self, event: Event) -> None:
        message: dict[str, Any] = event["message"]
        if text := message.get("thinking"):
            self._tags.interrupt()
            self.out.add(self.out.run("reasoning"), "reasoning", text)
        if text := message.get("content"):
            self._tags.feed(str(text))
        for call in message.get("tool_calls") or []:
            self._tags.interrupt()
            function = call.get("function") or {}
            self._calls += 1
            key = ("call", self._calls)
            self.out.call(key, call.get("id"), str(function.get("name") or ""))
            self.out.add(key, "tool_call", as_arguments(function.get("arguments")))
            self.out.close(key)
        if event.get("done"):
            self._tags.interrupt()
            self.out.usage.update({k: v for k, v in event.items() if k.endswith("_count")})
            length = event.get("done_reason") == "length"
            self.out.finish = "length" if length else "tool_calls" if self._calls else "stop"
