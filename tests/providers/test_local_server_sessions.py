"""Sessions with a server that people run themselves: its count before the first request, what its template leaves out,
a window that was more than was said, and a server that is gone."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from agent_tui.models.usage import Limits
from agent_tui.providers.client import ModelClient
from tests.support.end_to_end import Product, calls, model
from tests.support.loopback import Loopback, Reply, chat_stream, json_reply

pytestmark = pytest.mark.asyncio(loop_scope="session")

COUNTED = 2_204
CHAT, COUNT = "/v1/chat/completions", "/v1/chat/completions/input_tokens"
NO_TOOLS = {"supports_tools": False, "supports_tool_calls": False, "supports_system_role": True}


def llama(server: Loopback, window: int = 16_384, caps: dict[str, bool] | None = None, counted: Any = COUNTED) -> None:
    """Answers as llama.cpp does."""
    settings = {"default_generation_settings": {"n_ctx": window}, "total_slots": 1, "modalities": {"vision": False}}
    server.serve("/v1/models", json_reply({"data": [{"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx": window}}]}))
    server.serve("/props", json_reply(settings if caps is None else {**settings, "chat_template_caps": caps}))
    server.serve(COUNT, counted if isinstance(counted, Reply) else json_reply({"input_tokens": counted}))
    usage = {"prompt_tokens": COUNTED, "completion_tokens": 3, "total_tokens": COUNTED + 3}
    server.serve(CHAT, chat_stream(["hi"], usage=usage))


def product_of(tmp_path: Path, worker: ModelClient, server: Loopback, **more: Any) -> Product:
    return Product(tmp_path, worker, {"m": model("openai/m", server, "/v1", **more)}, exact_counting="auto")


async def test_the_first_request_has_the_servers_own_count(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    llama(server)
    product = product_of(tmp_path, worker, server)
    looked = await product.context()
    # The stand-in for the user's message is one of the server's tokens and what this template puts around it.
    assert looked["basis"] == "measured" and COUNTED - 10 < looked["total"] < COUNTED
    await product.run("What is the weather?")
    (step,) = product.steps()
    assert step["estimated_input_tokens"] == step["actual_input_tokens"] == COUNTED
    assert [request.path for request in calls(server)] == [COUNT, COUNT, CHAT]


async def test_a_count_that_does_not_come_holds_nothing_up(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    held = threading.Event()
    llama(server, counted=Reply(b'{"input_tokens": 9}', content_type="application/json", hold=held))
    product = product_of(tmp_path, worker, server)
    try:
        await product.run("What is the weather?")
    finally:
        held.set()
    asked, sent = calls(server)
    assert (asked.path, sent.path) == (COUNT, CHAT)
    assert sent.at - asked.at < 5, "it would hang for ever"
    (step,) = product.steps()
    assert step["actual_input_tokens"] == COUNTED


async def test_tools_that_the_template_leaves_out_are_neither_sent_nor_counted(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    llama(server, caps=NO_TOOLS)
    product = product_of(tmp_path, worker, server)
    summary = await product.run("What is the weather?")
    assert [notice["code"] for notice in summary["notices"]].count("no_tools") == 1
    assert all("tools" not in request.json for request in calls(server))
    again = await product.run("And now?")
    assert "no_tools" not in [notice["code"] for notice in again["notices"]], "once a session"
    rows = {row["id"]: row["tokens"] for row in (await product.context())["rows"]}
    assert rows["tools"] == 0 and rows["messages"] > 0
    llama(server, caps={**NO_TOOLS, "supports_tools": True})
    await product.run("And now?")
    assert calls(server)[-1].json["tools"], "the server was started anew with another template"


async def test_a_server_that_is_gone_is_named_and_its_window_is_the_last_known(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    llama(server, 12_288, NO_TOOLS)
    product = product_of(tmp_path, worker, server)
    await product.run("What is the weather?")
    before = await product.context()
    server.serve("*", Reply(drop=True))
    for path in ("/v1/models", "/props", COUNT, CHAT):
        server.serve(path, Reply(drop=True))
    gone = await product.context()
    assert gone["window"] == 12_288
    assert {row["id"]: row["tokens"] for row in gone["rows"]} == {row["id"]: row["tokens"] for row in before["rows"]}
    summary = await product.run("And now?")
    told = [notice["text"] for notice in summary["notices"] if notice["code"] == "server_gone"]
    assert len(told) == 1 and f"{server.url}/v1" in told[0] and "12,288" in told[0]
    assert product.code == 75 and len(product.answers()) == 1


@pytest.mark.slow
async def test_a_window_below_what_was_taken_is_raised_and_nothing_is_thrown_away(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    """As seen with 212,868 reported for an assumed window of 200,000."""
    taken = 9_000
    usage = {"prompt_tokens": taken, "completion_tokens": 3, "total_tokens": taken + 3}
    server.serve("*", json_reply({"error": {"message": "not here"}}, 404))
    server.serve(CHAT, chat_stream(["hi"], usage=usage))
    configured = model("openai/m", server, "/v1", context_window=8_192)
    product = Product(tmp_path, worker, {"m": configured}, exact_counting="auto", disabled=[])
    summary = await product.run("word " * 5_300)
    (told,) = (notice["text"] for notice in summary["notices"] if notice["code"] == "limit_gone")
    assert told.startswith("The server took 9,000 + 3 tokens, more than the window of 8,192 (config). Assuming 16,384")
    assert summary["context"]["window"] == 16_384
    server.serve(CHAT, chat_stream(["hi"], usage={**usage, "prompt_tokens": taken + 20, "total_tokens": taken + 23}))
    again = await product.run("And now?")
    assert again["context"]["window"] == 16_384 and again["compactions"] == []
    assert (calls(server)[-1].json.get("max_tokens") or Limits().max_output or 2_000) >= 2_000
    seen = await product.context()
    assert seen["window_origin"].startswith("assumed, as the server took 9,003 tokens")
