"""Ollama cuts prompts off silently at the context it has loaded: what is configured must reach it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.providers.client import ModelClient
from tests.support.end_to_end import Product, calls, model
from tests.support.loopback import Loopback, Reply, json_reply

pytestmark = pytest.mark.asyncio(loop_scope="session")


def chats(server: Loopback) -> list[Any]:
    """The bodies of the model calls."""
    return [request.json for request in calls(server) if request.path == "/api/chat"]


def answer(**last: Any) -> Reply:
    base = {"model": "qwen3", "created_at": "2025-01-01T00:00:00Z", "done": False}
    lines = [
        {**base, "message": {"role": "assistant", "content": "", "thinking": "hm"}},
        {**base, "message": {"role": "assistant", "content": "hi"}},
        {**base, "message": {"role": "assistant", "content": ""}, "done": True, **last},
    ]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return Reply(body, content_type="application/x-ndjson")


@pytest.mark.slow
async def test_a_configured_context_is_what_ollama_loads(worker: ModelClient, tmp_path: Path, server: Loopback) -> None:
    server.serve("/api/chat", answer(prompt_eval_count=31, eval_count=8))
    product = Product(tmp_path, worker, {"m": model("ollama_chat/qwen3", server, context_window=24_576)})
    summary = await product.run("hi")
    assert (product.code, summary["text"], summary["reasoning"]) == (0, "hi", "hm")
    sent = chats(server)[-1]
    assert sent["options"]["num_ctx"] == 24_576
    assert sent["options"]["num_predict"] < 24_576
    assert summary["context"]["window"] == 24_576
    assert summary["usage"]["input_tokens"] == 31

    await product.run("and?")
    assert [m.get("thinking") for m in chats(server)[-1]["messages"] if m["role"] == "assistant"] == ["hm"]


async def test_without_one_its_own_context_is_the_window(worker: ModelClient, tmp_path: Path, server: Loopback) -> None:
    server.serve("/api/ps", json_reply({"models": [{"name": "qwen3:latest", "context_length": 16_384}]}))
    server.serve("/api/chat", answer(prompt_eval_count=31, eval_count=8))
    product = Product(tmp_path, worker, {"m": model("ollama_chat/qwen3", server)})
    summary = await product.run("hi")
    assert summary["context"]["window"] == 16_384
    assert chats(server)[-1]["options"]["num_ctx"] == 16_384, "else it would be loaded anew with the default"


async def test_a_model_that_is_not_loaded_gets_a_usable_context(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    server.serve("/api/ps", json_reply({"models": []}))
    server.serve("/api/show", json_reply({"model_info": {"qwen3.context_length": 40_960}}))
    server.serve("/api/chat", answer(prompt_eval_count=31, eval_count=8))
    product = Product(tmp_path, worker, {"m": model("ollama_chat/qwen3", server)})
    summary = await product.run("hi")
    assert summary["context"]["window"] == chats(server)[-1]["options"]["num_ctx"] == 32_768
    assert any(n["code"] == "context_chosen" and "32,768" in n["text"] for n in summary["notices"])


@pytest.mark.parametrize(("effort", "think"), [("off", False), ("high", True)])
async def test_thinking_can_be_switched(
    worker: ModelClient, tmp_path: Path, server: Loopback, effort: str, think: bool
) -> None:
    server.serve("/api/chat", answer(prompt_eval_count=31, eval_count=8))
    config = model("ollama_chat/qwen3", server, context_window=8_192, reasoning_effort=effort)
    await Product(tmp_path, worker, {"m": config}).run("hi")
    assert chats(server)[-1]["think"] is think
