"""What a provider that compares requests itself says of each stands beside our own answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.commands.report_json import diagnoses
from agent_tui.context.cache_forecast import cache_entries
from agent_tui.engine.agent import Agent
from agent_tui.models.steps import CacheDiagnosis, Step
from agent_tui.providers.worker.client import WorkerClient
from tests.support.cached_models import plan_of
from tests.support.cached_runs import CachedRun

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = ["tool went", "memory", "thinking", "rewound", "pruned", "model", "waited", "compacted", "undone"]


class DiagnosedRun(CachedRun):
    diagnosed = True
    steps: list[Step]

    def about_to_send(self, agent: Agent) -> None:
        self.steps = list(agent.conversation.steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["anthropic", "old claude"])
async def test_the_provider_and_we_say_the_same(worker: WorkerClient, tmp_path: Path, name: str) -> None:
    turns = 2 + 2 * len(KINDS)
    run = DiagnosedRun(name, 60_000, plan_of(KINDS, turns, first=4, every=2), worker, tmp_path)
    outcome = await run.go(turns)
    assert outcome.wrong == []
    said = [step.diagnosis for step in run.steps if step.diagnosis is not None]
    assert len(said) > 2 * turns - 6
    assert [one for one in said if one.agrees is False] == []
    assert {one.said for one in said} >= {"", "tools_changed", "system_changed", "messages_changed", "unavailable"}
    # Of another server's answers nobody knows there.
    assert {one.agrees for one in said if one.said == "previous_message_not_found"} == {None}
    sums = diagnoses(cache_entries(run.steps))
    assert sums["compared"] == sums["agreed"] > turns


@pytest.mark.parametrize(
    ("said", "ours", "agrees"),
    [
        ("", "", True),
        ("", "messages_changed", False),
        ("tools_changed", "tools_changed system_changed", True),
        ("messages_changed", "", False),
        ("unavailable", "unavailable", True),
        ("unavailable", "", None),
        ("previous_message_not_found", "tools_changed", None),
        ("something_new", "", False),
    ],
)
async def test_only_what_could_be_compared_counts(said: str, ours: str, agrees: bool | None) -> None:
    assert CacheDiagnosis(said, ours).agrees is agrees
