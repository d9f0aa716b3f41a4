"""The panel of commands in the background, the count on the status line, and the words at the end."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.models.events import JobInfo, JobsChanged, SubagentFacts, ToolStarted, TurnStarted
from agent_tui.models.usage import Cost
from agent_tui.ui.screens.text import TextRows
from agent_tui.ui.screens.work import JobOutputScreen, JobPicker
from tests.support.app import Running, running
from tests.support.fake_agent import FakeAgent


def job(id: str, command: str, **more: object) -> JobInfo:
    info = JobInfo(id, command, "running", time.time() - 65, 4_711, f"/cache/{id}.txt", "ready in 300 ms")
    return replace(info, **more)  # type: ignore[arg-type]


def with_jobs(agent: FakeAgent) -> None:
    done = {"state": "ended", "code": 1, "finished": time.time() - 5}
    for info in (job("b1", "npm run dev"), job("b2", "make \x1b]0;x\x07[b]all[/b]", **done), job("b3", "sleep 60")):
        agent.background.known[info.id] = info
    agent.background.outputs["b1"] = "\n".join(f"line {number}" for number in range(200)) + "\n\x1b[31mend\x07"
    agent.publish(JobsChanged(2))


async def opened(run: Running) -> JobPicker:
    with_jobs(run.agent)
    run.app.prompt.set_text("/jobs")
    await run.pilot.press("enter")
    await run.screen(JobPicker)
    screen = run.app.screen
    assert isinstance(screen, JobPicker)
    return screen


@pytest.mark.slow
async def test_it_lists_those_that_run_first_and_nothing_acts(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        screen = await opened(run)
        await run.pilot.pause()
        assert [entry.id for entry in screen.shown] == ["b3", "b1", "b2"]
        shown = run.shown()
        assert (
            "npm run dev" in shown
            and "1 min " in shown
            and "ready in" in shown
            and "exit 1" in shown
            and "[b]all[/b]" in shown
        )
        assert "\x1b]" not in shown and "/cache/b3.txt" in shown
        assert "Enter output · Ctrl+X stop · Esc close" in shown, "b3 cannot be kept"
        await run.pilot.press("down", "down")
        await run.until(lambda: "Enter output · Esc close" in run.shown())


async def test_it_says_when_the_users_browser_reaches_no_port_of_one(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for id, reach in (("b1", "all"), ("b2", "sandbox")):
            run.agent.background.known[id] = job(id, "npm run dev", reach=reach)
        run.app.prompt.set_text("/jobs")
        await run.pilot.press("enter")
        await run.screen(JobPicker)
        await run.until(lambda: "browser does" in " ".join(run.shown().split()))
        await run.pilot.press("down")
        await run.until(lambda: "/cache/b1.txt" in run.shown())
        assert "browser" not in run.shown()


async def test_a_subagent_is_listed_with_what_it_is_and_how_far(tmp_path: Path) -> None:
    facts = SubagentFacts("explorer", 5, 12_345, 200_000, Cost(0.25))
    async with running(tmp_path) as run:
        for known in (job("a2", "find [b]it[/b]\x1b[2J", agent=facts, last_line="grep hi"), job("b1", "npm run dev")):
            run.agent.background.known[known.id] = known
        run.app.prompt.set_text("/jobs")
        await run.pilot.press("enter")
        await run.screen(JobPicker)
        await run.pilot.press("down")
        await run.until(lambda: "5 steps · ~12.3k of 200k · $0.25" in run.shown())
        shown = run.shown()
        assert "explorer: find [b]it" in shown and "grep hi" in shown and "pid" not in shown
        await run.pilot.press(*"expl")
        await run.until(lambda: "npm" not in run.shown())
        run.agent.background.outputs["a2"] = "# Task\nFind it"
        await run.pilot.press("enter")
        await run.screen(JobOutputScreen)
        await run.until(lambda: "Find it" in run.shown() and "a2 explorer: find" in run.shown())
        await run.pilot.press("ctrl+x")
        await run.until(lambda: run.agent.called("stop_job") == ["a2"])


async def test_keys_stop_keep_and_take_back(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await opened(run)
        await run.pilot.press("ctrl+y")
        await run.until(lambda: run.agent.background.known["b3"].kept)
        await run.until(lambda: "b3 is kept." in run.shown())
        await run.pilot.press("ctrl+y")
        assert run.agent.called("keep_job") == [("b3", True), ("b3", False)]
        await run.pilot.press("down", "ctrl+x")
        await run.until(lambda: run.agent.called("stop_job"))
        assert run.agent.called("stop_job") == ["b1"]
        await run.until(lambda: "stopped" in run.shown())


@pytest.mark.slow
async def test_enter_shows_the_output_from_its_end_as_it_grows(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await opened(run)
        await run.pilot.press("down", "enter")
        await run.screen(JobOutputScreen)
        await run.until(lambda: "line 199" in run.shown())
        run.agent.background.outputs["b1"] += "\none line more"
        screen = run.app.screen
        assert isinstance(screen, JobOutputScreen)
        screen._look_again()
        await run.until(lambda: "one line more" in run.shown())
        await run.pilot.press("home")
        run.agent.background.outputs["b1"] += "\nthe newest"
        screen._look_again()
        await run.pilot.pause()
        assert screen.query_one(TextRows).scroll_offset.y == 0
        await run.pilot.press("ctrl+x", "escape", "escape")
        await run.until(lambda: len(run.app.screen_stack) == 1)
        assert run.agent.called("stop_job") == ["b1"]


@pytest.mark.slow
async def test_the_status_line_says_how_many_run(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        assert "background" not in run.shown()
        run.agent.publish(JobsChanged(2))
        await run.until(lambda: "2 in background" in run.shown())
        run.agent.publish(JobsChanged(0))
        await run.until(lambda: "background" not in run.shown())


async def test_without_any_and_with_wrong_words_it_says_so(tmp_path: Path) -> None:
    usage = "Usage: /jobs [output ID | stop ID | keep ID | end ID]"
    async with running(tmp_path) as run:
        for line, says in (
            ("/jobs stop", usage),
            ("/jobs kill b1", usage),
            ("/jobs", "Nothing runs in the background."),
        ):
            run.app.transcript.clear()
            run.app.prompt.set_text(line)
            await run.pilot.press("escape", "enter")
            await run.until(lambda says=says: says in run.shown())  # type: ignore[misc]


async def test_the_command_keeps_by_id(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        with_jobs(run.agent)
        run.app.prompt.set_text("/jobs keep b1")
        await run.pilot.press("escape", "enter")
        await run.until(lambda: "b1 is kept." in run.shown())
        await run.app.close_agent()
        assert run.app.chat.holder.farewell == ["Goes on: npm run dev"]


async def test_a_key_moves_the_command_that_runs(tmp_path: Path) -> None:
    async with running(tmp_path, size=(120, 30)) as run:
        await run.pilot.press("ctrl+b")
        await run.until(lambda: "No command is running" in run.shown())
        run.agent.background.waited_for = True
        run.agent.publish(TurnStarted())
        run.agent.publish(ToolStarted("c1", "bash", "npm run dev"))
        await run.until(lambda: "Running npm run dev" in run.shown() and "Ctrl+B to background" in run.shown())
        await run.pilot.press("ctrl+b")
        await run.until(lambda: len(run.agent.called("move_jobs")) == 2)
        assert "No command is running" not in run.shown()


@pytest.mark.slow
async def test_keys_are_named_as_far_as_there_is_room(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(TurnStarted())
        run.agent.publish(ToolStarted("c1", "bash", "x" * 40))
        await run.until(lambda: "· Esc to interrupt " in run.shown())
        assert "Ctrl+B" not in run.shown()
