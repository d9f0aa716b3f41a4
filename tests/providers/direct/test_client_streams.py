from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from agent_tui.models.requests import Delta, Finished, ModelSpec, Started, ToolSchema
from agent_tui.providers.accumulate import Accumulator
from agent_tui.providers.calling import DirectAnswer
from agent_tui.providers.client import ModelClient
from agent_tui.providers.net import HUGE, Tap
from tests.support.agents import words_only
from tests.support.loopback import Loopback, Reply, anthropic_events, chat_chunk, chat_events, chat_stream, sse
from tests.support.model_calls import HELLO_WORLD, KEY, collect, environment, make_request, run_python

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOWHERE = "http://127.0.0.1:9"
TOOL = ToolSchema("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def local(server: Loopback, model: str = "openai/local-model", **more: object) -> ModelSpec:
    return ModelSpec("local", model, api_base=server.url, **more)  # type: ignore[arg-type]


async def test_a_local_server_needs_no_key(worker: ModelClient, server: Loopback) -> None:
    server.serve("/v1/chat/completions", chat_stream(["Hello ", "wörld"]))
    answer = await collect(worker.stream(make_request(local(server))))
    assert isinstance(answer.items[0], Started)
    assert answer.items[0].target.provider == "openai"
    assert answer.text == "Hello wörld"
    assert answer.finish.reason == "stop"
    assert answer.ends == 1
    assert answer.usage is not None
    assert (answer.usage.usage.input, answer.usage.usage.output, answer.usage.usage.source) == (11, 3, "provider")


async def test_anthropic_with_a_custom_address(worker: ModelClient, server: Loopback) -> None:
    server.serve("/v1/messages", sse(anthropic_events(["Hello ", "Claude"]), named=True))
    spec = local(server, "anthropic/claude-sonnet-4-6", api_key=KEY)
    answer = await collect(worker.stream(make_request(spec, tools=[TOOL])))
    assert answer.text == "Hello Claude"
    assert answer.finish.reason == "stop"
    [request] = server.requests
    assert request.header("x-api-key") == KEY
    assert request.json["max_tokens"] == 1000
    assert KEY.encode() not in request.body


@pytest.mark.parametrize("base", ["", "/v1beta", "/v1beta/"])
async def test_gemini_is_called_at_its_own_path(worker: ModelClient, server: Loopback, base: str) -> None:
    events = [
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello "}]}}]},
        {
            "candidates": [{"content": {"role": "model", "parts": [{"text": "Gemini"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7},
        },
    ]
    server.serve("/v1beta/models/gemini-2.5-pro:streamGenerateContent", sse(events))
    spec = ModelSpec("g", "gemini/gemini-2.5-pro", api_base=server.url + base, api_key=KEY)
    answer = await collect(worker.stream(make_request(spec)))
    assert answer.text == "Hello Gemini"
    assert answer.finish.reason == "stop"


async def test_responses_on_request_with_a_custom_address(worker: ModelClient, server: Loopback) -> None:
    message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
    text = {"type": "output_text", "text": "Hello", "annotations": []}
    base = {"id": "r1", "object": "response", "created_at": 1, "model": "gpt-5"}
    usage = {
        "input_tokens": 9,
        "output_tokens": 4,
        "total_tokens": 13,
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    at = {"output_index": 0}
    done = {**message, "content": [text]}
    events = [
        {"type": "response.created", "response": {**base, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", **at, "item": {**message, "content": []}},
        {
            "type": "response.output_text.delta",
            "item_id": "m1",
            "output_index": 0,
            "content_index": 0,
            "delta": "Hello",
        },
        {"type": "response.output_item.done", **at, "item": done},
        {"type": "response.completed", "response": {**base, "status": "completed", "output": [done], "usage": usage}},
    ]
    server.serve("/v1/responses", sse(events, named=True))
    answer = await collect(worker.stream(make_request(local(server, "openai/gpt-5", api="responses"))))
    assert answer.text == "Hello"
    assert answer.finish.reason == "stop"
    assert answer.usage is not None
    assert answer.usage.usage.reasoning == 2


async def test_a_tool_call_arrives_with_its_raw_arguments(worker: ModelClient, server: Loopback) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"pa'}}
    rest = {"index": 0, "function": {"arguments": 'th": "a"'}}
    events = [chat_chunk({"role": "assistant", "tool_calls": [call]}), chat_chunk({"tool_calls": [rest]})]
    server.serve("/v1/chat/completions", sse([*events, chat_chunk({}, "tool_calls"), "[DONE]"]))
    answer = await collect(worker.stream(make_request(local(server), tools=[TOOL])))
    assert answer.arguments == '{"path": "a"', "kept as written, though it does not parse"
    first = next(i for i in answer.items if isinstance(i, Delta))
    assert (first.call_id, first.name) == ("c1", "read")
    assert answer.finish.reason == "tool_calls"


async def test_an_empty_answer_is_an_answer(worker: ModelClient, server: Loopback) -> None:
    server.serve("/v1/chat/completions", chat_stream([]))
    answer = await collect(worker.stream(make_request(local(server))))
    assert answer.text == ""
    assert answer.finish.reason == "stop"


async def test_missing_usage_is_not_called_the_providers(worker: ModelClient, server: Loopback) -> None:
    server.serve("/v1/chat/completions", chat_stream(["some text"], usage=None))
    answer = await collect(worker.stream(make_request(local(server))))
    assert answer.usage is not None
    assert answer.usage.usage.source == "estimated"
    assert not answer.usage.usage.anchors


@pytest.mark.slow
async def test_a_chunk_of_five_megabytes_passes(worker: ModelClient, server: Loopback) -> None:
    text = "wörd " * 1_000_000
    server.serve("/v1/chat/completions", chat_stream([text]))
    answer = await collect(worker.stream(replace(make_request(local(server)), max_output=200_000)))
    assert answer.text == text
    longest = max(len(i.text) for i in answer.items if isinstance(i, Delta))
    assert longest < 100_000, "it comes in pieces"


@pytest.mark.slow
async def test_fifty_thousand_tiny_chunks_are_gathered(worker: ModelClient, server: Loopback) -> None:
    server.serve("/v1/chat/completions", chat_stream(["a"] * 50_000))
    answer = await collect(worker.stream(make_request(local(server))))
    assert answer.text == "a" * 50_000
    assert len(answer.items) < 10_000


async def test_sessions_share_the_client(worker: ModelClient, server: Loopback) -> None:
    gate = threading.Event()
    server.serve("/v1/chat/completions", Reply(chat_stream(["slow"]), hold=gate), chat_stream(["fast"]))
    slow = asyncio.create_task(collect(worker.stream(make_request(local(server), session_id="one"))))
    await asyncio.to_thread(server.wait_for_requests, 1)
    fast = await collect(worker.stream(make_request(local(server), session_id="two")))
    assert fast.text == "fast"
    assert not slow.done()
    gate.set()
    assert (await slow).text == "slow"


async def test_closing_the_stream_closes_the_connection(worker: ModelClient, server: Loopback) -> None:
    server.serve("/v1/chat/completions", Reply([sse(chat_events(["begun"], None, done=False))], hang=True))
    stream = worker.stream(make_request(local(server)))
    async for item in stream:
        if isinstance(item, Delta):
            break
    await stream.aclose()
    await asyncio.to_thread(server.wait_for_client_to_leave)
    assert len(server.requests) == 1


async def test_counting_answers_while_a_model_streams(worker: ModelClient, server: Loopback) -> None:
    server.serve("/v1/chat/completions", Reply([sse(chat_events(["begun"], None, done=False))], hang=True))
    stream = worker.stream(make_request(local(server)))
    await anext(stream)
    assert await worker.count(["hello world", ""]) == [HELLO_WORLD, words_only(0)]
    await stream.aclose()


async def test_proxies_are_kept_off_loopback_and_the_configured_key_is_read(server: Loopback) -> None:
    server.serve("/v1/chat/completions", chat_stream(["direct"]))
    proxy = "http://127.0.0.1:9"
    proxies = {"HTTP_PROXY": proxy, "http_proxy": proxy, "ALL_PROXY": proxy, "NO_PROXY": None, "no_proxy": None}
    with environment({**proxies, "MY_TEST_KEY": "key-from-variable"}):
        client = ModelClient()
        answer = await collect(client.stream(make_request(local(server, api_key_env="MY_TEST_KEY"))))
        await client.close()
    assert answer.text == "direct"
    assert isinstance(answer.items[-1], Finished)
    assert server.requests[-1].header("authorization") == "Bearer key-from-variable"


@pytest.mark.parametrize(
    ("spec", "variable", "provider"),
    [
        (
            ModelSpec("a", "anthropic/claude-sonnet-4-6", api_base="http://127.0.0.1:9"),
            "ANTHROPIC_API_KEY",
            "anthropic",
        ),
        (ModelSpec("o", "openai/gpt-5"), "OPENAI_API_KEY", "openai"),
        (ModelSpec("w", "openai/gpt-5", api_key_env="NO_SUCH_KEY"), "NO_SUCH_KEY", "openai"),
        (ModelSpec("c", "openai/x", api_base=NOWHERE, api_key_env="NO_SUCH_KEY"), "NO_SUCH_KEY", None),
    ],
)
async def test_a_missing_key_names_both_ways_to_give_it(
    worker: ModelClient, spec: ModelSpec, variable: str, provider: str | None
) -> None:
    """For a server of one's own there is one: the keyring's entry of the provider's name is for the provider."""
    answer = await collect(worker.stream(make_request(spec)))
    assert answer.failure.kind == "auth"
    assert variable in answer.failure.message
    assert ("auth set" in answer.failure.message) is (provider is not None)
    assert provider is None or f"agent-tui auth set {provider}" in answer.failure.message
    assert "\n" not in answer.failure.message
    info = await worker.describe(spec)
    assert info.problem is not None
    assert variable in info.problem


async def test_an_unknown_provider_is_one_clear_line(worker: ModelClient) -> None:
    answer = await collect(worker.stream(make_request(ModelSpec("x", "opnai/gpt-5"))))
    assert answer.failure.kind == "not_found"
    assert "opnai" in answer.failure.message


async def test_the_model_sees_what_was_sent(worker: ModelClient, server: Loopback) -> None:
    server.serve("/v1/chat/completions", chat_stream(["ok"]))
    text = 'quote " backslash \\ newline \n lone \ud800 emoji 👍 null \x00'
    await collect(worker.stream(make_request(local(server), text)))
    body = json.dumps(server.requests[-1].json)
    assert "emoji" in body
    assert "Be brief." in body


async def test_a_fault_of_the_programs_own_is_a_failure(
    worker: ModelClient, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(f"nobody thought of this: {KEY}")

    server.serve("/v1/chat/completions", Reply(chat_stream(["hello"])))
    for owner, name in ((Accumulator, "pump"), (DirectAnswer, "_end"), (DirectAnswer, "_build")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, broken)
            async with asyncio.timeout(10):
                answer = await collect(worker.stream(make_request(local(server, api_key=KEY))))
        assert answer.ends == 1 and KEY not in str(answer.failure)
    with monkeypatch.context() as patched:
        patched.setattr("agent_tui.providers.calling.resolve_key", lambda *_: int("no number"))
        async with asyncio.timeout(10):
            assert (await collect(worker.stream(make_request(local(server))))).ends == 1
    assert (await collect(worker.stream(make_request(local(server))))).text == "hello"


async def test_bodies_are_made_and_huge_lines_read_beside_the_loop(
    worker: ModelClient, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside: dict[str, set[bool]] = {}
    loop = threading.get_ident()
    for owner, name in ((DirectAnswer, "_build"), (Tap, "_read")):
        original = getattr(owner, name)

        def note(*given: object, name: str = name, original: Any = original) -> object:
            beside.setdefault(name, set()).add(threading.get_ident() != loop)
            return original(*given)

        monkeypatch.setattr(owner, name, note)
    server.serve("/v1/chat/completions", Reply(chat_stream(["x" * 3 * HUGE])))
    answer = await collect(worker.stream(replace(make_request(local(server)), max_output=HUGE)))
    assert answer.text == "x" * 3 * HUGE
    assert beside == {"_build": {True}, "_read": {True, False}}


async def test_a_name_that_is_looked_up_for_ever_holds_up_no_end() -> None:
    code = """
import asyncio, socket, threading
from agent_tui.models.requests import ModelSpec
from agent_tui.providers.client import ModelClient
from tests.support.model_calls import collect, make_request
asked = threading.Event()
def for_ever(*_, **__):
    asked.set()
    threading.Event().wait()
socket.getaddrinfo = for_ever
async def main():
    client = ModelClient()
    spec = ModelSpec("m", "openai/x", api_base="http://nowhere.example", api_key="k")
    call = asyncio.create_task(collect(client.stream(make_request(spec))))
    await asyncio.to_thread(asked.wait)
    call.cancel()
    await asyncio.wait([call])
    await client.close()
    print("closed", call.cancelled())
asyncio.run(main())
"""
    done = await asyncio.to_thread(run_python, code)
    assert done.stdout == "closed True\n"
