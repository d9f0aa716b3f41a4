"""What the next request will pay anew: in the status line as long as it holds, as a hint once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.models.events import ContextChanged
from agent_tui.models.steps import CacheForecast, ColdRequest
from agent_tui.text.numbers import clock_time
from agent_tui.ui.theme import Paint
from agent_tui.ui.widgets.drawn_lines import StatusFacts, StatusLine
from tests.support.app import Running, running
from tests.support.usages import sample_usage

pytestmark = pytest.mark.quick

EXPIRED = ColdRequest("expired", "idle for 6 min 2 s", 80_000, True, 1.51, 0.15)
SWITCHED = ColdRequest("ours", "model switched: a → b", 80_000, True, 1.51, 0.15)
UNPRICED = ColdRequest("ours", "rewound", 12_000, False, None, None)


def publish(run: Running, cold: ColdRequest | None, until: float | None = None) -> None:
    forecast = CacheForecast(0 if cold else 80_000, 1.51 if cold else 0.15, cold, until)
    run.agent.publish(ContextChanged(replace(sample_usage(), forecast=forecast)))


async def test_the_hint_goes_with_the_next_key_and_the_status_line_stays(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        publish(run, EXPIRED)
        hint = "Next input: expected uncached (idle for 6 min 2 s): ~$1.51 instead of ~$0.15"
        await run.until(lambda: run.app.activity.hint_text == hint)
        await run.type("x")
        await run.until(lambda: not run.app.activity.hint_text)
        later = replace(EXPIRED, what="idle for 7 min 1 s")
        publish(run, later)
        assert not run.app.activity.hint_text
        publish(run, SWITCHED)
        assert "model switched: a → b" in run.app.activity.hint_text
        publish(run, None)
        assert not run.app.activity.hint_text
        assert run.app.activity._timer is None


@pytest.mark.parametrize(
    ("width", "said"), [(200, "uncached: ~$1.51 instead of ~$0.15"), (80, "uncached"), (60, "uncached")]
)
def test_the_status_line_says_it_in_the_room_there_is(width: int, said: str) -> None:
    assert said in status(CacheForecast(0, 1.51, EXPIRED), width)
    assert status(CacheForecast(0, 1.51, EXPIRED), width).rstrip().endswith("$0.42")


def test_what_is_cached_is_said_with_a_time_that_stays_true() -> None:
    until = 1_800_000_000.0
    assert f"cached until {clock_time(until)}" in status(CacheForecast(80_000, 0.15, None, until), 200)
    assert "cached" not in status(CacheForecast(80_000, 0.15, None, None), 200)
    assert "partly uncached: ~12k not from the cache" in status(CacheForecast(3_000, None, UNPRICED), 200)


def status(forecast: CacheForecast, width: int) -> str:
    line, facts = StatusLine(), StatusFacts()
    facts.model, facts.usage = "claude", replace(sample_usage(), forecast=forecast)
    line.facts = facts
    return "".join(text for text, _ in line.line(0, width, plain))


plain: Paint = lambda *_, **__: None  # type: ignore[assignment]  # noqa: E731
