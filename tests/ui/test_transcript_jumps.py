"""A jump in a transcript does the same work however long the conversation is: counted, not timed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.ui.transcript import Transcript
from agent_tui.ui.transcript.entry import Heights
from tests.ui.transcripts import Holder, chat, screen

FEW, MANY = 50, 5_000
"""Questions, each with an answer."""


class Walked(list[Any]):
    """A list that counts what of it is looked at, also by what is written in C."""

    seen = 0

    def __iter__(self) -> Iterator[Any]:
        self.seen += len(self)
        return super().__iter__()

    def __reversed__(self) -> Iterator[Any]:
        self.seen += len(self)
        return super().__reversed__()

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        self.seen += len(found) if isinstance(index, slice) else 1
        return found


@contextmanager
def counted(transcript: Transcript) -> Iterator[Counter[str]]:
    """What is done meanwhile: ``steps`` of the interpreter in the program's own code, ``looks`` at items of its long
    lists."""
    work: Counter[str] = Counter()
    document, before = transcript.document, sys.gettrace()
    lists = document.entries, document._asked, document.heights._rows, document.heights._sums
    walked = [Walked(items) for items in lists]
    document.entries, document._asked, document.heights._rows, document.heights._sums = walked

    def step(frame: FrameType, event: str, argument: object) -> Any:
        work["steps"] += event == "opcode"
        return step

    def called(frame: FrameType, event: str, argument: object) -> Any:
        if "agent_tui" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    sys.settrace(called)
    try:
        yield work
    finally:
        sys.settrace(before)
        work["looks"] = sum(items.seen for items in walked)
        document.entries, document._asked, document.heights._rows, document.heights._sums = lists


def to_middle(transcript: Transcript) -> None:
    middle = len(transcript.document.entries) // 4 * 2
    transcript.scroll_to(y=transcript.document.heights.before(middle), animate=False)


def to_place(transcript: Transcript) -> None:
    place = len(transcript.document.entries) // 6
    transcript.find_in(f"u{place}", "question", ["question"])


ACTS: dict[str, Callable[[Transcript], object]] = {
    "home": lambda transcript: transcript.scroll_home(animate=False),
    "middle": to_middle,
    "question before": lambda transcript: transcript.jump_user(-1),
    "question after": lambda transcript: transcript.jump_user(1),
    "page": lambda transcript: transcript.scroll_page_down(animate=False),
    "place": to_place,
    "end": lambda transcript: transcript.scroll_end(animate=False),
    "home again": lambda transcript: transcript.scroll_home(animate=False),
}


async def works(questions: int) -> dict[str, Counter[str]]:
    """The work of each act, drawing included, one after the other."""
    app, out = Holder(), {}
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.load(chat(questions))
        await pilot.pause()
        await pilot.pause()
        assert len(app.transcript.document.entries) == 2 * questions
        for name, act in ACTS.items():
            with counted(app.transcript) as out[name]:
                act(app.transcript)
                app.transcript.settle()
                seen = screen(app.transcript)
            assert any("question" in line or "answer" in line for line in seen), name
        app.transcript.clear_find()
    return out


@pytest.mark.slow
async def test_no_jump_does_more_in_a_hundred_times_the_conversation() -> None:
    await works(FEW)
    few, many = await works(FEW), await works(MANY)
    for name in ACTS:
        # Numbers have more digits, and a tree of sums is seven levels higher.
        assert many[name]["steps"] <= 1.05 * few[name]["steps"] + 3_000, (name, few[name], many[name])
        assert many[name]["looks"] <= few[name]["looks"] + 300, (name, few[name], many[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    "walk", [lambda d: sum(d.entries[k].rows for k in range(len(d.entries))), lambda d: list(d.entries)]
)
async def test_a_walk_over_everything_would_be_seen(walk: Callable[[Any], object]) -> None:
    app = Holder()
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.load(chat(MANY))
        await pilot.pause()
        await pilot.pause()
        with counted(app.transcript) as work:
            walk(app.transcript.document)
        assert work["looks"] >= 2 * MANY


@given(st.lists(st.integers(0, 4), max_size=40), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6))))
@pytest.mark.quick
def test_heights_are_what_summing_them_gives(rows: list[int], changes: list[tuple[int, int]]) -> None:
    heights, known = Heights(rows), list(rows)
    for index, height in changes:
        if index < len(known):
            heights.set(index, height)
            known[index] = height
        else:
            heights.append(height)
            known.append(height)
    assert (len(heights), heights.total, [heights[k] for k in range(len(known))]) == (len(known), sum(known), known)
    assert [heights.before(k) for k in range(len(known) + 1)] == [sum(known[:k]) for k in range(len(known) + 1)]
    covering = [(index, row) for index, height in enumerate(known) for row in range(height)]
    assert [heights.find(y) for y in range(sum(known))] == covering
