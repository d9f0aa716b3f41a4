"""Shapes of Claude's streams that are documented or known from the field, not recorded."""

from __future__ import annotations

from typing import Any

import pytest

from agent_tui.providers.client import ModelClient
from tests.providers.stream_answers import ask
from tests.support import anthropic_stream as anthropic
from tests.support.loopback import Loopback, sse

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.quick]
CLAUDE = "anthropic/claude-sonnet-4-6"


async def test_thinking_between_tool_uses_and_redacted_blocks(worker: ModelClient, server: Loopback) -> None:
    at_once = {"type": "thinking", "thinking": "zero", "signature": "S0"}
    body = anthropic.answer(
        (at_once, []),
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
        ("reasoning", "zero", {"type": "thinking", "signature": "S0"}),
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
        ("pause_turn", "paused"),
        ("model_context_window_exceeded", "context_overflow"),
        ("stop_sequence", "stop"),
        (None, "stop"),
    ],
)
async def test_how_claude_stops(worker: ModelClient, server: Loopback, stop: str | None, end: str) -> None:
    got = await ask(worker, server, CLAUDE, anthropic.answer(anthropic.text("so"), stop=stop))
    assert (got.parts, got.end) == ([("text", "so", None)], end)


async def test_claude_with_a_search_and_citations(worker: ModelClient, server: Loopback) -> None:
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
    assert [part[:2] for part in got.parts] == [
        ("text", "I search."),
        ("search", "x"),
        ("search", "t · u"),
        ("text", "Found."),
    ]
    assert got.usage is not None and got.usage.searches == 1
    assert not got.usage.context, "sums of several hidden calls are no context size"


async def test_blocks_deltas_and_events_of_the_future_are_passed_over(worker: ModelClient, server: Loopback) -> None:
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
    worker: ModelClient, server: Loopback, start: dict[str, Any], last: dict[str, Any]
) -> None:
    got = await ask(worker, server, CLAUDE, anthropic.answer(anthropic.text("hi"), start=start, usage=last))
    assert got.usage is not None
    assert (got.usage.input, got.usage.output, got.usage.cache_read) == (600, 7, 100)


async def test_an_overloaded_error_in_the_middle(worker: ModelClient, server: Loopback) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    body = anthropic.answer(anthropic.text("hi"), end=False) + sse([error], named=True)
    got = await ask(worker, server, CLAUDE, body)
    assert (got.parts, got.end) == ([("text", "hi", None)], "overloaded")
