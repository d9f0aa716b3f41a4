"""Messages with every part, steps and records, with every field other than its default, come back from the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.models.messages import PART_TYPES, Message
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.store.store import Store
from tests.support.filled import every_field, filled

pytestmark = pytest.mark.quick


def test_a_message_loses_nothing(tmp_path: Path) -> None:
    messages = [replace(m, id=f"m{n}", parent_id=None) for n, m in enumerate(filled(Message))]
    assert {p.type for p in messages[0].parts} == set(PART_TYPES)
    with Store.open(tmp_path / "sessions.db") as store:
        info = store.sessions.create("/p", "demo")
        for message in messages:
            store.messages.add(info.id, message)
    with Store.open(tmp_path / "sessions.db") as store:
        found = store.messages.all(info.id)
        assert [every_field(found[m.id]) for m in messages] == [every_field(m) for m in messages]


def test_a_step_and_a_record_lose_nothing(tmp_path: Path) -> None:
    steps = [replace(s, id=f"s{n}", message_id=f"m{n}") for n, s in enumerate(filled(Step))]
    records = [
        replace(r, id=f"r{n}", operation_id="o", active=n % 2 > 0) for n, r in enumerate(filled(CompactionRecord))
    ]
    with Store.open(tmp_path / "sessions.db") as store:
        info = store.sessions.create("/p", "demo")
        for step in steps:
            store.steps.add(info.id, step)
        store.compactions.commit(info.id, records, Message("summary", "user"), None)
    with Store.open(tmp_path / "sessions.db") as store:
        assert [every_field(s) for s in store.steps.all(info.id)] == [every_field(s) for s in steps]
        assert [every_field(r) for r in store.compactions.all(info.id)] == [every_field(r) for r in records]
