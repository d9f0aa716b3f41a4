"""Exact counting endpoints, answered on loopback; the bodies are what a real call would send."""

from __future__ import annotations

import pytest

from agent_tui.models.messages import Message, TextPart, ToolCallPart, ToolResultPart, user_message
from agent_tui.models.requests import ModelSpec, ToolSchema
from agent_tui.providers.client import ModelClient
from tests.support.loopback import Loopback, Reply, chat_stream, json_reply
from tests.support.model_calls import KEY, make_request

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.quick]

TOOL = ToolSchema("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
CONVERSATION = [
    user_message("read it"),
    Message("a", "assistant", [TextPart("Sure."), ToolCallPart("call_1", "read", '{"path": "x"}')]),
    Message("t", "tool", [ToolResultPart("call_1", "read", "the content")]),
]


async def test_anthropic(worker: ModelClient, server: Loopback) -> None:
    server.serve("/v1/messages/count_tokens", json_reply({"input_tokens": 123}))
    spec = ModelSpec("a", "anthropic/claude-sonnet-4-6", api_base=server.url, api_key=KEY)
    assert await worker.count_exact(make_request(spec, messages=CONVERSATION, tools=[TOOL])) == 123
    [request] = server.requests
    assert request.header("x-api-key") == KEY
    body = request.json
    assert "max_tokens" not in body
    assert "stream" not in body
    assert body["model"] == "claude-sonnet-4-6"
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]
    assert body["tools"][0]["name"] == "read"
    assert "Be brief." in str(body["system"])


async def test_gemini(worker: ModelClient, server: Loopback) -> None:
    server.serve("/v1beta/models/gemini-2.5-pro:countTokens", json_reply({"totalTokens": 77}))
    spec = ModelSpec("g", "gemini/gemini-2.5-pro", api_base=server.url, api_key=KEY)
    assert await worker.count_exact(make_request(spec, messages=CONVERSATION, tools=[TOOL])) == 77
    [request] = server.requests
    body = request.json["generateContentRequest"]
    assert body["model"] == "models/gemini-2.5-pro"
    assert "the content" in str(body["contents"])
    assert body["tools"]


async def test_openai_responses(worker: ModelClient, server: Loopback) -> None:
    server.serve("/v1/responses/input_tokens", json_reply({"object": "response.input_tokens", "input_tokens": 55}))
    spec = ModelSpec("o", "openai/gpt-5", api="responses", api_base=server.url, api_key=KEY)
    assert await worker.count_exact(make_request(spec, messages=CONVERSATION, tools=[TOOL])) == 55
    [request] = server.requests
    assert request.header("authorization") == f"Bearer {KEY}"
    assert request.json["model"] == "gpt-5"
    assert "the content" in str(request.json["input"])
    assert request.json["tools"][0]["name"] == "read"
    assert request.json["instructions"] == "Be brief."
    assert "max_output_tokens" not in request.json


LLAMA = {"data": [{"id": "local", "owned_by": "llamacpp", "meta": {"n_ctx": 4096}}]}
VLLM = {"data": [{"id": "local", "owned_by": "vllm", "max_model_len": 4096}]}


@pytest.mark.parametrize(
    ("listed", "answers"),
    [
        pytest.param(LLAMA, {"/v1/chat/completions/input_tokens": {"input_tokens": 5}}, id="llama.cpp"),
        pytest.param(
            LLAMA,
            {"/apply-template": {"prompt": "<s>hi"}, "/tokenize": {"tokens": [1, 2, 3, 4, 5]}},
            id="llama.cpp before it counted",
        ),
        pytest.param(VLLM, {"/tokenize": {"count": 5, "max_model_len": 4096, "tokens": [1, 2, 3, 4, 5]}}, id="vLLM"),
    ],
)
async def test_a_server_that_counts_by_itself(
    worker: ModelClient, server: Loopback, listed: dict[str, object], answers: dict[str, object]
) -> None:
    server.serve("/v1/models", json_reply(listed))
    for path, said in answers.items():
        server.serve(path, json_reply(said))
    spec = ModelSpec("l", "openai/local", api_base=server.url, api_key=KEY)
    assert (await worker.describe(spec)).counting
    request = make_request(spec, messages=CONVERSATION, tools=[TOOL])
    assert await worker.count_exact(request) == 5
    asked = [r for r in server.requests if r.method == "POST"]
    assert {r.header("authorization") for r in asked} == {f"Bearer {KEY}"}
    server.serve("/v1/chat/completions", chat_stream(["ok"]))
    async for _ in worker.stream(request):
        pass
    # What is counted is what is sent.
    [sent] = [r.json for r in server.requests if r.path == "/v1/chat/completions"]
    counted = next(r.json for r in asked if r.path in answers)
    assert sent["tools"] and sent["messages"]
    assert counted == {name: sent[name] for name in counted}
    assert {"model", "messages", "tools"} <= counted.keys()
    if "/apply-template" in answers:
        assert asked[-1].json == {"content": "<s>hi", "add_special": True, "parse_special": True}


@pytest.mark.parametrize(
    "reply",
    [json_reply({"error": "no"}, 400), Reply(b"nonsense"), json_reply({"input_tokens": 0}), json_reply([1])],
    ids=["refused", "nonsense", "zero", "list"],
)
async def test_no_number_is_none(worker: ModelClient, server: Loopback, reply: Reply) -> None:
    server.serve("*", reply)
    spec = ModelSpec("a", "anthropic/claude-sonnet-4-6", api_base=server.url, api_key=KEY)
    assert await worker.count_exact(make_request(spec)) is None


async def test_providers_without_an_endpoint_are_not_asked(worker: ModelClient, server: Loopback) -> None:
    spec = ModelSpec("o", "openai/local", api_base=server.url)
    assert await worker.count_exact(make_request(spec)) is None
    assert await worker.count_exact(make_request(ModelSpec("a", "anthropic/claude-sonnet-4-6"))) is None
    assert server.requests == []
