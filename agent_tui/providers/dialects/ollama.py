"""Ollama's own chat API (docs.ollama.com/api/chat)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agent_tui.models.messages import AttachmentPart, Metadata, ReasoningPart, TextPart, ToolCallPart
from agent_tui.models.requests import ModelSpec, Target
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.dialects.conversation import (
    AssistantTurn,
    Result,
    Said,
    alternating,
    say_system,
)
from agent_tui.providers.dialects.openai import GPT_OSS
from agent_tui.providers.dialects.outgoing import OutgoingRequest
from agent_tui.providers.dialects.parts import Event, PartBuilder, StreamReader, as_arguments
from agent_tui.providers.dialects.record import OWN_IMAGES, OWN_SCHEMAS, Dialect, Wire
from agent_tui.providers.dialects.repeats import RunningText
from agent_tui.providers.dialects.shared import mapping, number, usage_of
from agent_tui.providers.dialects.thoughts import TagSplitter, Thoughts, is_tagged, with_tags
from agent_tui.text.clean import encodable

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


def _body(made: OutgoingRequest) -> Metadata:
    rest = made.rest
    options: Metadata = {_OPTIONS[name]: rest.pop(name) for name in list(rest) if name in _OPTIONS}
    options.update(rest.pop("options", None) or {})
    effort = rest.pop("reasoning_effort", None)
    if effort is not None:
        off, by_level = effort == "none", made.family.name == GPT_OSS.name
        rest["think"] = ("low" if off else effort) if by_level else not off
    wanted = rest.get("response_format")
    if isinstance(wanted, dict) and isinstance(form := wanted.get("json_schema"), dict):
        del rest["response_format"]
        rest["format"] = form.get("schema")
    body: Metadata = {"model": made.target.model, "messages": _messages(made), "stream": True}
    if options:
        body["options"] = options
    if tools := made.tools:
        body["tools"] = tools
    return {**body, **rest, **made.extra_body}


def _messages(made: OutgoingRequest) -> list[Metadata]:
    messages: list[Metadata] = []
    for turn in made.turns():
        if isinstance(turn, Result):
            messages.append(_result(turn, made))
        elif isinstance(turn, AssistantTurn):
            messages.extend(_answer(turn, made))
        else:
            messages.append(_user(turn))
    messages = alternating(messages, _joined) if made.family.alternates else messages
    if (beginning := made.beginning(messages[0]["role"] if messages else None)) is not None:
        messages.insert(0, {"role": "user", "content": beginning})
    if made.system:
        messages.insert(0, {"role": "system", "content": "\n\n".join(made.system)})
    if made.rule.needs("system as text"):
        say_system(messages, _joined)
    return messages


def _user(said: Said) -> Metadata:
    made: Metadata = {"role": "user", "content": "\n\n".join(one for one in said if isinstance(one, str))}
    if pictures := [one.data for one in said if isinstance(one, AttachmentPart)]:
        made["images"] = pictures
    return made


def _joined(first: Metadata, second: Metadata) -> Metadata:
    made = {**first, "content": "\n\n".join(filter(None, (first["content"], second["content"])))}
    if pictures := [*first.get("images", ()), *second.get("images", ())]:
        made["images"] = pictures
    return made


def _answer(answer: AssistantTurn, made: OutgoingRequest) -> Iterator[Metadata]:
    """The message of an answer, where it says more than thoughts."""
    text = tagged = thoughts = ""
    calls: list[Metadata] = []
    for n, part in enumerate(answer.message.parts):
        if isinstance(part, TextPart):
            text += encodable(part.text)
        elif isinstance(part, ToolCallPart):
            call = answer.calls[n]
            # The id is what the result names.
            calls.append({"id": call.id, "function": {"name": call.name, "arguments": json.loads(call.arguments)}})
        elif isinstance(part, ReasoningPart) and made.plan.resent(answer.message.id, n):
            metadata = part.provider_metadata
            if is_tagged(metadata):
                tagged += with_tags(encodable(part.text), metadata or {})
            else:
                thoughts += encodable(part.text)
    message: Metadata = {"role": "assistant", "content": tagged + text if tagged or text.strip() or not calls else ""}
    if thoughts:
        message["thinking"] = thoughts
    if calls:
        message["tool_calls"] = calls
    if message["content"] or calls:
        yield message


def _result(result: Result, made: OutgoingRequest) -> Metadata:
    message = {"role": "tool", "content": result.text, "tool_call_id": result.call.id}
    named = made.dialect.named_results or made.family.named_results
    return {**message, "tool_name": result.call.name} if named else message


class OllamaStream(StreamReader):
    """One object a piece; tool calls come whole, without ids."""

    def __init__(self, out: PartBuilder, tags: bool = False) -> None:
        super().__init__(out, tags)
        self._thoughts = Thoughts(out)
        self._tags = TagSplitter(out, tags, self._thoughts)
        self._thinking, self._content = RunningText(), RunningText()
        out.at_end(self._settle)

    @staticmethod
    def knows(event: Event) -> bool:
        return "done" in event and isinstance(event.get("message"), dict)

    def event(self, event: Event) -> None:
        message: dict[str, Any] = event["message"]
        last = bool(event.get("done"))
        if text := message.get("thinking"):
            self._think(self._thinking.add(text, last))
        if text := message.get("content"):
            self._think(self._thinking.settle())
            self._tags.feed(self._content.add(str(text), last))
        calls = [call for call in message.get("tool_calls") or [] if isinstance(call, dict)]
        told = [_name_and_arguments(call) for call in calls]
        if not (last and self.out.repeats_calls((None, *one) for one in told)):
            for call, (name, arguments) in zip(calls, told, strict=True):
                self._settle()
                self.out.close(self.out.call(arguments, call_id=call.get("id") or None, name=name, begins=True))
        if last:
            self._settle()
            self.out.usage.update({k: v for k, v in event.items() if k.endswith("_count")})
            self.out.ends(event.get("done_reason") or "stop")

    def _think(self, text: str) -> None:
        if text:
            self._thoughts.say("reasoning_content", text)

    def _settle(self) -> None:
        self._think(self._thinking.settle())
        self._tags.feed(self._content.settle())
        self._tags.interrupt()


def _name_and_arguments(call: Mapping[str, Any]) -> tuple[str, str]:
    function = mapping(call.get("function"))
    return str(function.get("name") or ""), as_arguments(function.get("arguments"))


def read_usage(raw: Mapping[str, Any]) -> TokenUsage:
    return usage_of(number(raw.get("prompt_eval_count")), number(raw.get("eval_count")), None, None, None)


def _url(path: str, spec: ModelSpec, target: Target, dialect: Dialect) -> tuple[str, str | None]:
    return path.removesuffix("/chat").removesuffix("/api").removesuffix("/v1") + "/api/chat", None


WIRE = Wire(_body, _url, OllamaStream, limits=("num_predict", "options.num_predict"))
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
