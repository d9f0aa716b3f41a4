"""Shapes of streams that are documented or known from the field but not recorded, through LiteLLM and the worker."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from agent_tui.models.messages import Message, ReasoningPart, TextPart, ToolCallPart
from agent_tui.models.requests import Finished, ModelSpec
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.worker.client import WorkerClient
from tests.support import anthropic_stream as anthropic
from tests.support import recorded
from tests.support import responses_stream as responses
from tests.support.loopback import Loopback, Reply, chat_chunk, json_reply, sse
from tests.support.model_calls import KEY, collect, make_request

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Got(NamedTuple):
    parts: list[tuple[Any, ...]]
    end: str
    usage: TokenUsage | None


async def ask(worker: WorkerClient, server: Loopback, model: str, body: bytes | Reply, api: Any = "chat") -> Got:
    """The answer's parts (kind, text or name and arguments, metadata), how it ended, and its usage."""
    server.serve("*", body)
    spec = ModelSpec("m", model, api_base=server.url, api_key=KEY, api=api)
    answer = await collect(worker.stream(make_request(spec, tools=[recorded.TOOL])))
    message = recorded.assemble(answer.items, Message("m", "assistant"))
    parts: list[tuple[Any, ...]] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            parts.append(("call", part.name, part.arguments, part.provider_metadata))
        elif isinstance(part, (TextPart, ReasoningPart)):
            parts.append((part.type, part.text, part.provider_metadata))
    last = answer.items[-1]
    assert answer.ends == 1
    end = last.reason if isinstance(last, Finished) else answer.failure.kind
    return Got(parts, end, answer.usage.usage if answer.usage else None)


# Anthropic

CLAUDE = "anthropic/claude-sonnet-4-6"


async def test_thinking_between_tool_uses_and_redacted_blocks(worker: WorkerClient, server: Loopback) -> None:
    body = anthropic.answer(
        anthropic.thinking("one", "S1"),
        anthropic.redacted("D1"),
        anthropic.text(""),
        anthropic.tool_use("toolu_1"),
        anthropic.thinking("", "S2"),
        anthropic.tool_use("toolu_2", arguments="{}"),
        stop="tool_use",
    )
    got = await ask(worker, server, CLAUDE, body)
    assert got.parts == [
        ("reasoning", "one", {"type": "thinking", "signature": "S1"}),
        ("reasoning", "", {"type": "redacted_thinking", "data": "D1"}),
        ("call", "weather", '{"location": "Rome"}', None),
        ("reasoning", "", {"type": "thinking", "signature": "S2"}),
        ("call", "weather", "{}", None),
    ]
    assert got.end == "tool_calls"


@pytest.mark.parametrize(
    ("stop", "end"),
    [
        ("refusal", "refused"),
        ("max_tokens", "length"),
        ("pause_turn", "stop"),
        ("model_context_window_exceeded", "length"),
        ("stop_sequence", "stop"),
        (None, "stop"),
    ],
)
async def test_how_claude_stops(worker: WorkerClient, server: Loopback, stop: str | None, end: str) -> None:
    got = await ask(worker, server, CLAUDE, anthropic.answer(anthropic.text("so"), stop=stop))
    assert (got.parts, got.end) == ([("text", "so", None)], end)


async def test_claude_with_a_search_and_citations(worker: WorkerClient, server: Loopback) -> None:
    result = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e"}
    location = {"type": "web_search_result_location", "cited_text": "c", "url": "u", "title": "t"}
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    body = anthropic.answer(
        anthropic.text("I search."),
        (search, [{"type": "input_json_delta", "partial_json": '{"query": "x"}'}]),
        ({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [result]}, []),
        (
            {"type": "text", "text": "", "citations": []},
            [{"type": "citations_delta", "citation": location}, {"type": "text_delta", "text": "Found."}],
        ),
        usage={"input_tokens": 9000, "output_tokens": 50, "server_tool_use": {"web_search_requests": 1}},
    )
    got = await ask(worker, server, CLAUDE, body)
    assert [part[:2] for part in got.parts] == [("text", "I search."), ("text", "Found.")]
    assert got.usage is not None
    assert not got.usage.context, "sums of several hidden calls are no context size"


async def test_blocks_deltas_and_events_of_the_future_are_passed_over(worker: WorkerClient, server: Loopback) -> None:
    body = anthropic.answer(
        ({"type": "brand_new", "content": "x"}, [{"type": "brand_new_delta", "content": "y"}]),
        ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "hi"}, {"type": "other_delta", "x": 1}]),
    ).replace(b'"type": "ping"', b'"type": "brand_new_event"')
    got = await ask(worker, server, CLAUDE, body)
    assert (got.parts, got.end) == ([("text", "hi", None)], "stop")


