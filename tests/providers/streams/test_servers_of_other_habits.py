"""What servers do that no document of their API says, and that is an answer all the same: whole bodies where a stream
was asked for, ends without a reason, empty fields, messages that start twice. Each was seen in the field."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from agent_tui.models.messages import Message, Origin, TextPart, ToolCallPart
from agent_tui.models.requests import Finished, ModelSpec, Target, UsageReport
from agent_tui.models.usage import Limits, TokenUsage
from agent_tui.providers.accumulate import Accumulator
from agent_tui.providers.client import ModelClient
from tests.providers.stream_answers import ask
from tests.support import recorded, wire
from tests.support.loopback import Loopback, Reply, anthropic_events, chat_chunk, json_reply, sse

async_test = pytest.mark.asyncio(loop_scope="session")
ARGUMENTS = {"location": "Rom"}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": json.dumps(ARGUMENTS)}}
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}

WHOLE: dict[str, dict[str, Any]] = {
    "chat": {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "It rains.",
                    "reasoning_content": "hm",
                    "tool_calls": [CALL],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": USAGE,
    },
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "S"},
            {"type": "text", "text": "It rains."},
            {"type": "tool_use", "id": "c1", "name": "weather", "input": ARGUMENTS},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 11, "output_tokens": 3},
    },
    "responses": {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {
                "id": "m_1",
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "It rains."}],
            },
            {
                "id": "fc_1",
                "type": "function_call",
                "call_id": "c1",
                "name": "weather",
                "arguments": json.dumps(ARGUMENTS),
            },
        ],
        "usage": {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14},
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"text": "It rains."},
                        {"functionCall": {"name": "weather", "args": ARGUMENTS}},
                    ],
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 3, "totalTokenCount": 14},
    },
    "cohere": {
        "id": "1",
        "finish_reason": "TOOL_CALL",
        "message": {
            "role": "assistant",
            "tool_plan": "hm",
            "content": [{"type": "text", "text": "It rains."}],
            "tool_calls": [CALL],
        },
        "usage": {"tokens": {"input_tokens": 11, "output_tokens": 3}},
    },
    "ollama": {
        "model": "m",
        "message": {
            "role": "assistant",
            "content": "It rains.",
            "thinking": "hm",
            "tool_calls": [{"function": {"name": "weather", "arguments": ARGUMENTS}}],
        },
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 11,
        "eval_count": 3,
    },
}


@pytest.mark.quick
@pytest.mark.versions
@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "indented"])
@pytest.mark.parametrize("said", ["application/json; charset=utf-8", "text/event-stream", "text/plain"])
@pytest.mark.parametrize("dialect", WHOLE)
def test_an_answer_that_was_not_streamed_is_the_answer(dialect: str, said: str, indent: int | None) -> None:
    provider = {"responses": "openai", "chat": "openai"}.get(dialect, dialect)
    accumulator = Accumulator(Target(provider, "responses" if dialect == "responses" else "chat", "m", "unknown"))
    accumulator.tap.begin(said)
    listed = dialect == "gemini" and said != "text/event-stream"
    body = json.dumps([WHOLE[dialect]] if listed else WHOLE[dialect], indent=indent)
    accumulator.tap.feed(body.encode())
    items = accumulator.finish()
    answer = recorded.assemble(items, Message("m", "assistant", origin=Origin("p", "chat", "m")))
    assert (answer.reasoning, answer.text) == ("hm", "It rains.")
    assert [(call.name, json.loads(call.arguments)) for call in answer.tool_calls] == [("weather", ARGUMENTS)]
    end = items[-1]
    assert isinstance(end, Finished) and end.reason == "tool_calls"
    assert [(i.usage.input, i.usage.output) for i in items if isinstance(i, UsageReport)][-1] == (11, 3)


@pytest.mark.forms(2)
@async_test
@pytest.mark.parametrize(
    ("model", "api", "dialect"),
    [
        ("anthropic/claude-sonnet-4-6", "chat", "anthropic"),
        ("openai/gpt-5", "responses", "responses"),
        ("gemini/gemini-3-pro", "chat", "gemini"),
        ("cohere_chat/command-a", "chat", "cohere"),
    ],
)
async def test_a_server_that_never_streams_answers(
    worker: ModelClient, server: Loopback, model: str, api: Any, dialect: str
) -> None:
    got = await ask(worker, server, model, json_reply(WHOLE[dialect]), api)
    assert [part[:2] for part in got.parts] == [("reasoning", "hm"), ("text", "It rains."), ("call", "weather")]
    assert (got.end, got.usage) == ("tool_calls", TokenUsage(11, 3))


def unended(*deltas: dict[str, Any], finish: str | None) -> list[Any]:
    """A chat stream whose every chunk says how it ended, or rather does not."""
    return [chat_chunk(delta, finish) for delta in deltas]


@pytest.mark.forms(1)
@async_test
@pytest.mark.parametrize("finish", ["", None])
@pytest.mark.parametrize("empty", [{}, {"name": "", "arguments": ""}, {"name": None, "arguments": None}])
async def test_a_stream_that_says_done_has_ended_and_an_empty_call_is_none(
    worker: ModelClient, server: Loopback, finish: str | None, empty: dict[str, Any]
) -> None:
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": "It "},
        {"content": "rains.", "function_call": empty},
    ]
    usage = {**chat_chunk({"content": "", "tool_calls": [{"index": 0, "function": empty}]}, finish), "usage": USAGE}
    events = [*unended(*deltas, finish=finish), usage]
    got = await ask(worker, server, "openai/claude-4-sonnet", sse([*events, "[DONE]"]))
    assert got == ([("text", "It rains.", None)], "stop", TokenUsage(11, 3))
    got = await ask(worker, server, "openai/claude-4-sonnet", sse(events))
    assert got.end == "interrupted_stream", "nobody said that it was all"
    got = await ask(worker, server, "openai/claude-4-sonnet", sse([chat_chunk({}, finish), "[DONE]"]))
    assert got.end == "empty_answer"
    calls = unended({"tool_calls": [{"index": 0, **CALL}]}, finish=finish)
    got = await ask(worker, server, "openai/claude-4-sonnet", sse([*calls, "[DONE]"]))
    assert got.end == "tool_calls" and got.parts == [("call", "weather", json.dumps(ARGUMENTS), None)]


@pytest.mark.quick
@async_test
async def test_a_reason_that_nobody_knows_is_calls_where_there_are_some(worker: ModelClient, server: Loopback) -> None:
    """As proxies of Gemini's API say it."""
    parts = [{"functionCall": {"name": "weather", "args": ARGUMENTS}}]
    event = {"candidates": [{"content": {"parts": parts}, "finishReason": "FUNCTION_CALL"}]}
    assert (await ask(worker, server, "gemini/gemini-2.5-pro", sse([event]))).end == "tool_calls"
    event = {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "FUNCTION_CALL"}]}
    assert (await ask(worker, server, "gemini/gemini-2.5-pro", sse([event]))).end == "unknown"


