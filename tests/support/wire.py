"""Conversations for looking at outgoing request bodies, as they leave LiteLLM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent_tui.models.messages import Message, Metadata, Origin, Part, TextPart, ToolCallPart, ToolResultPart
from agent_tui.models.requests import Effort, ModelInfo, ModelRequest, ModelSpec, Target, ToolSchema
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog import resolve_target
from agent_tui.providers.dialects.litellm import arguments
from agent_tui.providers.request import build_call
from tests.support import recorded
from tests.support.loopback import Reply, chat_stream

TOOL = ToolSchema("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
BASES = {"gemini": "/v1beta", "openai": "/v1", "cohere_chat": "/v2/chat", "groq": "/openai/v1", "openrouter": "/api/v1"}
AWS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "aws_region_name": "us-east-1"}


def spec(model: str, **more: Any) -> ModelSpec:
    provider = model.partition("/")[0]
    base = "http://127.0.0.1" + BASES.get(provider, "")
    if provider == "bedrock":
        more.setdefault("extra", AWS)
    return ModelSpec("test", model, api_base=base, api_key="k", **more)


def origin(target: Target) -> Origin:
    return Origin(target.provider, target.api, target.model)


def for_litellm(request: ModelRequest, info: ModelInfo) -> dict[str, Any]:
    """The arguments of a call through LiteLLM."""
    return arguments(build_call(request, info), request.spec)[1]


def user(name: str, text: str) -> Message:
    return Message(name, "user", [TextPart(text)])


def answer(name: str, made_by: ModelSpec | Origin, *parts: Part) -> Message:
    where = made_by if isinstance(made_by, Origin) else origin(resolve_target(made_by))
    return Message(name, "assistant", list(parts), origin=where)


def call(call_id: str, path: str, metadata: Metadata | None = None) -> ToolCallPart:
    return ToolCallPart(call_id, "read", f'{{"path": "{path}"}}', metadata)


def result(call_id: str, text: str) -> Message:
    return Message(f"result_{call_id}", "tool", [ToolResultPart(call_id, "read", text)])


def body(
    where: ModelSpec,
    messages: list[Message],
    *,
    effort: Effort = "off",
    max_output: int | None = 8_000,
    tools: list[ToolSchema] | None = None,
    reasoning: bool | None = True,
    **more: Any,
) -> dict[str, Any]:
    """The JSON that goes out for this conversation; ``more`` are other fields of the request."""
    info = ModelInfo(where, resolve_target(where), Limits(200_000, None, 64_000, "config"), Prices(), reasoning, True)
    request = recorded.request_for(
        where,
        messages,
        effort=effort,
        max_output=max_output,
        tools=[TOOL] if tools is None else tools,
        system="Be brief.",
    )
    sent = recorded.stream(replace(request, **more), info, Reply(chat_stream(["ok"])))
    if not sent.sent:
        raise AssertionError(f"nothing was sent: {sent.error}")
    return sent.sent


def conversation(
    made_by: ModelSpec | Origin, *reasoning: Part, on_call: Metadata | None = None, on_text: Metadata | None = None
) -> list[Message]:
    """A question, an answer with two parallel calls, their results, thanks."""
    return [
        user("u1", "read both"),
        answer(
            "a1",
            made_by,
            *reasoning,
            TextPart("I will.", on_text),
            call("call_1", "a.py", on_call),
            call("call_2", "b.py"),
        ),
        result("call_1", "A"),
        result("call_2", "B"),
        user("u2", "thanks"),
    ]
