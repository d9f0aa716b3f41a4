"""Numbers for people: every form at its edges, and parts that add up."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_tui.models.usage import Cost
from agent_tui.text.numbers import (
    duration,
    factor,
    grouped,
    interval,
    largest_remainder,
    money,
    percent,
    plural,
    share,
    share_in,
    size,
    tenths_of,
    tokens,
    whole_percent,
)
from tests.support.every import every

pytestmark = pytest.mark.quick


@every(
    ("count", "spread", "text"),
    [
        (45_200, 900, "45.2k ± 0.9k"),
        (45_200, 49, "45.2k"),
        (950, 12, "950 ± 12"),
        (45_000, 1_200, "45k ± 1.2k"),
        (1_200_000, 60_000, "1.2M ± 0.1M"),
        (1_200_000, 20_000, "1.2M"),
        (7, 0, "7"),
    ],
)
def test_intervals(count: int, spread: int, text: str) -> None:
    assert interval(count, spread, False) == text


@given(st.integers(0, 3_000_000), st.integers(0, 3_000_000), st.booleans())
def test_an_interval_is_never_shown_as_wide_as_nothing(count: int, spread: int, approximate: bool) -> None:
    text = interval(count, spread, approximate)
    shown = text.partition(" ± ")[2]
    assert not shown or float(shown.rstrip("kM").replace(",", "")) > 0
    assert shown or text == tokens(count, approximate and not spread)
    full = interval(count, spread, approximate, full=True)
    assert full == (f"{count:,} ± {spread:,}" if spread else tokens(count, approximate, full=True))


def test_counts() -> None:
    assert [plural(n, "line") for n in (0, 1, 2, 1_204)] == ["0 lines", "1 line", "2 lines", "1,204 lines"]
    assert plural(2, "entry", "entries") == "2 entries" and plural(1, "entry", "entries") == "1 entry"
    assert [grouped(n) for n in (0, 84_200, -1_200)] == ["0", "84,200", "−1,200"]
    assert [tokens(n, False) for n in (-950, 999_949, 999_950)] == ["-950", "999.9k", "1M"]


def test_money_never_rounds_a_price_to_nothing() -> None:
    assert [money(n) for n in (0.00001, 0.0001, 0.0099, 0.01, 1_234.5)] == [
        *("<$0.0001", "$0.0001", "$0.0099", "$0.01", "$1,234.50")
    ]
    assert [money(n) for n in (0.00994, 0.00996, 0.009999)] == ["$0.0099", "$0.01", "$0.01"]
    assert [money(n, 4) for n in (0.5, 0.0, 0.00003)] == ["$0.5000", "$0", "<$0.0001"]


def test_money_of_which_a_part_is_not_known_is_at_least_what_is() -> None:
    sums = [Cost(), Cost(0.42), Cost(0.0087, 3), Cost(0.00879, 1), Cost(1_234.567, 1), Cost(0.0, 2), Cost(0.00001, 1)]
    assert [money(cost) for cost in sums] == [*("$0", "$0.42", "≥ $0.0087", "≥ $0.00879", "≥ $1,234.567", "$?", "$?")]


def amount_of(text: str) -> Decimal:
    """The amount that is shown, with its digits."""
    return Decimal(text.lstrip("≥$ ").replace(",", ""))


@given(
    st.lists(st.tuples(st.floats(0, 3) | st.floats(0, 0.02), st.integers(0, 1)), min_size=2, max_size=8),
    st.sampled_from((None, 2, 4)),
)
@example([(0.00808, 0), (0.0, 1)], None)
def test_a_sum_that_grows_is_never_shown_as_less(calls: list[tuple[float, int]], places: int | None) -> None:
    """Whole, a bound, and whole again: read with the digits that were there before, the amount is as high as it was;
    and a bound is no more than is known."""
    before, known, unpriced = Decimal(0), 0.0, 0
    for dollars, unknown in calls:
        known, unpriced = known + dollars, unpriced + unknown
        # A call of which that was not known may say later what it cost.
        for open_calls in dict.fromkeys((unpriced, 0)):
            text = money(Cost(known, open_calls), places)
            if text == "$?" or text.startswith("<"):
                continue
            number = amount_of(text)
            assert number.quantize(before, ROUND_HALF_UP) >= before, (text, before)
            if text.startswith("≥"):
                assert number <= Decimal(known) + Decimal("1e-6").scaleb(int(number.as_tuple().exponent))
            before = number


@given(st.floats(0, 10_000), st.integers(0, 3), st.sampled_from((None, 2, 4)))
def test_money_says_nothing_untrue(known: float, unpriced: int, places: int | None) -> None:
    text = money(Cost(known, unpriced), places)
    number = float(text.lstrip("≥<$ ").replace(",", "")) if text != "$?" else None
    assert (number == 0) == (text == "$0") == (not known and not unpriced)
    if text.startswith("≥"):
        assert unpriced and number is not None and number <= known + 1e-9
    elif text.startswith("<"):
        assert not unpriced and number is not None and known < number
    elif number is None:
        assert unpriced and known < 0.01
    else:
        assert not unpriced and abs(number - known) <= 0.0051


def test_percentages() -> None:
    assert [percent(n) for n in (None, 0, -0.04, 42.14)] == ["?", "0.0 %", "<0.1 %", "42.1 %"]
    assert percent(-0.13, signed=True) == "−0.1 %" and percent(2, signed=True) == "+2.0 %"
    assert percent(87.54, tight=True) == "87.5%" and percent(87.54, 0) == "88 %"
    assert [share(n) for n in (None, 0, 421, -6)] == ["", "0.0 %", "42.1 %", "−0.6 %"]
    assert [whole_percent(n, 1_000) for n in (0, 1, 5, 814, 994, 999, 1_000)] == [
        *("0 %", "<1 %", "1 %", "81 %", "99 %", ">99 %", "100 %")
    ]
    assert factor(1.018) == "1.02"


NUMBER = re.compile(r"[\d.]+")


@given(st.integers(0, 10**7), st.integers(1, 10**7))
def test_what_is_smaller_than_the_last_digit_is_said_to_be_that_and_nothing_is_0(part: int, whole: int) -> None:
    """Of every form: 0 is printed where it is nothing and nowhere else."""
    value = part / whole
    forms = [percent(value), percent(value, 0), percent(value, tight=True), percent(value, signed=True)]
    forms += [share_in(part, whole), duration(value), money(value)]
    forms += [whole_percent(part, whole)] if part <= whole else []
    for text in forms:
        (number,) = NUMBER.findall(text.split(" min")[0].split(" h")[0].replace(",", ""))
        assert (float(number) == 0) == (part == 0), text
        assert not text.startswith("<") or value < 1, text


@given(st.integers(0, 10**7))
def test_an_estimate_is_marked_in_every_form(count: int) -> None:
    assert tokens(count, True) == f"~{tokens(count, False)}"
    assert tokens(count, True, full=True) == f"~{tokens(count, False, full=True)}" == f"~{grouped(count)}"
    assert share_in(count, 10**7, True).lstrip("~") == share_in(count, 10**7)


def test_sizes() -> None:
    assert [size(n) for n in (1, 999, 1_000, 262_144, 999_499, 999_500, 12_345_678, 5_000_000, 1_500_000_000)] == [
        *("1 byte", "999 bytes", "1 kB", "262 kB", "999 kB", "1 MB", "12.3 MB", "5 MB", "1,500 MB")
    ]


@given(st.integers(0, 10**7), st.integers(1, 10**7))
def test_a_share_is_the_nearest_tenth(part: int, whole: int) -> None:
    assert abs(tenths_of(part, whole) / 10 - 100 * part / whole) <= 0.05 + 1e-6 * part / whole


@given(st.integers(0, 10**6), st.lists(st.integers(0, 10**6), min_size=1, max_size=20))
def test_parts_add_up_and_stay_near_their_share(total: int, weights: list[int]) -> None:
    parts = largest_remainder(total, weights)
    assert sum(parts) == total and all(part >= 0 for part in parts)
    if whole := sum(weights):
        assert all(abs(part - total * w / whole) <= 1 for part, w in zip(parts, weights, strict=True))


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid token count"):
        largest_remainder(5, [1, -1])


def test_a_duration_leaves_out_a_smaller_unit_of_none() -> None:
    told = {59: "59 s", 60: "1 min", 61: "1 min 1 s", 300: "5 min", 3_600: "1 h", 3_660: "1 h 1 min", 36_000: "10 h"}
    assert {seconds: duration(seconds) for seconds in told} == told
