"""Errors in the screen's own code cost a line, not the conversation."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from agent_tui.config import Settings
from agent_tui.errors import AgentError
from agent_tui.ui.app import AgentApp
from agent_tui.ui.prompt.widget import Prompt
from agent_tui.ui.safety import MAX_ERRORS
from agent_tui.ui.screens.context_screen import ContextScreen
from agent_tui.ui.screens.help import HelpScreen
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.widgets.rows import RowList
from tests.support.app import Running, running
from tests.support.fake_agent import FakeAgent


class Broken(Exception):
    pass


def break_it(*args: object, **more: object) -> None:
    raise Broken("out of order")


async def survive(run: Running, count: int = 1) -> None:
    """Waits for errors and takes them off the list that ends a test."""
    await run.until(lambda: len(run.app.net.errors) >= count)
    assert all(isinstance(e, Broken) for e in run.app.net.errors)
    run.app.net.errors.clear()
    await run.pilot.pause()


@pytest.mark.quick
async def test_a_failing_handler_costs_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as run:
        with caplog.at_level(logging.ERROR, logger="agent_tui"), monkeypatch.context() as patch:
            patch.setattr(Prompt, "action_history", break_it)
            await run.pilot.press("ctrl+r")
            await survive(run)
            await run.pilot.press("ctrl+r")
            await survive(run)
        assert run.shown().count("Broken: out of order. See the log for details.") == 1
        assert len([r for r in caplog.records if r.exc_info]) == 1
        await run.type("still here")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("submit"))
        assert run.agent.called("submit") == [("still here", [])]


@pytest.mark.quick
async def test_a_key_that_fails_leaves_its_screen_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as run:
        with monkeypatch.context() as patch:
            patch.setattr(ContextScreen, "action_why", break_it)
            run.app.open_screen("context")
            await run.screen(ContextScreen)
            await run.pilot.press("w")
            await survive(run)
        assert isinstance(run.app.screen, ContextScreen)
        await run.pilot.press("escape")
        await run.until(lambda: len(run.app.screen_stack) == 1)
        assert "Broken" in run.shown()


@pytest.mark.slow
async def test_a_failing_task_is_not_silent(tmp_path: Path) -> None:
    async def work() -> None:
        raise Broken("in the background")

    async with running(tmp_path) as run:
        run.app.run_worker(work(), exit_on_error=False)
        await survive(run)
        await run.until(lambda: "in the background" in run.shown())


async def test_a_screen_that_cannot_draw_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as run:
        with monkeypatch.context() as patch:
            patch.setattr(HelpScreen, "draw", break_it)
            run.app.open_screen("help")
            await survive(run)
            await run.until(lambda: len(run.app.screen_stack) == 1)
        await run.pilot.pause()
        run.app.net.errors.clear()
        await run.type("on")
        assert run.app.prompt.text == "on"


@pytest.mark.slow
async def test_errors_without_end_leave_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AgentError, match="Broken: out of order"):
        async with running(tmp_path) as run:
            monkeypatch.setattr(Prompt, "action_history", break_it)
            await run.pilot.press(*["ctrl+r"] * MAX_ERRORS)
            await run.until(lambda: run.app.failure is not None)
            run.app.net.errors.clear()


@pytest.mark.quick
async def test_an_error_at_the_start_leaves_with_one_line(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)

    async def factory() -> FakeAgent:
        raise Broken("no agent")

    app = AgentApp(factory, Settings(), agent.paths, tmp_path)
    async with app.run_test():
        async with asyncio.timeout(8):
            await app.failed.wait()
    assert app.failure is not None and "Broken: no agent" in str(app.failure)
    assert app.failure.exit_code == 1


async def test_leaving_in_the_first_moment_is_no_error(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)

    async def factory() -> FakeAgent:
        return agent

    app = AgentApp(factory, Settings(), agent.paths, tmp_path)
    async with app.run_test():
        app.leave()
    # What was to come after the first frame, a moment later.
    await app._after_first_frame()
    assert app.failure is None and app.return_value == 0


@pytest.mark.slow
async def test_a_fast_filter_and_tab_choose_what_the_filter_shows(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for filter_text in ("them", "/context", "zzzz"):
            run.app.prompt.clear_text()
            run.app.open_screen("help")
            await run.screen(HelpScreen)
            await run.pilot.press("end", *["down"] * 3, *filter_text, "tab")
            await run.pilot.pause()
            if filter_text == "zzzz":
                screen = run.app.screen
                assert isinstance(screen, HelpScreen) and not screen.shown
            else:
                await run.until(lambda: not isinstance(run.app.screen, HelpScreen))
                assert run.app.prompt.text.startswith("/")


@pytest.mark.slow
async def test_no_picker_minds_rows_that_went_away(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for name in ("palette", "sessions", "models", "themes"):
            run.app.open_screen(name)
            await run.until(lambda: isinstance(run.app.screen, Picker) and run.app.screen.query("#rows"))
            await run.pilot.pause()
            picker = run.app.screen
            assert isinstance(picker, Picker)
            rows = picker.rows
            rows.action_last()
            rows.action_choose()
            rows.post_message(RowList.Chosen(10_000))
            picker.search("nothing is called like this")
            await run.pilot.pause()
            await run.pilot.press("enter", "escape")
            await run.until(lambda: len(run.app.screen_stack) == 1)
