from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.engine.compaction.preparing import SummaryPreparation
from tests.support.compaction_bench import Make, benches


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Make]:
    with benches(tmp_path) as make:
        yield make


@pytest.fixture
def unprepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Summaries are written at the limit alone: what is prepared beside a turn has tests of its own."""
    monkeypatch.setattr(SummaryPreparation, "near", lambda self, usage, steps: False)
