from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.models.codec import dumps
from agent_tui.models.requests import ModelSpec
from agent_tui.pipes.pipe import LineReader
from agent_tui.providers.dialects.litellm import LibraryCall
from agent_tui.providers.errors import SeenFailure
from agent_tui.providers.worker.protocol import FROM_WORKER, TO_WORKER, GatewayEvent, GatewayFailed
from tests.support.model_calls import KEY, make_request

pytestmark = pytest.mark.quick

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
events = st.dictionaries(st.text(max_size=9), values, max_size=4)


@given(events)
def test_events_survive_the_pipe(event: dict[str, Any]) -> None:
    assert FROM_WORKER.read(FROM_WORKER.line(GatewayEvent(event), 7)) == (7, GatewayEvent(event))


def test_what_is_seen_of_an_error_survives_the_pipe() -> None:
    failed = GatewayFailed(SeenFailure(["A"], ["A", "B"], "no", 429, [{"retry-after": "3"}]))
    assert FROM_WORKER.read(FROM_WORKER.line(failed, 7)) == (7, failed)


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


def test_a_call_survives_the_pipe_with_its_key() -> None:
    call = LibraryCall("acompletion", {"messages": [{"role": "user", "content": "look \ud800 here"}], "api_key": KEY})
    line = TO_WORKER.line(call, 3)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert TO_WORKER.read(line) == (3, call)


def test_what_is_written_elsewhere_has_no_key() -> None:
    assert KEY not in dumps(make_request(ModelSpec("k", "openai/x", api_key=KEY)))


def test_a_line_without_end_is_refused() -> None:
    reader = LineReader(1_000)
    assert list(reader.feed(b"x" * 900)) == []
    assert list(reader.feed(b"\n" + b"y" * 900)) == [b"x" * 900]
    with pytest.raises(ValueError, match="1,000"):
        list(reader.feed(b"z" * 200))
