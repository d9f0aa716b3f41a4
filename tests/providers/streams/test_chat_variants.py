"""Shapes of chat completions and their dialects that are documented or known from the field, not recorded."""

from __future__ import annotations

from typing import Any

import pytest

from agent_tui.models.usage import TokenUsage
from agent_tui.providers.client import ModelClient
from tests.providers.stream_answers import ask
from tests.support.loopback import Loopback, chat_chunk, json_reply, sse

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.quick]
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
CHAT = TokenUsage(11, 3)


def chat(*deltas: dict[str, Any], finish: str | None = "stop", tail: tuple[Any, ...] | None = None) -> bytes:
    events: list[Any] = [chat_chunk(delta) for delta in deltas]
    if finish:
        events.append(chat_chunk({}, finish))
    events += [{**chat_chunk({}), "choices": [], "usage": USAGE}] if tail is None else tail
    return sse([*events, "[DONE]"])


def call_delta(**call: Any) -> dict[str, Any]:
    return {"tool_calls": [call]}


@pytest.mark.parametrize(
    ("deltas", "part"),
    [
        ([{"reasoning_content": "ab"}], ("reasoning", "ab", None)),
        ([{"reasoning": "a"}, {"reasoning": "b"}], ("reasoning", "ab", {"field": "reasoning"})),
        ([{"reasoning_content": "ab", "reasoning": "ab"}], ("reasoning", "ab", None)),
        ([{"reasoning_text": "ab"}], ("reasoning", "ab", {"field": "reasoning_text"})),
        (
            [{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "ab"}]}]}],
            ("reasoning", "ab", {"field": "content"}),
        ),
        (
            [
                {"reasoning_details": [{"type": "reasoning.text", "text": "ab", "index": 0}]},
                {"reasoning_details": [{"type": "reasoning.text", "signature": "S", "index": 0}]},
            ],
            (
                "reasoning",
                "ab",
                {"reasoning_details": [{"type": "reasoning.text", "text": "ab", "index": 0, "signature": "S"}]},
            ),
        ),
    ],
    ids=["reasoning_content", "reasoning", "both", "reasoning_text", "content blocks", "details"],
)
async def test_reasoning_in_every_field(
    worker: ModelClient, server: Loopback, deltas: list[dict[str, Any]], part: tuple[Any, ...]
) -> None:
    body = chat({"role": "assistant", "content": None}, *deltas, {"content": "hi"})
    got = await ask(worker, server, "openai/some-gateways-model", body)
    assert got == ([part, ("text", "hi", None)], "stop", CHAT)


@pytest.mark.parametrize(
    "deltas",
    [
        [
            call_delta(index=0, id="c1", type="function", function={"name": "read", "arguments": '{"a'}),
            call_delta(index=1, id="c2", type="function", function={"name": "list", "arguments": "{"}),
            call_delta(index=0, function={"arguments": '":1}'}),
            call_delta(index=1, function={"arguments": "}"}),
        ],
        [
            call_delta(id="c1", type="function", function={"name": "read", "arguments": '{"a'}),
            call_delta(function={"arguments": '":1}'}),
            call_delta(id="c2", type="function", function={"name": "list", "arguments": "{}"}),
        ],
        [
            call_delta(index=0, id="c1", type="function", function={"name": "read", "arguments": '{"a'}),
            call_delta(index=0, id="c1", type="function", function={"name": "read", "arguments": '":1}'}),
            call_delta(index=0, id="c2", type="function", function={"name": "list", "arguments": "{}"}),
        ],
        [
            call_delta(index=0, type="function", function={"name": "", "arguments": ""}),
            call_delta(index=0, id="c1", function={"name": "read", "arguments": '{"a":1}'}),
            call_delta(index=1, id="c2", type="function", function={"name": "list", "arguments": "{}"}),
        ],
    ],
    ids=["interleaved", "no index", "repeated", "name and id later"],
)
async def test_calls_in_every_order(worker: ModelClient, server: Loopback, deltas: list[dict[str, Any]]) -> None:
    got = await ask(worker, server, "openai/some-gateways-model", chat(*deltas, finish="tool_calls"))
    assert got.parts == [("call", "read", '{"a":1}', None), ("call", "list", "{}", None)]
    assert got.end == "tool_calls"