@pytest.mark.parametrize(
    ("start", "last"),
    [
        ({"input_tokens": 500, "cache_read_input_tokens": 100, "output_tokens": 1}, {"output_tokens": 7}),
        (
            {"input_tokens": 500, "cache_read_input_tokens": 100, "output_tokens": 1},
            {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 7},
        ),
        (
            {"input_tokens": 0, "output_tokens": 0},
            {"input_tokens": 500, "cache_read_input_tokens": 100, "output_tokens": 7},
        ),
    ],
    ids=["as documented", "zeros at the end", "zeros at the start"],
)
async def test_claude_usage_wherever_it_is_said(
    worker: WorkerClient, server: Loopback, start: dict[str, Any], last: dict[str, Any]
) -> None:
    got = await ask(worker, server, CLAUDE, anthropic.answer(anthropic.text("hi"), start=start, usage=last))
    assert got.usage is not None
    assert (got.usage.input, got.usage.output, got.usage.cache_read) == (600, 7, 100)


async def test_an_overloaded_error_in_the_middle(worker: WorkerClient, server: Loopback) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    body = anthropic.answer(anthropic.text("hi"), end=False) + sse([error], named=True)
    got = await ask(worker, server, CLAUDE, body)
    assert (got.parts, got.end) == ([("text", "hi", None)], "overloaded")


# OpenAI Responses


async def _respond(worker: WorkerClient, server: Loopback, body: bytes) -> Got:
    return await ask(worker, server, "openai/gpt-5", body, "responses")


async def test_several_reasoning_items_summaries_phases_and_calls(worker: WorkerClient, server: Loopback) -> None:
    body = responses.answer(
        responses.reasoning("rs_1", "one", "two"),
        responses.reasoning("rs_2"),
        responses.message("msg_1", "Hello", "commentary"),
        responses.call("fc_1", "call_1"),
        responses.call("fc_2", "call_2"),
    )
    got = await _respond(worker, server, body)
    kinds = [part[0] for part in got.parts]
    assert kinds == ["reasoning", "reasoning", "text", "call", "call"]
    first, second, text, *calls = got.parts
    assert first[1] == "onetwo"
    assert [s["text"] for s in first[2]["summary"]] == ["one", "two"]
    assert ReasoningPart(first[1], first[2]).paragraphs == "one\n\ntwo", "what is shown"
    assert ReasoningPart("other", first[2]).paragraphs == "other"
    assert (first[2]["id"], first[2]["encrypted_content"]) == ("rs_1", "encrypted rs_1")
    assert (second[1], second[2]["encrypted_content"]) == ("", "encrypted rs_2")
    assert (text[2]["id"], text[2]["phase"]) == ("msg_1", "commentary")
    assert [c[2] for c in calls] == ['{"a":1}', '{"a":1}']
    assert [c[3]["id"] for c in calls] == ["fc_1", "fc_2"]
    assert got.usage == TokenUsage(20, 9, 5, 4, None)


@pytest.mark.parametrize(
    ("body", "end"),
    [
        (responses.answer(status="incomplete", incomplete_details={"reason": "max_output_tokens"}), "length"),
        (responses.answer(status="incomplete", incomplete_details={"reason": "content_filter"}), "refused"),
        (responses.answer(status="failed", error={"code": "server_error", "message": "boom"}), "overloaded"),
        (
            responses.answer(status=None)
            + sse([{"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}]),
            "rate_limit",
        ),
        (responses.answer(responses.message("msg_1", "cut"), status=None), "interrupted_stream"),
        (responses.answer(responses.message("msg_1", "whole")) + b"data: [DONE]\n\n", "stop"),
    ],
    ids=["length", "filter", "failed", "error", "cut", "done"],
)
async def test_how_a_response_ends(worker: WorkerClient, server: Loopback, body: bytes, end: str) -> None:
    assert (await _respond(worker, server, body)).end == end


async def test_a_response_that_searched_the_web(worker: WorkerClient, server: Loopback) -> None:
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}
    item = responses.other(search, "web_search_call.searching", "web_search_call.completed", "brand_new.event")
    got = await _respond(worker, server, responses.answer(item, responses.message("msg_1", "found")))
    assert [part[:2] for part in got.parts] == [("text", "found")]
    assert got.usage is not None
    assert not got.usage.context


async def test_reasoning_that_is_shown_whole(worker: WorkerClient, server: Loopback) -> None:
    item: dict[str, Any] = {"id": "rs_1", "type": "reasoning", "summary": []}
    whole = {**item, "content": [{"type": "reasoning_text", "text": "raw"}]}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "item": item},
        {"type": "response.reasoning_text.delta", "item_id": "rs_1", "content_index": 0, "delta": "raw"},
        {"type": "response.output_item.done", "item": whole},
    ]
    got = await _respond(worker, server, responses.answer((events, whole), responses.message("msg_1", "hi")))
    assert got.parts[0] == ("reasoning", "raw", whole)


