"""What compactions in a row keep of a session's facts: short forms of ``tests.benchmarks.compaction_fidelity``."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.providers.client import ModelClient
from tests.support import floor
from tests.support.floor_runs import FloorRun
from tests.support.forms import some

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.slow
@pytest.mark.parametrize(
    "summariser", ["injected", *(name for name in some(floor.SUMMARISERS, 4) if name != "injected")]
)
async def test_what_the_user_said_survives_any_summariser(worker: ModelClient, tmp_path: Path, summariser: str) -> None:
    """After every compaction of five in a row, and taken back one by one they bring every byte back."""
    found = await FloorRun(summariser, worker, tmp_path).go()
    for standing in found.after:
        assert [fact for fact in standing.gone if fact.kind in ("rule", "typed", "plan")] == []
    assert found.same == [True] * found.made
