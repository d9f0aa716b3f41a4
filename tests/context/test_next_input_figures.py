"""The estimate on recorded traffic stays at least as good as the reference figures."""

from __future__ import annotations

import pytest

from tests.benchmarks.next_input import report, score_pairs
from tests.benchmarks.whole_requests import score_requests
from tests.recordings import RECORDINGS, needs_recordings


@pytest.mark.slow
@needs_recordings
def test_next_input_figures() -> None:
    path = RECORDINGS / "next_input.dev.jsonl"
    if not path.exists():
        pytest.skip(f"no {path}")
    ours = report(score_pairs(path))["ours"]
    every, large = ours["steady"], ours["steady_3000"]
    assert (every["n"], large["n"]) == (1_208, 506)
    assert every["median_percent"] <= 0.08
    assert every["p95_percent"] <= 20
    assert every["p95_tokens"] <= 64
    assert large["median_percent"] < 0.005
    assert large["p95_percent"] <= 0.2


@pytest.mark.slow
@needs_recordings
def test_whole_requests_are_better_than_length_over_four() -> None:
    result = report(score_requests(RECORDINGS / "replay"))
    assert result["ours"]["steady"]["median_percent"] < result["length_4"]["steady"]["median_percent"]
