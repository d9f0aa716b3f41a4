"""Shapes of Gemini's and Ollama's streams that are documented or known from the field, not recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_tui.models.usage import TokenUsage
from agent_tui.providers.client import ModelClient
from tests.providers.stream_answers import ask
from tests.support.loopback import Loopback, Reply, sse

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.quick]
GEMINI = "gemini/gemini-3-pro-preview"


def gemini(*parts: dict[str, Any], finish: str | None = None, **usage: int) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **({"usageMetadata": usage} if usage else {})}


async def test_thoughts_calls_with_ids_and_a_last_signature(worker: ModelClient, server: Loopback) -> None:
    call = {"name": "weather", "args": {"location": "Rome"}, "id": "fc-1"}
    body = sse(
        [
            gemini({"text": "th", "thought": True}, promptTokenCount=10, totalTokenCount=10),
            gemini({"text": "ought", "thought": True, "thoughtSignature": "S1"}),
            gemini({"functionCall": call, "thoughtSignature": "S2"}, {"functionCall": {"name": "list", "args": {}}}),
            gemini(
                {"text": "", "thoughtSignature": "S3"},
                finish="STOP",
                promptTokenCount=10,
                candidatesTokenCount=5,
                thoughtsTokenCount=7,
                totalTokenCount=22,
                cachedContentTokenCount=4,
            ),
        ]
    )
    got = await ask(worker, server, GEMINI, body)
    assert got.parts == [
        ("reasoning", "thought", {"thought_signature": "S1"}),
        ("call", "weather", '{"location": "Rome"}', {"thought_signature": "S2", "id": "fc-1"}),
        ("call", "list", "{}", None),
        ("text", "", {"thought_signature": "S3"}),
    ]
    assert (got.end, got.usage) == ("tool_calls", TokenUsage(10, 12, 7, 4))


@pytest.mark.parametrize(
    ("last", "end"),
    [
        (gemini(finish="SAFETY"), "refused"),
        (gemini(finish="MAX_TOKENS"), "length"),
        (gemini(finish="MALFORMED_FUNCTION_CALL"), "interrupted_stream"),
        (gemini(finish="A_NEW_REASON"), "unknown"),
        ({"candidates": [{"finishReason": "STOP", "index": 0}]}, "stop"),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "refused"),
        ({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}, "overloaded"),
    ],
    ids=["safety", "length", "malformed", "new", "bare", "blocked", "error"],
)
async def test_how_gemini_stops(worker: ModelClient, server: Loopback, last: dict[str, Any], end: str) -> None:
    got = await ask(worker, server, GEMINI, sse([gemini({"text": "so"}, promptTokenCount=10), last]))
    assert (got.parts, got.end) == ([("text", "so", None)], end)


async def test_gemini_running_code_is_not_a_context_size(worker: ModelClient, server: Loopback) -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    usage = {"promptTokenCount": 10, "toolUsePromptTokenCount": 90, "candidatesTokenCount": 1, "totalTokenCount": 101}
    got = await ask(worker, server, GEMINI, sse([gemini(code, {"text": "hi"}, finish="STOP", **usage)]))
    assert got.usage == TokenUsage(100, 1, context=False)


async def test_ollamas_own_stream(worker: ModelClient, server: Loopback) -> None:
    base = {"model": "qwen3", "created_at": "2025-01-01T00:00:00Z", "done": False}
    call = {"function": {"name": "weather", "arguments": {"location": "Rome"}}}
    lines = [
        {**base, "message": {"role": "assistant", "content": "", "thinking": "hm"}},
        {**base, "message": {"role": "assistant", "content": "hi"}},
        {**base, "message": {"role": "assistant", "content": "", "tool_calls": [call]}},
        {
            **base,
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "prompt_eval_count": 31,
            "eval_count": 8,
        },
    ]
    body = Reply(b"".join(json.dumps(line).encode() + b"\n" for line in lines), content_type="application/x-ndjson")
    got = await ask(worker, server, "ollama_chat/qwen3", body)
    assert got.parts == [
        ("reasoning", "hm", None),
        ("text", "hi", None),
        ("call", "weather", '{"location": "Rome"}', None),
    ]
    assert (got.end, got.usage) == ("tool_calls", TokenUsage(31, 8))
