"""The search at an endpoint of the user's: what it asks, what it makes of an answer, and when it needs a word."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from agent_tui.config.files import Layer
from agent_tui.config.schema import check
from agent_tui.errors import ConfigError, ToolError
from agent_tui.models.events import RuleOffer
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.builtin.web_search import WebSearchTool, results
from tests.support.every import every
from tests.support.tool_context import make_context, maker

pytestmark = pytest.mark.quick

SEARXNG = {
    "query": "x",
    "results": [{"title": "One", "url": "https://a.example/", "content": "about <b>it</b> &amp; more"}],
}
BRAVE = {"web": {"results": [{"title": "Two", "url": "https://b.example/", "description": "<strong>two</strong>"}]}}
CUSTOM = {"items": [{"title": "Three", "link": "https://c.example/", "snippet": "three"}]}
HOSTILE = {"results": [{"title": "\x1b[31mred\u202e" * 100, "url": "javascript:x\x07\n", "content": "y" * 9_000}] * 40}
ANSWERS: dict[str, tuple[int, bytes]] = {
    "/searxng": (200, json.dumps(SEARXNG).encode()),
    "/brave": (200, json.dumps(BRAVE).encode()),
    "/custom": (200, json.dumps(CUSTOM).encode()),
    "/hostile": (200, json.dumps(HOSTILE).encode()),
    "/nothing": (200, b'{"results": []}'),
    "/page": (200, b"<html>"),
    "/deep": (200, b"[" * 100_000),
    "/other": (200, b'{"answer": 42, "list": [1, 2]}'),
    "/limit": (429, b"{}"),
    "/moved": (302, b""),
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server.seen.append((parse_qs(parts.query), dict(self.headers)))  # type: ignore[attr-defined]
        status, body = ANSWERS[parts.path]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def at(root: Path, url: str, headers: dict[str, str] | None = None) -> ToolContext:
    context = make_context(root)
    return replace(context, config=replace(context.config, web_search=url, web_search_headers=headers or {}))


async def search(root: Path, engine: Any, place: str, query: str = "x", **more: Any) -> ToolOutcome:
    url = f"http://127.0.0.1:{engine.server_address[1]}/{place}?format=json&q={{query}}"
    return await WebSearchTool().run({"query": query}, at(root, url, **more))


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("searxng", "One\nhttps://a.example/\nabout it & more"),
        ("brave", "Two\nhttps://b.example/\ntwo"),
        ("custom", "Three\nhttps://c.example/\nthree"),
        ("nothing", "[no results]"),
    ],
)
async def test_the_usual_answers_are_read(tmp_path: Path, engine: Any, place: str, text: str) -> None:
    outcome = await search(tmp_path, engine, place)
    assert outcome.text == text
    assert (outcome.display or {})["summary"] == ("0 results" if place == "nothing" else "1 result")


async def test_the_query_is_quoted_and_the_key_comes_from_the_environment(
    tmp_path: Path, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_KEY", "secret-7")
    headers = {"X-Token": "${SEARCH_KEY}", "Authorization": "Bearer ${SEARCH_KEY}"}
    await search(tmp_path, engine, "searxng", "a&b=c #d  ü", headers=headers)
    query, sent = engine.seen[-1]
    assert query == {"format": ["json"], "q": ["a&b=c #d ü"]}
    assert (sent["X-Token"], sent["Authorization"], sent["Accept"]) == (
        "secret-7",
        "Bearer secret-7",
        "application/json",
    )
    monkeypatch.delenv("SEARCH_KEY")
    with pytest.raises(ToolError, match=r"SEARCH_KEY, which .* names, is not set"):
        await search(tmp_path, engine, "searxng", headers=headers)


@pytest.mark.parametrize("value", ["secret-7\r\nX: y", "secret-7 ü", "secret-7\n"])
async def test_a_key_that_no_header_may_have_is_not_told(
    tmp_path: Path, engine: Any, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("SEARCH_KEY", value)
    with pytest.raises(ToolError, match="no header may have") as caught:
        await search(tmp_path, engine, "searxng", headers={"X-Token": "${SEARCH_KEY}"})
    assert "secret" not in str(caught.value)


async def test_what_it_finds_is_bounded_and_harmless(tmp_path: Path, engine: Any) -> None:
    text = (await search(tmp_path, engine, "hostile")).text
    assert len(text) < 10_000 and text.count("\n\n") == 9
    assert not set("\x1b\x07") & set(text)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("page", "is no JSON"),
        ("deep", "is no JSON"),
        ("other", "no list of results"),
        ("limit", "429"),
        ("moved", "302"),
    ],
)
async def test_what_goes_wrong_is_one_line(tmp_path: Path, engine: Any, place: str, said: str) -> None:
    with pytest.raises(ToolError, match=said) as caught:
        await search(tmp_path, engine, place)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("arguments", [{}, {"query": "  "}, {"query": "x" * 1_001}, {"query": "\ud800"}])
def test_a_query_that_is_none(tmp_path: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        WebSearchTool().intent(arguments, at(tmp_path, "https://search.example/?q={query}"))


def test_a_large_answer_is_not_looked_through_without_end() -> None:
    assert results({"a": [{"b": list(range(50))}] * 100_000}) is None


def searching(url: str = "https://search.example/?q=x") -> Intent:
    return Intent("network", "web_search x", url=url)


def test_it_asks_once_and_again_after_something_outside_was_read(tmp_path: Path) -> None:
    permissions = maker(tmp_path)()
    asked = permissions.decide("web_search", searching())
    assert asked.action == "ask" and asked.patterns == ["web_search"]
    assert asked.reason == "sends what is searched to search.example"
    permissions.passed("web_search", searching(), asked)
    assert permissions.decide("web_search", searching()).action == "ask", "a yes is for once"
    permissions.accept(RuleOffer(tuple(asked.session), "session"))
    assert permissions.decide("web_search", searching("https://search.example/?q=y")).action == "allow"
    outside = Intent("read", "read", [tmp_path.parent / "notes.txt"])
    permissions.passed("read", outside, permissions.decide("read", outside))
    again = permissions.decide("web_search", searching())
    assert again.action == "ask" and "notes.txt" in again.reason


def test_rules_name_it_and_an_address_at_home_is_the_users_own(tmp_path: Path) -> None:
    make = maker(tmp_path)
    home = searching("http://127.0.0.1:8888/search?q=x")
    assert make(allow=["web_search"]).decide("web_search", home).action == "allow"
    assert make(allow=["web_search"], ask=["web_search"]).decide("web_search", home).action == "ask"
    assert make(deny=["web_search"]).decide("web_search", home).action == "deny"
    assert make("plan", allow=["web_search"]).decide("web_search", home).action == "allow", "as fetch: it only looks"
    assert make(allow=["fetch"]).decide("web_search", home).action == "ask"


@every("value", ["off", "provider", "https://a.example/s?q={query}", "http://localhost:8888/{query}"])
def test_what_may_be_configured(value: str) -> None:
    check([Layer("config.toml", {"tools": {"web_search": value}}, {})])


@every(
    "value", ["on", "https://a.example/s", "ftp://a.example/{query}", "https://{query}/", "https://{query}.a.example/x"]
)
def test_what_may_not(value: str) -> None:
    with pytest.raises(ConfigError, match=r"tools\.web_search: must be"):
        check([Layer("config.toml", {"tools": {"web_search": value}}, {})])
