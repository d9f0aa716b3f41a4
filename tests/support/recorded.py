"""Recordings of provider traffic, served on loopback and streamed through LiteLLM and our accumulator."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Literal
from urllib.parse import urlsplit

from agent_tui.models.messages import (
    Message,
    Origin,
    ReasoningPart,
    SearchPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    user_message,
)
from agent_tui.models.requests import (
    Delta,
    Effort,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    SentMessage,
    StreamItem,
    SystemBlock,
    ToolSchema,
    UsageReport,
)
from agent_tui.models.usage import Limits, Prices, TokenUsage
from agent_tui.providers import calling as call
from agent_tui.providers.catalog import is_direct, resolve_target
from agent_tui.providers.dialects.litellm import LibraryCall
from agent_tui.providers.direct import Connections
from agent_tui.providers.litellm_gateway import GatewayAnswer, library_events, load_litellm
from agent_tui.providers.reasoning import prefix_fingerprint
from tests.recordings import RECORDINGS
from tests.support.loopback import Loopback, Reply

REPLAY = RECORDINGS / "replay"

# How a recording's provider is called through LiteLLM: prefix of the model's name, path of its api_base.
_ROUTES: dict[tuple[str, str], tuple[str, str]] = {
    ("charm-hyper", "openai-chat"): ("openai", "/v1"),
    ("google", "gemini"): ("gemini", ""),
    ("cohere", "cohere"): ("cohere_chat", "/v2/chat"),
    ("zai", "openai-chat"): ("zai", "/api/coding/paas/v4"),
    ("deepseek", "openai-chat"): ("deepseek", ""),
}
_EXTRA: dict[str, dict[str, Any]] = {
    "bedrock": {"aws_access_key_id": "test", "aws_secret_access_key": "test", "aws_region_name": "us-east-1"},
    "azure": {"api_version": "preview"},
}
TOOL = ToolSchema("weather", "Tells the weather.", {"type": "object", "properties": {"location": {"type": "string"}}})


def names() -> list[str]:
    """All recordings, or none where there are no recordings."""
    manifest = REPLAY / "MANIFEST.json"
    return sorted(entry["name"] for entry in json.loads(manifest.read_text())) if manifest.is_file() else []


@cache
def load(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((REPLAY / f"{name}.json").read_text())
    return data


def body(name: str) -> bytes:
    file: str = load(name)["file"]
    return (REPLAY / file).read_bytes()


@cache
def litellm() -> Any:
    return load_litellm()


def spec_for(recording: Mapping[str, Any], url: str) -> ModelSpec:
    provider, family, model = recording["provider"], recording["family"], recording["model"]
    prefix, path = _ROUTES.get((provider, family), (provider, ""))
    responses = family == "openai-responses"
    return ModelSpec(
        key="test",
        model=f"{prefix}/{model}",
        api_base=url + path,
        api="responses" if responses else "chat",
        api_key="test-key",
        extra=_EXTRA.get(provider, {}),
    )


def info_for(spec: ModelSpec, *, reasoning: bool | None = True) -> ModelInfo:
    return ModelInfo(spec, resolve_target(spec), Limits(200_000, None, 64_000, "config"), Prices(), reasoning, True)


def request_for(
    spec: ModelSpec,
    messages: list[Message],
    *,
    effort: Effort = "medium",
    tools: list[ToolSchema] | None = None,
    system: str = "You are a helpful assistant",
    max_output: int | None = 16_000,
) -> ModelRequest:
    return ModelRequest(
        id="req_1",
        spec=spec,
        session_id="ses_1",
        system=[SystemBlock("system", system)] if system else [],
        messages=[SentMessage(message, message.id) for message in messages],
        tools=[TOOL] if tools is None else tools,
        max_output=max_output,
        effort=effort,
        fixed_fingerprint="fixed",
    )


@dataclass(slots=True)
class Streamed:
    """What came of one call: the answer as it would be stored, its usage, the request's body and path."""

    message: Message
    usage: TokenUsage
    finished: Finished | None
    items: list[StreamItem]
    sent: dict[str, Any] = field(default_factory=dict)
    path: str = ""
    raw: bytes = b""
    error: Exception | None = None


