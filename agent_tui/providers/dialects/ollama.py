"""Ollama's own chat API (docs.ollama.com/api/chat)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ModelSpec, Target
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.dialects.chat import TagSplitter, litellm_path
from agent_tui.providers.dialects.openai import GPT_OSS
from agent_tui.providers.dialects.record import OWN_IMAGES, OWN_SCHEMAS, Dialect, Fields, Wire
from agent_tui.providers.dialects.shared import (
    Event,
    PartBuilder,
    StreamReader,
    as_arguments,
    number,
    split_data_url,
    usage_of,
)

THINKS = re.compile(r"qwen3|deepseek-(?:r1|v3\.1)|gpt-oss|magistral|glm-4|kimi-k2-thinking|nemotron")
"""Models that are known to think."""

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


def _body(fields: Fields, target: Target, dialect: Dialect) -> Metadata:
    rest = dict(fields.rest)
    options: Metadata = {_OPTIONS[name]: rest.pop(name) for name in list(rest) if name in _OPTIONS}
    options.update(rest.pop("options", None) or {})
    effort = rest.pop("reasoning_effort", None)
    if effort is not None:
        off, by_level = effort == "none", target.family == GPT_OSS.name
        rest["think"] = ("low" if off else effort) if by_level else not off
    wanted = rest.get("response_format")
    if isinstance(wanted, dict) and isinstance(form := wanted.get("json_schema"), dict):
        del rest["response_format"]
        rest["format"] = form.get("schema")
    body: Metadata = {"model": target.model, "messages": [_message(m) for m in fields.messages], "stream": True}
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
        # The id is what the result names.
        made["tool_calls"] = [
            {
                "id": c["id"],
                "function": {"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])},
            }
            for c in calls
        ]
    if message["role"] == "tool":
        made["tool_call_id"] = message["tool_call_id"]
        if message.get("name"):
            made["tool_name"] = message["name"]
    return made


class OllamaStream(StreamReader):
    """One object a piece; tool calls come whole, without ids."""

    def __init__(self, out: PartBuilder, tags: bool = False) -> None:
        super().__init__(out, tags)
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
            self.out.ends(event.get("done_reason") or "stop")


def read_usage(raw: Mapping[str, Any]) -> TokenUsage:
    return usage_of(number(raw.get("prompt_eval_count")), number(raw.get("eval_count")), None, None, None)


def _url(path: str, spec: ModelSpec, target: Target, dialect: Dialect) -> tuple[str, str | None]:
    return path.removesuffix("/chat").removesuffix("/api").removesuffix("/v1") + "/api/chat", None


WIRE = Wire(_body, _url, litellm_path, OllamaStream, limits=("num_predict", "options.num_predict"))
_OLLAMA = Dialect(
    "ollama",
    WIRE,
    "http://127.0.0.1:11434",
    base_variables=("OLLAMA_API_BASE", "OLLAMA_HOST"),
    think_tags=True,
    pins_context=True,
    local=True,
    batches=False,
    no_files=True,
    thinking="think",
    guessed_reasoning=True,
    schemas=OWN_SCHEMAS,
    images=OWN_IMAGES,
)
RECORDS = (_OLLAMA, replace(_OLLAMA, name="ollama_chat", title="Ollama", named_results=True))
