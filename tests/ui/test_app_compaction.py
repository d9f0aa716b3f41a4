"""What stands above the prompt while and after a conversation is compacted."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.models.events import CompactionEnded, CompactionStarted, TurnEnded, TurnStarted
from tests.support.app import running


@pytest.mark.slow
async def test_after_a_compaction_that_was_asked_for_nothing_works(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        run.agent.publish(CompactionStarted(5_200, "asked for"))
        await run.until(lambda: "Compacting ~5.2k" in run.shown())
        run.agent.publish(CompactionEnded("done", "5.2k → 1.2k · /compact undo"))
        await run.until(lambda: "5.2k → 1.2k" in run.shown())
        await run.until(lambda: "Compacting" not in run.shown())
        assert "Working" not in run.shown()


async def test_after_a_compaction_inside_a_turn_the_turn_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(TurnStarted())
        run.agent.publish(CompactionStarted(5_200, "over the limit"))
        await run.until(lambda: "Compacting ~5.2k" in run.shown())
        run.agent.publish(CompactionEnded("done", "5.2k → 1.2k · /compact undo"))
        await run.until(lambda: "Working" in run.shown())
        run.agent.publish(TurnEnded("end"))
        await run.until(lambda: "Working" not in run.shown())


async def test_the_pin_key_says_where_there_is_nothing_to_pin(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.transcript.focus()
        await run.pilot.press("P")
        await run.until(lambda: "None of your messages is in view to pin" in run.shown())
