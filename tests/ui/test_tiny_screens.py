"""Screens of a few columns or lines, with everything open: nothing fails, and what was open is there afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.app import Clock
from tests.support.forms import some
from tests.support.scenes import SCENES, showcase_app, stage

TINY = [(80, 1), (1, 1), (10, 2), (80, 3), (2, 4), (3, 5), (80, 5), (1, 24), (4, 24), (10, 10)]
FIRST = ("permission", "context-open", "server-form", "queue")


MARKED = [pytest.param(name, marks=[] if name in FIRST else [pytest.mark.slow]) for name in SCENES]


@pytest.mark.forms(1)
@pytest.mark.parametrize("name", MARKED)
async def test_nothing_fails_on_a_tiny_screen(tmp_path: Path, name: str) -> None:
    app, agent = showcase_app(tmp_path, Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        await stage(app, pilot, agent, SCENES[name])
        for size in some(TINY, 2):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            await pilot.press("down")
            assert not app.net.errors and app.failure is None, (size, list(app.net.errors), app.failure)
