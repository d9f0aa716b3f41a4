"""Our requests against a real llama.cpp, by each of its three APIs: taken, and counted as it counts itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_tui.models.messages import user_message
from agent_tui.models.requests import Finished, ModelSpec
from agent_tui.providers.direct import Connections
from agent_tui.providers.limits import ServerFacts, describe
from agent_tui.providers.server_facts import server_facts
from tests.support import llama, recorded
from tests.support.real_talks import Came, body_of, counted, requests, send

pytestmark = pytest.mark.skipif(llama.missing() is not None, reason=f"llama.cpp: {llama.missing()}")
WINDOW, KEY = 4_096, "key-of-the-server"
WAYS = {"chat": ("openai/tiny", "chat"), "responses": ("openai/tiny", "responses"), "messages": ("anthropic/t", "chat")}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    model = Path(tmp_path_factory.mktemp("llama")) / "tiny.gguf"
    llama.make_model(model, llama.o200k(), words=4)
    with llama.serving(model, WINDOW, key=KEY) as url:
        yield url


def spec_of(server: str, way: str, key: str = KEY) -> ModelSpec:
    model, api = WAYS[way]
    wanted: Any = api
    return ModelSpec("test", model, api_base=server, api=wanted, api_key=key)


async def all_of(spec: ModelSpec) -> dict[str, Came]:
    connections = Connections()
    try:
        short = ((name, replace(request, max_output=request.max_output and 256)) for name, request in requests(spec))
        return {name: await send(request, connections) for name, request in short}
    finally:
        await connections.aclose()


def test_every_request_is_taken_and_counted_alike_by_each_api(server: str) -> None:
    came = {way: asyncio.run(all_of(spec_of(server, way))) for way in WAYS}
    for way, answers in came.items():
        assert not {name: one.failure for name, one in answers.items() if one.failure is not None}, way
        for name, one in answers.items():
            assert isinstance(one.items[-1], Finished), name
            assert one.usage is not None and one.usage.anchors, name
    for name, request in requests(spec_of(server, "chat")):
        usage = came["chat"][name].usage
        assert usage is not None and usage.input == counted(server, body_of(request, images=False), KEY), name
    for name in ("question", "open loop", "many calls", "a failed tool", "foreign", "image"):
        assert len({one.usage.input for answers in came.values() if (one := answers[name]).usage}) == 1, name
    # Between a result and the user the chat API is sent an answer: many templates want the roles to alternate.
    asked = body_of(dict(requests(spec_of(server, "chat")))["calls"], images=False)
    asked["messages"] = [message for message in asked["messages"] if message != {"role": "assistant", "content": "OK."}]
    alike = {one.usage.input for way in ("responses", "messages") if (one := came[way]["calls"]).usage}
    assert alike == {counted(server, asked, KEY)}


@pytest.mark.parametrize("way", WAYS)
def test_what_it_refuses_is_understood(server: str, way: str) -> None:
    async def refused(text: str, key: str) -> Came:
        connections = Connections()
        try:
            spec = spec_of(server, way, key)
            return await send(recorded.request_for(spec, [user_message(text)], max_output=64), connections)
        finally:
            await connections.aclose()

    long = asyncio.run(refused("far too long " * WINDOW, KEY)).failure
    assert long is not None and long.kind == "context_overflow"
    assert long.overflow is not None and long.overflow.window == WINDOW
    unknown = asyncio.run(refused("hi", "another-key")).failure
    assert unknown is not None and (unknown.kind, unknown.status) == ("auth", 401)


@pytest.mark.parametrize("slots", [1, 2])
def test_what_it_says_of_a_template_without_tools_is_what_it_counts(tmp_path: Path, slots: int) -> None:
    model = tmp_path / "plain.gguf"
    llama.make_model(model, llama.o200k(2_000), words=4, template=llama.WITHOUT_TOOLS)

    async def facts(spec: ModelSpec) -> ServerFacts | None:
        connections = Connections()
        try:
            return await server_facts(describe(spec), connections)
        finally:
            await connections.aclose()

    with llama.serving(model, WINDOW, slots=slots, key=KEY) as url:
        said = asyncio.run(facts(spec_of(url, "chat")))
        assert said is not None and said.limits is not None and said.limits.window == WINDOW
        assert (said.tools, said.parallel, said.counting) == (False, slots > 1, "input_tokens")
        tool = {"type": "function", "function": {"name": "a", "description": "b " * 99, "parameters": {}}}
        body = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]}
        assert counted(url, {**body, "tools": [tool]}, KEY) == counted(url, body, KEY)
        assert counted(url, body, KEY) > counted(url, {"messages": body["messages"][1:]}, KEY)
