"""A short soak: what must not grow with a conversation does not. The long one is ``tests/benchmarks/soak.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.real_app import make_home
from tests.support.soak import soaking


@pytest.mark.slow
async def test_turns_and_compactions_leave_nothing_behind_but_their_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_worker: None
) -> None:
    async with soaking(make_home(tmp_path, monkeypatch), 12, window=5_000) as soak:
        for _ in range(4):
            await soak.turn()
        before = await soak.held()
        for _ in range(8):
            await soak.turn()
        after = await soak.held()
    assert soak.problems == []
    assert after.compactions > before.compactions
    assert after.messages == before.messages + 32
    lines = (before.things.pop("laid out lines"), after.things.pop("laid out lines"))
    assert lines[1] <= 4_000
    # A set more may be held just then, uncounted or of what is prepared; a leak would hold one more for each turn.
    parts = (before.things.pop("fixed parts"), after.things.pop("fixed parts"))
    assert parts[1] <= 2 * parts[0]
    assert {name: count for name, count in after.things.items() if count > before.things[name]} == {}
