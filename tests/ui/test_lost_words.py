"""What is lost of earlier reasoning is said where it is decided on, or in the line that confirms it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.context.accounting.lost import LostReasoning
from agent_tui.models.messages import user_message
from agent_tui.ui.screens.models import EffortPicker, ModelPicker
from agent_tui.ui.screens.sessions import RewindPicker
from tests.support.app import running
from tests.support.fake_agent import FakeAgent

LOST = LostReasoning(12_300, estimated=True)
WHAT = "~12.3k reasoning tokens"


def losing(folder: Path) -> FakeAgent:
    agent = FakeAgent(folder, [user_message("a long question " * 60), user_message("the second question")])
    agent.lost = LOST
    return agent


def words(text: str) -> str:
    """What is in the dialog on the screen, or on the screen without one, however it was wrapped."""
    lines = text.splitlines()
    framed = [line.split("│")[1] for line in lines if line.count("│") >= 2]
    return " ".join(" ".join(framed or lines).split())


@pytest.mark.slow
async def test_commands_say_it_in_the_line_that_confirms(tmp_path: Path) -> None:
    async with running(tmp_path, losing(tmp_path)) as run:
        for command, confirmed in (
            ("/model gpt", "Model is now gpt"),
            ("/thinking off", "Thinking: off."),
            ("/clear", "New session."),
        ):
            run.app.prompt.set_text(command + " ")
            await run.pilot.press("enter")
            await run.until(lambda confirmed=confirmed: confirmed in words(run.shown()))  # type: ignore[misc]
            after = words(run.shown()).rpartition(confirmed)[2]
            assert f"{WHAT} are no longer sent." in after
            assert after.count("reasoning tokens") == 1


async def test_commands_say_nothing_where_nothing_is_lost(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for command in ("/thinking off", "/model gpt"):
            run.app.prompt.set_text(command + " ")
            await run.pilot.press("enter")
        await run.until(lambda: "Model is now gpt" in run.shown())
        assert "reasoning tokens" not in run.shown()


async def test_the_pickers_say_it_before_anything_is_chosen(tmp_path: Path) -> None:
    async with running(tmp_path, losing(tmp_path)) as run:
        run.app.open_screen("rewind")
        await run.screen(RewindPicker)
        for _ in range(2):
            await run.until(lambda: f"{WHAT} would no longer be sent" in words(run.shown()))
            await run.pilot.press("down")
        await run.pilot.press("escape")
        run.app.prompt.set_text("/thinking")
        await run.pilot.press("enter")
        await run.screen(EffortPicker)
        await run.pilot.press("up")
        await run.pilot.press("enter")
        await run.until(lambda: "Thinking: off." in run.shown())
        run.app.open_screen("models")
        await run.screen(ModelPicker)
        await run.pilot.press("up")
        await run.until(lambda: f"{WHAT} would no longer be sent" in words(run.shown()))
