"""What is said before a request of what it will find in the cache, against providers with a true prefix cache."""

from __future__ import annotations

import time
from pathlib import Path
from unittest import mock

import pytest

from agent_tui.context.cache_misses import LEAST_SHARE, LEAST_TOKENS
from agent_tui.engine import cache_forecast as foresight
from agent_tui.engine import model_call as requests
from agent_tui.engine import sent_log
from agent_tui.engine.agent import Agent
from agent_tui.models.events import ContextChanged, Notice
from agent_tui.models.steps import CacheForecast
from agent_tui.providers.client import ModelClient
from agent_tui.providers.dialects.record import Caching
from tests.support.agents import parts_for, running
from tests.support.cache_outcomes import CAUSES, Outcome, Seen
from tests.support.cached_models import plan_of
from tests.support.cached_runs import CachedRun

pytestmark = pytest.mark.asyncio(loop_scope="module")

SLACK = 0.25
"""Our tokens are estimates where a part of what was sent is gone: at the threshold they may say otherwise."""


class ForeseenRun(CachedRun):
    """Asks before each message what the next request will find."""

    def __init__(self, name: str, plan: dict[int, str], worker: ModelClient, folder: Path) -> None:
        super().__init__(name, 60_000, plan, worker, folder)
        self.said: dict[int, CacheForecast | None] = {}
        self.done: dict[int, tuple[str, ...]] = {}
        """What had been done when each turn was asked about: a message may bring a compaction that none foresees."""

    def about_to_send(self, agent: Agent) -> None:
        usage = agent.context.usage()
        self.said[self.turn] = usage.forecast
        self.done[self.turn] = (*self._done, *(["compacted"] if usage.would_compact else []))

    async def go(self, turns: int) -> Outcome:
        with mock.patch.object(foresight, "time", self.clock):
            return await super().go(turns)

    def wrong(self) -> list[str]:
        """A line for each turn of which something else was foreseen than came."""
        first: dict[int, Seen] = {}
        for seen in self.outcome.seen:
            first.setdefault(seen.turn, seen)
        foreseen = {turn: s for turn, s in first.items() if turn > 1 and {*s.done} <= {*self.done[turn]}}
        lines = ((turn, seen, self._problem(self.said[turn], seen)) for turn, seen in foreseen.items())
        return [f"turn {turn} after {s.done}: {p}; {self.said[turn]}; {s.truth}" for turn, s, p in lines if p]

    def _problem(self, said: CacheForecast | None, seen: Seen) -> str:
        truth = seen.truth
        least = max(LEAST_TOKENS, LEAST_SHARE * truth.input)
        caused = CAUSES.get(truth.why, "") if {*seen.done} - {"waited"} else ""
        if said is None:
            return "nothing was known" if seen.expected is not None else ""
        if said.cold is None:
            return "not foreseen" if caused in ("ours", "expired") and truth.missed > (1 + SLACK) * least else ""
        if truth.missed < (1 - SLACK) * least:
            return "a false alarm"
        if caused and (said.cold.cause, said.cold.what) != (seen.cause, seen.what) and seen.cause == "ours":
            return f"foreseen for another reason than {seen.what}"
        if caused == "expired" and said.cold.cause != caused:
            return "it was time"
        return "" if abs(said.read - truth.read) <= max(LEAST_TOKENS, LEAST_SHARE * truth.input) else "other tokens"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("anthropic", ["tool went", "expired", "memory", "thinking", "rewound", "pruned", "dropped"]),
        ("old claude", ["waited", "model", "model back", "compacted"]),
        ("openai chat", ["memory", "expired", "dropped", "model"]),
        ("gemini", ["model", "tool went", "dropped"]),
        ("vllm", ["tool went", "dropped"]),
    ],
)
async def test_what_is_foreseen_comes(worker: ModelClient, tmp_path: Path, name: str, kinds: list[str]) -> None:
    turns = 2 + 3 * len(kinds)
    run = ForeseenRun(name, plan_of(kinds, turns, every=3), worker, tmp_path)
    outcome = await run.go(turns)
    assert run.wrong() == []
    assert outcome.wrong == []
    cold = [turn for turn, said in run.said.items() if said is not None and said.cold is not None]
    assert len(cold) >= len({*kinds} - {"dropped", "waited"}) // 2


