"""Text, cursor and register after made-up editing, as vim itself left them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ui.vim.vim import Answer, Case, answer_of_ours

pytestmark = pytest.mark.quick

TABLE = Path(__file__).with_name("answers.json")
"""[text, row, column, keys, text, row, column, register] of cases that vim 9.0 was asked."""


def _table() -> list[tuple[Case, Answer]]:
    rows = json.loads(TABLE.read_text(encoding="utf-8"))
    return [(Case(r[0], (r[1], r[2]), r[3]), Answer(r[4], (r[5], r[6]), r[7])) for r in rows]


def test_every_case_of_the_table_ends_as_in_vim() -> None:
    table = _table()
    assert len(table) > 500
    wrong = [(one, right, ours) for one, right in table if (ours := answer_of_ours(one)) != right]
    assert not wrong, wrong[:3]
