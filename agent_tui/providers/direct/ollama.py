"""Bodies of Ollama's own chat API (docs.ollama.com/api/chat)."""

from __future__ import annotations

import json

from agent_tui.models.messages import Metadata
from agent_tui.providers.catalog.families import family_record, model_family
from agent_tui.providers.direct.body import Fields
from agent_tui.providers.direct.data_urls import split_data_url

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
