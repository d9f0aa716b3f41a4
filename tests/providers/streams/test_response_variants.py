"""Shapes of OpenAI's responses that are documented or known from the field, not recorded."""

from __future__ import annotations

from typing import Any

import pytest

from agent_tui.models.usage import TokenUsage
from agent_tui.providers.client import ModelClient
from tests.providers import responses_stream as responses
from tests.providers.stream_answers import Got, ask
from tests.support.loopback import Loopback, sse

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.quick]


async def _respond(worker: ModelClient, server: Loopback, body: bytes) -> Got:
    return await ask(worker, server, "openai/gpt-5", body, "responses")


async def test_several_reasoning_items_summaries_phases_and_calls(worker: ModelClient, server: Loopback) -> None:
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
    assert first[1] == "one\n\ntwo"
    assert [s["text"] for s in first[2]["summary"]] == ["one", "two"]
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
async def test_how_a_response_ends(worker: ModelClient, server: Loopback, body: bytes, end: str) -> None:
    assert (await _respond(worker, server, body)).end == end


async def test_a_response_that_searched_the_web(worker: ModelClient, server: Loopback) -> None:
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}
    item = responses.other(search, "web_search_call.searching", "web_search_call.completed", "brand_new.event")
    got = await _respond(worker, server, responses.answer(item, responses.message("msg_1", "found")))
    assert [part[:2] for part in got.parts] == [("search", ""), ("text", "found")]
    assert got.usage is not None
    assert not got.usage.context


async def test_reasoning_that_is_shown_whole(worker: ModelClient, server: Loopback) -> None:
    item: dict[str, Any] = {"id": "rs_1", "type": "reasoning", "summary": []}
    whole = {**item, "content": [{"type": "reasoning_text", "text": "raw"}]}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "item": item},
        {"type": "response.reasoning_text.delta", "item_id": "rs_1", "content_index": 0, "delta": "raw"},
        {"type": "response.output_item.done", "item": whole},
    ]
    got = await _respond(worker, server, responses.answer((events, whole), responses.message("msg_1", "hi")))
    assert got.parts[0] == ("reasoning", "raw", whole)
