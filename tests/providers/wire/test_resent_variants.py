"""Signed, redacted and encrypted reasoning of shapes that no recording shows, in the body of the next request; and
usage that must not be built on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import ModelConfig
from agent_tui.providers.client import ModelClient
from tests.providers import responses_stream as responses
from tests.support import anthropic_stream as anthropic
from tests.support.end_to_end import Product, calls, leaves, model
from tests.support.forms import one_of
from tests.support.loopback import CHAT_USAGE, Loopback, chat_chunk, chat_events, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")


def gemini(*parts: dict[str, Any]) -> bytes:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, "finishReason": "STOP"}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 7, "totalTokenCount": 22}
    return sse([{"candidates": [candidate], "usageMetadata": usage}])


def chat(*deltas: dict[str, Any], finish: str = "stop") -> bytes:
    end = [chat_chunk({}, finish), {**chat_chunk({}), "choices": [], "usage": CHAT_USAGE}]
    return sse([*map(chat_chunk, deltas), *end, "[DONE]"])


def detail(**fields: Any) -> dict[str, Any]:
    return {"reasoning_details": [fields]}


CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
INTERLEAVED = anthropic.answer(
    anthropic.thinking("first", "SIGNATURE-1"),
    anthropic.redacted("REDACTED-1"),
    anthropic.text("let me see"),
    anthropic.thinking("", "SIGNATURE-2"),
    anthropic.tool_use("toolu_1"),
    anthropic.tool_use("toolu_2"),
    stop="tool_use",
)
CASES: dict[str, tuple[str, dict[str, Any], bytes, list[str]]] = {
    "claude interleaved": (
        "anthropic/claude-sonnet-4-6",
        {},
        INTERLEAVED,
        ["first", "SIGNATURE-1", "REDACTED-1", "let me see", "SIGNATURE-2", "toolu_1", "toolu_2"],
    ),
    "gemini everywhere": (
        "gemini/gemini-3-pro-preview",
        {},
        gemini(
            {"text": "thought", "thought": True, "thoughtSignature": "SIGNATURE-1"},
            {"text": "so", "thoughtSignature": "SIGNATURE-2"},
            {"functionCall": {"name": "weather", "args": {}}, "thoughtSignature": "SIGNATURE-3"},
            {"functionCall": {"name": "other", "args": {}}},
        ),
        ["SIGNATURE-1", "SIGNATURE-2", "so", "SIGNATURE-3", "weather", "other"],
    ),
    "gemini at the end": (
        "gemini/gemini-3-pro-preview",
        {},
        gemini({"text": "Hello"}, {"text": "", "thoughtSignature": "SIGNATURE-1"}),
        ["Hello", "SIGNATURE-1"],
    ),
    "gemini through its openai endpoint": (
        "openai/gemini-3-pro-preview",
        {},
        chat(
            {"tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": "SIGNATURE-1"}}}]},
            finish="tool_calls",
        ),
        ["weather", "SIGNATURE-1"],
    ),
    "responses": (
        "openai/gpt-5",
        {"api": "responses"},
        responses.answer(
            responses.reasoning("rs_1", "one", "two"),
            responses.reasoning("rs_2"),
            responses.message("msg_1", "Hello", "commentary"),
            responses.call("fc_1", "call_1"),
        ),
        [
            "rs_1",
            "one",
            "two",
            "encrypted rs_1",
            "rs_2",
            "encrypted rs_2",
            "msg_1",
            "Hello",
            "commentary",
            "fc_1",
            "call_1",
        ],
    ),
    "grok responses": (
        "xai/grok-4.3",
        {"api": "responses"},
        responses.answer(responses.reasoning("rs_1", "one"), responses.message("msg_1", "Hello")),
        ["rs_1", "one", "encrypted rs_1", "msg_1", "Hello"],
    ),
    "openrouter openai": (
        "openrouter/openai/gpt-5",
        {},
        chat(
            {"reasoning": "sum", **detail(type="reasoning.summary", summary="sum", index=0)},
            detail(type="reasoning.encrypted", data="DATA-1", id="rs_1", index=1),
            {"tool_calls": [CALL]},
            finish="tool_calls",
        ),
        ["sum", "DATA-1", "rs_1", "weather"],
    ),
    "openrouter gemini": (
        "openrouter/google/gemini-3-pro-preview",
        {},
        chat({"tool_calls": [CALL], **detail(type="reasoning.encrypted", data="DATA-1", id="call_1", index=0)}),
        ["DATA-1", "call_1", "weather"],
    ),
    "a gateway's details": (
        "openai/anthropic/claude-sonnet-4.5",
        {},
        chat(
            detail(type="reasoning.text", text="thought", index=0),
            detail(type="reasoning.text", signature="SIGNATURE-1", index=0),
            {"content": "hi"},
        ),
        ["thought", "SIGNATURE-1", "hi"],
    ),
    "a gateway's reasoning": (
        "openai/kimi-k2",
        {},
        chat({"reasoning": "thought"}, {"content": "hi"}),
        ["thought", "hi"],
    ),
    "copilot": (
        "openai/claude-sonnet-4.5",
        {},
        chat({"reasoning_text": "thought", "reasoning_opaque": "OPAQUE-1"}, {"content": "hi"}),
        ["thought", "OPAQUE-1", "hi"],
    ),
    "mistral": (
        "mistral/magistral-medium-latest",
        {},
        chat({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "thought"}]}]}, {"content": "hi"}),
        ["thought", "hi"],
    ),
}


@pytest.mark.parametrize("name", one_of(CASES, 3))
async def test_opaque_values_are_exported_and_sent_back(
    worker: ModelClient, tmp_path: Path, server: Loopback, name: str
) -> None:
    litellm_name, more, body, values = CASES[name]
    server.serve("*", body)
    product = Product(tmp_path, worker, {"m": _config(litellm_name, server, more)}, step_limit=1)
    for _ in range(2):
        await product.run("hi")
        assert product.code in (0, 53), product.steps()[-1]["failure"]
    [answer, _] = product.answers()
    exported, sent = set(_texts(answer)), set(_texts(calls(server)[-1].json))
    assert set(values) <= sent, "sent back"
    assert {v for v in values if v not in ("one", "two")} <= exported, "exported"


@pytest.mark.slow
async def test_claude_gets_its_blocks_in_the_order_it_made_them(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    server.serve("*", INTERLEAVED)
    product = Product(tmp_path, worker, {"m": _config("anthropic/claude-sonnet-4-6", server, {})}, step_limit=1)
    await product.run("hi")
    await product.run("go on")
    sent = next(m for m in calls(server)[-1].json["messages"] if m["role"] == "assistant")
    kinds = [block["type"] for block in sent["content"]]
    assert kinds == ["thinking", "redacted_thinking", "text", "thinking", "tool_use", "tool_use"]


@pytest.mark.forms(1)
@pytest.mark.parametrize(
    ("usage", "source"),
    [
        (None, "estimated"),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, "estimated"),
        ({"prompt_tokens": 9_000_000, "completion_tokens": 5, "total_tokens": 9_000_005}, "estimated"),
        ({"prompt_tokens": -5, "completion_tokens": 5, "total_tokens": 0}, "estimated"),
        (CHAT_USAGE, "provider"),
    ],
    ids=["missing", "zero", "absurd", "negative", "good"],
)
async def test_bad_usage_is_estimated_and_never_built_on(
    worker: ModelClient, tmp_path: Path, server: Loopback, usage: dict[str, Any] | None, source: str
) -> None:
    server.serve("*", sse(chat_events(["hi"], usage=usage)))
    product = Product(tmp_path, worker, {"m": _config("openai/local", server, {"context_window": 32_000})})
    await product.run("hello")
    [step] = product.steps()
    counted = step["believed"] or step["usage"]
    assert counted["source"] == source
    assert 0 < counted["input_tokens"] < 32_000
    # What was reported stands as it came, where it is a report at all.
    absurd = usage is not None and usage["prompt_tokens"] > 32_000
    assert (step["believed"] is not None) is absurd
    if absurd and usage is not None:
        assert step["usage"]["input_tokens"] == usage["prompt_tokens"]
    context = await product.context()
    assert (context["calculation"]["last_input_tokens"] is None) is (source == "estimated")
    assert context["total"] > 0
    if source == "estimated":
        assert context["basis"] == "estimated"


async def test_the_sum_of_hidden_calls_is_not_built_on(worker: ModelClient, tmp_path: Path, server: Loopback) -> None:
    usage = {"input_tokens": 90_000, "output_tokens": 50, "server_tool_use": {"web_search_requests": 3}}
    server.serve("*", anthropic.answer(anthropic.text("found"), usage=usage))
    product = Product(tmp_path, worker, {"m": _config("anthropic/claude-sonnet-4-6", server, {})})
    await product.run("hello")
    assert product.steps()[0]["usage"]["input_tokens"] == 90_000
    context = await product.context()
    assert context["calculation"]["last_input_tokens"] is None
    assert context["total"] < 90_000


def _config(name: str, server: Loopback, more: dict[str, Any]) -> ModelConfig:
    return model(name, server, "", **more)


def _texts(value: Any) -> list[str]:
    """All strings, and those inside strings that are JSON."""
    found: list[str] = []
    for leaf in leaves(value):
        if isinstance(leaf, str):
            found.append(leaf)
            if leaf.startswith("{") and leaf != "{}":
                found += _texts(json.loads(leaf))
    return found