@pytest.mark.parametrize(
    ("finish", "tail", "usage"),
    [
        ("stop", (), TokenUsage(0, 1, source="estimated", reasoning_source="estimated")),
        (None, ({**chat_chunk({}, "stop"), "usage": USAGE},), CHAT),
        (None, ({**chat_chunk({}), "choices": [], "usage": USAGE}, chat_chunk({}, "stop")), CHAT),
        ("stop", ({**chat_chunk({}), "choices": [], "x_groq": {"id": "r", "usage": USAGE}},), CHAT),
        ("stop", ({"choices": [{"index": 0, "delta": {}, "usage": USAGE}]},), CHAT),
        ("stop", ({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "usage": USAGE},), CHAT),
    ],
    ids=["missing", "with the finish", "before the finish", "x_groq", "in the choice", "without choices"],
)
async def test_usage_in_every_place(
    worker: ModelClient, server: Loopback, finish: str | None, tail: tuple[Any, ...], usage: TokenUsage
) -> None:
    body = chat({"role": "assistant", "content": ""}, {"content": "hi"}, finish=finish, tail=tail)
    assert await ask(worker, server, "openai/some-gateways-model", body) == ([("text", "hi", None)], "stop", usage)


async def test_the_function_call_form(worker: ModelClient, server: Loopback) -> None:
    deltas = [{"function_call": {"name": "read", "arguments": ""}}, {"function_call": {"arguments": "{}"}}]
    got = await ask(worker, server, "openai/old", chat(*deltas, finish="function_call"))
    assert (got.parts, got.end) == ([("call", "read", "{}", None)], "tool_calls")


async def test_a_refusal_and_a_filter(worker: ModelClient, server: Loopback) -> None:
    got = await ask(worker, server, "openai/x", chat({"role": "assistant", "refusal": ""}, {"refusal": "No."}))
    assert (got.parts, got.end) == ([("text", "No.", None)], "refused")
    got = await ask(worker, server, "openai/x", chat({"content": "So"}, finish="content_filter"))
    assert (got.parts, got.end) == ([("text", "So", None)], "refused")


@pytest.mark.parametrize("model", ["openai/x", "openrouter/anthropic/claude-sonnet-4.5"])
async def test_an_error_beside_choices(worker: ModelClient, server: Loopback, model: str) -> None:
    error = {**chat_chunk({"content": ""}, "error"), "error": {"code": 502, "message": "Provider disconnected"}}
    got = await ask(worker, server, model, chat({"content": "par"}, finish=None, tail=(error,)))
    assert (got.parts, got.end) == ([("text", "par", None)], "overloaded")


async def test_encrypted_details_stay_apart(worker: ModelClient, server: Loopback) -> None:
    def detail(data: str, **more: Any) -> dict[str, Any]:
        return {"reasoning_details": [{"type": "reasoning.encrypted", "data": data, "index": 0, **more}]}

    body = chat(detail("E1"), detail("E1"), detail("E2"), {"content": "hi"})
    got = await ask(worker, server, "openrouter/openai/gpt-5", body)
    details = got.parts[0][2]["reasoning_details"]
    assert [d["data"] for d in details] == ["E1", "E2"]


async def test_text_after_a_signature_is_the_next_detail(worker: ModelClient, server: Loopback) -> None:
    def detail(**more: Any) -> dict[str, Any]:
        return {"reasoning_details": [{"type": "reasoning.text", "index": 0, **more}]}

    body = chat(detail(text="a"), detail(signature="S1"), detail(text="b"), detail(signature="S2"), {"content": "hi"})
    got = await ask(worker, server, "openrouter/anthropic/claude-sonnet-4.5", body)
    assert got.parts[0][1] == "ab"
    assert [(d["text"], d["signature"]) for d in got.parts[0][2]["reasoning_details"]] == [("a", "S1"), ("b", "S2")]


async def test_a_server_that_does_not_stream(worker: ModelClient, server: Loopback) -> None:
    message = {"role": "assistant", "content": "hi", "reasoning_content": "hm"}
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE}
    body = json_reply({**whole, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    got = await ask(worker, server, "openai/x", body)
    assert got == ([("reasoning", "hm", None), ("text", "hi", None)], "stop", CHAT)


async def test_reasoning_beside_the_output_and_cache_hits(worker: ModelClient, server: Loopback) -> None:
    beside = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 155}
    beside_details = {**beside, "completion_tokens_details": {"reasoning_tokens": 50}}
    got = await ask(
        worker, server, "xai/grok-4", chat({"content": "hi"}, tail=({"choices": [], "usage": beside_details},))
    )
    assert got.usage == TokenUsage(100, 55, 50)
    hits = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, "prompt_cache_hit_tokens": 64}
    got = await ask(
        worker, server, "deepseek/deepseek-chat", chat({"content": "hi"}, tail=({"choices": [], "usage": hits},))
    )
    assert got.usage == TokenUsage(100, 5, None, 64)
