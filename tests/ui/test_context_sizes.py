"""What fills the context, by size: the order, the bars, the changes, and rows that are equal to the headline."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agent_tui.commands.bookkeeping import adds_up, column, fold, limit_terms, panel, receipt, terms
from agent_tui.commands.report import ContextReport, with_answer
from agent_tui.commands.report_json import context_json
from agent_tui.models.context import Calculation, ContextUsage, Spreads
from agent_tui.text.cells import bar_of
from agent_tui.ui.screens.context_lines import Order, flatten
from tests.support.usages import row, sample_usage

pytestmark = pytest.mark.quick

NUMBER = re.compile(r"^([+−= ]) +([\d,]+)(?: ± ([\d,]+))? +\S")


def signed_sum(lines: list[str]) -> tuple[int, int]:
    """The sum of the lines of a receipt up to its first result, and that result."""
    total = 0
    for found in filter(None, map(NUMBER.match, lines)):
        number = int(found[2].replace(",", ""))
        if found[1] == "=":
            return total, number
        total += -number if found[1] == "−" else number
    raise AssertionError(lines)


@given(
    st.integers(1, 2_000_000),
    st.tuples(st.integers(0, 90_000), st.integers(0, 9_000), st.integers(0, 9_000)),
    st.integers(-5_000, 5_000),
    st.integers(0, 300_000),
    st.integers(0, 9_000),
)
def test_the_lines_of_the_receipt_add_up(
    read: int, taken: tuple[int, int, int], delta: int, new: int, spread: int
) -> None:
    output, dropped, removed = taken
    usage = sample_usage()
    usage.calculation = Calculation(read, output, dropped, removed, delta, new, spreads=Spreads(new_messages=spread))
    usage.total = read + output - dropped - removed + delta + new
    lines = list(column(terms(usage)))
    if usage.total >= 0:
        added, total = signed_sum(lines)
        assert added == total == usage.total


def test_the_receipt_tells_the_limit_and_of_an_estimate_what_it_consists_of() -> None:
    usage = sample_usage()
    window, limit = signed_sum(list(column(limit_terms(usage))))
    assert window == limit == usage.limit
    usage.calculation = Calculation(None, None, 0, 0, 0, usage.total)
    added, total = signed_sum(list(column(terms(usage))))
    assert added == total == usage.total
    assert "Nothing measured yet" in receipt(ContextReport(usage))


def test_what_cannot_be_acted_on_is_not_red() -> None:
    usage = sample_usage()
    assert {entry.tone for entry in panel(ContextReport(usage))} == {"plain"}
    usage.rows[0].tokens += 1
    assert "bad" in {entry.tone for entry in panel(ContextReport(usage))} and fold(ContextReport(usage)).tone == "bad"


@given(st.integers(0, 250_000), st.booleans(), st.booleans())
def test_rows_are_equal_to_the_headline_while_an_answer_comes(in_flight: int, known: bool, empty: bool) -> None:
    usage = sample_usage()
    if empty:
        messages = usage.rows[-1]
        usage.rows[-1] = replace(messages, children=[])
    if not known:
        usage = replace(usage, window=None, limit=None, reserve=None, free=None, over=None)
    whole = ContextReport(usage, in_flight=in_flight).whole
    assert adds_up(whole) and whole.total == usage.total + in_flight
    assert sum(line.tokens or 0 for line in flatten(whole, set()) if line.kind == "row") == whole.total
    assert usage == (sample_usage() if known and not empty else usage), "what was told is not changed"
    assert with_answer(usage, 0) is usage


def sized(*sizes: tuple[str, int]) -> ContextUsage:
    children = [row("message", size, name, message_id=name) for name, size in sizes]
    results = row("tool_results", sum(size for _, size in sizes), children=children)
    usage = sample_usage()
    usage.rows[-1] = row("messages", results.tokens, children=[results])
    return usage


def labels(usage: ContextUsage, order: Order, before: ContextUsage | None = None) -> list[str]:
    lines = flatten(usage, {"messages", "messages/tool_results"}, before, order)
    return [line.label for line in lines if line.depth == 2]


def test_the_largest_stand_first_and_keep_their_places_while_they_are_looked_at() -> None:
    order = Order()
    usage = sized(("a", 10), ("b", 30), ("日本", 20))
    assert labels(usage, order) == ["b", "日本", "a"]
    order.held = True
    grown = sized(("a", 90), ("b", 30), ("日本", 20), ("new", 500), ("newer", 600))
    assert labels(grown, order) == ["b", "日本", "a", "newer", "new"]
    order.held = False
    assert labels(grown, order) == ["newer", "new", "a", "b", "日本"]
    order.by_time = True
    assert labels(grown, order) == ["a", "b", "日本", "new", "newer"]
    order.by_time = False
    assert labels(sized(("a", 10)), order, grown) == ["newer", "new", "b", "日本", "a"], "what went stands where it was"


@given(st.lists(st.integers(0, 9_000), min_size=1, max_size=8), st.lists(st.integers(0, 9_000), min_size=1, max_size=8))
def test_no_order_loses_a_row_or_a_change(now: list[int], then: list[int]) -> None:
    made = [sized(*((f"m{i}", size) for i, size in enumerate(sizes))) for sizes in (now, then)]
    opened = {"messages", "messages/tool_results"}
    plain, order = flatten(made[0], opened, made[1]), Order()
    for order.held in (False, True):
        arranged = flatten(made[0], opened, made[1], order)
        assert sorted(map(repr, arranged)) == sorted(map(repr, plain))


@given(st.integers(-5, 2_000_000), st.integers(0, 1_000_000), st.integers(0, 40))
def test_a_bar_is_as_long_as_its_share(part: int, whole: int, cells: int) -> None:
    bar = bar_of(part, whole, cells)
    assert cell_len(bar) <= cells
    if 0 < part <= whole and cells:
        assert bar and abs(cell_len(bar.rstrip()) - cells * part / whole) <= 1


@pytest.mark.parametrize("compared", [True, False])
def test_the_json_has_the_changes_where_there_is_something_to_compare_with(compared: bool) -> None:
    before = sample_usage()
    before.rows[0] = replace(before.rows[0], tokens=2_000)
    before.total -= 600
    data = context_json(ContextReport(sample_usage(), before if compared else None))
    assert [entry.get("delta") for entry in data["rows"]] == ([600, 0, 0, 0, 0, 0, 0] if compared else [None] * 7)
    said = ContextReport(sample_usage(), before if compared else None).changes()
    assert said == (["Since the last step +600: System prompt +600."] if compared else [])
