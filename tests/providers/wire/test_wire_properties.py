"""Any valid conversation becomes a request for every provider: nothing raises, every call has its result."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    Origin,
    Part,
    ReasoningPart,
    Status,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import Effort, ModelInfo, ModelRequest, ModelSpec, SentMessage, SystemBlock, ToolSchema
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog import resolve_target
from agent_tui.providers.dialects.litellm import arguments
from agent_tui.providers.request import build_call
from tests.support.forms import examples, one_of

SPECS = [
    ModelSpec("m", name, api=api)  # type: ignore[arg-type]
    for name, api in [
        ("anthropic/claude-sonnet-4-5", "auto"),
        ("anthropic/claude-opus-4-7", "auto"),
        ("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0", "auto"),
        ("openai/gpt-5", "auto"),
        ("openai/gpt-5", "chat"),
        ("azure/o3", "responses"),
        ("gemini/gemini-3-pro-preview", "auto"),
        ("gemini/gemini-2.5-flash", "auto"),
        ("openrouter/anthropic/claude-haiku-4.5", "auto"),
        ("mistral/magistral-medium-latest", "auto"),
        ("deepseek/deepseek-v4-flash", "auto"),
        ("groq/openai/gpt-oss-120b", "auto"),
        ("xai/grok-4.3", "responses"),
        ("cohere_chat/command-a-03-2025", "auto"),
        ("ollama_chat/qwen3", "auto"),
        ("zai/glm-4.6", "auto"),
    ]
]
ORIGINS = [Origin(t.provider, t.api, t.model) for t in map(resolve_target, SPECS)] + [Origin("demo", "chat", "demo")]
OWN = Origin("", "chat", "")
"""Stands for whom the conversation is sent to: what goes back as it came is what goes wrong."""
TEXT = st.one_of(st.text(max_size=20), st.sampled_from(["", " ", "\ud800", "\x00", "a\ud83d\ude00b", "</system>"]))
METADATA = st.sampled_from(
    [
        None,
        {},
        {"type": "thinking", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "RED"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC"},
        {"id": "msg_1", "phase": "commentary"},
        {"thought_signature": "T"},
        {"field": "content"},
        {"field": "reasoning", "reasoning_details": [{"type": "reasoning.text", "text": "t", "index": 0}]},
    ]
)
ARGUMENTS = st.one_of(st.sampled_from(["", "{}", '{"path": "x"}', "{broken", "[1]", "null", '"\ud800"']), TEXT)
IDS = st.sampled_from(["call_1", "call_1", "functions.add:0", "", "tooluse_äöü", "a" * 100])
ATTACHMENTS = st.sampled_from(
    [
        AttachmentPart("a.py", "text/x-python", text="print()"),
        AttachmentPart("b.png", "image/png", data="iVBORw0KGgo="),
        AttachmentPart("c.pdf", "application/pdf", data="JVBERi0="),
        AttachmentPart("d.bin", "application/octet-stream", data="AAAA"),
    ]
)


STATUSES: list[Status] = ["complete", "stopped", "failed"]


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(Message("summary", "user", [SummaryPart(draw(TEXT), "rec_1")]))
    for n in range(draw(st.integers(1, 4))):
        parts: list[Part] = [*draw(st.lists(ATTACHMENTS, max_size=2)), TextPart(draw(TEXT))]
        messages.append(Message(f"u{n}", "user", parts))
        for step in range(draw(st.integers(0, 2))):
            made: list[Part] = []
            for kind in draw(st.lists(st.sampled_from(["reasoning", "text", "call"]), max_size=5)):
                if kind == "reasoning":
                    made.append(ReasoningPart(draw(TEXT), draw(METADATA), draw(st.sampled_from([None, "prefix"]))))
                elif kind == "text":
                    made.append(TextPart(draw(TEXT), draw(METADATA)))
                else:
                    made.append(ToolCallPart(draw(IDS), "read", draw(ARGUMENTS), draw(METADATA)))
            status = draw(st.sampled_from(STATUSES))
            origin = draw(st.one_of(st.just(OWN), st.sampled_from([*ORIGINS, None])))
            messages.append(Message(f"a{n}.{step}", "assistant", made, status, origin=origin))
            for m, call in enumerate(p for p in made if isinstance(p, ToolCallPart)):
                if draw(st.integers(0, 9)) == 0:
                    continue
                shown: list[Part] = [ToolResultPart(call.call_id, call.name, draw(TEXT))]
                shown += draw(st.lists(ATTACHMENTS, max_size=1))
                messages.append(Message(f"r{n}.{step}.{m}", "tool", shown))
    return messages


def call_for(
    spec: ModelSpec,
    messages: list[Message],
    effort: Effort = "medium",
    tools: bool = True,
    max_output: int | None = 9_000,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    info = ModelInfo(spec, resolve_target(spec), Limits(200_000, None, 64_000), Prices(), True, True)
    request = ModelRequest(
        "req",
        spec,
        "ses",
        [SystemBlock("system", "Be brief.")],
        [SentMessage(message, message.id) for message in messages],
        [ToolSchema("read", "Reads.", {"type": "object", "properties": {}})] if tools else [],
        max_output,
        effort,
    )
    call = build_call(request, info)
    return arguments(call, spec)[1], call.notes


def _check_chat(messages: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            assert message["content"]
        elif message["role"] == "assistant":
            ids = [call["id"] for call in message.get("tool_calls") or []]
            assert message["content"] != "" or message.get("provider_specific_fields")
            waiting += ids
            assert not seen & set(ids) and all(ids)
            seen |= set(ids)
        else:
            assert not waiting
            assert message["content"]
    assert not waiting


def _check_items(items: list[dict[str, Any]]) -> None:
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert calls == outputs and len(set(calls)) == len(calls)
    for item, following in zip(items, [*items[1:], {}], strict=True):
        if item.get("type") == "reasoning":
            assert following.get("type") in ("reasoning", "message", "function_call")


ENCRYPTED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC"}
ONLY_THOUGHT = [
    Message("u0", "user", [TextPart("")]),
    Message("a0.0", "assistant", [ReasoningPart("")], origin=ORIGINS[0]),
    Message("a0.1", "assistant", [ReasoningPart("", ENCRYPTED), TextPart("")], origin=OWN),
]


@pytest.mark.parametrize("spec", one_of(SPECS, 4), ids=lambda spec: f"{spec.model}-{spec.api}")
@example(messages=ONLY_THOUGHT, effort="medium", tools=True, max_output=None)
@settings(max_examples=examples(20, 200), deadline=None)
@given(
    messages=conversations(),
    effort=st.sampled_from(["off", "low", "medium", "high"]),
    tools=st.booleans(),
    max_output=st.sampled_from([None, 1, 1_024, 2_048, 64_000]),
)
def test_any_conversation_becomes_a_valid_request(
    spec: ModelSpec, messages: list[Message], effort: Effort, tools: bool, max_output: int | None
) -> None:
    own = ORIGINS[SPECS.index(spec)]
    messages = [replace(message, origin=own) if message.origin == OWN else message for message in messages]
    asked, _ = call_for(spec, messages, effort, tools, max_output)
    json.dumps(asked, ensure_ascii=False).encode()
    if "input" in asked:
        _check_items(asked["input"])
    else:
        _check_chat(asked["messages"])
    budget = (asked.get("thinking") or {}).get("budget_tokens")
    if budget is not None and asked.get("max_tokens") is not None and budget > 128:
        assert budget < asked["max_tokens"]
    markers = json.dumps(asked.get("messages", [])).count('"cache_control"')
    assert markers + json.dumps(asked.get("tools", [])).count('"cache_control"') <= 4


def _without_markers(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_markers(v) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list):
        return [_without_markers(v) for v in value]
    return value


@pytest.mark.parametrize("spec", one_of(SPECS, 4), ids=lambda spec: f"{spec.model}-{spec.api}")
@settings(max_examples=examples(12, 100), deadline=None)
@given(messages=conversations())
def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter(spec: ModelSpec, messages: list[Message]) -> None:
    for message in messages:
        message.origin = None if message.role != "assistant" else ORIGINS[SPECS.index(spec)]
    users = [n for n, message in enumerate(messages) if message.role == "user"]
    calls = [call_for(spec, messages[: users[-1] + 1]), call_for(spec, messages)]
    # A step that has to run without thinking leaves out what only goes with it.
    assume(not any(notes for _, notes in calls))
    shorter, longer = (_without_markers(asked) for asked, _ in calls)
    name = "input" if "input" in shorter else "messages"
    kept = shorter[name]
    assert json.dumps(longer[name][: len(kept)]) == json.dumps(kept)
    for part in ("tools", "instructions", "prompt_cache_key"):
        assert json.dumps(longer.get(part)) == json.dumps(shorter.get(part))
