"""What becomes of reasoning when a conversation changes its model, its thinking, its tools, or is cut off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import ModelConfig
from agent_tui.providers.client import ModelClient
from tests.providers import responses_stream as responses
from tests.support import anthropic_stream as anthropic
from tests.support.end_to_end import Product, calls, model, parts_of
from tests.support.loopback import CHAT_USAGE, Loopback, Reply, chat_chunk, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

THOUGHT, SIGNATURE = "a private thought", "c2lnbmF0dXJl"


def claude(server: Loopback, name: str = "claude-sonnet-4-6", **more: Any) -> ModelConfig:
    return model(f"anthropic/{name}", server, **more)


def deepseek(server: Loopback) -> ModelConfig:
    return model("deepseek/deepseek-reasoner", server, "/deepseek")


def gpt(server: Loopback) -> ModelConfig:
    return model("openai/gpt-5", server, api="responses")


@pytest.fixture
def provider(server: Loopback) -> Loopback:
    """A server that speaks three languages, always thinking first."""
    server.serve(
        "/v1/messages", anthropic.answer(anthropic.thinking(THOUGHT, SIGNATURE), anthropic.text("claude says"))
    )
    deltas: list[dict[str, Any]] = [{"reasoning_content": "deep thought"}, {"content": "deepseek says"}]
    end = [chat_chunk({}, "stop"), {**chat_chunk({}), "choices": [], "usage": CHAT_USAGE}]
    server.serve("/deepseek/chat/completions", sse([*map(chat_chunk, deltas), *end]))
    items = responses.reasoning("rs_1", "summary of thought"), responses.message("msg_1", "gpt says", "final_answer")
    server.serve("/v1/responses", responses.answer(*items))
    return server


def body(server: Loopback) -> str:
    """The newest request."""
    return calls(server)[-1].body.decode()


def notes(row: dict[str, Any]) -> set[str]:
    """What ``context --json`` says of the reasoning in a row and below it."""
    own = {row["replay"]} if row.get("replay") else set()
    return own.union(*(notes(child) for child in row.get("children") or ()))


@pytest.mark.slow
async def test_there_and_back_again(worker: ModelClient, tmp_path: Path, provider: Loopback) -> None:
    models = {"claude": claude(provider), "deepseek": deepseek(provider), "gpt": gpt(provider)}
    product = Product(tmp_path, worker, models)
    await product.run("first", "claude")
    await product.run("second", "deepseek")
    for mine in (THOUGHT, SIGNATURE):
        assert mine not in body(provider)
    assert "claude says" in body(provider)

    await product.run("third", "gpt")
    for mine in (THOUGHT, SIGNATURE, "deep thought", "reasoning_content"):
        assert mine not in body(provider)
    assert "deepseek says" in body(provider)

    await product.run("fourth", "claude")
    for mine in (THOUGHT, SIGNATURE):
        assert mine in body(provider)
    for theirs in ("deep thought", "encrypted rs_1", "rs_1", "summary of thought", "final_answer", "msg_1"):
        assert theirs not in body(provider)

    await product.run("fifth", "gpt")
    for mine in ("encrypted rs_1", "rs_1", "summary of thought", "final_answer", "msg_1"):
        assert mine in body(provider)
    assert product.code == 0
    told = {note for row in (await product.context("gpt"))["rows"] for note in notes(row)}
    assert "not resent: other model" in told
    stored = [part for answer in product.answers() for part in parts_of(answer, "reasoning")]
    assert [part["text"] for part in stored] == [
        THOUGHT,
        "deep thought",
        "summary of thought",
        THOUGHT,
        "summary of thought",
    ], "everything is kept, whatever is sent"


@pytest.mark.slow
async def test_another_model_of_the_same_provider(worker: ModelClient, tmp_path: Path, provider: Loopback) -> None:
    models = {"one": claude(provider), "two": claude(provider, "claude-opus-4-7")}
    product = Product(tmp_path, worker, models)
    await product.run("first", "one")
    await product.run("second", "two")
    assert SIGNATURE not in body(provider)
    assert THOUGHT not in body(provider)


@pytest.mark.slow
async def test_thinking_off_and_on_again(worker: ModelClient, tmp_path: Path, provider: Loopback) -> None:
    on = claude(provider, "claude-sonnet-4-5", reasoning_effort="high")
    product = Product(tmp_path, worker, {"m": on})
    await product.run("first")
    product.models = {"m": replace(on, reasoning_effort="off")}
    await product.run("second")
    sent = calls(provider)[-1].json
    assert "thinking" not in sent
    assert SIGNATURE not in body(provider)
    product.models = {"m": on}
    await product.run("third")
    sent = calls(provider)[-1].json
    assert sent["thinking"]["type"] == "enabled"
    assert sent["thinking"]["budget_tokens"] < sent["max_tokens"]
    assert body(provider).count(SIGNATURE) == 1, "what was left out stays out of the prefix"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "resent"), [("claude-fable-5-1", False), ("claude-sonnet-4-6", True)])
async def test_tools_changed_between_turns(
    worker: ModelClient, tmp_path: Path, provider: Loopback, name: str, resent: bool
) -> None:
    product = Product(tmp_path, worker, {"m": claude(provider, name)})
    await product.run("first")
    product.disabled = ["bash"]
    await product.run("second")
    assert (SIGNATURE in body(provider)) is resent, "newer models bind signatures to everything before them"
    await product.run("third")
    assert (body(provider).count(SIGNATURE)) == (2 if resent else 1)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["in the thinking", "in the call", "after the call"])
async def test_an_answer_that_was_cut_off(worker: ModelClient, tmp_path: Path, provider: Loopback, where: str) -> None:
    blocks = [anthropic.thinking(THOUGHT, SIGNATURE), anthropic.tool_use("toolu_1")]
    whole = anthropic.answer(*blocks, end=False)
    mark = {"in the thinking": b"signature_delta", "in the call": b'\\"Rome\\"}', "after the call": b"no such mark"}[
        where
    ]
    cut = whole[: whole.find(mark)] if mark in whole else whole
    answer = anthropic.answer(anthropic.text("better"))
    provider.serve("/v1/messages", Reply(cut, cut=True), answer)
    product = Product(tmp_path, worker, {"m": claude(provider, "claude-sonnet-4-5")})
    await product.run("first")
    assert product.code != 0
    summary = await product.run("second")
    assert (product.code, summary["text"]) == (0, "better")
    sent = calls(provider)[-1].json
    asked = [b["id"] for m in sent["messages"] for b in m["content"] if b["type"] == "tool_use"]
    answered = [b["tool_use_id"] for m in sent["messages"] for b in m["content"] if b["type"] == "tool_result"]
    assert asked == answered
    if where == "in the thinking":
        assert THOUGHT not in body(provider), "an unsigned block is refused"
    if asked:
        assert SIGNATURE in body(provider)


@pytest.mark.slow
async def test_an_open_loop_that_loses_its_blocks_runs_a_step_without_thinking(
    worker: ModelClient, tmp_path: Path, provider: Loopback
) -> None:
    call = anthropic.answer(anthropic.thinking(THOUGHT, SIGNATURE), anthropic.tool_use("toolu_1"), stop="tool_use")
    provider.serve("/v1/messages", call, anthropic.answer(anthropic.text("done")))
    models = {"one": claude(provider, "claude-sonnet-4-5"), "two": claude(provider, "claude-opus-4-5")}
    product = Product(tmp_path, worker, models, step_limit=1)
    await product.run("first", "one")
    assert product.code == 53
    product.step_limit = 3
    await product.run("second", "two")
    sent = calls(provider)[-1].json
    assert sent["thinking"]["type"] == "enabled", "the loop was closed by the new message"
    assert SIGNATURE not in body(provider)
