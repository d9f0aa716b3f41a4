"""Items on their way to who shows them: joined, cut in pieces, and with turns for others on the loop, where keys are
handled."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.models.requests import Delta, Finished, Started, StreamItem, Target
from agent_tui.providers import gathering as module
from agent_tui.providers.gathering import TEXT_LIMIT, DeltaGatherer, in_pieces, in_turns, merge
from tests.support.every import every
from tests.support.filled import filled

pytestmark = pytest.mark.quick

BURST = 200
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


@pytest.mark.parametrize(("share", "least"), [(0.0, BURST), (1000.0, 0)])
async def test_a_burst_is_handled_in_slices(monkeypatch: pytest.MonkeyPatch, share: float, least: int) -> None:
    monkeypatch.setattr(module, "SLICE", share)
    queue: asyncio.Queue[int] = asyncio.Queue()
    for number in range(BURST + 1):
        queue.put_nowait(number)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    items = []
    async for item in in_turns(queue):
        items.append(item)
        if item == BURST:
            break
    task.cancel()
    assert items == [*range(BURST + 1)]
    assert turns >= least
    assert least or turns < BURST // 10


@pytest.mark.parametrize("closed", [False, True])
def test_a_huge_delta_becomes_several_that_do_the_same(closed: bool) -> None:
    long = [replace(delta, text="x" * 150_000) for delta in filled(Delta)]
    for whole in (Delta(0, "tool_call", "x" * (2 * TEXT_LIMIT + 5), {"m": 1}, closed, "id", "name"), *long):
        joined, *rest = in_pieces(whole)
        assert len(rest) == 2
        for piece in rest:
            assert isinstance(piece, Delta) and isinstance(joined, Delta)
            assert piece.call_id is None and len(piece.text) <= TEXT_LIMIT
            merged = merge(joined, piece)
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


@every("name", [f.name for f in fields(Delta) if f.name not in ("index", "kind")])
def test_joining_deltas_loses_no_field(name: str) -> None:
    plain = Delta(1, "text")
    for whole in filled(Delta):
        marked = Delta(1, "text", **{name: getattr(whole, name)})
        for pair in ((plain, marked), (marked, plain)):
            joined = merge(*pair)
            assert joined is None or getattr(joined, name) == getattr(marked, name)


async def test_it_keeps_the_order_and_gathers() -> None:
    mine: list[StreamItem] = []
    gatherer = DeltaGatherer(mine.append)
    gatherer.put(Started(Target("p", "chat", "m", "gpt")))
    gatherer.put(Delta(0, "text", "a"))
    assert len(mine) == 2, "the first delta does not wait"
    for letter in "bcd":
        gatherer.put(Delta(0, "text", letter))
    gatherer.put(Finished("stop"))
    assert "".join(i.text for i in mine if isinstance(i, Delta)) == "abcd"
    assert len(mine) < 6
    assert isinstance(mine[-1], Finished)


async def test_what_waits_is_handed_on_by_itself() -> None:
    queue: asyncio.Queue[StreamItem] = asyncio.Queue()
    gatherer = DeltaGatherer(queue.put_nowait)
    for letter in "ab":
        gatherer.put(Delta(0, "text", letter))
    async with asyncio.timeout(10):
        assert [await queue.get(), await queue.get()] == [Delta(0, "text", "a"), Delta(0, "text", "b")]


async def test_a_stream_that_is_dropped_hands_on_nothing_more() -> None:
    got: list[StreamItem] = []
    gatherer = DeltaGatherer(got.append)
    for letter in "ab":
        gatherer.put(Delta(0, "text", letter))
    gatherer.drop()
    gatherer.flush()
    assert len(got) == 1
