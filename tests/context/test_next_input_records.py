"""The scoring of recorded pairs survives whatever a line holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.next_input import report, score_pairs

pytestmark = pytest.mark.quick

GOOD = {
    "previous_usage": {"input_tokens": 4_000, "output_tokens": 50},
    "new_messages": [{"role": "user", "parts": [{"type": "text", "text": "hello there"}]}],
    "actual_input_tokens": 4_056,
}
BAD = (
    "no JSON",
    "[]",
    "{}",
    "null",
    json.dumps({**GOOD, "previous_usage": None}),
    json.dumps({**GOOD, "previous_usage": {"input_tokens": "many", "output_tokens": 1}}),
    json.dumps({**GOOD, "actual_input_tokens": None}),
    json.dumps({**GOOD, "actual_input_tokens": -3}),
    json.dumps({**GOOD, "new_messages": "none"}),
)


def test_unusable_lines_are_left_out_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pairs.jsonl"
    odd = {**GOOD, "new_messages": [None, {"parts": ["x", {}, {"type": "tool-result"}]}], "reasoning_resent": 3}
    lines = [json.dumps(GOOD), *BAD, "", json.dumps(odd), json.dumps({**GOOD, "steady": False})]
    file.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n")
    scores = score_pairs(file)
    assert [s.record for s in scores] == [GOOD, odd]
    assert abs(scores[0].ours - 4_056) < 5
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith(f"{len(BAD) + 1} unusable records left out; the first: line 2: ")
    assert report(scores)["ours"]["by_provider"]["?/?"]["n"] == 2
