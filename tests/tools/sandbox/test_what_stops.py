"""What a command that only looked tried to write: what stopped it, and what its next run alone would have used."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.tools.sandbox.words import not_kept, stopped
from tests.support.every import every

pytestmark = pytest.mark.quick

ROOT = Path("/project")


@every("name", [".benchmarks", ".coverage", ".coverage.host.1", ".hypothesis", ".testmondata", ".nyc_output"])
@every("succeeded", [True, False])
def test_a_test_run_that_is_over_needs_nothing_for_the_next(name: str, succeeded: bool) -> None:
    tried = {ROOT / name: True}
    assert stopped("3 passed", succeeded, tried, ROOT) is None
    assert not_kept(tried, ROOT) == [f"[sandbox: {name} not kept: this ran only looking, and is complete]"]
    both = stopped("3 passed", succeeded, {**tried, ROOT / "src/new.py": False}, ROOT)
    assert both is not None and both.what == "to write src/new.py"


def test_one_that_could_not_do_without_it_is_asked_about() -> None:
    said = "PermissionError: [Errno 30] Read-only file system: '.benchmarks'"
    found = stopped(said, False, {ROOT / ".benchmarks": True}, ROOT)
    assert found is not None and found.writes
    assert not_kept({ROOT / "src/a.py": False, Path("/elsewhere/.benchmarks"): True}, ROOT) == []
