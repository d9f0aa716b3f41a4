"""The sum of a day over all sessions and processes."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agent_tui.errors import StoreLockedError
from agent_tui.models.steps import Step, StepKind
from agent_tui.models.usage import NO_COST, Cost, TokenUsage
from agent_tui.store.steps import day_of
from agent_tui.store.store import Store

pytestmark = pytest.mark.quick

NOW = 1_760_000_000.0
DAY = day_of(NOW)

OTHER = """
import sys
from pathlib import Path
from agent_tui.models.steps import Step
from agent_tui.store.store import Store
with Store.open(Path(sys.argv[1])) as store:
    info = store.sessions.create("/p", "m")
    store.steps.add(info.id, Step("other", "turn", "m", "p", "a", "m", status="complete", cost_usd=0.5, created=%f))
"""


def step(name: str, kind: StepKind = "turn", cost: float | None = 0.25, created: float = NOW) -> Step:
    return Step(
        name, kind, "m", "p", "a", "m", status="complete", usage=TokenUsage(1, 1), cost_usd=cost, created=created
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def test_a_day_is_the_sum_of_its_calls_in_whichever_session(path: Path) -> None:
    with Store.open(path) as store:
        first, second = store.sessions.create("/p", "m").id, store.sessions.create("/q", "m").id
        assert store.spending.on(DAY) == (NO_COST, 0.0)
        store.steps.add(first, step("a"))
        store.steps.add(second, step("b", "compaction"))
        store.steps.add(second, step("c", cost=None))
        store.steps.add(second, step("d", "count", cost=None))
        store.steps.add(second, step("e", created=NOW - 3 * 86_400))
        assert store.spending.on(DAY) == (Cost(0.5, 1), 0.0)


def test_a_subagent_s_call_counts_once_and_a_copied_session_again_costs_nothing(path: Path) -> None:
    with Store.open(path) as store:
        parent = store.sessions.create("/p", "m").id
        child = store.sessions.create("/p", "m", parent=parent, kind="subagent").id
        store.steps.add(child, step("own"))
        store.steps.add(parent, step("copy", "subagent"))
        store.fork(child, None)
        assert store.spending.on(DAY)[0] == Cost(0.25)
        store.delete(parent)
        assert store.spending.on(DAY)[0] == Cost(0.25), "what was deleted has been paid for"


def test_a_call_under_way_is_held_back_and_then_counted(path: Path) -> None:
    with Store.open(path) as store:
        session = store.sessions.create("/p", "m").id
        call = Step("a", "turn", "m", "p", "a", "m", created=NOW, assumed_usd=0.3)
        store.steps.add(session, call)
        with Store.open(path) as other:
            assert other.spending.on(DAY) == (NO_COST, 0.3)
        call.status, call.cost_usd = "complete", 0.1
        store.steps.write(session, call)
        assert store.spending.on(DAY) == (Cost(0.1), 0.0)
        call.cost_usd = None
        store.steps.write(session, call)
        assert store.spending.on(DAY) == (Cost(0.0, 1), 0.3), "it never said what it cost"


def test_another_process_raises_the_day(path: Path) -> None:
    with Store.open(path) as store:
        store.steps.add(store.sessions.create("/p", "m").id, step("a"))
        subprocess.run([sys.executable, "-c", OTHER % NOW, str(path)], check=True)
        assert store.spending.on(DAY)[0] == Cost(0.75)


def test_a_run_that_keeps_nothing_still_counts(path: Path) -> None:
    with Store.ephemeral(path) as thrown_away:
        thrown_away.steps.add(thrown_away.sessions.create("/p", "m").id, step("a"))
        with Store.open(path) as store:
            assert store.spending.on(DAY)[0] == Cost(0.25)
            assert store.sessions.all() == []
        assert thrown_away.spending.on(DAY)[0] == Cost(0.25)


@pytest.mark.parametrize(("patience", "kept"), [(0.01, False), (20.0, True)])
def test_it_waits_for_another_program_as_long_as_for_its_own_database(path: Path, patience: float, kept: bool) -> None:
    with Store.ephemeral(path, write_timeout=patience) as thrown_away:
        session = thrown_away.sessions.create("/p", "m").id
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        leaving = threading.Timer(0.5, other.close)
        leaving.start()
        with contextlib.nullcontext() if kept else pytest.raises(StoreLockedError):
            thrown_away.steps.add(session, step("a"))
        assert leaving.finished.is_set() == kept, "it waited, or gave up before the other had left"
        leaving.join()
        assert thrown_away.spending.on(DAY)[0] == (Cost(0.25) if kept else NO_COST)


def test_the_day_is_the_local_one(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(time, "tzset"):
        pytest.skip("no time zones here")
    before_midnight = 1_760_055_600.0  # 2025-10-10 00:20 UTC
    try:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
        assert day_of(before_midnight) == "2025-10-10"
        monkeypatch.setenv("TZ", "America/New_York")
        time.tzset()
        assert day_of(before_midnight) == "2025-10-09"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert day_of(1e300) == ""
