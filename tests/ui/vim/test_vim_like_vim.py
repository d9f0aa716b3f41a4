"""Text, cursor and register after made-up editing, as vim itself left them."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from tests.support.forms import LONG
from tests.support.vim import Answer, Case, answer_of_ours, answers_of_vim, available, case

TABLE = Path(__file__).with_name("answers.json")
"""[text, row, column, keys, text, row, column, register] of cases that vim 9.0 was asked."""

MANY = 12_000
ODD = 0.005
"""The share of cases in which vim may be another: what failed commands leave behind differs from version to version."""


def _table() -> list[tuple[Case, Answer]]:
    rows = json.loads(TABLE.read_text(encoding="utf-8"))
    return [(Case(r[0], (r[1], r[2]), r[3]), Answer(r[4], (r[5], r[6]), r[7])) for r in rows]


def test_every_case_of_the_table_ends_as_in_vim() -> None:
    table = _table()
    assert len(table) > 500
    wrong = [(one, right, ours) for one, right in table if (ours := answer_of_ours(one)) != right]
    assert not wrong, wrong[:3]


@pytest.mark.skipif(not LONG, reason="the long form: AGENT_TUI_LONG_TESTS=1")
@pytest.mark.skipif(not available(), reason="vim is not installed")
@pytest.mark.parametrize("longest", [1, 3])
def test_thousands_of_new_cases_end_as_in_vim(longest: int, tmp_path: Path) -> None:
    random = Random(longest)
    cases = [case(random, longest) for _ in range(MANY)]
    theirs = answers_of_vim(cases, tmp_path)
    assert len(theirs) == len(cases)
    wrong = [
        (one, right, ours) for one, right in zip(cases, theirs, strict=True) if (ours := answer_of_ours(one)) != right
    ]
    assert len(wrong) <= ODD * len(cases), wrong[:5]
