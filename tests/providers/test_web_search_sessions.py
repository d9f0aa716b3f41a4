"""Sessions in which the provider searches the web: what is offered, what it costs, what the next request holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_tui.providers.client import ModelClient
from tests.support import anthropic_stream as anthropic
from tests.support.end_to_end import Product, calls, model
from tests.support.loopback import Loopback

pytestmark = pytest.mark.asyncio(loop_scope="session")

CALL: anthropic.Block = (
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    [],
)
PAGE = {"type": "web_search_result", "url": "https://a.example/", "title": "A", "encrypted_content": "e" * 20_000}
FOUND: anthropic.Block = ({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [PAGE]}, [])
SUMMED = {"input_tokens": 4_500_000, "output_tokens": 50, "server_tool_use": {"web_search_requests": 3}}
DECLARED = "web_search_20250305"


def product(home: Path, worker: ModelClient, server: Loopback, name: str = "anthropic/claude-sonnet-4-6") -> Product:
    models = {"m": model(name, server), "other": model("anthropic/claude-opus-4-7", server)}
    return Product(home, worker, models, step_limit=3, web_search="provider")


def rows(context: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows, with those below them."""
    found, waiting = list[dict[str, Any]](), list(context["rows"])
    while waiting:
        found.append(waiting.pop(0))
        waiting += found[-1].get("children", [])
    return found


def declared(server: Loopback) -> list[bool]:
    return [any(tool.get("type") == DECLARED for tool in request.json["tools"]) for request in calls(server)]


@pytest.mark.slow
async def test_a_search_of_the_providers_from_the_request_to_the_next(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    server.serve(
        "*",
        anthropic.answer(CALL, stop="pause_turn", usage={"input_tokens": 3_000, "output_tokens": 9}),
        anthropic.answer(FOUND, anthropic.text("Found."), usage=SUMMED),
        anthropic.answer(anthropic.text("More."), usage={"input_tokens": 12_000, "output_tokens": 5}),
    )
    made = product(tmp_path, worker, server)
    said = await made.run("Search.")
    assert said["text"] == "Found." and said["stop_reason"] == "end", "a paused turn goes on by itself"
    second = calls(server)[1]
    assert declared(server) == [True, True]
    assert second.json["messages"][-1] == {"role": "assistant", "content": [CALL[0]]}
    assert second.json["messages"][:-1][0]["role"] == "user"
    searched = made.steps()[-1]
    assert searched["usage"]["web_searches"] == 3 and not searched["usage"]["context"]
    assert searched["believed"] is None, "a sum beyond the window is no mistake"
    assert searched["cost_usd"] == pytest.approx(4_500_000 * 3e-6 + 50 * 15e-6 + 3 * 0.01)
    context = await made.context()
    assert 8_000 < context["total"] < 25_000, "what was found is estimated, the sum of rounds is no context"
    offered, *searches = (row for row in rows(context) if row["label"].startswith("web_search"))
    assert offered["tokens"] > 1_500, "with what the provider says of it"
    assert 5_000 < sum(row["tokens"] for row in searches) < 8_000
    await made.run("And?")
    assert [block["type"] for block in calls(server)[-1].json["messages"][-2]["content"]] == [
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]
    assert made.steps()[-1]["usage"]["context"]


async def test_a_count_that_refuses_the_search_is_not_asked(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    server.serve("*", anthropic.answer(anthropic.text("Hi.")))
    made = product(tmp_path, worker, server)
    made.exact_counting = "auto"
    await made.run("Hi.")
    await made.context()
    assert not any("count_tokens" in request.path for request in calls(server))


async def test_another_model_gets_the_words_alone_and_it_is_said_why(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    server.serve("*", anthropic.answer(CALL, FOUND, anthropic.text("Found."), usage=SUMMED))
    made = product(tmp_path, worker, server)
    await made.run("Search.")
    (row,) = (row for row in rows(await made.context("other")) if row["label"] == "web_search x")
    assert row["tokens"] == 0 and row["replay"] == "not resent: other model"


async def test_without_its_tool_nothing_of_a_search_is_sent_or_counted(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    server.serve(
        "*",
        anthropic.answer(CALL, FOUND, anthropic.text("Found."), usage=SUMMED),
        anthropic.answer(anthropic.text("More."), usage={"input_tokens": 12_000, "output_tokens": 5}),
        anthropic.answer(anthropic.text("Less."), usage={"input_tokens": 4_000, "output_tokens": 5}),
    )
    made = product(tmp_path, worker, server)
    await made.run("Search.")
    await made.run("And?")
    anchored = await made.context()
    assert anchored["total"] > 12_000 and anchored["basis"] == "derived"
    made.web_search = "off"
    context = await made.context()
    assert sum(row["tokens"] for row in rows(context) if row["label"].startswith("web_search")) == 0
    assert context["total"] < anchored["total"] - 5_000, "the step before had the search in it"
    await made.run("Without.")
    sent = [block["type"] for block in calls(server)[-1].json["messages"][1]["content"]]
    assert sent == ["text"]


@pytest.mark.parametrize("change", [{"deny": ["web_search"]}, {"disabled": ["web_search"]}, {"web_search": "off"}])
async def test_it_is_not_offered_where_the_user_does_not_want_it(
    worker: ModelClient, tmp_path: Path, server: Loopback, change: dict[str, Any]
) -> None:
    server.serve("*", anthropic.answer(anthropic.text("Hi.")))
    made = product(tmp_path, worker, server)
    for name, value in change.items():
        setattr(made, name, value)
    await made.run("Hi.")
    assert declared(server) == [False]
