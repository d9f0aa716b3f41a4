"""The timeline as it is drawn: nothing is covered, nothing is out of bounds, and a click goes where it points."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_tui.commands.report import ContextReport
from agent_tui.context.chart import AHEAD, EIGHTHS, LEFT, Course, Slot, bands_of, scale_of, slots_of, ticks
from agent_tui.context.timeline import Column, Timeline, projected
from agent_tui.models.rows import ROW_KINDS
from agent_tui.models.usage import TokenUsage
from agent_tui.text.numbers import tokens
from agent_tui.ui.screens.timeline import (
    BLOCKS,
    DOTS,
    GHOST,
    HALF,
    LABEL,
    RULES,
    ChartStyle,
    TimelineView,
    cell_of,
    draw,
    sparkline,
)
from tests.context.test_timeline import fold, grown
from tests.support.app import shown
from tests.support.forms import one_of
from tests.support.usages import sample_usage
from tests.ui.test_context_view import THEMES, Alone

pytestmark = pytest.mark.quick

COLUMN = set(BLOCKS[2:]) | {GHOST, HALF} | {kind.pattern for kind in ROW_KINDS.values()} - {"·"}


def course(sizes: list[int], limit: int | None = 168_000, folded: tuple[int, ...] = (), marked: int = 0) -> Course:
    """A course with steps of these sizes; compactions after those named."""
    usage = replace(sample_usage(), growth=20_000.0, turns_left=4, limit=limit)
    steps = grown(sizes)
    for step in steps[::2]:
        step.usage, step.cost_usd = TokenUsage(100, 1, cache_read=80), 0.01
    timeline = Timeline(steps, [fold(n, sizes[n - 1], 60_000) for n in folded])
    path = {f"m{n}" for n in range(len(sizes) + 1)}
    return Course(timeline, path, timeline.now(usage), projected(usage), limit, marked)


def words(lines: list[list[tuple[str, object]]]) -> list[str]:
    return ["".join(char for char, _ in line) for line in lines]


@settings(max_examples=150)
@given(
    st.lists(st.integers(0, 400_000), min_size=1, max_size=80),
    st.sampled_from([None, 1, 16_000, 168_000, 10_000_000]),
    st.integers(1, 130),
    st.integers(1, 24),
    st.booleans(),
    st.data(),
)
def test_any_session_is_drawn_at_any_size(
    sizes: list[int], limit: int | None, width: int, height: int, patterns: bool, data: st.DataObject
) -> None:
    marked = data.draw(st.integers(0, len(sizes)))
    made = course(sizes, limit, tuple(data.draw(st.sets(st.integers(1, len(sizes)), max_size=4))), marked)
    slots = slots_of(made, width)
    assert slots[0].x == 0 and all(slot.width >= 1 for slot in slots[:width])
    assert all(one.x + one.width <= two.x for one, two in pairwise(slots))
    assert slots[-1].x + slots[-1].width <= width
    grid = draw(made, slots, width + LABEL, height, ChartStyle(patterns, cost=True))
    assert [len(line) for line in grid.lines] == [width + LABEL] * (height + 3)
    peak = max(slot.total for slot in slots)
    scale = scale_of(peak, limit, height)
    for slot in slots:
        # What a column is made of is never hidden by a word.
        eighths = min(height * 8, scale.filled(slot.total))
        ghost = patterns and slot.stack and slot.stack[0][0] in (AHEAD, LEFT)
        filled = eighths // 8 if ghost else -(-eighths // 8)
        for y in range(height - filled, height):
            assert grid.lines[y][slot.x + LABEL][0] in COLUMN | set(BLOCKS), (y, slot)
    assert len(sparkline(made, width)) <= max(1, width)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 400_000), min_size=1, max_size=30),
    st.sampled_from([None, 16_000, 168_000]),
    st.integers(40, 250),
    st.integers(3, 60),
)
@example([250_872], None, 40, 3)  # a border inside the highest cell of a column
def test_each_number_stands_beside_the_cell_that_contains_it(
    sizes: list[int], limit: int | None, width: int, height: int
) -> None:
    made = replace(course(sizes, limit), ahead=[])
    slots = slots_of(made, width - LABEL)
    scale = scale_of(max(slot.total for slot in slots), limit, height)
    grid = draw(made, slots, width, height, ChartStyle())
    lines = words(grid.lines)  # type: ignore[arg-type]
    said = {lines[y][: LABEL - 1].strip(): height - 1 - y for y in range(height) if lines[y][: LABEL - 1].strip()}
    numbers = {tokens(number, False): number for number in [*ticks(scale, height, limit), *([limit] if limit else [])]}
    assert said or height < 6 or max(sizes) < 10
    for label, row in said.items():
        assert row * scale.unit * 0.9999 <= numbers[label] < (row + 1) * scale.unit * 1.0001, (label, row)
        drawn = set(lines[height - 1 - row][LABEL:]) & set(RULES if numbers[label] == limit else DOTS)
        assert len(drawn) <= 1 or numbers[label] == limit
    for slot in slots:
        top = next((y for y in range(height) if lines[y][slot.x + LABEL] in BLOCKS[1:]), height)
        eighths = 8 * (height - 1 - top) + BLOCKS.index(lines[top][slot.x + LABEL]) if top < height else 0
        if not set(lines[max(0, top)][slot.x + LABEL]) & set(RULES):
            # A cell that is full may hold the border of two bands: what is left of it has the colour of the upper one.
            if top < height and str(grid.lines[top][slot.x + LABEL][1][1]).startswith("context-"):
                eighths = 8 * (height - top)
            off = abs(eighths - slot.total / scale.unit * EIGHTHS)
            assert off <= (1 if slot.total < scale.unit / 8 else 0.5001)


def test_a_branch_that_was_left_keeps_its_colors_and_says_so() -> None:
    made = course([20_000, 60_000, 100_000, 140_000], limit=None)
    left = [slot for slot in slots_of(replace(made, path={"m1", "m2"}), 110) if slot.left]
    grid = draw(made, slots := slots_of(replace(made, path={"m1", "m2"}), 110), 117, 12, ChartStyle())
    fronts = {grid.lines[y][left[-1].x + LABEL][1][0] for y in range(12)} - {None, "line"}
    assert fronts and all(front.startswith("faded context-") for front in fronts if front)
    assert list(grid.signs) == ["faded: left by a rewind"]
    assert list(draw(made, slots, 117, 12, ChartStyle(patterns=True)).signs) == [f"{GHOST}: left by a rewind"]


def test_what_a_cell_shows() -> None:
    slot = Slot(0, 1, 1_200, (("tools", 400), ("messages", 800)), Column(1, 1, 1, 1_200))
    (bands,) = bands_of([slot], scale_of(1_200, None, 3))
    assert [cell_of(bands, row) for row in range(4)] == [
        ("█", "tools", None),
        ("█", "messages", None),
        ("█", "messages", None),
        None,
    ]
    assert cell_of([("tools", 0, 3), ("messages", 3, 8)], 0) == ("▃", "tools", "messages")


@pytest.mark.parametrize("theme", ["agent-dark", "ansi"])
def test_a_compaction_is_told_beside_its_cliff(theme: str) -> None:
    made = course([20_000, 60_000, 100_000, 140_000, 165_000, 50_000, 60_000, 70_000, 80_000], folded=(5,))
    slots = slots_of(made, 110)
    lines = words(draw(made, slots, 117, 12, ChartStyle(theme == "ansi")).lines)  # type: ignore[arg-type]
    (told,) = [line for line in lines if "compacted 165k → ~60k" in line]
    assert told.index("▼") >= LABEL + slots[5].x
    assert lines[0].startswith("  168k limit ▁▁")
    assert "step    1" in lines[12] and "now" in lines[12] and "+4 turns" in lines[12]


def test_where_the_limit_is_far_off_the_columns_have_the_whole_height() -> None:
    made = course([2_000, 3_000, 4_000], limit=900_000)
    made = replace(made, now=replace(made.now, total=4_000, stack=(("messages", 4_000),)))
    slots = slots_of(made, 80)
    assert not any(slot.turn for slot in slots), "nor is it drawn as near"
    lines = words(draw(made, slots, 87, 8, ChartStyle()).lines)  # type: ignore[arg-type]
    assert "limit 900k ↑" in lines[0] and "█" in lines[0]
    slow = replace(made, ahead=[4_000 + 400 * turn for turn in range(1, 2_000)])
    slots = slots_of(slow, 80)
    assert [slot.turn for slot in slots if slot.turn] == [1, 2, 3, 4, 5]
    lines = words(draw(slow, slots, 87, 8, ChartStyle()).lines)  # type: ignore[arg-type]
    assert "limit 900k ↑" in lines[0] and "+5 turns" in lines[8]


def test_what_is_written_and_not_sent_stands_on_the_next_request() -> None:
    made = replace(course([20_000, 60_000]), draft=30_000)
    (now,) = [slot for slot in slots_of(made, 80) if slot.column is made.now]
    assert now.total == (made.now.total or 0) + 30_000 and now.stack[-1][1] == 30_000


async def test_only_the_lines_that_changed_are_drawn_again() -> None:
    app = Alone(ContextReport(sample_usage()))
    app.view.course = course([20_000, 60_000, 100_000])
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause()
        view = app.view.query_one(TimelineView)
        asked: list[int] = []
        view.refresh = lambda *regions, **more: asked.extend(region.y for region in regions)  # type: ignore[method-assign, assignment]
        app.view.rebuild()
        assert asked == []
        app.view.course = course([20_000, 60_000, 100_000], marked=3)
        app.view.rebuild()
        assert asked and len(asked) < view.line_count


@pytest.mark.parametrize("theme", one_of(["agent-dark", *(name for name in sorted(THEMES) if name != "agent-dark")]))
async def test_it_stands_in_every_theme_and_size(theme: str) -> None:
    app = Alone(ContextReport(sample_usage()), theme)
    app.view.course = course([20_000, 60_000, 100_000, 140_000, 50_000], folded=(4,))
    async with app.run_test() as pilot:
        for width, height in ((8, 30), (1, 12), (30, 24), (60, 20), (80, 24), (120, 40), (200, 50), (90, 30)):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            seen = shown(app)
            assert width < 60 or any(mark in seen for mark in ("step", "5 steps")), width
            assert width < 80 or "compacted" in seen, width
        assert "168k limit" in seen


async def test_every_theme_draws_it() -> None:
    app = Alone(ContextReport(sample_usage()))
    app.view.course = course([20_000, 60_000, 100_000, 140_000, 50_000], folded=(4,))
    async with app.run_test(size=(80, 24)) as pilot:
        for theme in sorted(THEMES):
            app.theme = theme
            await pilot.pause()
            assert "compacted" in shown(app) and "step" in shown(app), theme