def assemble(items: list[StreamItem], message: Message) -> Message:
    """Applies deltas as the engine does."""
    for item in items:
        if not isinstance(item, Delta):
            continue
        if item.index == len(message.parts):
            if item.kind == "tool_call":
                message.parts.append(ToolCallPart(item.call_id or "", item.name or "", ""))
            elif item.kind == "search":
                message.parts.append(SearchPart())
            else:
                message.parts.append(TextPart("") if item.kind == "text" else ReasoningPart(""))
        part = message.parts[item.index]
        if isinstance(part, TextPart) and item.kind == "reasoning":
            part = message.parts[item.index] = ReasoningPart(part.text)
        if isinstance(part, ToolCallPart):
            part.arguments += item.text
            part.call_id, part.name = item.call_id or part.call_id, item.name or part.name
        elif isinstance(part, (TextPart, ReasoningPart)):
            part.text += item.text
        if item.metadata is not None:
            part.provider_metadata = item.metadata
    return message


def stream(
    request: ModelRequest,
    info: ModelInfo,
    reply: Reply,
    *,
    message_id: str = "msg_answer",
    via: Literal["auto", "litellm"] = "litellm",
) -> Streamed:
    """One call against a server that answers with ``reply``: through LiteLLM, or as the product makes it."""
    with Loopback() as server:
        server.serve("*", reply)
        spec = replace(request.spec, api_base=moved(request.spec.api_base, server.url), via=via)
        items, error = asyncio.run(_product(replace(request, spec=spec), info))
        recorded = server.requests[-1] if server.requests else None
    target = info.target
    message = assemble(
        items, Message(message_id, "assistant", origin=Origin(target.provider, target.api, target.model))
    )
    prefix = prefix_fingerprint(request.messages, request.fixed_fingerprint)
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            part.prefix = prefix
    usage = [item.usage for item in items if isinstance(item, UsageReport)]
    return Streamed(
        message,
        usage[-1] if usage else TokenUsage(0, 0, source="estimated"),
        next((item for item in items if isinstance(item, Finished)), None),
        items,
        recorded.json if recorded else {},
        recorded.path if recorded else "",
        recorded.body if recorded else b"",
        error,
    )


def moved(base: str | None, url: str) -> str:
    return url + (urlsplit(base).path if base else "")


async def _product(request: ModelRequest, info: ModelInfo) -> tuple[list[StreamItem], Exception | None]:
    items: list[StreamItem] = []
    async with aclosing(Connections()) as connections:
        await ask(request, info, items.append, connections)
    end = items[-1]
    return items, RuntimeError(end.failure.detail) if isinstance(end, Failed) else None


class OwnGateway:
    """The gateway's library in this process."""

    async def events(self, call: LibraryCall) -> AsyncGenerator[dict[str, Any], None]:
        async with aclosing(library_events(litellm(), call)) as events:
            async for event in events:
                yield event


async def ask(
    request: ModelRequest, info: ModelInfo, emit: Callable[[StreamItem], None], connections: Connections
) -> None:
    """A call as the product makes it, in this process: straight to the provider, or through LiteLLM."""
    if is_direct(request.spec, info.target):
        await call.run(request, info, emit, connections)
    else:
        make = partial(GatewayAnswer, request, info, emit, gateway=OwnGateway())
        await call.run_answer(request, info, emit, lambda key: make(key=key))


def tool_results(answer: Message, text: str = "40 C") -> list[Message]:
    return [
        Message(f"msg_result_{n}", "tool", [ToolResultPart(call.call_id, call.name, text)])
        for n, call in enumerate(answer.tool_calls)
    ]


