from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.models.codec import dumps
from agent_tui.models.failure import Failure
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    user_message,
)
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    ModelRequest,
    ModelSpec,
    Started,
    StreamItem,
    Target,
    ToolSchema,
    UsageReport,
)
from agent_tui.models.usage import TokenUsage
from agent_tui.pipes.pipe import LineReader
from agent_tui.providers.worker.client import RequestEncoder
from agent_tui.providers.worker.protocol import FROM_WORKER, TO_WORKER, Stream
from agent_tui.providers.worker.serve import TEXT_LIMIT, Outbox, item_lines, merge
from tests.support.model_calls import KEY, make_request

pytestmark = pytest.mark.quick

texts = st.text(max_size=20)
deltas = st.builds(
    Delta,
    index=st.integers(0, 2),
    kind=st.sampled_from(["text", "reasoning", "tool_call"]),
    text=texts,
    metadata=st.none() | st.dictionaries(texts, texts, max_size=2),
    closed=st.booleans(),
    call_id=st.none() | st.text(min_size=1, max_size=9),
    name=st.none() | st.text(min_size=1, max_size=9),
)
items = deltas | st.sampled_from(
    [
        Started(Target("p", "chat", "m", "gpt"), ("a note",)),
        UsageReport(TokenUsage(5, 3, reasoning=1, cache_read=2), 0.25),
        Finished("tool_calls", {"id": "x"}),
        Failed(Failure("rate_limit", "slow down", "detail", 429, 1.5)),
    ]
)


def _decoded(call_id: int, item: StreamItem) -> list[StreamItem]:
    return [FROM_WORKER.read(line)[1] for line in item_lines(call_id, item)]


@given(items)
def test_items_survive_the_pipe(item: StreamItem) -> None:
    assert _decoded(7, item) == [item]


def test_a_huge_delta_becomes_several_that_do_the_same() -> None:
    whole = Delta(0, "tool_call", "x" * (2 * TEXT_LIMIT + 5), {"m": 1}, True, "id", "name")
    parts = _decoded(1, whole)
    assert len(parts) == 3
    joined = parts[0]
    for part in parts[1:]:
        assert isinstance(part, Delta)
        assert isinstance(joined, Delta)
        assert part.call_id is None
        merged = merge(joined, part)
        assert merged is not None
        joined = merged
    assert joined == whole


def _apply(stream: list[Delta]) -> dict[int, tuple[str, object, bool, str | None, str | None]]:
    parts: dict[int, tuple[str, object, bool, str | None, str | None]] = {}
    for delta in stream:
        text, metadata, closed, call_id, name = parts.get(delta.index, ("", None, False, None, None))
        parts[delta.index] = (
            text + delta.text,
            delta.metadata if delta.metadata is not None else metadata,
            closed or delta.closed,
            call_id or delta.call_id,
            name or delta.name,
        )
    return parts


@given(deltas, deltas)
def test_merging_two_deltas_does_what_both_did(first: Delta, second: Delta) -> None:
    merged = merge(first, second)
    if merged is not None:
        assert _apply([merged]) == _apply([first, second])


@given(st.lists(st.binary(max_size=30), max_size=8), st.data())
def test_lines_are_cut_the_same_however_they_arrive(lines: list[bytes], data: st.DataObject) -> None:
    wanted = [line.replace(b"\n", b"") for line in lines]
    stream = b"".join(line + b"\n" for line in wanted)
    reader = LineReader()
    got: list[bytes] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        got += reader.feed(stream[:size])
        stream = stream[size:]
    assert got == wanted


def test_a_request_survives_the_pipe_with_its_key() -> None:
    messages = [
        user_message("look \ud800 here", attachments=[AttachmentPart("a.png", "image/png", data="AAAA")]),
        Message(
            "m2",
            "assistant",
            [
                ReasoningPart("", {"signature": "s"}, "prefix"),
                TextPart("t"),
                ToolCallPart("c", "read", '{"bad": ', {"k": [1]}),
            ],
        ),
        Message("m3", "tool", [ToolResultPart("c", "read", "result", True, {"d": 1}, 0.5)]),
    ]
    spec = ModelSpec("k", "openai/x", extra={"temperature": 0.5}, api_key=KEY, context_window=5)
    request = make_request(spec, messages=messages, tools=[ToolSchema("read", "d", {"type": "object"})])
    encoder = RequestEncoder()
    for _ in range(2):
        line = encoder.encode(Stream(request), 3)
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        again = _request(line)
        assert again == request
        assert again.spec.api_key == KEY


def test_what_is_written_elsewhere_has_no_key() -> None:
    assert KEY not in dumps(make_request(ModelSpec("k", "openai/x", api_key=KEY)))


def _request(line: bytes) -> ModelRequest:
    message = TO_WORKER.read(line)[1]
    assert isinstance(message, Stream)
    return message.request


def test_a_message_that_still_streams_is_encoded_anew() -> None:
    message = Message("m", "assistant", [TextPart("a")], status="streaming")
    request = make_request(ModelSpec("k", "openai/x"), messages=[message])
    encoder = RequestEncoder()
    encoder.encode(Stream(request), 1)
    message.parts.append(TextPart("b"))
    assert _request(encoder.encode(Stream(request), 2)) == request


def test_another_message_under_a_known_key_is_not_mixed_up() -> None:
    encoder = RequestEncoder()
    first = Message("m", "user", [TextPart("first")])
    second = Message("m", "user", [TextPart("second")])
    spec = ModelSpec("k", "openai/x")
    encoder.encode(Stream(make_request(spec, messages=[first])), 1)
    line = encoder.encode(Stream(make_request(spec, messages=[second])), 2)
    assert _request(line).messages[0].message == second


async def test_the_outbox_keeps_order_and_gathers() -> None:
    written: list[bytes] = []
    outbox = Outbox(written.append)
    outbox.item(1, Started(Target("p", "chat", "m", "gpt")))
    outbox.item(1, Delta(0, "text", "a"))
    assert len(written) == 2, "the first delta does not wait"
    for letter in "bcd":
        outbox.item(1, Delta(0, "text", letter))
    outbox.item(2, Delta(0, "text", "other"))
    outbox.item(1, Finished("stop"))
    decoded = [FROM_WORKER.read(line) for line in written]
    mine = [item for call_id, item in decoded if call_id == 1]
    assert "".join(i.text for i in mine if isinstance(i, Delta)) == "abcd"
    assert len(mine) < 6
    assert isinstance(mine[-1], Finished)


async def test_the_outbox_writes_what_waits_by_itself() -> None:
    written = asyncio.Event()
    lines: list[bytes] = []

    def write(data: bytes) -> None:
        lines.append(data)
        if len(lines) == 2:
            written.set()

    outbox = Outbox(write)
    outbox.item(1, Delta(0, "text", "a"))
    outbox.item(1, Delta(0, "text", "b"))
    async with asyncio.timeout(10):
        await written.wait()


async def test_a_cancelled_stream_writes_nothing_more() -> None:
    written: list[bytes] = []
    outbox = Outbox(written.append)
    outbox.item(1, Delta(0, "text", "a"))
    outbox.item(1, Delta(0, "text", "b"))
    outbox.drop(1)
    outbox.flush()
    assert len(written) == 1


def test_a_line_without_end_is_refused() -> None:
    reader = LineReader(1_000)
    assert list(reader.feed(b"x" * 900)) == []
    assert list(reader.feed(b"\n" + b"y" * 900)) == [b"x" * 900]
    with pytest.raises(ValueError, match="1,000"):
        list(reader.feed(b"z" * 200))
