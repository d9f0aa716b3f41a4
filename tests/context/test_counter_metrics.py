"""Metrics, accuracy and calibration."""

from __future__ import annotations

import pytest

from agent_tui.context.accounting.reports import drift
from agent_tui.context.tokens import ENOUGH, TokenCounterMetrics, format_metrics, health_hints
from agent_tui.text.numbers import uptime

pytestmark = pytest.mark.quick


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def metrics(hits: int, misses: int, tokens: int = 250) -> TokenCounterMetrics:
    made = TokenCounterMetrics(Clock())
    made.hit(hits)
    for _ in range(misses):
        made.miss(tokens)
    return made


def test_the_display_of_the_document() -> None:
    clock = Clock()
    made = TokenCounterMetrics(clock)
    made.hit(1_245)
    for _ in range(181):
        made.miss(250)
    made.miss(2_048)
    for _ in range(12):
        made.recalculation()
    clock.now += 45 * 60 + 23
    lines = format_metrics(made).splitlines()
    assert lines[0] == "Token Counter Metrics:"
    assert lines[1:5] == [
        "  Cache Hit Rate: 87.2%",
        "  Cache Hits: 1245",
        "  Cache Misses: 182",
        "  Recalculations: 12",
    ]
    assert "  Largest Message: 2048 tokens" in lines and "  Uptime: 45m 23s" in lines
    assert lines[-1] == "  Good: hit rate over 85 %."


def test_health_hints() -> None:
    assert health_hints(TokenCounterMetrics(Clock())) == []
    few = metrics(0, ENOUGH - 1, 9_000)
    for _ in range(21):
        few.recalculation()
    assert health_hints(few) == [], "a session that has just begun is not unhealthy"
    few.miss(10)
    assert len(health_hints(few)) == 3
    assert "under 70 %" in health_hints(metrics(60, 40))[0]
    assert health_hints(metrics(75, 25)) == []
    large = metrics(99, 1, 5_001)
    for _ in range(21):
        large.recalculation()
    assert len(health_hints(large)) == 3


def test_reset_and_empty() -> None:
    made = metrics(5, 5)
    made.reset()
    assert made.hit_rate is None and made.mean is None and made.total_tokens == 0
    assert "Cache Hit Rate: –" in format_metrics(made)
    with pytest.raises(ValueError, match="Invalid token count"):
        made.miss(-1)
    assert uptime(3_723) == "1h 2m 3s"


def test_drift_over_ten_tokens_is_told() -> None:
    assert drift(1_000, 1_010) is None
    assert drift(1_000, 1_011) == "Token drift detected: tracked=1000, calculated=1011, drift=+11"
