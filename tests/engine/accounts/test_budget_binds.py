"""A budget binds, whatever the model takes and the cache gives, but for calls at once and what nobody reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.accounts.spender import random_run
from tests.support.forms import examples, one_of


@pytest.mark.parametrize("seed", one_of(range(examples(16, 1_000)), every=16))
async def test_no_run_costs_more_than_its_budget_but_for_the_error_of_its_input(seed: int, tmp_path: Path) -> None:
    outcome = await random_run(seed, tmp_path)
    assert outcome.over <= 1e-9, outcome
