"""What somebody types at a question: a letter answers where nothing follows it, and no letter of words is lost."""

from __future__ import annotations

from functools import partial
from itertools import cycle
from pathlib import Path

import pytest
from textual import events

from agent_tui.models.events import Event, PermissionAnswered, PermissionAsked, PlanPresented, QuestionAsked, RuleOffer
from agent_tui.ui.keys import ALONE, BURST, PAUSE
from tests.support.app import Running, running
from tests.support.forms import one_of

OFFERS = [RuleOffer(("bash(touch *)", "bash(rm -rf tests)")), RuleOffer(("bash(touch *)",), "session")]
FAST, SLOW, ENDS = 0.06, 0.3, ALONE + 0.1


async def shown(run: Running, asked: Event) -> None:
    run.agent.turns.busy = True
    run.agent.publish(asked)
    await run.until(lambda: run.app.chat.questions.panel is not None and run.app.chat.questions.panel.has_focus)
    await run.pilot.pause()
    run.clock.now += 5


def permission(request_id: str) -> PermissionAsked:
    display = {"kind": "command", "text": "touch made && rm -rf tests"}
    return PermissionAsked(request_id, f"c{request_id}", "bash", "touch made && rm -rf tests", display, OFFERS)


async def typed(run: Running, pressed: str, apart: float) -> None:
    for at, key in enumerate(pressed.split("|")):
        run.clock.now += apart if at else 0
        await run.pilot.press(*({" ": ["space"]}.get(key, [key])))
        await run.pilot.pause()
    await ended(run)


async def ended(run: Running) -> None:
    """Lets the time pass after which nothing more follows a letter, and the program see it."""
    run.clock.now += ENDS
    await run.until(lambda: (panel := run.app.chat.questions.panel) is None or not panel._letters)
    await run.pilot.pause()


async def in_prompt(run: Running, text: str) -> None:
    await run.until(lambda: run.app.prompt.text == text)


def in_prompt_or_sent(run: Running, text: str) -> bool:
    sent = [message[0] for message in run.agent.called("submit")]
    return run.app.prompt.text == ("" if text in sent else text)


def letters(text: str) -> str:
    return "|".join(text)


WORDS = [
    *[
        (text, apart)
        for text, apart in zip(
            ("also", "yes please do", "no wait", "always", "a b", "stop", "fix"), cycle((FAST, SLOW)), strict=False
        )
    ],
    ("1 more thing", FAST),
    ("2nd", SLOW),
    ("yyyyyy", 0.03),
    ("just kidding", SLOW),
    ("kept", FAST),
    ("ok", FAST),
    ("yは", 0.2),
    ("はい", FAST),
    ("y.", SLOW),
    ("Y", FAST),
    ("Yes", SLOW),
    ("b", FAST),
    ("9", FAST),
]


@pytest.mark.parametrize("part", one_of(range(3)))
async def test_words_answer_nothing_and_are_all_in_the_prompt(tmp_path: Path, part: int) -> None:
    async with running(tmp_path) as run:
        for number, (text, apart) in enumerate(WORDS[part::3]):
            await shown(run, permission(str(number)))
            await typed(run, letters(text), apart)
            await in_prompt(run, text)
            panel = run.app.chat.questions.panel
            assert panel is not None and panel.asked.request_id == str(number), text
            assert not run.agent.called("answer_permission"), text
            assert panel.here is panel.choices[0], text
            assert "Yes, this once" in run.shown(), "still the question, no rule to confirm"
            run.agent.publish(PermissionAnswered(str(number), False))
            run.app.prompt.clear_text()
            await run.until(lambda: run.app.chat.questions.panel is None)


KEYS: list[tuple[str, float, tuple[object, ...] | None, str]] = [
    ("y", 0, (True, None, ""), ""),
    ("n", 0, (False, None, ""), ""),
    ("1", 0, (True, None, ""), ""),
    ("y|enter", 0.15, (True, None, ""), ""),
    ("y|enter|enter|enter", 0.1, (True, None, ""), ""),
    ("n|enter", 0.15, (False, None, ""), ""),
    ("y|enter", BURST / 2, None, "y"),
    ("y|backspace", 0.15, None, ""),
    ("y|escape", 0.15, None, ""),
    ("n|backspace|y", 0.15, (True, None, ""), ""),
    ("y|down", 0.15, None, ""),
    ("y|tab", 0.15, None, "y"),
    ("alt+y", 0, None, ""),
    ("ctrl+y", 0, None, ""),
    ("a", 0, None, ""),
    ("a|enter", 0.15, None, ""),
    ("j|enter", 0.2, None, ""),
    ("j|k|enter", PAUSE + 0.05, (True, None, ""), ""),
    ("j|k|enter|enter", PAUSE - 0.05, (True, None, ""), ""),
    ("j|k|k|k|k|enter", 0.04, None, ""),
    ("down|up|enter", 0.2, (True, None, ""), ""),
    ("backspace", 0, None, ""),
    ("space", 0, None, " "),
]


