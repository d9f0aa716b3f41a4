"""The differences between two moments of the context: every row has its own, and they add up."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.row_pairs import pairs
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.ui.screens.context_lines import RowLine, flatten
from agent_tui.ui.screens.context_rows import columns, headings
from tests.support.usages import row, sample_usage

pytestmark = pytest.mark.quick

RESULTS = 3
"""Number of the tool results among the rows below the messages."""


def with_results(usage: ContextUsage, results: list[ContextRow]) -> ContextUsage:
    """The usage with other tool results; everything still adds up."""
    made = deepcopy(usage)
    messages = made.rows[-1]
    there = messages.children[RESULTS]
    more = sum(r.tokens for r in results) - there.tokens
    there.children, there.tokens = results, there.tokens + more
    messages.tokens += more
    assert made.window is not None and made.reserve is not None
    total, limit = made.total + more, made.window - made.reserve
    return replace(made, total=total, free=max(0, limit - total), over=max(0, total - limit))


def all_open(usage: ContextUsage, before: ContextUsage) -> list[RowLine]:
    opened: set[str] = set()
    while True:
        lines = flatten(usage, opened, before)
        closed = {line.key for line in lines if line.open is False}
        if not closed:
            return lines
        opened |= closed


def below(lines: list[RowLine], parent: RowLine) -> list[RowLine]:
    """The children of a line."""
    found = []
    for line in lines[lines.index(parent) + 1 :]:
        if line.depth <= parent.depth:
            break
        if line.depth == parent.depth + 1:
            found.append(line)
    return found


ids = st.lists(st.integers(0, 12), max_size=10)


@given(ids, ids, st.integers(1, 60_000))
def test_changes_add_up_at_every_level(then: list[int], now: list[int], size: int) -> None:
    def results(numbers: list[int], step: int) -> list[ContextRow]:
        return [row("message", size + step * i, f"r{n}", message_id=f"m{n}") for i, n in enumerate(numbers)]

    before = with_results(sample_usage(), results(then, 7))
    usage = with_results(sample_usage(), results(now, 3))
    lines = all_open(usage, before)
    tops = [line for line in lines if line.depth == 0]
    rows = [line for line in tops if line.kind in ("row", "gone")]
    assert sum(line.change or 0 for line in rows) == usage.total - before.total
    assert sum(line.change or 0 for line in tops) == 0, "the window is the same"
    assert sum(line.tokens or 0 for line in tops) == usage.window
    for line in lines:
        children = below(lines, line)
        if children:
            assert sum(child.change or 0 for child in children) == line.change, line.label
    single = [line.label for line in lines if line.kind == "row" and line.row is not None and line.row.message_id]
    assert single == [f"r{n}" for n in now]


def test_what_came_and_what_went_is_told_where_it_stood() -> None:
    then = [row("message", 10, f"r{n}", message_id=f"m{n}") for n in (1, 2, 3)]
    now = [row("message", 10, f"r{n}", message_id=f"m{n}") for n in (1, 3, 4)]
    told = [((p.now or p.before or then[0]).label, p.now is None, p.before is None, p.change) for p in pairs(now, then)]
    assert told == [("r1", False, False, 0), ("r2", True, False, -10), ("r3", False, False, 0), ("r4", False, True, 10)]


def test_many_that_went_are_one_line() -> None:
    then = [row("message", 10, f"r{n}", message_id=f"m{n}") for n in range(500)]
    lines = all_open(with_results(sample_usage(), then[499:]), with_results(sample_usage(), then))
    gone = [line for line in lines if line.kind == "gone"]
    assert [(line.label, line.change) for line in gone] == [("499 removed", -4_990)]


def test_a_row_of_old_that_is_empty_now_is_still_told() -> None:
    before = sample_usage()
    skills = next(r for r in before.rows if r.id == "skills")
    skills.tokens = 900
    lines = {line.key: line for line in flatten(sample_usage(), set(), before)}
    assert lines["skills"].change == -900 and lines["skills"].tokens == 0
    assert "skills" not in {line.key for line in flatten(sample_usage(), set())}


def test_over_and_free_change_places() -> None:
    before = sample_usage()
    more = [row("message", 130_000, "large", message_id="m")]
    usage = with_results(before, more)
    assert usage.over
    lines = {line.key: line.change for line in flatten(usage, set(), before)}
    assert lines["free"] == -(before.free or 0) and lines["over"] == -usage.over and lines["reserve"] == 0
    back = {line.key: line.change for line in flatten(before, set(), usage)}
    assert back["free"] == before.free and back["over"] == usage.over


def test_rows_keep_their_names_however_others_come_and_go() -> None:
    usage = sample_usage()
    keys = [line.key for line in flatten(usage, {"messages", "messages/tool_results"})]
    assert len(keys) == len(set(keys))
    without = sample_usage()
    del without.rows[-1].children[0]
    assert "messages/tool_results/msg_3" in {
        line.key for line in flatten(without, {"messages", "messages/tool_results"})
    } & set(keys)


def test_what_went_keeps_the_color_of_its_row() -> None:
    now = sample_usage()
    (messages,) = [row for row in now.rows if row.id == "messages"]
    kept = [child for child in messages.children if child.id not in ("tool_results", "tool_calls")]
    left = replace(messages, children=kept, tokens=sum(child.tokens for child in kept))
    later = replace(now, rows=[left if row is messages else row for row in now.rows if row.id != "memory"])
    colors = {line.label.lower(): line.kind_id for line in flatten(later, {"messages"}, now) if line.kind == "gone"}
    assert colors == {"tool results": "tool_results", "tool calls": "messages", "memory (2)": "memory"}


def test_the_headings_explain_the_signs_as_far_as_there_is_room() -> None:
    told = [headings(columns(width, compared=True), bases={"derived", "estimated"}) for width in range(30, 250)]
    legends = {line.partition("tokens")[0].strip() for line in told}
    assert legends == {"", "◐ derived ○ estimated", "● measured ◐ derived ○ estimated"}
    assert all("● measured ◐ derived ○ estimated" in line for line in told[46:]), "from 76 cells on"
    assert all("of window" in line for line in told[46:])
