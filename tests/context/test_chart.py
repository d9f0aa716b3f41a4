"""The plan of the chart: lines stand where their numbers are, columns are as high as what they show, bands keep their
places."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.context.chart import EIGHTHS, QUARTERS, Band, Scale, Slot, bands_of, round_step, scale_of, ticks
from agent_tui.models.rows import STACKED
from agent_tui.text.numbers import tokens

HEIGHTS = st.integers(3, 60)
SIZES = st.one_of(st.integers(0, 400), st.integers(0, 30_000), st.integers(0, 2_000_000))
LIMITS = st.one_of(st.none(), st.integers(1, 2_000_000))
STACKS = st.lists(st.tuples(st.sampled_from(STACKED), SIZES), max_size=9, unique_by=lambda each: each[0])


def slot(stack: list[tuple[str, int]]) -> Slot:
    rows = sorted(((name, size) for name, size in stack if size), key=lambda each: STACKED.index(each[0]))
    return Slot(0, 1, sum(size for _, size in rows), tuple(rows))


def wanted(column: Slot, scale: Scale) -> dict[str, float]:
    """Where each row ends, in parts of a line."""
    below, ends = 0, {}
    for name, size in column.stack:
        below += size
        ends[name] = below / scale.unit * scale.parts
    return ends


@pytest.mark.slow
@settings(max_examples=300)
@given(SIZES, LIMITS, HEIGHTS)
def test_a_line_stands_in_the_cell_that_contains_its_number(peak: int, limit: int | None, height: int) -> None:
    scale = scale_of(peak, limit, height)
    assert scale.filled(max(1, peak)) <= height * EIGHTHS
    numbers = list(ticks(scale, height, limit))
    shown = [*numbers, *([limit] if limit and scale.place(limit)[0] < height else [])]
    for number in shown:
        row, quarter = scale.place(number)
        assert 0 <= row < height
        begin = scale.unit * (row + quarter / QUARTERS)
        assert begin * (1 - 1e-4) <= number < begin + scale.unit / QUARTERS * (1 + 1e-4)
    rows = [scale.place(number)[0] for number in shown]
    assert len(set(rows)) == len(rows) and len({tokens(number, False) for number in numbers}) == len(numbers)
    if limit and limit * height > max(1, peak) and limit <= 4 * max(1, peak):
        assert scale.place(limit)[1] == 0, "the limit stands at the beginning of a line, where columns end"


@given(st.floats(0.01, 5_000_000))
def test_steps_of_the_axis_are_round(least: float) -> None:
    step = round_step(least)
    assert step >= least and str(step).rstrip("0") in {"1", "2", "4", "5"} and step < max(2, 2.51 * least)


@pytest.mark.slow
@settings(max_examples=120)
@given(st.lists(STACKS, min_size=1, max_size=6), LIMITS, HEIGHTS, st.booleans())
def test_bands_keep_their_order_and_their_places(
    stacks: list[list[tuple[str, int]]], limit: int | None, height: int, split: bool
) -> None:
    slots = [slot(stack) for stack in stacks]
    scale = scale_of(max(each.total for each in slots), limit, height)
    for column, bands in zip(slots, bands_of(slots, scale, split), strict=True):
        names, ends, top = [name for name, _, _ in bands], wanted(column, scale), scale.filled(column.total)
        assert bool(bands) == bool(column.total)
        assert names == [name for name, _ in column.stack if name in names], "always the same order"
        assert [start for _, start, _ in bands] == [0, *(end for _, _, end in bands)][: len(bands)]
        assert all(start < end for _, start, end in bands)
        if bands:
            assert bands[-1][2] == top and (top == 1 or abs(top - ends[column.stack[-1][0]]) <= 0.5)
        borders = [end for _, _, end in bands[:-1]]
        for (name, _, end), above in pairwise(bands):
            room = EIGHTHS if above is bands[-1] else EIGHTHS / 2 + 0.5
            assert abs(end - ends[name]) <= room, "errors do not add up"
        inside = [end // EIGHTHS for end in borders if end % EIGHTHS]
        assert len(set(inside)) == len(inside) and (split or not inside), "a cell has two colors"
        assert not top % EIGHTHS or top // EIGHTHS not in inside, "and one below the column's top"


@given(STACKS, st.integers(1, 100_000))
def test_where_every_part_can_be_drawn_a_border_is_the_rounded_sum(stack: list[tuple[str, int]], unit: int) -> None:
    column, scale = slot(stack), Scale(unit, 1)
    (bands,) = bands_of([column], scale)
    ends = wanted(column, scale)
    thin = [name for name, size in column.stack if size < unit]
    for (name, _, end), _ in pairwise(bands):
        assert abs(end - ends[name]) <= 0.5 + len(column.stack)
        assert name not in thin
    if not thin:
        assert [end for _, _, end in bands] == [max(1, round(end)) for end in ends.values()]


def growing(reasoning: int) -> list[Slot]:
    """A session that grows step by step, with a little reasoning in all of it."""
    return [
        slot(
            [
                ("system", 2_600),
                ("tools", 9_800),
                ("user", size // 20),
                ("messages", size // 4),
                ("reasoning", reasoning),
                ("tool_results", size),
            ]
        )
        for size in range(3_000, 120_000, 4_000)
    ]


def test_a_thin_band_does_not_come_and_go_and_moves_no_other() -> None:
    for height in range(3, 61):
        slots = growing(6_000)
        scale = scale_of(max(each.total for each in slots), 168_000, height)
        seen = [{name for name, _, _ in bands} for bands in bands_of(slots, scale)]
        for name in ("reasoning", "tool_results", "messages", "tools"):
            there = [name in names for names in seen]
            # From where there is room for it on it is there: never here and away again, step by step.
            changes = sum(one != two for one, two in pairwise(there))
            assert changes <= 2, (height, name, there)
        assert height < 6 or sum("reasoning" in names for names in seen) > len(seen) // 2, height
    bands = {height: bands_of(growing(60), scale_of(140_000, 168_000, height)) for height in (10, 60)}
    assert not any(name == "reasoning" for column in bands[10] for name, _, _ in column), "below a part of a line"
    without = bands_of(growing(0), scale_of(140_000, 168_000, 10))
    assert _borders(bands[10]) == _borders(without), "and its place is nobody's"


def _borders(columns: list[list[Band]]) -> list[list[str]]:
    return [[name for name, _, _ in bands] for bands in columns]
