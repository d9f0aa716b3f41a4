"""What of the cache's forecast is worth a word, and how it is said."""

from __future__ import annotations

import pytest

from agent_tui.context.cache_forecast import ForecastBasis, forecast, forecast_words, price_words
from agent_tui.context.cache_misses import LEAST_TOKENS, Reach, Repeats
from agent_tui.models.steps import CacheForecast, ColdRequest, Step
from agent_tui.models.usage import Prices, TokenUsage
from agent_tui.providers.dialects.record import Caching

pytestmark = pytest.mark.quick

LIFE = 300.0


def basis(total: int, kept: int, expected: int) -> ForecastBasis:
    """A request of ``total`` tokens, ``expected`` of which were sent before: ``kept`` of them not long ago."""
    newest = Step("s0", "turn", "m", "p", "a", "m", usage=TokenUsage(expected, 1), created=0.0)
    step = Step("s1", "turn", "m", "p", "a", "m", usage=TokenUsage(total, 0))
    old = Reach(newest, expected, 0.0, LIFE, 1, True)
    new = Reach(newest, kept, LIFE, LIFE, 1, True)
    repeats = Repeats(expected, expected, [old, new], "")
    return ForecastBasis(step, newest, repeats, Caching(life=LIFE), Prices(3e-6, 15e-6, 0.3e-6, 3.75e-6))


@pytest.mark.parametrize(
    ("total", "lost", "told"),
    [
        (10_000, LEAST_TOKENS, True),
        (10_000, LEAST_TOKENS - 1, False),
        (100_000, 10_000, True),
        (100_000, 9_999, False),  # of a long request, that much is nothing
    ],
)
def test_what_is_little_beside_the_request_is_not_told(total: int, lost: int, told: bool) -> None:
    found = forecast(basis(total, total - lost, total), LIFE + 1)
    assert (found.cold is not None, found.read) == (told, total - lost)
    if found.cold is not None:
        assert (found.cold.cause, found.cold.tokens, found.cold.whole) == ("expired", lost, False)


def test_what_is_read_in_part_is_called_partly_uncached() -> None:
    part = ColdRequest("expired", "idle for 6 min", 5_000, False, 1.51, 0.15)
    assert price_words(part).startswith("partly uncached: ")
    assert forecast_words(CacheForecast(9, 1.0, ColdRequest("ours", "compacted", 5_000, True, 1.5, 0.1))).startswith(
        "uncached: "
    )
    assert forecast_words(CacheForecast(9, 1.0)) == ""
