"""Conversations at full context with providers that count truly: nothing dies, no number lies, nothing is wasted.

Short forms of ``tests.benchmarks.full_context``; small windows fill in a few turns. A failure names the turn; the run
is the same each time, so it can be looked at with the benchmark's ``--models``, ``--windows`` and ``--seed``.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_tui.providers.client import ModelClient
from tests.context.lying_server import vocabularies
from tests.support.forms import only_long
from tests.support.long_run_figures import FLAVOURS
from tests.support.long_runs import Plan, long_run
from tests.support.mixed_runs import EVENTS, Mix, mixed_run

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "window", "turns"),
    [
        ("claude-4.6", 4_096, 12),
        ("openai-chat", 8_192, 16),
        ("vllm", 4_096, 12),
        ("responses", 8_192, 16),
        ("gemini", 16_384, 16),
        *only_long(
            ("claude-4.5", 16_384, 16), ("claude-4.6", 16_384, 16), ("claude-5.1", 16_384, 16), ("vllm", 8_192, 20)
        ),
    ],
)
async def test_a_full_context_costs_no_turn_and_no_truth(
    worker: ModelClient, model: str, window: int, turns: int
) -> None:
    outcome = await long_run(FLAVOURS[model], window, 1, Plan(turns, restart=9, manual=11), worker)
    assert outcome.faults() == []
    assert outcome.turns == turns
    assert outcome.steps >= turns
    assert sum(outcome.compactions.values()) > 0, "the context was never full"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "window", "configured"),
    [
        ("vllm", 4_096, 8_192),
        ("claude-4.6", 8_192, 200_000),
        *only_long(("responses", 8_192, 32_768), ("gemini", 8_192, 32_768)),
    ],
)
async def test_a_window_that_is_configured_too_large_costs_no_turn(
    worker: ModelClient, model: str, window: int, configured: int
) -> None:
    """The first refusal may speak of the answer's length, the next of the window: both are learned."""
    plan = Plan(5, restart=3, manual=0, bad_summaries=False, configured=configured)
    outcome = await long_run(FLAVOURS[model], window, 3, plan, worker)
    assert (outcome.dead, outcome.failed, outcome.needless) == ([], [], [])
    refused = [*outcome.invalid, *outcome.refused, *outcome.overflows]
    assert len(refused) <= 3, "what was said once is known, after a restart as well"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "name", "vocabulary"), [("vllm", "some-model", "claude"), *only_long(("gemini", "", "cl100k"))]
)
async def test_whatever_happens_to_a_session_costs_no_turn_and_no_truth(
    worker: ModelClient, model: str, name: str, vocabulary: str
) -> None:
    flavour = replace(FLAVOURS[model], vocabulary=vocabularies()[vocabulary])
    flavour = flavour.called(name) if name else flavour
    turns = len(EVENTS) + 4
    outcome = await mixed_run(flavour, 16_384, 1, Plan(turns), Mix(FLAVOURS["claude-4.6"], every=1), worker)
    assert (outcome.dead, outcome.failed, outcome.wrong_rows, outcome.needless) == ([], [], [], [])
    assert (outcome.invalid, outcome.differs, outcome.doubted) == ([], [], [])
    assert len(outcome.refused) <= outcome.refusals and outcome.lies
    assert outcome.turns == turns and set(outcome.events.values()) == set(EVENTS)
