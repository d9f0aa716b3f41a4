"""Models that bind signatures to their prefix, and servers that refuse what they are sent back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import ModelConfig
from agent_tui.providers.client import ModelClient
from agent_tui.providers.dialects.anthropic import BINDING_BETA
from tests.support import anthropic_stream as anthropic
from tests.support.end_to_end import Product, calls, model
from tests.support.loopback import Loopback, json_reply, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

THOUGHT, SIGNATURE = "a private thought", "c2lnbmF0dXJl"
ANSWER = anthropic.answer(anthropic.thinking(THOUGHT, SIGNATURE), anthropic.text("claude says"))
BAD_SIGNATURE = "messages.1.content.0: Invalid `signature` in `thinking` block"
BAD_FIELD = "thinking.block_binding: Extra inputs are not permitted"


def claude(server: Loopback, name: str) -> ModelConfig:
    return model(f"anthropic/{name}", server)


def refusal(text: str) -> Any:
    return json_reply({"type": "error", "error": {"type": "invalid_request_error", "message": text}}, 400)


def binding(server: Loopback, number: int = -1) -> Any:
    return calls(server)[number].json["thinking"].get("block_binding")


async def test_the_provider_is_asked_to_drop_and_what_it_dropped_is_stored(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    dropped = [{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}]
    start = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": []}
    events = [
        {
            "type": "message_start",
            "message": {**start, "usage": {"input_tokens": 11, "output_tokens": 1}},
            "input_transformations": dropped,
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "again"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 30}},
        {"type": "message_stop"},
    ]
    server.serve("/v1/messages", ANSWER, sse(events, named=True), ANSWER)
    product = Product(tmp_path, worker, {"m": claude(server, "claude-fable-5-1")})
    await product.run("first")
    assert binding(server) == {"prefix_mismatch_behavior": "drop_block"}
    assert BINDING_BETA in (calls(server)[-1].header("anthropic-beta") or "")
    assert calls(server)[-1].json["output_config"] == {"effort": "medium"}
    second = await product.run("second")
    assert SIGNATURE in calls(server)[-1].body.decode()
    assert any("drop" in str(note) for note in second["notices"]), second["notices"]
    step = product.export()["steps"][-1]
    assert step["sent_reasoning"][0] == [1, 0.0, 0]
    await product.run("third")
    assert SIGNATURE not in calls(server)[-1].body.decode(), "it would be dropped from every request"
    assert product.code == 0


async def test_a_server_that_does_not_know_the_field_is_asked_once(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    server.serve("/v1/messages", refusal(BAD_FIELD), ANSWER)
    product = Product(tmp_path, worker, {"m": claude(server, "claude-fable-5-1")})
    summary = await product.run("first")
    assert (product.code, summary["text"]) == (0, "claude says")
    assert len(calls(server)) == 2 and binding(server, 0) and binding(server) is None
    assert sum("Sent again, now" in str(note) for note in summary["notices"]) == 1
    await product.run("second")
    await product.run("third", fresh=True)
    assert len(calls(server)) == 4 and binding(server) is None, "remembered for this model and server"
    product.models = {"m": claude(server, "claude-mythos-5-1")}
    await product.run("fourth", fresh=True)
    assert binding(server), "of another model nothing is known"


@pytest.mark.slow
async def test_a_refused_signature_is_learned_from_once(worker: ModelClient, tmp_path: Path, server: Loopback) -> None:
    server.serve("/v1/messages", ANSWER, refusal(BAD_SIGNATURE), ANSWER)
    product = Product(tmp_path, worker, {"m": claude(server, "claude-sonnet-4-6")})
    await product.run("first")
    assert "block_binding" not in calls(server)[-1].body.decode(), "it is not documented to bind"
    summary = await product.run("second")
    assert (product.code, summary["text"]) == (0, "claude says")
    assert len(calls(server)) == 3
    assert SIGNATURE in calls(server)[1].body.decode() and SIGNATURE not in calls(server)[2].body.decode()
    assert calls(server)[2].json["thinking"]["type"] == "adaptive", "thinking stays on"
    assert sum("signature" in str(note) for note in summary["notices"]) == 1
    assert product.export()["steps"][-1]["sent_reasoning"] == [[1, 0.0, 0]]
    await product.run("third")
    assert calls(server)[-1].body.decode().count(SIGNATURE) == 1, "what was stripped stays out; the newer block is good"
    product.disabled = ["bash"]
    await product.run("fourth")
    assert SIGNATURE not in calls(server)[-1].body.decode(), "behind another prefix it would be refused again"


async def test_a_signature_that_is_refused_again_ends_the_turn(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    server.serve("/v1/messages", ANSWER, *[refusal(BAD_SIGNATURE)] * 4)
    product = Product(tmp_path, worker, {"m": claude(server, "claude-sonnet-4-6")})
    await product.run("first")
    await product.run("second")
    assert product.code != 0 and len(calls(server)) == 3, "once more, not for ever"