def question(text: str = "What's the weather in Florence, Italy?", message_id: str = "msg_user") -> Message:
    message = user_message(text)
    message.id = message_id
    return message


def stored_differences(name: str, answer: Message) -> list[str]:
    """What of the recording's text, reasoning, metadata and tool calls is not in the answer as it would be stored."""
    expected = load(name)["expected"]
    wrong = []
    if answer.text != expected["text"]:
        wrong.append("text")
    if answer.reasoning != reasoning_of(name):
        wrong.append("reasoning")
    calls = [(c.call_id, c.name, c.arguments) for c in answer.tool_calls]
    wanted = [_call_of(call) for call in expected["tool_calls"]]
    if len(calls) != len(wanted) or not all(_same_call(c, w) for c, w in zip(calls, wanted, strict=True)):
        wrong.append("tool calls")
    stored = [leaf for part in answer.parts for leaf in _leaves(part.provider_metadata)]
    wrong += [f"metadata {key}" for key, value in opaque(name) if value not in stored]
    return wrong


_TITLE = re.compile(r"(?<=\S)(?=\*\*[^*]+\*\*\n\n)")


def reasoning_of(name: str) -> str:
    """The thoughts of a recording. It runs the parts of a summary together, each of which begins with a title."""
    text: str = load(name)["expected"]["reasoning"]
    return _TITLE.sub("\n\n", text) if load(name)["family"] == "openai-responses" else text


def usage_differences(name: str, usage: TokenUsage) -> list[str]:
    """Where usage differs from the recording's. The recordings write 0 for what the provider did not say."""
    expected = load(name)["expected"]["usage"]
    found = {
        "input": usage.input,
        "output": usage.output,
        "reasoning": usage.reasoning or 0,
        "cache_read": usage.cache_read or 0,
        "cache_write": usage.cache_write or 0,
    }
    wrong = [f"{key} {value} for {expected[key]}" for key, value in found.items() if value != (expected[key] or 0)]
    return wrong if usage.source == "provider" else [*wrong, "estimated"]


def resent_differences(name: str, answer: Message, sent: dict[str, Any]) -> list[str]:
    """What of the answer's opaque values, reasoning and tool calls is not in the body of the next request."""
    leaves = list(_leaves(sent))
    wrong = [key for key, value in opaque(name) if key != "id" and value not in leaves]
    item_ids = [value for key, value in opaque(name) if key == "id" and value.startswith("rs_")]
    wrong += [f"id {value}" for value in item_ids if value not in leaves]
    if answer.reasoning and answer.reasoning not in leaves and "\n\n".join(_summaries(sent)) != answer.reasoning:
        wrong.append("reasoning")
    wrong += [f"call {c.name}" for c in answer.tool_calls if c.name not in leaves]
    return wrong


def opaque(name: str) -> list[tuple[str, str]]:
    """Signatures, encrypted content, redacted data and ids of a recording. Streamed reasoning details have one
    signature, in their last piece."""
    keys = ("signature", "data", "encrypted_content", "id", "value", "redactedContent")
    found = [(k, m[k]) for m in load(name)["expected"]["reasoning_meta"] for k in keys if m.get(k)]
    return list(dict.fromkeys(found))


def _summaries(sent: dict[str, Any]) -> list[str]:
    return [s["text"] for item in sent.get("input", []) for s in item.get("summary") or []]


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in _leaves(v)]
    if isinstance(value, list):
        return [leaf for v in value for leaf in _leaves(v)]
    return [value]


def _call_of(call: dict[str, Any]) -> tuple[str | None, str, Any]:
    function = call.get("function") or call
    return call.get("id"), function["name"], function["arguments"]


def _same_call(found: tuple[str, str, str], wanted: tuple[str | None, str, Any]) -> bool:
    if wanted[0] not in (None, found[0]) or found[1] != wanted[1]:
        return False
    return found[2] == wanted[2] if isinstance(wanted[2], str) else json.loads(found[2] or "{}") == wanted[2]
