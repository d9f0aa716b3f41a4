"""Files that go with every request are looked at while the user looks, and never while the agent works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.app import running

pytestmark = pytest.mark.quick


async def test_looks_only_with_the_focus_and_while_idle(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        looks = len(run.agent.called("refresh_context"))
        run.app.chat.freshness.look()
        await run.until(lambda: len(run.agent.called("refresh_context")) == looks + 1)
        run.agent.turns.busy = True
        run.app.chat.freshness.look()
        run.agent.turns.busy = False
        run.app.app_focus = False
        run.app.chat.freshness.look()
        await run.pilot.pause()
        assert len(run.agent.called("refresh_context")) == looks + 1


async def test_the_context_screen_looks_as_it_opens(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        looks = len(run.agent.called("refresh_context"))
        run.app.open_screen("context")
        await run.until(lambda: len(run.agent.called("refresh_context")) > looks)
