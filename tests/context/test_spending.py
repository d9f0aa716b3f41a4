"""Budgets: what the next call is expected to cost, which budget it would break, and what is said then."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_tui.context.accounting.spending import (
    LEAST_OUTPUT,
    BudgetLine,
    ExpectedCall,
    amount,
    expected_call,
    expected_output,
    first_broken,
    priced_call,
    rest_of,
    stop_text,
    unpriced_text,
)
from agent_tui.models.steps import Step
from agent_tui.models.usage import Cost, Prices, PriceTier, Rates, TokenUsage
from tests.support.every import every
from tests.support.usages import sample_usage

pytestmark = pytest.mark.quick

PRICES = Prices(3e-6, 15e-6, 0.3e-6, 3.75e-6)


def answer(output: int, model: str = "m") -> Step:
    return Step("stp", "turn", model, "p", "a", model, status="complete", usage=TokenUsage(10, output))


def test_the_input_costs_what_its_cache_lets_it_and_writing_costs_more() -> None:
    call = priced_call(PRICES, 10_000, 8_000, 1_000)
    assert call.usd == pytest.approx(2_000 * 3.75e-6 + 8_000 * 0.3e-6 + 1_000 * 15e-6)
    plain = replace(PRICES, cache_write=None)
    hours = replace(PRICES, cache_write_1h=6e-6)
    assert priced_call(hours, 10_000, 8_000, 0, hour=True).usd == pytest.approx(2_000 * 6e-6 + 8_000 * 0.3e-6)
    assert priced_call(plain, 10_000, 0, 1_000).usd == pytest.approx(10_000 * 3e-6 + 1_000 * 15e-6)


def test_a_long_input_is_expected_at_its_own_price() -> None:
    tiered = replace(PRICES, tiers=(PriceTier(200_000, Rates(6e-6, 22.5e-6, 0.6e-6)),))
    assert priced_call(tiered, 200_001, 0, 0).usd == pytest.approx(200_001 * 6e-6)


def test_what_is_known_of_the_cache_is_expected_and_nothing_else() -> None:
    usage = replace(sample_usage(), total=10_000, expected_read=None)
    assert expected_call(usage, PRICES, [], None).read == 0
    assert expected_call(replace(usage, expected_read=9_000), PRICES, [], None).read == 9_000
    assert expected_call(usage, Prices(), [], None).usd is None
    assert expected_call(usage, Prices(0.0, 0.0), [], None).usd == 0


def test_an_answer_is_expected_as_long_as_the_newest_ones_but_not_shorter_than_the_least() -> None:
    assert expected_output([], "m", None) == LEAST_OUTPUT
    assert expected_output([answer(n) for n in (9, 9, 9)], "m", None) == LEAST_OUTPUT
    steps = [answer(50_000)] * 20 + [answer(2_000)] * 6 + [answer(9)] * 4
    assert expected_output(steps, "m", None) == 2_000, "the median of ten"
    assert expected_output(steps, "m", 800) == 800, "no longer than what is asked for"
    assert expected_output([answer(9_000, "other")], "m", None) == LEAST_OUTPUT


@every(
    ("line", "usd", "breaks"),
    [
        (BudgetLine("session", None, Cost(9.0)), 1.0, False),
        (BudgetLine("session", 1.0, Cost(0.9)), 0.1, False),
        (BudgetLine("session", 1.0, Cost(0.9)), 0.11, True),
        (BudgetLine("session", 1.0, Cost(0.5), held=0.45), 0.1, True),
        (BudgetLine("session", 1.0, Cost(5.0)), 0.0, False),
        (BudgetLine("session", 1.0, Cost(0.9, 4)), None, False),
        (BudgetLine("session", 1.0, Cost(1.0)), None, True),
    ],
)
def test_a_call_breaks_what_it_would_go_beyond(line: BudgetLine, usd: float | None, breaks: bool) -> None:
    call = ExpectedCall(usd, 1_000, 0, 600, usd or 0.0)
    assert line.breaks(call) is breaks
    assert first_broken([BudgetLine("turn", None), line], call) == (line if breaks else None)


def test_the_stop_names_the_budget_the_numbers_and_three_ways_on() -> None:
    text = stop_text(BudgetLine("turn", 0.5, Cost(0.48)), ExpectedCall(0.051, 21_400, 18_000, 600, 0.1, 1e-5))
    for said in (
        "budget.turn_usd = $0.5000",
        "$0.4800 used in this turn",
        "may take $0.1060 uncached, ~$0.0510 otherwise",
        "~21.4k in, ~18k of it cached, ~600 out",
    ):
        assert said in text
    assert all(way in text for way in ("/budget turn", "/model", "/compact"))
    assert "\n" not in text
    cold = stop_text(BudgetLine("turn", 0.5, Cost(0.48)), ExpectedCall(0.09859, 30_400, 0, 500, 0.0911, 1.5e-5))
    assert "may take $0.0986 (" in cold, "the same number is not said twice"
    held = stop_text(BudgetLine("day", 20.0, Cost(19.5, 2), 0.4), ExpectedCall(None, 9, 0, 9))
    assert "≥ $19.50 used today (and up to $0.40 pending)" in held and "has no known price" in held
    run = stop_text(BudgetLine("run", 2.0, Cost(2.0)), ExpectedCall(0.1, 9, 0, 9))
    assert "--budget" in run and "/budget" not in run


@given(st.floats(1e-7, 1e-4), st.floats(1.0, 12.0), st.floats(0.001, 5.0), st.integers(0, 900_000), st.floats(0.1, 2.0))
def test_the_longest_answer_leaves_nothing_over_whatever_the_cache_gives(
    price: float, writes: float, limit: float, input_: int, share: float
) -> None:
    prices = Prices(price, 5 * price, price / 10, price * writes, reasoning=5 * price * share)
    call = priced_call(prices, input_, 0, LEAST_OUTPUT)
    line = BudgetLine("session", limit)
    longest = line.longest(call)
    assert longest is not None
    if not line.breaks(call):
        written = TokenUsage(input_, longest, cache_write=input_)
        thought = replace(written, cache_write=0, reasoning=longest)
        assert max(prices.cost(written) or 0.0, prices.cost(thought) or 0.0) <= limit * (1 + 1e-9)
        assert call.cold_usd + (longest + 1) * call.rate > limit * (1 - 1e-9)


def test_an_unpriced_model_is_told_of_with_what_can_hold_it() -> None:
    text = unpriced_text("mine", ["turn", "day"])
    assert "budget.turn_usd and budget.day_usd" in text and "Set the model's price" in text


@given(st.floats(0.0001, 50), st.floats(0, 60), st.sampled_from((0.0, 0.0123)))
@example(0.5, 6.1e-05, 0.0)
@example(1.0, 0.0078125, 0.0)
def test_spent_held_and_left_add_up_to_the_limit_as_they_are_shown(limit: float, spent: float, held: float) -> None:
    line = BudgetLine("session", limit, Cost(spent), held)

    def shown(text: str) -> float:
        return float(text.replace("$", "").replace(",", "").replace("<0.0001", "0").replace("<0.01", "0"))

    number, _, side = rest_of(line).partition(" ")
    sign = -1 if side == "over" else 1
    parts = shown(amount(line, Cost(spent))) + shown(amount(line, held)) + sign * shown(number)
    assert parts == pytest.approx(shown(amount(line, limit)), abs=1e-6 if limit < 1 else 0.0051)


@given(st.floats(0.0001, 50), st.floats(0, 60), st.sampled_from((0.0, 0.0123)))
@example(0.5, 0.00808, 0.0)
def test_what_is_left_is_a_true_bound_where_not_all_that_was_spent_is_known(
    limit: float, spent: float, held: float
) -> None:
    bound = re.fullmatch(
        r"at (most|least) \$([\d.,]+) (left|over)", rest_of(BudgetLine("session", limit, Cost(spent, 1), held))
    )
    assert bound is not None
    number, left = float(bound[2].replace(",", "")), limit - spent - held
    if bound[3] == "left":
        assert bound[1] == "most" and max(0.0, left) - 1e-6 <= number <= max(0.0, left) + 0.0101
    else:
        assert bound[1] == "least" and -left - 0.0101 <= number <= -left + 1e-6
