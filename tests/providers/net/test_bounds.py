"""Answers that are too long, too slow or too large in any dimension: a clear word, and what arrived is kept."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.models.requests import Delta, Finished, Target
from agent_tui.providers.accumulate import Accumulator, normalise
from agent_tui.providers.calling import answer_limit
from agent_tui.providers.client import ModelClient
from agent_tui.providers.net import (
    ERROR_LIMIT,
    LINE_LIMIT,
    PIECE,
    BoundError,
    LineBuffer,
    SseDecoder,
    Unpacker,
)
from tests.providers.streams.test_stream_faults import APIS, Api, every_api
from tests.support.forms import examples
from tests.support.loopback import Loopback, Reply, chat_chunk, chat_events, chat_stream, sse
from tests.support.model_calls import Answer, collect, make_request

CHAT = APIS[0]


async def ask(worker: ModelClient, server: Loopback, reply: Reply, api: Api = CHAT, **more: Any) -> Answer:
    server.serve(api.path, reply)
    return await collect(worker.stream(replace(make_request(api.spec(server)), **more)))


async_test = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.forms(12)
@async_test
@every_api
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "x-gzip", "identity"])
async def test_a_packed_answer_is_read(worker: ModelClient, server: Loopback, api: Api, encoding: str) -> None:
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gzip": gzip.compress,
        "x-gzip": gzip.compress,
        "deflate": zlib.compress,
        "identity": bytes,
    }
    pack = packers[encoding]
    answer = await ask(worker, server, Reply(pack(api.opening), headers={"Content-Encoding": encoding}), api)
    assert answer.text == "wörd "
    assert answer.failure.kind == "interrupted_stream"
    asked = server.requests[-1].header("accept-encoding")
    assert asked == Unpacker.ACCEPTED


@pytest.mark.forms(1)
@async_test
@every_api
async def test_a_bomb_is_not_unpacked(worker: ModelClient, server: Loopback, api: Api) -> None:
    bomb = gzip.compress(api.opening + b" " * 3 * LINE_LIMIT)
    answer = await ask(worker, server, Reply(bomb, headers={"Content-Encoding": "gzip"}), api)
    assert answer.text == "wörd "
    assert "longer than 32 MB" in answer.failure.message
    assert "What arrived is kept" in answer.failure.message
    assert not answer.failure.retryable


@async_test
@every_api
@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "x-mine"])
async def test_an_encoding_nobody_asked_for_is_named(
    worker: ModelClient, server: Loopback, api: Api, encoding: str
) -> None:
    answer = await ask(worker, server, Reply(b"\x00" * 100, headers={"Content-Encoding": encoding}), api)
    assert encoding in answer.failure.message
    assert "not requested" in answer.failure.message


@pytest.mark.forms(4)
@async_test
@every_api
@pytest.mark.parametrize("encoding", ["gzip", "br", "identity"])
async def test_the_status_of_a_huge_error_is_told(
    worker: ModelClient, server: Loopback, api: Api, encoding: str
) -> None:
    page = b"<html>Bad gateway " + b"x" * 5_000_000
    body = gzip.compress(page) if encoding == "gzip" else page
    reply = Reply(body, 502, "text/html", {"Content-Encoding": encoding})
    answer = await ask(worker, server, reply, api)
    assert (answer.failure.kind, answer.failure.status) == ("overloaded", 502)
    assert "HTTP 502" in answer.failure.message
    assert len(answer.failure.message) < 500


@pytest.mark.slow
@async_test
@every_api
async def test_an_error_of_just_the_limit_is_read_whole(worker: ModelClient, server: Loopback, api: Api) -> None:
    body = json.dumps({"error": {"message": "no such shop"}, "pad": "x" * (ERROR_LIMIT - 60)}).encode()
    answer = await ask(worker, server, Reply(body, 400, "application/json"), api)
    assert "no such shop" in answer.failure.message + answer.failure.detail


def piece(api: Api, text: str) -> bytes:
    return api.opening.replace("wörd ".encode(), text.encode()).replace(b"w\\u00f6rd ", text.encode())


def endless(api: Api, text: str) -> tuple[bytes, bytes]:
    """How an answer begins, and what can follow as often as one likes."""
    if api.name == "anthropic":
        event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        return api.opening, sse([event], named=True)
    first, _, again = piece(api, text).rpartition(b"data: ")
    return first, b"data: " + again.lstrip()


@async_test
@every_api
async def test_an_answer_without_end_is_stopped_and_kept(worker: ModelClient, server: Loopback, api: Api) -> None:
    room = answer_limit(100)
    first, more = endless(api, "word " * 2_000)
    answer = await ask(worker, server, Reply([first, *[more] * 40]), api, max_output=100)
    assert len(answer.text) == room
    assert "longer than the 100 tokens" in answer.failure.message
    assert "What arrived is kept" in answer.failure.message
    assert not answer.failure.retryable


@pytest.mark.slow
@async_test
async def test_a_stream_of_nothing_but_wrapping_is_stopped(worker: ModelClient, server: Loopback) -> None:
    chunk = {**chat_chunk({}), "pad": "x" * 1_000_000}
    reply = Reply([sse([chunk])] * 90)
    answer = await ask(worker, server, reply, max_output=1)
    assert "longer than 64 MB" in answer.failure.message


@async_test
async def test_calls_without_end_are_an_answer_without_end(worker: ModelClient, server: Loopback) -> None:
    def call(n: int) -> dict[str, Any]:
        function = {"name": "look", "arguments": ""}
        return chat_chunk({"tool_calls": [{"index": n, "id": f"c{n}", "type": "function", "function": function}]})

    answer = await ask(worker, server, Reply(sse([call(n) for n in range(3_000)])), max_output=1)
    assert "was stopped" in answer.failure.message


SIGNS_OF_LIFE = {
    "chat": b": ping\n\n" + sse([chat_chunk({})]) + sse([chat_chunk({"content": ""})]),
    "anthropic": sse([{"type": "ping"}], named=True),
    "gemini": sse([{"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}}]}]),
    "responses": sse([{"type": "response.in_progress", "response": {}}], named=True),
}


@pytest.mark.forms(1)
@async_test
@every_api
async def test_signs_of_life_do_not_count_for_ever(worker: ModelClient, server: Loopback, api: Api) -> None:
    class Dripping:
        """Says that it lives until the client has left."""

        def __iter__(self) -> Iterator[bytes]:
            yield api.opening
            while not server.closing.wait(0.05):
                yield SIGNS_OF_LIFE[api.name]

    answer = await ask(worker, server, Reply(Dripping()), api, content_timeout=0.7)
    assert answer.text == "wörd "
    assert answer.failure.kind == "timeout"
    assert "no part of the answer arrived for 0.7 s" in answer.failure.message
    assert "agent.content_timeout" in answer.failure.message


@pytest.mark.slow
@async_test
async def test_content_starts_the_time_anew(worker: ModelClient, server: Loopback) -> None:
    class Slow:
        def __iter__(self) -> Iterator[bytes]:
            for event in chat_events(["word "] * 12):
                server.closing.wait(0.1)
                yield sse([event])

    answer = await ask(worker, server, Reply(Slow()), content_timeout=0.8)
    assert answer.text == "word " * 12
    assert answer.finish.reason == "stop"


@pytest.mark.forms(1)
@async_test
@every_api
async def test_an_answer_that_trickles_for_ever_ends(worker: ModelClient, server: Loopback, api: Api) -> None:
    first, more = endless(api, "word ")

    class Trickling:
        def __iter__(self) -> Iterator[bytes]:
            yield first
            while not server.closing.wait(0.05):
                yield more

    answer = await ask(worker, server, Reply(Trickling()), api, answer_timeout=0.7)
    assert answer.text.endswith("word ")
    assert answer.failure.kind == "timeout"
    assert "not complete after 0.7 s" in answer.failure.message and "agent.answer_timeout" in answer.failure.message


BAD_USAGE: list[Any] = [
    "many",
    ["a"],
    7,
    True,
    {"prompt_tokens": "11", "completion_tokens": [3], "total_tokens": {}},
    {"prompt_tokens": float("nan"), "completion_tokens": float("inf")},
    {"prompt_tokens": -5, "completion_tokens": -9, "total_tokens": -14},
    {"prompt_tokens": 10**300, "completion_tokens": 10**400},
    {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": "none", "completion_tokens_details": [1]},
    {"prompt_tokens": None, "completion_tokens": None, "cost": "free"},
    {"prompt_tokens": 3, "completion_tokens": 3, "cost": float("inf")},
]


@async_test
@pytest.mark.parametrize("usage", BAD_USAGE, ids=lambda usage: repr(usage)[:40])
async def test_bad_usage_costs_nothing_but_the_usage(worker: ModelClient, server: Loopback, usage: Any) -> None:
    answer = await ask(worker, server, Reply(chat_stream(["hello"], usage=usage)))
    assert answer.text == "hello"
    assert answer.finish.reason == "stop"
    assert answer.usage is not None
    assert answer.usage.usage.input >= 0


@async_test
async def test_a_number_without_end_costs_nothing_but_the_number(worker: ModelClient, server: Loopback) -> None:
    last = json.dumps({**chat_chunk({}, "stop"), "usage": {"prompt_tokens": 0}}).replace(
        '"prompt_tokens": 0', f'"prompt_tokens": {"9" * 6_000}'
    )
    answer = await ask(worker, server, Reply(sse([*chat_events(["hello"], None, done=False), last, "[DONE]"])))
    assert answer.text == "hello"
    assert answer.finish.reason == "stop"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = ("prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens", "promptTokenCount")


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from([*NAMES, "inputTokens", "tokens", "eval_count", "iterations"]), json_values))
def test_no_usage_crashes(raw: dict[str, Any]) -> None:
    usage = normalise(raw)
    assert usage is None or (usage.input > 0 and usage.output >= 0)


EVENTS: list[dict[str, Any]] = [
    chat_chunk({"content": "x", "tool_calls": [{"index": 0, "id": "c", "function": {"name": "t", "arguments": "{}"}}]}),
    chat_chunk(
        {"reasoning_details": [{"type": "reasoning.text", "text": "x"}], "thinking_blocks": [{"thinking": "x"}]}
    ),
    {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "name": "t"}},
    {"type": "response.completed", "response": {"usage": {"input_tokens": 1}, "output": [{"type": "message"}]}},
    {"candidates": [{"content": {"parts": [{"text": "x"}, {"functionCall": {"name": "t", "args": {}}}]}}]},
    {"message": {"content": "x", "tool_calls": [{"function": {"name": "t"}}]}, "done": True},
    {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "x"}}}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "x"}}},
]


def spoiled(value: Any, choose: Any) -> Any:
    """A copy with one place in it replaced by something else."""
    if not isinstance(value, (dict, list)) or not value or choose.draw(st.integers(0, 3)) == 0:
        return choose.draw(json_values)
    copy = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    key = choose.draw(st.sampled_from(sorted(copy, key=str)))
    copy[key] = spoiled(copy[key], choose)
    return copy if isinstance(value, dict) else list(copy.values())


@pytest.mark.slow
@settings(max_examples=examples(80, 600), suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_event_crashes(choose: Any) -> None:
    first = choose.draw(st.sampled_from(EVENTS))
    accumulator = Accumulator(Target("openai", "chat", "m", "gpt"))
    accumulator.tap.begin("text/event-stream")
    for event in (first, spoiled(first, choose), first):
        accumulator.tap.feed(f"data: {json.dumps(event)}\n\n".encode())
    items = accumulator.pump() + accumulator.finish()
    assert all(isinstance(i.text, str) for i in items if isinstance(i, Delta))
    assert sum(isinstance(i, Finished) for i in items) <= 1


@async_test
async def test_an_event_that_is_none_ends_the_answer_as_an_error(worker: ModelClient, server: Loopback) -> None:
    bad = chat_chunk({"tool_calls": [{"index": 0, "id": "c", "function": "look"}]})
    stream = sse([chat_chunk({"content": "kept"}), bad, chat_chunk({}, "stop"), "[DONE]"])
    answer = await ask(worker, server, Reply(stream))
    assert answer.text == "kept"
    assert answer.ends == 1
    assert "breaks its own protocol" in answer.failure.message + answer.failure.detail


@given(st.lists(st.binary(max_size=6).map(lambda b: b.translate(bytes([10, 13, 97, 98] * 64)))))
def test_lines_are_the_same_however_they_are_cut(pieces: list[bytes]) -> None:
    buffer = LineBuffer()
    given_on = [buffer.feed(piece) for piece in pieces]
    whole = b"".join(pieces)
    assert b"".join([*given_on, buffer.close()]) == whole
    for lines in given_on:
        assert not lines or lines.endswith((b"\n", b"\r"))


def test_a_line_that_is_too_long_is_dropped_as_it_comes() -> None:
    buffer = LineBuffer(1_000)
    with pytest.raises(BoundError):
        for _ in range(11):
            buffer.feed(b"x" * 100)
    assert buffer.close() == b""


@given(st.binary(max_size=60), st.integers(1, 50))
def test_unpacking_takes_any_bytes(data: bytes, size: int) -> None:
    for encoding in ("gzip", "deflate"):
        unpacker = Unpacker(encoding)
        try:
            for at in range(0, len(data), size):
                for got in unpacker.feed(data[at : at + size]):
                    assert len(got) <= PIECE
        except BoundError as error:
            assert "Cannot decompress" in str(error)


def test_files_strung_together_and_bare_deflate_are_unpacked() -> None:
    strung = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0"
    for size in (1, 7, 1_000):
        unpacker = Unpacker("gzip")
        pieces = [strung[at : at + size] for at in range(0, len(strung), size)]
        assert b"".join(got for piece in pieces for got in unpacker.feed(piece)) == b"one two"
    bare = zlib.compressobj(wbits=-15)
    packed = bare.compress(b"words") + bare.flush()
    assert b"".join(Unpacker("deflate").feed(packed)) == b"words"


def test_an_event_of_endless_lines_is_refused() -> None:
    decoder = SseDecoder()
    with pytest.raises(BoundError):
        for _ in range(2_000):
            list(decoder.feed(b"event: x\n" * 1_000))


def test_deep_nesting_and_huge_numbers_are_no_crash() -> None:
    decoder = SseDecoder()
    assert list(decoder.feed(b'data: {"a":' + b"[" * 200_000 + b"\n\n")) == []
    assert list(decoder.feed(b'data: {"a": ' + b"9" * 50_000 + b', "b": 1}\n\n')) == [{"a": 0, "b": 1}]
