"""Compact now or go on: the inequality against what the requests themselves would cost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.cache_forecast import EXPIRES_SOON, moment_of
from agent_tui.context.compaction.worth import (
    LEAST_SAVING,
    MOST_TURNS,
    Pace,
    hopeless,
    pace_of,
    worth_of,
)
from agent_tui.models.messages import Message, TextPart
from agent_tui.models.steps import CacheForecast, ColdRequest
from agent_tui.models.usage import Prices
from tests.support.compaction_world import World, model_info, words

PRICES = Prices(3e-6, 15e-6, 0.3e-6, 3.75e-6)
NOW = 1_000_000.0


def long_talk(turns: int = 8, tokens: int = 6_000) -> World:
    world = World(model_info(200_000, 8_192))
    for number in range(turns):
        world.user(f"Do {number}.")
        world.tool_step(f"f{number}.py", tokens)
        world.measured([TextPart(f"Did {number}. {words(200)}")])
    return world


def cold(total: int) -> CacheForecast:
    return CacheForecast(0, None, ColdRequest("expired", "idle for 6 min", total, True, None, None))


def weighed(world: World, forecast: CacheForecast | None, prices: Prices = PRICES, pace: Pace | None = None):  # type: ignore[no-untyped-def]
    usage = replace(world.usage(), forecast=forecast)
    return usage, worth_of(world.plan("manual"), usage, prices, pace or pace_of(world.path, None), NOW)


def test_the_moment_is_what_is_known_of_the_cache() -> None:
    assert moment_of(None, NOW) == "warm"
    assert moment_of(cold(9), NOW) == "cold"
    for left, moment in ((EXPIRES_SOON + 1, "warm"), (EXPIRES_SOON, "expiring"), (0, "warm")):
        assert moment_of(CacheForecast(9, None, None, NOW + left), NOW) == moment
    assert moment_of(CacheForecast(9, None, None, NOW + 5, at_least=True), NOW) == "warm", "it may live on"


def test_as_many_turns_are_expected_as_there_were_but_not_beyond_the_limit() -> None:
    world = long_talk(6)
    assert pace_of(world.path, None) == Pace(6, 2)
    assert pace_of(world.path, 2) == Pace(2, 2)
    assert pace_of(world.path, 0) == Pace(1, 2), "the next one comes"
    assert pace_of(long_talk(40, 10).path, None).turns == MOST_TURNS
    assert pace_of([Message("m", "user", [TextPart("Hi")])], None) == Pace(1, 1)


def test_both_sides_are_what_their_requests_cost() -> None:
    world = long_talk()
    usage, worth = weighed(world, cold(1), pace=Pace(3, 4))
    total, after = usage.total, worth.after_tokens
    assert worth.going_on == pytest.approx(total * 3.75e-6 + 11 * total * 0.3e-6)
    assert worth.after == pytest.approx(after * 3.75e-6 + 11 * after * 0.3e-6)
    assert worth.first == pytest.approx(total * 3.75e-6)
    assert worth.compacting == worth.call + worth.after and worth.saving == worth.going_on - worth.compacting
    _, warm = weighed(world, CacheForecast(total, None), pace=Pace(3, 4))
    assert warm.going_on == pytest.approx(12 * total * 0.3e-6)
    assert warm.moment == "warm" and warm.after > 12 * after * 0.3e-6, "what is new after it is not in the cache"


def test_a_plan_that_needs_no_model_costs_no_call() -> None:
    world = long_talk(8, 22_000)
    plan = world.plan("auto")
    assert plan.action == "prune"
    worth = worth_of(plan, replace(world.usage(), forecast=cold(1)), PRICES, Pace(4, 2), NOW)
    assert worth is not None and worth.call == 0.0 and worth.worthwhile


@pytest.mark.slow
def test_a_summary_that_is_read_from_the_cache_is_priced_as_such() -> None:
    """That is what makes a compaction before the cache expires pay."""
    world = long_talk(80, 1_200)  # Short enough that a request apart has them whole, too.
    usage = replace(world.usage(), forecast=CacheForecast(world.usage().total, None, None, NOW + 60))
    plan, pace = world.plan("manual"), Pace(1, 1)
    within = priced_call(PRICES, usage.total + 300, usage.total, 2_000)
    apart = worth_of(plan, usage, PRICES, pace, NOW)
    warm = worth_of(plan, usage, PRICES, pace, NOW, False, None, within)
    assert apart is not None and warm is not None and plan.summary is not None
    assert warm.call < apart.call / 2 and warm.worthwhile and not apart.worthwhile
    assert warm.call == pytest.approx(usage.total * 0.3e-6 + 300 * 3.75e-6 + plan.summary.tokens * 15e-6)
    dear = priced_call(PRICES, usage.total + 300, 0, 2_000)
    cold_form = worth_of(plan, usage, PRICES, pace, NOW, False, None, dear)
    assert cold_form is not None and cold_form.call == apart.call


def test_the_inequality_says_why_nobody_is_asked() -> None:
    worth = weighed(long_talk(), cold(1))[1]
    little = replace(worth, going_on=worth.compacting + 0.01)
    assert not little.worthwhile and little.explanation().endswith(", too little to ask (at least $0.05 and 20 %).")
    assert replace(worth, going_on=worth.compacting).explanation().endswith(": saves nothing.")
    assert "next turn of 1 call at" in replace(worth, pace=Pace(1, 1)).explanation()


def test_without_prices_it_is_said_in_tokens_and_never_done_by_itself() -> None:
    usage, worth = weighed(long_talk(), cold(1), Prices(), Pace(3, 4))
    assert not worth.priced and not worth.plainly
    assert worth.going_on == usage.total, "what is read from the cache is not read anew"
    assert "tokens" in worth.line() and "$" not in worth.line() + worth.explanation()
    free = weighed(long_talk(), cold(1), Prices(0.0, 0.0))[1]
    assert free.priced and not free.worthwhile


def test_the_line_has_both_prices_and_fits_a_small_screen() -> None:
    world = long_talk(8, 12_000)
    until = CacheForecast(world.usage().total, None, None, NOW + 60)
    for forecast, said in ((until, "after "), (cold(1), "as is, uncached: "), (None, "as is: ")):
        for prices, mark in ((PRICES, "~$"), (Prices(), "~")):
            found = replace(weighed(world, forecast, prices, Pace(10, 4))[1], writer="claude-sonnet-4-6")
            line, _, writer = found.line().partition(" · ")
            assert line.startswith(f"Compact now {mark}") and said in line and line.count(mark) == 3
            assert len(line) + len(" · y") <= 78 and writer == "summary by claude-sonnet-4-6"


@pytest.mark.slow
@given(
    st.sampled_from(["cold", "warm", "expiring"]),
    st.integers(1, 12),
    st.integers(1, 9),
    st.sampled_from([PRICES, Prices(), Prices(1e-6, 2e-6), Prices(30e-6, 60e-6, 3e-6)]),
)
def test_what_is_hopeless_is_never_worthwhile(kind: str, turns: int, calls: int, prices: Prices) -> None:
    world = WORLD
    total = world.usage().total
    forecast = {"cold": cold(total), "warm": None, "expiring": CacheForecast(total, None, None, NOW + 9)}[kind]
    usage, worth = weighed(world, forecast, prices, Pace(turns, calls))
    assert not (hopeless(usage, prices, Pace(turns, calls), NOW) and worth.worthwhile)
    assert not worth.plainly or (worth.worthwhile and worth.saving >= LEAST_SAVING)
    assert not worth.worthwhile or worth.compacting < worth.going_on


WORLD = long_talk(10, 3_000)
