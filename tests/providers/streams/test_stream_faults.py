"""Every fault of a stream, injected on loopback, at each kind of API: what users are told, and what is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from agent_tui.models.failure import FailureKind
from agent_tui.models.requests import ModelSpec
from agent_tui.providers.client import ModelClient
from tests.support.loopback import (
    Loopback,
    Reply,
    anthropic_events,
    chat_chunk,
    chat_events,
    closed_port,
    json_reply,
    sse,
)
from tests.support.model_calls import KEY, collect, make_request

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True)
class Api:
    name: str
    model: str
    path: str
    opening: bytes
    """An answer that has begun with "wörd " and not ended."""
    error: bytes

    def spec(self, server: Loopback) -> ModelSpec:
        api: Any = "responses" if self.name == "responses" else "chat"
        return ModelSpec(self.name, self.model, api_base=server.url, api=api, api_key=KEY)


_TEXT = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "wörd "}
_ITEM = {"id": "m", "type": "message", "role": "assistant", "content": [], "status": "in_progress"}
_RESPONSE = {"id": "r", "object": "response", "created_at": 1, "status": "in_progress", "model": "gpt-5", "output": []}
_GEMINI = {"candidates": [{"content": {"role": "model", "parts": [{"text": "wörd "}]}}]}
APIS = [
    Api(
        "chat",
        "openai/local",
        "/v1/chat/completions",
        sse(chat_events(["wörd "], None, done=False)),
        sse([{"error": {"message": "melted", "type": "server_error", "code": 500}}]),
    ),
    Api(
        "anthropic",
        "anthropic/claude-sonnet-4-6",
        "/v1/messages",
        sse(anthropic_events(["wörd "])[:3], named=True),
        sse([{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}], named=True),
    ),
    Api(
        "gemini",
        "gemini/gemini-2.5-pro",
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
        sse([_GEMINI]),
        sse([{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}]),
    ),
    Api(
        "responses",
        "openai/gpt-5",
        "/v1/responses",
        sse(
            [
                {"type": "response.created", "response": _RESPONSE},
                {"type": "response.output_item.added", "output_index": 0, "item": _ITEM},
                _TEXT,
            ],
            named=True,
        ),
        sse([{"type": "error", "code": "server_error", "message": "melted", "sequence_number": 3}], named=True),
    ),
]
every_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)

STATUSES: list[tuple[int, FailureKind, bool]] = [
    (400, "invalid_request", False),
    (401, "auth", False),
    (403, "auth", False),
    (404, "not_found", False),
    (408, "timeout", True),
    (413, "too_large", False),
    (429, "rate_limit", True),
    (500, "overloaded", True),
    (503, "overloaded", True),
    (529, "overloaded", True),
]


@every_api
@pytest.mark.parametrize(("status", "kind", "retryable"), STATUSES)
async def test_a_status_becomes_a_failure_for_people(
    worker: ModelClient, server: Loopback, api: Api, status: int, kind: FailureKind, retryable: bool
) -> None:
    server.serve(api.path, json_reply({"error": {"message": f"because of {KEY}", "type": "some_error"}}, status))
    answer = await collect(worker.stream(make_request(api.spec(server))))
    failure = answer.failure
    assert (failure.kind, failure.status, failure.retry_after) == (kind, status, None)
    assert failure.retryable is retryable
    assert "Your text is kept" in failure.message
    assert "\n" not in failure.message
    assert KEY not in failure.message + failure.detail
    assert len(server.requests) == 1, "LiteLLM must not retry by itself"


@every_api
async def test_retry_after_reaches_the_engine(worker: ModelClient, server: Loopback, api: Api) -> None:
    server.serve(api.path, json_reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "7"}))
    answer = await collect(worker.stream(make_request(api.spec(server))))
    assert (answer.failure.kind, answer.failure.retry_after) == ("rate_limit", 7.0)
    assert "7 s" in answer.failure.message


@every_api
async def test_an_error_event_in_the_stream_is_the_providers_error(
    worker: ModelClient, server: Loopback, api: Api
) -> None:
    server.serve(api.path, api.opening + api.error)
    answer = await collect(worker.stream(make_request(api.spec(server))))
    assert answer.failure.kind == "overloaded"
    assert answer.text == "wörd "
    assert answer.ends == 1


@every_api
async def test_an_error_event_at_once_too(worker: ModelClient, server: Loopback, api: Api) -> None:
    server.serve(api.path, api.error)
    answer = await collect(worker.stream(make_request(api.spec(server))))
    assert answer.failure.kind == "overloaded"


@every_api
@pytest.mark.parametrize("how", ["closed", "ended"])
async def test_a_stream_that_stops_is_interrupted(worker: ModelClient, server: Loopback, api: Api, how: str) -> None:
    server.serve(api.path, Reply(api.opening, cut=how == "closed"))
    answer = await collect(worker.stream(make_request(api.spec(server))))
    assert answer.failure.kind == "interrupted_stream"
    assert answer.failure.retryable
    assert answer.text == "wörd "


@every_api
async def test_a_cut_inside_a_character_and_a_json_string(worker: ModelClient, server: Loopback, api: Api) -> None:
    letter = "ö".encode()
    event = api.opening + api.opening[api.opening.rindex(b"data:") :].replace(b"\\u00f6", letter)
    server.serve(api.path, Reply(event[: event.rindex(letter) + 1], cut=True))
    answer = await collect(worker.stream(make_request(api.spec(server))))
    assert answer.failure.kind == "interrupted_stream"
    assert answer.text.startswith("wörd ")


async def test_a_cut_inside_a_tool_call_keeps_what_came(worker: ModelClient, server: Loopback) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a'}}
    server.serve(APIS[0].path, Reply(sse([chat_chunk({"role": "assistant", "tool_calls": [call]})]), cut=True))
    answer = await collect(worker.stream(make_request(APIS[0].spec(server))))
    assert answer.failure.kind == "interrupted_stream"
    assert answer.arguments == '{"path": "a'


@pytest.mark.forms(1)
@every_api
@pytest.mark.parametrize("begun", [True, False])
async def test_silence_ends_in_a_timeout(worker: ModelClient, server: Loopback, api: Api, begun: bool) -> None:
    server.serve(api.path, Reply([api.opening] if begun else [], hang=True))
    answer = await collect(worker.stream(make_request(api.spec(server), timeout=0.3)))
    assert answer.failure.kind == "timeout"
    assert answer.text == ("wörd " if begun else "")


both_ways = pytest.mark.parametrize("via", ["auto", "litellm"])


@every_api
@both_ways
@pytest.mark.parametrize("body", [b"", b": still thinking\n\n"], ids=["nothing", "comments"])
async def test_an_answer_without_a_word_is_no_success(
    worker: ModelClient, server: Loopback, api: Api, via: Any, body: bytes
) -> None:
    server.serve(api.path, Reply(body))
    answer = await collect(worker.stream(make_request(replace(api.spec(server), via=via))))
    assert (answer.failure.kind, answer.failure.retryable) == ("empty_answer", True)
    assert "sent an empty answer" in answer.failure.message and "api_base" in answer.failure.message


@every_api
@pytest.mark.parametrize(
    ("body", "content_type", "words"),
    [
        (b"<html><title>Log in</title><form></form></html>", "text/html; charset=utf-8", "text/html “Log in”"),
        (b'{"status": "ok", "version": 3}', "application/json", "application/json “{"),
        (b'{"result": {"tools": []}, "jsonrpc": "2.0"}', "application/json", "application/json “{"),
        (b"Ollama is running", "text/plain", "text/plain “Ollama is running”"),
    ],
    ids=["login page", "other json", "json-rpc", "words"],
)
async def test_what_is_no_models_answer_is_told(
    worker: ModelClient, server: Loopback, api: Api, body: bytes, content_type: str, words: str
) -> None:
    server.serve(api.path, Reply(body, content_type=content_type))
    answer = await collect(worker.stream(make_request(api.spec(server))))
    assert (answer.failure.kind, answer.failure.retryable, answer.failure.status) == ("bad_answer", False, None)
    assert words in answer.failure.message and "api_base" in answer.failure.message
    assert "No connection" not in answer.failure.message


@every_api
@both_ways
@pytest.mark.parametrize("body", [b'{"mess', b"<html><title>Log"], ids=["json", "page"])
async def test_a_connection_that_is_lost_at_once_is_tried_again(
    worker: ModelClient, server: Loopback, api: Api, via: Any, body: bytes
) -> None:
    server.serve(api.path, Reply(body, content_type="application/json", cut=True))
    answer = await collect(worker.stream(make_request(replace(api.spec(server), via=via))))
    assert answer.failure.retryable, answer.failure


@every_api
async def test_a_refused_connection(worker: ModelClient, server: Loopback, api: Api) -> None:
    spec = replace(api.spec(server), api_base=f"http://127.0.0.1:{closed_port()}")
    answer = await collect(worker.stream(make_request(spec)))
    assert answer.failure.kind == "connection"
    assert answer.failure.status is None
    assert "No connection" in answer.failure.message


@every_api
async def test_a_server_without_tls(worker: ModelClient, server: Loopback, api: Api) -> None:
    spec = replace(api.spec(server), api_base=server.url.replace("http:", "https:"))
    answer = await collect(worker.stream(make_request(spec)))
    assert answer.failure.kind == "connection"
    assert "TLS" in answer.failure.message


OVERFLOWS = [
    (
        "anthropic",
        {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}},
    ),
    ("chat", {"error": {"message": "maximum context length is 8192 tokens.", "code": "context_length_exceeded"}}),
    (
        "gemini",
        {
            "error": {
                "code": 400,
                "message": "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            }
        },
    ),
    ("responses", {"error": {"message": "Your input exceeds the context window of this model."}}),
]


@pytest.mark.parametrize(("name", "body"), OVERFLOWS, ids=lambda value: value if isinstance(value, str) else "")
async def test_context_overflow_is_recognised(
    worker: ModelClient, server: Loopback, name: str, body: dict[str, Any]
) -> None:
    api = next(a for a in APIS if a.name == name)
    server.serve(api.path, json_reply(body, 400))
    answer = await collect(worker.stream(make_request(api.spec(server))))
    assert answer.failure.kind == "context_overflow"
    assert "/compact" in answer.failure.message