async def test_what_is_foreseen_after_a_compaction_comes(worker: ModelClient, tmp_path: Path) -> None:
    run = ForeseenRun("anthropic", {9: "compacted"}, worker, tmp_path)
    await run.go(9)
    said = run.said[9]
    assert run.wrong() == [] and said is not None and said.cold is not None and "compacted" in said.cold.what


class SummedUp(ForeseenRun):
    """Has the conversation summed up four minutes after the last turn, takes that back, and waits four minutes more."""

    async def _do(self, agent: Agent, what: str) -> Agent:
        self.clock.moved += 240.0
        with mock.patch.object(foresight, "WARM_SHARE", 0.01):
            await agent.compaction.now()
        for call in (step for step in agent.conversation.steps if step.kind == "compaction"):
            call.created = self.clock.time()
        assert agent.conversation.records[-1].warm
        await agent.compaction.undo()
        self.clock.moved += 240.0
        return agent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["anthropic", pytest.param("old claude", marks=pytest.mark.slow)])
async def test_what_a_summary_has_read_is_kept_for_longer(worker: ModelClient, tmp_path: Path, name: str) -> None:
    run = SummedUp(name, {5: ""}, worker, tmp_path)
    outcome = await run.go(6)
    assert run.wrong() == [] and outcome.wrong == []
    said, seen = run.said[5], next(seen for seen in outcome.seen if seen.turn == 5)
    assert said is not None and said.cold is None and said.read == pytest.approx(seen.truth.read, rel=0.05)
    assert said.read >= LEAST_TOKENS and seen.read == seen.truth.read


class Clock:
    """Seconds since the epoch, and as many more as it was moved."""

    moved = 0.0

    def time(self) -> float:
        return time.time() + self.moved


@pytest.mark.slow
async def test_that_it_has_expired_is_told_once_by_a_look_that_happens_anyway(tmp_path: Path) -> None:
    clock, kept = Clock(), Caching(minimum=0, life=300.0)
    with (
        mock.patch.object(foresight, "time", clock),
        mock.patch.object(requests, "time", clock),
        mock.patch.object(sent_log, "caching_of", lambda *_: kept),
    ):
        async with running(parts_for(tmp_path / "home", tmp_path / "p")) as (agent, seen):
            agent.turns.submit("We speak of many things at length here. " * 900)
            await agent.turns.join()
            forecast = seen.of(ContextChanged)[-1].usage.forecast
            assert forecast is not None and forecast.cold is None
            assert forecast.until == agent.conversation.steps[-1].created + 300.0
            await agent.events.settled()
            told = len(seen.of(ContextChanged))
            clock.moved = 200.0
            assert not await agent.context.refresh()
            assert len(seen.of(ContextChanged)) == told
            clock.moved = 301.0
            for _ in range(3):
                assert not await agent.context.refresh()
            assert len(seen.of(ContextChanged)) == told + 1
            forecast = seen.of(ContextChanged)[-1].usage.forecast
            assert forecast is not None and forecast.cold is not None and forecast.until is None
            assert (forecast.cold.cause, forecast.cold.whole, forecast.read) == ("expired", True, 0)
            assert forecast.cold.what.startswith("idle for 5 min")
            told = len(seen.of(ContextChanged))
            agent.turns.submit("and more")
            await agent.turns.join()
            first, *_, last = seen.of(ContextChanged)[told:]
            assert first.usage.expected_read == 0 and last.usage.expected_read
            assert last.usage.forecast is not None and last.usage.forecast.cold is None
            assert not [n for n in seen.of(Notice) if n.code == "cache"]
