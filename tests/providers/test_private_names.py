"""What is private to other libraries and used all the same: each name that a version lacks is told with its use."""

from __future__ import annotations

import asyncio
import types
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from agent_tui.providers import litellm_files as files
from agent_tui.providers import litellm_gateway as private
from agent_tui.providers import net
from tests.support.every import every
from tests.support.loopback import Loopback, Reply
from tests.support.recorded import litellm

pytestmark = pytest.mark.quick

_LITELLM = {
    "finish reasons of its stream": "believing an answer's end",
    "chunks of its stream": "telling real usage from invented usage",
    private.SKIP_MCP: "leaving its MCP gateway out (20 MB)",
    "stream_chunk_builder": "the end of a stream without 80 µs a chunk",
    private.DEFAULT_ENCODING: "one vocabulary in memory instead of two (39 MB)",
    ".".join(private.BEDROCK): "sending redacted thinking back to Bedrock",
    files.TABLE_FILE: "limits and prices",
    files.PROVIDERS_FILE: "telling misspelt providers",
    "/".join(files.VOCABULARIES): "counting without the network",
    "disable_hf_tokenizer_download": "counting without Hugging Face, which it asks for a tokenizer by a model's name",
}


def _has(name: str) -> bool:
    module = litellm()
    if name.endswith("of its stream"):
        from litellm.litellm_core_utils.streaming_handler import CustomStreamWrapper

        log = types.SimpleNamespace(model_call_details={})
        stream = CustomStreamWrapper(None, "m", logging_obj=log, custom_llm_provider="openai")
        names = private.FINISH_REASONS if name.startswith("finish") else (private.CHUNKS,)
        return all(hasattr(stream, wanted) for wanted in names)
    if name.startswith("disable_"):
        return getattr(module, name, None) is True
    if name == private.SKIP_MCP:
        return bool(private.lean_arguments(module))
    if name == "stream_chunk_builder":
        return callable(getattr(module, name, None))
    if name == private.DEFAULT_ENCODING:
        return files.place("litellm_core_utils", "default_encoding.py") is not None
    if name == ".".join(private.BEDROCK):
        return private.bedrock_converter()[1] is not None
    if name == files.TABLE_FILE:
        return dict(files.each_model()).keys() == files.data_file(name).keys() - {"sample_spec"}
    if name.endswith(".json"):
        return bool(files.data_file(name))
    return files.place(*files.VOCABULARIES) is not None


@every("name", _LITELLM)
def test_litellm_still_has_it(name: str) -> None:
    assert _has(name), f"LiteLLM no longer has {name}: used for {_LITELLM[name]}"


def test_a_file_that_is_gone_is_no_table() -> None:
    assert files.data_file("no such file.json") == {}
    assert files.place("no", "such", "place") is None


def test_entries_of_the_table_are_found_one_by_one() -> None:
    whole = files.data_file(files.TABLE_FILE)
    names = [*list(whole)[::400], "gpt-5", *files.each_model(lambda name: name.startswith("claude-haiku"))]
    for name in (name for name in names if isinstance(name, str) and name != "sample_spec"):
        assert files.model_entry(name) == whole[name]
    for name in ("no such model", "sample_spec", "search_context_cost_per_query", ""):
        assert files.model_entry(name) is None


def test_redacted_thinking_goes_back_to_bedrock() -> None:
    litellm()
    _, convert = private.bedrock_converter()
    blocks = [{"type": "redacted_thinking", "data": "UkVE"}]
    assert convert(blocks) == [{"reasoningContent": {"redactedContent": "UkVE"}}]


@pytest.mark.parametrize("way", ["aiter_lines", "aiter_text", "aread"])
async def test_every_way_of_reading_a_response_goes_through_the_replaced_one(way: str) -> None:
    response = httpx.Response(200, content=_pieces(b"their own"))

    async def ours(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        yield b"ours"

    response.aiter_bytes = ours  # type: ignore[method-assign]
    found: Any = getattr(response, way)()
    text = await found if way == "aread" else [piece async for piece in found]
    assert "ours" in str(text), f"httpx's Response.{way} no longer reads by aiter_bytes: used for the bounds of bodies"
    assert "their" not in str(text)


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_every_way_of_asking_goes_through_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpx.AsyncClient, "send", httpx.AsyncClient.send)
    monkeypatch.setattr(httpx.Client, "send", httpx.Client.send)
    monkeypatch.setattr(httpx.AsyncClient.send, "_replaced", False, raising=False)
    heard: list[str] = []

    def one(original: Any) -> Any:
        async def send(self: Any, request: httpx.Request, **kwargs: Any) -> httpx.Response:
            heard.append(f"{request.method} {sorted(kwargs)}")
            return httpx.Response(200, request=request, content=b"x")

        return send

    def blocking(original: Any) -> Any:
        def send(self: Any, request: httpx.Request, **kwargs: Any) -> httpx.Response:
            heard.append(request.method)
            return httpx.Response(200, request=request)

        return send

    private.replace_send(one, blocking)
    async with httpx.AsyncClient() as client:
        await client.post("http://127.0.0.1:9/")
        async with client.stream("GET", "http://127.0.0.1:9/"):
            pass
    with httpx.Client() as plain:
        await asyncio.to_thread(plain.get, "http://127.0.0.1:9/")
    why = "httpx's clients no longer ask by send(stream=, follow_redirects=): used against redirects"
    assert [line.split()[0] for line in heard] == ["POST", "GET", "GET"], why
    assert all("follow_redirects" in line for line in heard[:2]), why
    assert "stream" in heard[1], why


async def test_opening_a_connection_is_told_and_keeping_one_is_not(server: Loopback) -> None:
    server.serve("*", Reply([b"ok"]))
    async with httpx.AsyncClient() as client:
        opened = []
        for _ in range(2):
            request = client.build_request("GET", server.url)
            notes = net.note_openings(request)
            await client.send(request)
            opened.append(bool(notes))
    assert opened[0], "httpcore no longer tells connect_tcp: used for telling kept connections from new ones"


async def test_an_error_of_httpx_is_known_as_one() -> None:
    with pytest.raises(httpx.HTTPError) as error:
        async with httpx.AsyncClient() as client:
            await client.get("http://127.0.0.1:1/")
    assert net.is_of_httpx(error.value)
    assert not net.is_of_httpx(ValueError())