# Chat completions and their dialects

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
    worker: WorkerClient, server: Loopback, deltas: list[dict[str, Any]], part: tuple[Any, ...]
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
async def test_calls_in_every_order(worker: WorkerClient, server: Loopback, deltas: list[dict[str, Any]]) -> None:
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
    worker: WorkerClient, server: Loopback, finish: str | None, tail: tuple[Any, ...], usage: TokenUsage
) -> None:
    body = chat({"role": "assistant", "content": ""}, {"content": "hi"}, finish=finish, tail=tail)
    assert await ask(worker, server, "openai/some-gateways-model", body) == ([("text", "hi", None)], "stop", usage)


async def test_the_function_call_form(worker: WorkerClient, server: Loopback) -> None:
    deltas = [{"function_call": {"name": "read", "arguments": ""}}, {"function_call": {"arguments": "{}"}}]
    got = await ask(worker, server, "openai/old", chat(*deltas, finish="function_call"))
    assert (got.parts, got.end) == ([("call", "read", "{}", None)], "tool_calls")


async def test_a_refusal_and_a_filter(worker: WorkerClient, server: Loopback) -> None:
    got = await ask(worker, server, "openai/x", chat({"role": "assistant", "refusal": ""}, {"refusal": "No."}))
    assert (got.parts, got.end) == ([("text", "No.", None)], "refused")
    got = await ask(worker, server, "openai/x", chat({"content": "So"}, finish="content_filter"))
    assert (got.parts, got.end) == ([("text", "So", None)], "refused")


@pytest.mark.parametrize("model", ["openai/x", "openrouter/anthropic/claude-sonnet-4.5"])
async def test_an_error_beside_choices(worker: WorkerClient, server: Loopback, model: str) -> None:
    error = {**chat_chunk({"content": ""}, "error"), "error": {"code": 502, "message": "Provider disconnected"}}
    got = await ask(worker, server, model, chat({"content": "par"}, finish=None, tail=(error,)))
    assert (got.parts, got.end) == ([("text", "par", None)], "overloaded")


async def test_encrypted_details_stay_apart(worker: WorkerClient, server: Loopback) -> None:
    def detail(data: str, **more: Any) -> dict[str, Any]:
        return {"reasoning_details": [{"type": "reasoning.encrypted", "data": data, "index": 0, **more}]}

    body = chat(detail("E1"), detail("E1"), detail("E2"), {"content": "hi"})
    got = await ask(worker, server, "openrouter/openai/gpt-5", body)
    details = got.parts[0][2]["reasoning_details"]
    assert [d["data"] for d in details] == ["E1", "E2"]


async def test_text_after_a_signature_is_the_next_detail(worker: WorkerClient, server: Loopback) -> None:
    def detail(**more: Any) -> dict[str, Any]:
        return {"reasoning_details": [{"type": "reasoning.text", "index": 0, **more}]}

    body = chat(detail(text="a"), detail(signature="S1"), detail(text="b"), detail(signature="S2"), {"content": "hi"})
    got = await ask(worker, server, "openrouter/anthropic/claude-sonnet-4.5", body)
    assert got.parts[0][1] == "ab"
    assert [(d["text"], d["signature"]) for d in got.parts[0][2]["reasoning_details"]] == [("a", "S1"), ("b", "S2")]


async def test_a_server_that_does_not_stream(worker: WorkerClient, server: Loopback) -> None:
    message = {"role": "assistant", "content": "hi", "reasoning_content": "hm"}
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE}
    body = json_reply({**whole, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    got = await ask(worker, server, "openai/x", body)
    assert got == ([("reasoning", "hm", None), ("text", "hi", None)], "stop", CHAT)


async def test_reasoning_beside_the_output_and_cache_hits(worker: WorkerClient, server: Loopback) -> None:
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


# Gemini

GEMINI = "gemini/gemini-3-pro-preview"


def gemini(*parts: dict[str, Any], finish: str | None = None, **usage: int) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **({"usageMetadata": usage} if usage else {})}


async def test_thoughts_calls_with_ids_and_a_last_signature(worker: WorkerClient, server: Loopback) -> None:
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
async def test_how_gemini_stops(worker: WorkerClient, server: Loopback, last: dict[str, Any], end: str) -> None:
    got = await ask(worker, server, GEMINI, sse([gemini({"text": "so"}, promptTokenCount=10), last]))
    assert (got.parts, got.end) == ([("text", "so", None)], end)


async def test_gemini_running_code_is_not_a_context_size(worker: WorkerClient, server: Loopback) -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    usage = {"promptTokenCount": 10, "toolUsePromptTokenCount": 90, "candidatesTokenCount": 1, "totalTokenCount": 101}
    got = await ask(worker, server, GEMINI, sse([gemini(code, {"text": "hi"}, finish="STOP", **usage)]))
    assert got.usage == TokenUsage(100, 1, context=False)


# Ollama


async def test_ollamas_own_stream(worker: WorkerClient, server: Loopback) -> None:
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
