"""Exact counts in a session: asked of the provider, stored as a step that anchors, and never in the way."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from agent_tui.config import ModelConfig
from agent_tui.engine.calls import stand_in
from agent_tui.models.requests import ModelSpec
from agent_tui.providers.catalog import resolve_target
from agent_tui.providers.client import ModelClient
from tests.providers import responses_stream as responses
from tests.support import anthropic_stream as anthropic
from tests.support.end_to_end import Product, calls, model
from tests.support.loopback import Loopback, Reply, json_reply, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

ENDPOINTS = {
    "/v1/messages/count_tokens": {"input_tokens": 4321},
    "/v1beta/models/gemini-2.5-pro:countTokens": {"totalTokens": 4321},
    "/v1/responses/input_tokens": {"object": "response.input_tokens", "input_tokens": 4321},
}


def gemini_answer() -> bytes:
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 3, "totalTokenCount": 14}
    candidate = {"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP", "index": 0}
    return sse([{"candidates": [candidate], "usageMetadata": usage}])


async def _count(product: Product) -> int | None:
    """As the screen asks: on the session as it is, with another model than the one that answered."""
    agent = product.agent("other")
    try:
        await agent.start()
        return await agent.context.count_exact()
    finally:
        await agent.close()


def _product(tmp_path: Path, worker: ModelClient, one: ModelConfig, other: ModelConfig) -> Product:
    return Product(tmp_path, worker, {"one": one, "other": other}, exact_counting="auto")


@pytest.mark.forms(1)
@pytest.mark.parametrize("kind", ["anthropic", "gemini", "openai"])
async def test_the_count_is_stored_and_anchors(
    worker: ModelClient, tmp_path: Path, server: Loopback, kind: str
) -> None:
    for path, said in ENDPOINTS.items():
        server.serve(path, json_reply(said))
    server.serve("/v1/messages", anthropic.answer(anthropic.text("hi")))
    server.serve("/v1beta/models/gemini-2.5-flash:streamGenerateContent", gemini_answer())
    server.serve("/v1/responses", responses.answer(responses.message("msg_1", "hi")))
    pairs = {
        "anthropic": (model("anthropic/claude-sonnet-4-5", server), model("anthropic/claude-opus-4-7", server)),
        "gemini": (model("gemini/gemini-2.5-flash", server), model("gemini/gemini-2.5-pro", server)),
        "openai": (
            model("openai/gpt-5-mini", server, api="responses"),
            model("openai/gpt-5", server, api="responses"),
        ),
    }
    product = _product(tmp_path, worker, *pairs[kind])
    await product.run("What is the weather?", "one")
    assert product.code == 0
    before = await product.context("other")
    assert before["calculation"]["last_input_tokens"] is None, "the other model has measured nothing"

    counted = 4321 - stand_in(resolve_target(ModelSpec("other", pairs[kind][1].model)))[1]
    assert await _count(product) == counted
    after = await product.context("other")
    assert (after["calculation"]["last_input_tokens"], after["calculation"]["last_output_tokens"]) == (counted, 0)
    assert (after["total"], after["basis"]) == (counted, "measured")
    found = [step for step in product.export()["steps"] if step["kind"] == "count"]
    assert [(step["usage"]["input_tokens"], step["usage"]["source"]) for step in found] == [(counted, "provider")]
    [question] = [r for r in calls(server) if r.path in ENDPOINTS]
    assert "What is the weather?" in question.body.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    [json_reply({"error": {"message": "not here"}}, 404), json_reply({"error": "down"}, 500), Reply(b"<html>")],
    ids=["404", "500", "nonsense"],
)
async def test_a_failure_leaves_the_estimate(
    worker: ModelClient, tmp_path: Path, server: Loopback, reply: Reply
) -> None:
    server.serve("/v1/messages", anthropic.answer(anthropic.text("hi")))
    server.serve("/v1/messages/count_tokens", reply)
    product = _product(
        tmp_path, worker, model("anthropic/claude-sonnet-4-5", server), model("anthropic/claude-opus-4-7", server)
    )
    await product.run("What is the weather?", "one")
    before = await product.context("other")
    assert await _count(product) is None
    assert await product.context("other") == before
    assert all(step["kind"] != "count" for step in product.export()["steps"])


async def test_off_is_off(worker: ModelClient, tmp_path: Path, server: Loopback) -> None:
    server.serve("/v1/messages", anthropic.answer(anthropic.text("hi")))
    server.serve("/v1/messages/count_tokens", json_reply({"input_tokens": 4321}))
    one, other = model("anthropic/claude-sonnet-4-5", server), model("anthropic/claude-opus-4-7", server)
    product = _product(tmp_path, worker, one, other)
    product.exact_counting = "off"
    await product.run("What is the weather?", "one")
    assert await _count(product) is None
    assert [r.path for r in calls(server)] == ["/v1/messages"]


@pytest.mark.slow
async def test_a_long_conversation_is_counted_when_the_model_changes(
    worker: ModelClient, tmp_path: Path, server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.serve("/v1/messages", anthropic.answer(anthropic.text("hi")))
    server.serve("/v1/messages/count_tokens", json_reply({"input_tokens": 54_321}))
    product = _product(
        tmp_path, worker, model("anthropic/claude-sonnet-4-5", server), model("anthropic/claude-opus-4-7", server)
    )
    await product.run("word " * 20_000, "one")
    agent = product.agent("one")
    try:
        await agent.start()
        await agent.models.switch("other")
        await agent.events.settled()
        assert any(step.kind == "count" and step.model_key == "other" for step in agent.conversation.steps)
        assert agent.context.usage().total == 54_321 - stand_in(resolve_target(agent.models.spec))[1]
    finally:
        await agent.close()