LINES = [
    "jk",
    "kj",
    "jj",
    "k",
    "j",
    "kk",
    "jkjk",
    "just do it",
    "kill it",
    "y",
    "yes",
    "a",
    "n",
    "no",
    "nj",
    "kn",
    "1",
    "ok",
]


@pytest.mark.slow
@pytest.mark.parametrize("part", one_of(range(2)))
@pytest.mark.parametrize("apart", one_of([0.0, BURST / 2, 0.06, 0.12, PAUSE - 0.05], every=3))
async def test_a_line_of_words_answers_nothing(tmp_path: Path, apart: float, part: int) -> None:
    """Pasted without brackets, or typed fast, with the Enter at its end."""
    async with running(tmp_path) as run:
        for number, text in enumerate(LINES[part::2]):
            if len(text) == 1 and text in "yn1" and apart >= BURST:
                continue  # an answer, and Enter after it
            await shown(run, permission(str(number)))
            await typed(run, letters(text) + "|enter", apart)
            panel = run.app.chat.questions.panel
            assert panel is not None and panel.asked.request_id == str(number), text
            assert not run.agent.called("answer_permission"), text
            if (apart < BURST or set(text) - set("jk")) and (apart < BURST or text != "a"):
                await run.until(partial(in_prompt_or_sent, run, text))
            if text != "a":
                assert "Yes, this once" in run.shown(), text
            run.agent.publish(PermissionAnswered(str(number), False))
            run.app.prompt.clear_text()
            await run.until(lambda: run.app.chat.questions.panel is None)


async def test_keys_answer_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for number, (pressed, apart, answer, prompt) in enumerate(KEYS):
            await shown(run, permission(str(number)))
            await typed(run, pressed, apart)
            said = [call[1:] for call in run.agent.called("answer_permission") if call[0] == str(number)]
            assert said == ([answer] if answer else []), (pressed, said)
            await in_prompt(run, prompt)
            run.agent.publish(PermissionAnswered(str(number), False))
            run.app.prompt.clear_text()
            await run.until(lambda: run.app.chat.questions.panel is None)


@pytest.mark.slow
async def test_a_lasting_rule_is_confirmed_in_a_step_of_its_own(tmp_path: Path) -> None:
    async with running(tmp_path, size=(60, 20)) as run:
        await shown(run, permission("r"))
        await run.answer("a")
        assert "Add these 2 rules for this project?" in run.shown()
        assert "bash(touch *)" in run.shown() and "bash(rm -rf tests)" in run.shown() and "/permissions" in run.shown()
        await typed(run, letters("yes"), SLOW)
        await run.until(lambda: run.app.prompt.text == "yes")
        run.app.prompt.clear_text()
        await run.pilot.press("tab")
        run.clock.now += 2
        await run.answer("escape")
        assert "Yes, this once" in run.shown() and not run.agent.called("answer_permission")
        run.clock.now += 2
        await run.answer("s", "n")
        assert "Yes, this once" in run.shown() and not run.agent.called("answer_permission")
        run.clock.now += 2
        await run.pilot.press("down", "enter")
        for _ in range(20):  # held down
            run.clock.now += 0.03
            await run.pilot.press("enter")
        assert not run.agent.called("answer_permission") and "Add these 2 rules" in run.shown()
        run.clock.now += PAUSE + 0.1
        await run.answer("enter")
        await run.until(lambda: run.agent.called("answer_permission"))
        assert run.agent.called("answer_permission") == [("r", True, OFFERS[0], "")]


async def test_a_letter_belongs_to_the_question_it_was_typed_at(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, permission("r1"))
        run.agent.publish(permission("r2"))
        await run.pilot.press("y")
        run.agent.publish(PermissionAnswered("r1", False))
        await run.until(lambda: run.app.chat.questions.panel and run.app.chat.questions.panel.asked.request_id == "r2")
        await run.until(lambda: run.app.prompt.text == "y")
        await ended(run)
        assert not run.agent.called("answer_permission")


@pytest.mark.slow
async def test_a_paste_behind_a_letter_makes_both_words(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, permission("r"))
        await run.pilot.press("y")
        run.app.post_message(events.Paste("es\n"))
        await run.until(lambda: run.app.prompt.text == "yes\n")
        await ended(run)
        assert not run.agent.called("answer_permission")


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        PlanPresented("q", "1. do it"),
        QuestionAsked("q", "Which?", ("red", "green"), False),
        pytest.param(QuestionAsked("q", "Which?", ("red", "green"), True), marks=pytest.mark.slow),
    ],
)
async def test_other_questions_hear_words_as_words(tmp_path: Path, asked: Event) -> None:
    async with running(tmp_path) as run:
        await shown(run, asked)
        for text in ("yes but", "no", "edit it", "1st", "so"):
            await typed(run, letters(text), SLOW)
            await in_prompt(run, text)
            run.app.prompt.clear_text()
            await run.pilot.press("tab")
            run.clock.now += 2
        assert not run.agent.called("answer_plan") and not run.agent.called("answer_question")
