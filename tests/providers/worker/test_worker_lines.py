from __future__ import annotations

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
    ModelInfo,
    ModelSpec,
    Started,
    StreamItem,
    Target,
    ToolSchema,
    UsageReport,
)
from agent_tui.models.usage import Limits, Prices, TokenUsage
from agent_tui.pipes.pipe import LineReader
from agent_tui.providers.catalog import resolve_target
from agent_tui.providers.worker.protocol import FROM_WORKER, TO_WORKER, Stream
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


@given(items)
def test_items_survive_the_pipe(item: StreamItem) -> None:
    assert FROM_WORKER.read(FROM_WORKER.line(item, 7)) == (7, item)


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
    info = ModelInfo(spec, resolve_target(spec), Limits(5), Prices())
    line = TO_WORKER.line(Stream(request, info), 3)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert TO_WORKER.read(line) == (3, Stream(request, info))
    assert TO_WORKER.read(line)[1].request.spec.api_key == KEY


def test_what_is_written_elsewhere_has_no_key() -> None:
    assert KEY not in dumps(make_request(ModelSpec("k", "openai/x", api_key=KEY)))


def test_a_line_without_end_is_refused() -> None:
    reader = LineReader(1_000)
    assert list(reader.feed(b"x" * 900)) == []
    assert list(reader.feed(b"\n" + b"y" * 900)) == [b"x" * 900]
    with pytest.raises(ValueError, match="1,000"):
        list(reader.feed(b"z" * 200))
