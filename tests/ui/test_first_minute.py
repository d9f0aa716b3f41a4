"""The empty chat: its first steps, the way back to the last session, and that it makes room."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.models.events import MessageAdded, Notice
from agent_tui.models.messages import user_message
from agent_tui.models.session import SessionInfo
from agent_tui.ui.chat.face import DEMO_STEPS, STEPS
from agent_tui.ui.transcript.face import FaceBlock, FirstStep
from tests.support.app import running
from tests.support.fake_agent import FakeAgent

pytestmark = pytest.mark.quick

NAME = "█▀█ █▄█ ██▄"


async def test_a_newcomer_is_led_by_numbers_that_are_no_keys_of_their_own(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    async with running(tmp_path, agent, (60, 20)) as run:
        at_first = run.shown()
        assert NAME in at_first and "1  " in at_first and "⏎" not in at_first
        first = next(line for line in at_first.splitlines() if line.startswith("  1  ")).split("  ")[2].strip()
        await run.type("1")
        assert f"Enter sends: {first}" in run.shown()
        await run.type("0 lines")
        assert "Enter sends" not in run.shown(), "a text that begins with a number is a text"
        await run.pilot.press("ctrl+c")
        await run.type("1")
        await run.pilot.press("enter")
        await run.until(lambda: agent.called("submit"))
        assert first in str(agent.called("submit"))
        agent.publish(MessageAdded(user_message(first)))
        await run.pilot.pause()
        assert NAME not in run.shown(), "it makes room for the first message"
        await run.type("1")
        assert "Enter sends" not in run.shown()


@pytest.mark.parametrize("size", [(60, 20), (30, 12)])
async def test_enter_goes_on_with_the_last_session(tmp_path: Path, size: tuple[int, int]) -> None:
    agent = FakeAgent(tmp_path)
    root = str(agent.root)
    talks = [SessionInfo(f"ses_{n}", root, f"talk \x1b[2J{n}", messages=2) for n in range(4)]
    unanswered = SessionInfo("ses_hi", root, "hi", messages=1)
    only_a_command = SessionInfo("ses_ls", root, messages=4, preview="!ls")
    agent.store.listed = [unanswered, only_a_command, *talks]
    async with running(tmp_path, agent, size) as run:
        shown = run.shown()
        assert "⏎  resume “talk" in shown and "1  " not in shown, "steps are for who is new"
        await run.pilot.press("enter")
        await run.until(lambda: agent.called("resume"))
        assert agent.called("resume") == ["ses_0"]


async def test_what_is_wrong_with_the_model_stands_with_the_first_steps_and_goes_with_them(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    async with running(tmp_path, agent, (80, 24)) as run:
        said = Notice("warning", "No API key for openai: set OPENAI_API_KEY.", "model_problem")
        agent.publish(said)
        await run.until(lambda: "! No API key for openai" in run.shown())
        shown = run.shown()
        assert shown.count("No API key") == 1 and shown.index("No API key") < shown.index("1  ")
        agent.publish(MessageAdded(user_message("hello")))
        await run.until(lambda: "No API key" not in run.shown())
        agent.publish(said)
        await run.until(lambda: "No API key for openai" in run.shown())


async def test_the_face_stays_above_what_is_said_when_the_model_changes(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    async with running(tmp_path, agent, (80, 24)) as run:
        run.app.view.say("info", "The key is used until you quit.")
        run.app.chat.session.face.draw(agent)
        await run.pilot.pause()
        shown = run.shown()
        assert shown.count(NAME) == 1 and shown.index(NAME) < shown.index("The key is used")


@pytest.mark.parametrize("steps", [STEPS, DEMO_STEPS, [("a much longer first step than the others", "what comes")]])
def test_what_a_step_does_stands_apart_from_the_step(steps: Sequence[tuple[str, str]]) -> None:
    block = FaceBlock("here", (), [FirstStep(*step) for step in steps], "", small=False)
    lines = [flow.text for piece in block.pieces(False) for flow in piece.flows()]
    for text, what in steps:
        assert any(re.fullmatch(rf"{re.escape(text)} {{3,}}{re.escape(what)}", line) for line in lines), text


async def test_a_window_that_is_still_looked_up_is_not_called_unknown(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    async with running(tmp_path, agent, (80, 24)) as run:
        known, agent.models.info = agent.models.info, None
        usage = replace(agent.context.usage(), window=None, limit=None)
        run.app.chat.session.context_changed(replace(usage, total=7_700), 0)
        await run.pilot.pause()
        assert "unknown" not in run.shown() and "7.7k" not in run.shown()
        agent.models.info = known
        run.app.chat.session.context_changed(replace(usage, total=7_700), 0)
        await run.until(lambda: "7.7k of unknown window" in run.shown())
