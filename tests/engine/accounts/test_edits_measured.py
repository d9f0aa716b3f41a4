"""Edits against providers with true tokenizers and prefix caches: no request is refused, the number said before it
holds what is counted, and a miss is said to be the user's own."""

from __future__ import annotations

import pytest

from agent_tui.engine.agent import Agent
from agent_tui.providers.client import ModelClient
from tests.support.cached_models import KEPT
from tests.support.cached_runs import CachedRun
from tests.support.true_runs import scratch

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAN = {
    4: "taken out",
    6: "put back",
    8: "taken out",
    9: "edit undone",
    10: "taken out",
    11: "compacted",
    12: "put back",
}


class EditedRun(CachedRun):
    """Keeps what was said of the next request before each message, and whether that was measured."""

    agent: Agent

    def about_to_send(self, agent: Agent) -> None:
        self.agent = agent
        usage = agent.context.usage()
        assert sum(row.tokens for row in usage.rows) == usage.total
        if self.plan.get(self.turn) in ("taken out", "put back", "edit undone") and self.turn < 10:
            assert usage.anchor_step is not None and usage.basis != "estimated"


@pytest.mark.slow
@pytest.mark.parametrize("name", list(KEPT))
async def test_an_edit_costs_and_frees_what_was_said(worker: ModelClient, name: str) -> None:
    with scratch() as folder:
        run = EditedRun(name, 60_000, PLAN, worker, folder)
        outcome = await run.go(13)
    assert outcome.wrong == []
    assert outcome.heard >= {"taken out"}
    steps = [s for s in run.agent.conversation.steps if s.kind == "turn" and s.usage is not None]
    assert steps and all(s.status == "complete" for s in steps)
    edited = next(n for n, seen in enumerate(outcome.seen) if "taken out" in seen.done)
    off = []
    for number, step in enumerate(steps[edited:], edited):
        said, spread, came = (
            step.estimated_input or 0,
            step.estimated_spread or 0,
            step.usage.input if step.usage else 0,
        )
        if abs(said - came) > max(2.5 * spread, 0.02 * came):
            off.append((number, said, spread, came))
    assert off == []
