"""The model's plan and its questions on the screen: what keys do, and what the agent is told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import TextArea

from agent_tui.models.events import Event, PlanPresented, QuestionAsked, QuestionClosed, TurnEnded
from agent_tui.models.messages import TOLD_MODE, AttachmentPart, TextPart, user_message
from agent_tui.ui.keys import PAUSE
from agent_tui.ui.widgets.question import QuestionPanel
from tests.support.app import Running, running
from tests.support.real_app import Home, make_home
from tests.support.starting import stand_alone

PLAN = "# Mend it\n\n1. change `a.txt`\n2. run the tests"
HOSTILE = "\x1b]0;gone\x07[bold]x[/bold] \x9b2J\u202egnp.exe"


LONG_CHOICES = tuple(f"{n} {'x' * 90}" for n in "123456")


def plan(text: str = PLAN) -> PlanPresented:
    return PlanPresented("p1", text)


def question(several: bool = False, choices: tuple[str, ...] = ("red", "green", "blue")) -> QuestionAsked:
    return QuestionAsked("q1", "Which colour?", choices, several)


def panel(run: Running) -> QuestionPanel[Any]:
    found = run.app.chat.questions.panel
    assert found is not None
    return found


async def shown(run: Running, asked: Event) -> None:
    run.agent.turns.busy = True
    run.agent.publish(asked)
    await run.until(lambda: run.app.chat.questions.panel is not None and panel(run).has_focus)
    await run.pilot.pause()
    run.clock.now += 1


async def answered(run: Running, asked: Event, keys: Iterable[str], by: str) -> list[Any]:
    """Asks, presses the keys, and returns what the agent was told since."""
    run.agent.calls.clear()
    await shown(run, asked)
    await run.answer(*keys)
    await run.until(lambda: run.agent.called(by))
    await run.until(lambda: run.app.chat.questions.panel is None and run.app.prompt.has_focus)
    return run.agent.called(by)


@pytest.mark.quick
async def test_a_plan_is_approved_with_one_key(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for key, mode in (("y", "ask"), ("e", "accept-edits"), ("a", "auto"), ("enter", "ask")):
            assert await answered(run, plan(), [key], "answer_plan") == [("p1", mode, PLAN, "")], key


@pytest.mark.slow
async def test_a_plan_is_changed_before_it_is_approved(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, plan())
        await run.answer("c", "down", "down", "down", "end", "enter", *"yea!")
        await run.pilot.press("escape")
        await run.pilot.pause()
        assert "changed by you" in run.shown() and "yea!" in run.shown()
        assert not run.agent.called("answer_plan") and not run.agent.called("interrupt")
        await run.answer("e")
        await run.until(lambda: run.agent.called("answer_plan"))
        assert run.agent.called("answer_plan") == [("p1", "accept-edits", PLAN + "\nyea!", "")]


@pytest.mark.slow
async def test_the_mode_does_not_change_beneath_an_open_plan(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, plan())
        before = run.agent.mode.now
        await run.pilot.press("shift+tab")
        await run.pilot.pause()
        assert "to choose the mode" in run.shown()
        await run.answer("e")
        await run.until(lambda: run.agent.called("answer_plan"))
        assert run.agent.called("answer_plan") == [("p1", "accept-edits", PLAN, "")] and run.agent.mode.now == before


@pytest.mark.slow
async def test_an_emptied_plan_is_as_it_was(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, plan())
        await run.answer("c")
        panel(run).query_one(TextArea).text = " \n"
        await run.answer("escape", "y")
        await run.until(lambda: run.agent.called("answer_plan"))
        assert run.agent.called("answer_plan") == [("p1", "ask", PLAN, "")]


async def test_a_plan_is_declined(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for keys, words in (
            (["f", *"tests", "enter"], "tests"),
            (["n"], ""),
            (["escape"], ""),
            (["f", "escape", "n"], ""),
        ):
            assert await answered(run, plan(), keys, "answer_plan") == [("p1", None, PLAN, words)], keys


@pytest.mark.parametrize(
    "asked",
    [plan(), question(), pytest.param(question(several=True), marks=pytest.mark.slow)],
    ids=["plan", "one", "several"],
)
async def test_typing_is_no_answer(tmp_path: Path, asked: PlanPresented | QuestionAsked) -> None:
    async with running(tmp_path) as run:
        for key in ("y", "1", "space"):
            run.clock.now += 5
            await shown(run, asked)
            run.clock.now -= 1 - PAUSE / 2
            await run.pilot.press(key)
            await run.until(lambda key=key: run.app.prompt.text == (" " if key == "space" else key))  # type: ignore[misc]
            assert not run.agent.called("answer_plan") and not run.agent.called("answer_question"), key
            run.agent.publish(QuestionClosed(asked.request_id))
            run.app.prompt.clear_text()
            await run.until(lambda: run.app.chat.questions.panel is None)


@pytest.mark.slow
async def test_one_choice_is_taken(tmp_path: Path) -> None:
    cases: list[tuple[list[str], tuple[str, ...], str]] = [
        (["2"], ("green",), ""),
        (["enter"], ("red",), ""),
        (["down", "down", "enter"], ("blue",), ""),
        (["o", *"pink", "enter"], (), "pink"),
        (["o", "enter", *"x", "enter"], (), "x"),
        (["escape"], (), ""),
    ]
    async with running(tmp_path) as run:
        for keys, chosen, text in cases:
            assert await answered(run, question(), keys, "answer_question") == [("q1", chosen, text)], keys


@pytest.mark.quick
async def test_several_are_marked_and_sent(tmp_path: Path) -> None:
    cases: list[tuple[list[str], tuple[str, ...], str]] = [
        (["1", "3", "enter"], ("red", "blue"), ""),
        (["space", "down", "space", "space", "s"], ("red",), ""),
        (["down", "enter"], ("green",), ""),
        (["s", "2", "s"], ("green",), ""),
        (["3", "o", *"dark", "enter"], ("blue",), "dark"),
        (["1", "escape"], (), ""),
    ]
    async with running(tmp_path) as run:
        for keys, chosen, text in cases:
            assert await answered(run, question(True), keys, "answer_question") == [("q1", chosen, text)], keys


@pytest.mark.slow
@pytest.mark.parametrize("asked", [plan("long line " * 400), question(choices=LONG_CHOICES)], ids=["plan", "question"])
async def test_choices_and_status_are_to_be_seen_on_every_screen(tmp_path: Path, asked: Event) -> None:
    async with running(tmp_path) as run:
        await shown(run, asked)
        for size in ((80, 24), (60, 16), (40, 10)):
            await run.pilot.resize_terminal(*size)
            await run.pilot.pause()
            choices = panel(run)._choices
            assert choices.region.height and choices.region.bottom <= run.app.view.status.region.y
            assert run.app.view.status.region.bottom <= size[1]


@pytest.mark.quick
async def test_foreign_text_is_only_drawn(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, plan(HOSTILE))
        for control in ("\x1b", "\x07", "\x9b", "\u202e"):
            assert control not in run.shown()
        assert "[bold]x[/bold]" in run.shown()
        await run.answer("c")
        await run.pilot.pause()
        assert "\x1b" not in panel(run).query_one(TextArea).text
        await run.answer("escape", "y")
        await run.until(lambda: run.agent.called("answer_plan"))
        assert run.agent.called("answer_plan") == [("p1", "ask", HOSTILE, "")]
        run.agent.publish(QuestionAsked("q1", HOSTILE, (HOSTILE, "b")))
        await run.until(lambda: run.app.view.screen.query("AskPanel"))
        await run.until(lambda: "[bold]x[/bold]" in run.shown() and "The model asks" in run.shown())
        for control in ("\x1b", "\x07", "\x9b", "\u202e"):
            assert control not in run.shown()


@pytest.mark.slow
async def test_a_plan_goes_away_when_it_is_closed_and_not_with_any_turn(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, plan())
        run.agent.turns.busy = False
        run.agent.publish(TurnEnded("interrupted"))
        await run.pilot.pause()
        assert run.app.view.screen.query("PlanPanel")
        run.agent.publish(QuestionClosed("p1"))
        await run.until(lambda: not run.app.view.screen.query("PlanPanel"))
        assert not run.agent.called("answer_plan") and run.app.prompt.has_focus


async def test_a_plan_nobody_can_answer_is_shown_as_it_is(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(PlanPresented("", PLAN))
        await run.until(lambda: "1. change `a.txt`" in run.shown())
        assert run.app.chat.questions.panel is None


@pytest.mark.slow
async def test_what_the_model_is_told_of_its_mode_is_no_attachment_of_the_users(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        message = user_message("hello")
        message.parts = [AttachmentPart(TOLD_MODE, "text/plain", "Permission mode: ask."), TextPart("hello")]
        run.app.transcript.add_message(message)
        await run.until(lambda: "hello" in run.shown())
        assert "permission mode" not in run.shown().lower()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_worker: None) -> Home:
    return make_home(tmp_path, monkeypatch)


def call(name: str, **arguments: Any) -> str:
    lines = ["[[step]]", "[[step.tool_calls]]", f"name = {json.dumps(name)}"]
    return "\n".join([*lines, f"arguments = {json.dumps(json.dumps(arguments))}"]) + "\n"


@pytest.mark.slow
async def test_from_a_question_to_a_plan_to_its_end(home: Home) -> None:
    """On the real agent: asked, planned, changed, approved, carried out."""
    home.configure('[permissions]\nmode = "plan"\n')
    home.script(
        call("ask", question="Which colour?", choices=["red", "green"])
        + call("present_plan", plan=PLAN)
        + call("write", path="a.txt", content="done\n")
        + '[[step]]\ntext = "All done."\n'
    )
    async with home.chat() as chat:
        await chat.say("paint it")
        await chat.shows("The model asks", "Which colour?")
        await chat.look()
        await chat.answer("2")
        await chat.shows("Carry out this plan?", "1. change `a.txt`")
        await chat.look()
        await chat.answer("e")
        await chat.shows("All done.")
        assert "accept-edits" in chat.status
    assert (home.project / "a.txt").read_text() == "done\n"


async def test_the_prompts_text_is_typed_while_a_question_waits_and_tab_leads_back(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, question())
        assert "Tab to answer" not in run.shown()
        await run.pilot.press("tab")
        await run.until(lambda: run.app.prompt.has_focus)
        await run.pilot.press("2")
        await run.until(lambda: "Tab to answer" in run.shown())
        assert run.app.prompt.text == "2" and not run.agent.called("answer_question")
        await run.pilot.press("tab")
        await run.until(lambda: panel(run).has_focus)
        await run.until(lambda: "Tab to answer" not in run.shown())
        run.clock.now += PAUSE + 1
        await run.answer("2")
        await run.until(lambda: run.agent.called("answer_question"))
        assert run.agent.called("answer_question") == [("q1", ("green",), "")]
        assert run.app.prompt.text == "2", "what was typed stays"


async def test_a_plan_is_changed_in_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "%s" "# Other" > "$1"\n')
    editor.chmod(0o755)
    stand_alone(monkeypatch, tmp_path)
    monkeypatch.setenv("VISUAL", str(editor))
    async with running(tmp_path) as run:
        monkeypatch.setattr(run.app, "suspend", contextlib.nullcontext)
        await shown(run, plan())
        await run.pilot.press("ctrl+g")
        await run.until(lambda: "changed by you" in run.shown())
        assert "# Other" in run.shown() and not run.agent.called("answer_plan")
        run.clock.now += PAUSE + 1
        await run.answer("y")
        await run.until(lambda: run.agent.called("answer_plan"))
        assert run.agent.called("answer_plan") == [("p1", "ask", "# Other", "")]


async def test_an_editor_that_leaves_the_plan_alone_or_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as run:
        monkeypatch.setattr(run.app, "suspend", contextlib.nullcontext)
        await shown(run, plan())
        for editor in ("true", "false", "/nowhere/editor"):
            monkeypatch.setenv("VISUAL", editor)
            await run.pilot.press("ctrl+g")
            await run.pilot.pause()
            run.clock.now += PAUSE + 1
        assert "changed by you" not in run.shown()
        await run.answer("y")
        await run.until(lambda: run.agent.called("answer_plan"))
        assert run.agent.called("answer_plan") == [("p1", "ask", PLAN, "")]