@pytest.mark.quick
@async_test
async def test_an_error_is_not_mended_by_the_word_done(worker: ModelClient, server: Loopback) -> None:
    events = [*unended({"content": "It "}, finish=None), {"error": {"code": 500, "message": "melted"}}, "[DONE]"]
    got = await ask(worker, server, "openai/x", sse(events))
    assert got.end == "overloaded"


@pytest.mark.quick
@async_test
async def test_a_message_that_starts_twice_is_one_message(worker: ModelClient, server: Loopback) -> None:
    start, *rest = anthropic_events(["It rains."])
    again = {**start, "message": {**start["message"], "usage": {"input_tokens": 0, "output_tokens": 0}}}
    for events in ([start, again, *rest], [start, rest[0], again, *rest[1:]], [start, start, start, *rest]):
        got = await ask(worker, server, "anthropic/claude-sonnet-4-6", sse(events, named=True))
        assert got == ([("text", "It rains.", None)], "stop", TokenUsage(11, 3))


@pytest.mark.quick
@async_test
async def test_a_message_that_another_one_cuts_off_is_not_mixed_with_it(worker: ModelClient, server: Loopback) -> None:
    first, second = anthropic_events(["It r"])[:3], anthropic_events(["The sun shines."])
    second[0]["message"]["id"] = "msg_2"
    got = await ask(worker, server, "anthropic/claude-sonnet-4-6", sse([*first, *second], named=True))
    assert (got.parts, got.end) == ([("text", "It r", None)], "interrupted_stream")
    whole = anthropic_events(["It rains."])
    got = await ask(worker, server, "anthropic/claude-sonnet-4-6", sse([*whole, *second], named=True))
    assert (got.parts, got.end) == ([("text", "It rains.", None)], "stop")


