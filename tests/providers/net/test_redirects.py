"""A server that sends a call elsewhere: key and conversation do not go there, and the user reads both addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from agent_tui.models.requests import ModelSpec
from agent_tui.providers.client import ModelClient
from agent_tui.providers.local_servers import ask, fetch_json
from tests.support.loopback import Loopback, Reply
from tests.support.model_calls import KEY, collect, make_request

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.quick]

MODELS = [
    "openai/local",
    "openai/responses",
    "anthropic/claude-sonnet-4-6",
    "gemini/gemini-2.5-pro",
    "mistral/magistral-medium-latest",
    "cohere_chat/command-a-03-2025",
    "ollama_chat/llama3",
    "openrouter/some/model",
    "groq/llama-3.3-70b-versatile",
    "deepseek/deepseek-reasoner",
    "xai/grok-4",
    "azure/gpt-5",
    "hosted_vllm/local",
    "lm_studio/local",
    "bedrock/anthropic.claude-sonnet-4-20250514-v1:0",
    "bedrock/converse/us.amazon.nova-pro-v1:0",
]
BOTH_WAYS = ("openai/local", "bedrock/anthropic.claude-sonnet-4-20250514-v1:0")
"""One that is called straight and one through LiteLLM: each has its own place that looks at a status."""


@pytest.fixture
def elsewhere() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


def spec(model: str, server: Loopback) -> ModelSpec:
    extra = {"api_version": "2024-10-21"} if model.startswith("azure") else {}
    if model == "openai/responses":
        return ModelSpec("m", "openai/gpt-5", api_base=server.url, api="responses", api_key=KEY)
    return ModelSpec("m", model, api_base=server.url, api="chat", api_key=KEY, extra=extra)


@pytest.mark.parametrize(
    ("model", "status"),
    [
        (model, status)
        for model in MODELS
        for status in (301, 302, 303, 307, 308)
        if status == 307 or model in BOTH_WAYS
    ],
)
async def test_nothing_goes_to_the_other_server(
    worker: ModelClient, server: Loopback, elsewhere: Loopback, model: str, status: int
) -> None:
    server.serve("*", Reply(status=status, headers={"Location": f"{elsewhere.url}/take?it"}))
    answer = await collect(worker.stream(make_request(spec(model, server), "the secret plan")))
    assert elsewhere.requests == []
    assert len(server.requests) == 1
    assert server.url in answer.failure.message
    assert elsewhere.url in answer.failure.message
    assert not answer.failure.retryable
    assert KEY not in answer.failure.message + answer.failure.detail


@pytest.mark.parametrize("model", MODELS[:4])
@pytest.mark.parametrize(
    "location", ["/elsewhere", "https://127.0.0.1:1/x", "//[::1]:9/x", "http://user:pw@other.invalid/"]
)
async def test_no_kind_of_redirect_is_followed(
    worker: ModelClient, server: Loopback, model: str, location: str
) -> None:
    server.serve("*", Reply(status=307, headers={"Location": location}))
    answer = await collect(worker.stream(make_request(spec(model, server))))
    assert len(server.requests) == 1
    assert "redirects to" in answer.failure.message
    assert "user:pw" not in answer.failure.message
    assert "\n" not in answer.failure.message


async def test_looking_for_local_servers_follows_nothing(server: Loopback, elsewhere: Loopback) -> None:
    server.serve("*", Reply(status=302, headers={"Location": f"{elsewhere.url}/v1/models"}))
    assert await asyncio.to_thread(fetch_json, f"{server.url}/v1/models") is None
    status, _ = await asyncio.to_thread(ask, f"{server.url}/count", b"{}", 20.0)
    assert status == 302
    assert elsewhere.requests == []