@pytest.mark.quick
@async_test
async def test_thoughts_that_only_the_total_counts_are_output(worker: ModelClient, server: Loopback) -> None:
    """As Google's OpenAI-compatible endpoint says it."""
    usage = {"prompt_tokens": 2_035, "completion_tokens": 51, "total_tokens": 2_086 + 48 * 64}
    chunk = {**chat_chunk({"content": "hi"}, "stop"), "usage": usage}
    got = await ask(worker, server, "openai/gemini-2.5-pro", sse([chunk, "[DONE]"]))
    assert got.usage == TokenUsage(2_035, 51 + 48 * 64, 48 * 64)


OPEN_ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}


@pytest.mark.parametrize("told", ["with the item", "only as it came"])
def test_thoughts_that_are_shown_whole_go_back_as_they_came(told: str) -> None:
    spec = ModelSpec("test", "openai/deepseek-v4", api_base="http://127.0.0.1/v1", api="responses", api_key="k")
    done = OPEN_ITEM if told == "with the item" else {k: v for k, v in OPEN_ITEM.items() if k != "content"}
    call = WHOLE["responses"]["output"][2]
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**done, "content": []}},
        {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "hm"},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.output_item.added", "output_index": 1, "item": call},
        {"type": "response.output_item.done", "output_index": 1, "item": call},
        {"type": "response.completed", "response": {"status": "completed", "output": [done, call]}},
    ]
    info = recorded.info_for(spec)
    request = recorded.request_for(spec, [recorded.question()])
    answer = recorded.stream(request, info, Reply(sse(events)), via="auto").message
    after = [recorded.question(), answer, *recorded.tool_results(answer)]
    sent = wire.body(spec, after)["input"]
    assert [item for item in sent if item.get("type") == "reasoning"] == [OPEN_ITEM]
    other = replace(spec, model="openai/another")
    assert not [item for item in wire.body(other, after)["input"] if item.get("type") == "reasoning"]


def test_a_model_that_nobody_knows_is_asked_for_so_many_tokens_where_that_is_required() -> None:
    def sent(name: str) -> dict[str, Any]:
        spec = wire.spec(name)
        request = recorded.request_for(spec, [recorded.question()], max_output=None)
        unknown = replace(recorded.info_for(spec, reasoning=None), limits=Limits(None, None, None, "unknown"))
        return recorded.stream(request, unknown, json_reply(WHOLE["chat"]), via="auto").sent

    for name in ("anthropic/glm-5", "anthropic/some-name", "anthropic/claude-99-unheard-of"):
        assert sent(name)["max_tokens"] == 8_192
    assert "max_tokens" not in sent("openai/some-name")


@pytest.mark.quick
def test_parts_stay_what_they_are_when_a_call_has_no_name_yet() -> None:
    """A field that fills up later is a call from its first word on."""
    accumulator = Accumulator(Target("openai", "chat", "m", "unknown"))
    accumulator.tap.begin("text/event-stream")
    deltas = [
        {"tool_calls": [{"index": 0, "type": "function", "function": {"name": "", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "weather", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
    ]
    accumulator.tap.feed(sse([*map(chat_chunk, deltas), chat_chunk({}, "tool_calls")]))
    message = recorded.assemble(accumulator.finish(), Message("m", "assistant"))
    assert message.parts == [ToolCallPart("c1", "weather", "{}")]
    assert not [part for part in message.parts if isinstance(part, TextPart)]
