"""Questions are answered by people who have seen them: not by typing that they got in the way of, nor in disguise."""

from __future__ import annotations

import sys
import unicodedata
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events

from agent_tui.models.events import PermissionAnswered, PermissionAsked, RuleOffer, TurnEnded
from agent_tui.models.messages import user_message
from agent_tui.text.clean import spelled
from agent_tui.tools.files.access import FileAccess
from agent_tui.ui.keys import PAUSE, TypingGuard
from agent_tui.ui.screens.sessions import RewindPicker
from tests.support.app import Clock, Running, running
from tests.support.fake_agent import FakeAgent
from tests.support.forms import one_of


def question(request_id: str = "r1", **more: Any) -> PermissionAsked:
    facts: dict[str, Any] = {
        "request_id": request_id,
        "call_id": f"c{request_id}",
        "tool": "bash",
        "summary": "make test",
        "display": {"kind": "command", "text": "make test"},
        "offers": [RuleOffer(("bash(make test)",))],
    }
    return PermissionAsked(**{**facts, **more})


async def shown(run: Running, asked: PermissionAsked, *, focus: bool = True) -> None:
    run.agent.turns.busy = True
    run.agent.publish(asked)
    await run.until(lambda: run.app.chat.questions.panel is not None and run.app.chat.questions.panel.is_mounted)
    if focus:
        await run.until(lambda: run.app.chat.questions.panel is not None and run.app.chat.questions.panel.has_focus)
    await run.pilot.pause()


async def closed(run: Running, asked: PermissionAsked) -> None:
    """Takes the question and what was typed away, and lets some time pass."""
    run.agent.publish(PermissionAnswered(asked.request_id, False))
    run.app.prompt.clear_text()
    await run.until(lambda: run.app.chat.questions.panel is None)
    run.agent.calls.clear()
    run.clock.now += 60


@pytest.mark.quick
async def test_a_key_in_the_first_moment_is_typing(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for key, after in zip("yanf12jx", cycle((0.0, PAUSE / 2, PAUSE - 0.01))):
            await shown(run, asked := question(f"r{key}"))
            run.clock.now += after
            await run.pilot.press(key)
            await run.until(lambda key=key: run.app.prompt.text == key)  # type: ignore[misc]
            assert not run.agent.called("answer_permission"), (key, after)
            assert "Tab to answer" in run.shown()
            await closed(run, asked)


@pytest.mark.slow
async def test_a_key_without_a_character_answers_nothing_in_the_first_moment(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for key in ("enter", "up", "down", "backspace"):
            await shown(run, asked := question(key))
            await run.pilot.press(key, "enter")
            await run.pilot.pause()
            assert not run.agent.called("answer_permission") and not run.agent.called("submit"), key
            await closed(run, asked)


@pytest.mark.slow
async def test_the_rest_of_a_word_goes_to_the_prompt_in_order_however_long_it_takes(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, question())
        for char in "any day now":
            await run.pilot.press("space" if char == " " else char)
            run.clock.now += PAUSE * 0.9
        await run.until(lambda: run.app.prompt.text == "any day now")
        assert not run.agent.called("answer_permission")
        run.clock.now += PAUSE
        await run.pilot.press("tab")
        await run.pilot.pause()
        await run.answer("y")
        await run.until(lambda: run.agent.called("answer_permission"))


@pytest.mark.slow
async def test_a_burst_keeps_its_order_on_the_way_to_the_prompt(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, question())
        for char in "yanked":
            run.app.post_message(events.Key(char, char))
        await run.until(lambda: len(run.app.prompt.text) == 6)
        assert run.app.prompt.text == "yanked"
        assert not run.agent.called("answer_permission")


@pytest.mark.slow
async def test_a_question_does_not_take_the_focus_from_someone_typing(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("x")
        await run.pilot.press("backspace")
        await shown(run, question(), focus=False)
        await run.type("yes")
        assert run.app.prompt.has_focus and run.app.prompt.text == "yes"
        # Tab in the midst of it goes there, and still answers nothing until there was a pause.
        await run.pilot.press("tab", "y")
        await run.until(lambda: run.app.prompt.text == "yesy")
        assert not run.agent.called("answer_permission")


async def test_where_a_command_would_run_is_not_cut_off(tmp_path: Path) -> None:
    reason = "what rm removes is only known at run time · runs outside the sandbox"
    async with running(tmp_path, size=(60, 20)) as run:
        await shown(run, question(reason=reason))
        await run.until(lambda: "runs outside the sandbox" in run.shown())
        assert "only known at run time" in run.shown() and "Yes, this once" in run.shown()


@pytest.mark.quick
async def test_a_paste_is_never_an_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for text in ("y", "y\n", "1", "some longer text"):
            await shown(run, asked := question(repr(text)))
            run.clock.now += 60
            run.app.post_message(events.Paste(text))
            await run.until(lambda text=text: run.app.prompt.text == text)  # type: ignore[misc]
            assert not run.agent.called("answer_permission"), text
            await closed(run, asked)


@pytest.mark.quick
async def test_an_answer_is_not_one_to_the_next_question_as_well(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, question())
        run.agent.publish(question("r2"))
        run.clock.now += 1
        await run.answer("y")
        for _ in range(2):
            run.app.post_message(events.Key("y", "y"))
        await run.until(lambda: run.app.chat.questions.panel and run.app.chat.questions.panel.asked.request_id == "r2")
        await run.until(lambda: run.app.prompt.text == "yy")
        assert [call[0] for call in run.agent.called("answer_permission")] == ["r1"]


@pytest.mark.slow
async def test_a_click_where_something_else_was_is_no_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, question())
        await run.pilot.click("Choices", offset=(5, 0))
        await run.pilot.pause()
        assert not run.agent.called("answer_permission")
        run.clock.now += 1
        await run.pilot.click("Choices", offset=(5, 0))
        await run.until(lambda: run.agent.called("answer_permission"))
        assert run.agent.called("answer_permission") == [("r1", True, None, "")]


@pytest.mark.slow
async def test_the_word_about_no_is_taken_whole_when_typed_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, question())
        run.clock.now += 1
        await run.answer("f")
        for char in "yes, any":
            run.app.post_message(events.Key("space" if char == " " else char, char))
        await run.pilot.pause()
        run.app.post_message(events.Key("enter", "\r"))
        await run.until(lambda: run.agent.called("answer_permission"))
        assert run.agent.called("answer_permission") == [("r1", False, None, "yes, any")]


async def test_going_back_is_not_chosen_by_a_key_that_came_too_early(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [user_message("one"), user_message("two")])
    async with running(tmp_path, agent) as run:
        run.app.open_screen("rewind")
        await run.screen(RewindPicker)
        await run.pilot.press("enter", "ctrl+r", "ctrl+f")
        await run.pilot.pause()
        assert isinstance(run.app.screen, RewindPicker) and not run.agent.called("rewind")
        run.clock.now += 1
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("rewind"))


HIDDEN = "\u202e\u2066\u200b\u200d\ufe0f\U000e0041\u00ad\u00a0\u2003\u3000\u2028\u180e\u115f\u3164\u2800\ufeff\u061c"


@pytest.mark.quick
async def test_hidden_characters_stand_as_codes_wherever_a_question_shows_them(tmp_path: Path) -> None:
    async with running(tmp_path, size=(100, 30)) as run:
        for char in HIDDEN[::5]:  # all of them: test_spelling_knows_every_character_that_shows_as_nothing
            code = f"⟨U+{ord(char):04X}⟩"
            asked = question(
                code,
                tool="edit",
                summary=f"edit a{char}b.py",
                display={"kind": "diff", "text": f"-old\n+new{char}line"},
                offers=[RuleOffer((f"edit(./a{char}b.py)",))],
                reason=f"since{char}that",
            )
            await shown(run, asked)
            text = run.shown()
            assert text.count(code) == 4, code
            assert char not in text, code
            await closed(run, asked)


@pytest.mark.slow
async def test_the_lines_of_a_pattern_and_a_path_are_not_joined(tmp_path: Path) -> None:
    asked = question(tool="edit", summary="edit a\nb", display=None, offers=[RuleOffer(("bash(a\n\tb)",))])
    async with running(tmp_path) as run:
        await shown(run, asked)
        assert "a␊b" in run.shown() and "bash(a␊␉b)" in run.shown()


@given(st.text())
@pytest.mark.quick
def test_spelling_leaves_nothing_hidden(text: str) -> None:
    for char in spelled(text, line=True):
        assert char == " " or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs")


@pytest.mark.slow
def test_spelling_knows_every_character_that_shows_as_nothing() -> None:
    # Default_Ignorable_Code_Point of Unicode, besides unassigned ones; and what is a blank in spite of its category.
    ignorable = [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, 0x2800, *range(0xFE00, 0xFE10)]
    ignorable += [*range(0x180B, 0x1810), *range(0xE0000, 0xE1000)]
    by_category = [
        c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) in ("Cf", "Zl", "Zp", "Zs") and c != 0x20
    ]
    for code in (*ignorable, *by_category):
        assert spelled(f"a{chr(code)}b") == f"a⟨U+{code:04X}⟩b"
    assert spelled("plain ünïcode 漢字 😀\n\tx") == "plain ünïcode 漢字 😀\n\tx"


@pytest.mark.quick
def test_the_guard_goes_with_the_first_pause_and_comes_with_the_next_question() -> None:
    clock = Clock()
    guard = TypingGuard(clock)
    assert not guard.accidental(), "no question, no guard"
    guard.appeared()
    for _ in range(10):
        assert guard.accidental()
        clock.now += PAUSE / 2
    clock.now += PAUSE
    assert not guard.accidental() and not guard.accidental()
    guard.appeared()
    assert guard.accidental()


async def asking_to_attach(run: Running, tmp_path: Path) -> Path:
    project, secret = tmp_path / "project", tmp_path / "id_rsa"
    project.mkdir()
    secret.write_text("PRIVATE")
    run.agent.cwd, run.agent.project.files = project, FileAccess([project])
    run.app.prompt.set_text(f"see @{secret}")
    await run.pilot.press("enter")
    await run.until(lambda: run.app.chat.questions.panel is not None and run.app.chat.questions.panel.has_focus)
    await run.until(lambda: "outside the project" in run.shown())
    assert not run.agent.called("submit")
    run.clock.now += 1
    return secret


@pytest.mark.forms(1)
@pytest.mark.parametrize("key", ["y", "n"])
async def test_a_file_outside_the_project_is_attached_when_allowed(tmp_path: Path, key: str) -> None:
    async with running(tmp_path) as run:
        secret = await asking_to_attach(run, tmp_path)
        assert "No, and say" not in run.shown()
        await run.answer(key)
        await run.until(lambda: run.agent.called("submit"))
        ((text, attachments),) = run.agent.called("submit")
        assert text == f"see @{secret}"
        assert [a.text for a in attachments] == (["PRIVATE"] if key == "y" else [])
        await run.until(lambda: ("Not attached" in run.shown()) == (key == "n"))
        assert run.app.chat.questions.panel is None and not run.agent.called("answer_permission")


async def test_escape_takes_the_message_back_and_the_question_away(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        secret = await asking_to_attach(run, tmp_path)
        await run.pilot.press("escape")
        await run.until(lambda: run.app.prompt.text == f"see @{secret}")
        await run.until(lambda: run.app.chat.questions.panel is None and not run.app.chat.questions.open)
        assert not run.agent.called("submit")


@pytest.mark.slow
async def test_the_end_of_a_turn_leaves_the_question_about_a_file(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        await asking_to_attach(run, tmp_path)
        run.agent.publish(TurnEnded("end"))
        await run.pilot.pause()
        assert run.app.chat.questions.panel is not None
        await run.answer("y")
        await run.until(lambda: run.agent.called("submit"))


async def test_escape_is_a_no_to_who_asks_while_no_turn_runs(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(question(tool="edit", summary="edit src/a.py"))
        await run.until(lambda: run.app.chat.questions.panel is not None and run.app.chat.questions.panel.has_focus)
        await run.pilot.press("escape")
        await run.until(lambda: run.agent.called("answer_permission"))
        assert run.agent.called("answer_permission")[0][1] is False
        assert run.app.chat.questions.panel is None


async def test_what_may_be_said_for_the_session_is_a_choice_in_words(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        rules = ["edit(./**)", "edit(./src/**)", "mcp(trips.plan)"]
        offers = [RuleOffer((rule,), "session") for rule in rules]
        await shown(run, question(tool="edit", summary="edit src/a.py", offers=offers))
        assert "Allow all edits in the project for this session" in run.shown()
        assert "Allow edits in src for this session" in run.shown()
        assert "Allow mcp(trips.plan) for this session" in run.shown()
        run.clock.now += 1
        await run.answer("s")
        assert "Add this rule for this session?" in run.shown() and "edit(./**)" in run.shown()
        assert not run.agent.called("answer_permission")
        await run.answer("enter")
        await run.until(lambda: run.agent.called("answer_permission"))
        assert run.agent.called("answer_permission") == [("r1", True, offers[0], "")]


@pytest.mark.slow
async def test_the_key_for_the_mode_works_while_a_question_is_open(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, question())
        run.clock.now += 1
        await run.pilot.press("shift+tab")
        await run.pilot.pause()
        assert run.agent.mode.now == "accept-edits" and not run.agent.called("answer_permission")


@pytest.mark.parametrize("size", one_of([((60, 20),), ((80, 24),), ((200, 50),)]))
async def test_a_long_diff_says_how_much_more_there_is_and_scrolls_by_key(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    lines = [f"+line {number}" for number in range(60)]
    diff = {"kind": "diff", "text": "\n".join(lines)}
    async with running(tmp_path, size=size) as run:
        await shown(run, question(display=diff))

        def seen() -> list[int]:
            text = run.shown()
            return [number for number in range(60) if f"+ line {number} " in text]

        seen_first = seen()
        assert seen_first[0] == 0 and f"… +{60 - len(seen_first)} lines · PgDn" in run.shown()
        read = set(seen_first)
        while "· PgDn" in run.shown():
            await run.pilot.press("pagedown")
            await run.pilot.pause()
            assert set(seen()) - read, "each page shows something new"
            read |= set(seen())
            assert f"… +{59 - max(seen())} line" in run.shown() or "end of 60 lines" in run.shown()
        assert read == set(range(60))
        await run.pilot.press("home")
        await run.until(lambda: seen() == seen_first)
        await run.pilot.press("end")
        await run.until(lambda: "end of 60 lines" in run.shown())
        assert not run.agent.called("answer_permission")
        run.app.prompt.focus()
        await run.until(lambda: "end of 60 lines · Tab, then PgUp" in run.shown())


@pytest.mark.slow
async def test_a_text_that_fits_says_nothing_of_more(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, question(display={"kind": "diff", "text": "+one\n+two"}))
        assert "PgDn" not in run.shown() and "The end of" not in run.shown()


LONG = {
    "kind": "command",
    "text": "\n".join(["cat > a <<'E'", *(f"line {number}" for number in range(60)), "E", "end"]),
}


BOTH = [RuleOffer(("network(registries)",)), RuleOffer(("network(registries)",), "session")]


@pytest.mark.parametrize("size", one_of([((60, 20),), ((80, 24),), ((40, 12),), ((200, 50),)]))
@pytest.mark.quick
async def test_what_was_not_shown_to_its_end_is_allowed_by_the_second_press(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with running(tmp_path, size=size) as run:

        async def press(key: str) -> None:
            run.clock.now += 1
            await (run.pilot.click("Choices", offset=(5, 0)) if key == "click" else run.answer(key))
            await run.pilot.pause()

        for key in ("y", "a", "s", "enter", "1", "click"):
            await shown(run, asked := question(f"r{key}", display=LONG, offers=BOTH))
            panel = run.app.chat.questions.panel
            assert panel is not None
            if not (panel._choices.short and key in ("1", "click")):  # rows are shown
                await press(key)
                if key in ("a", "s"):  # leads to the rules, where the call's end is asked about
                    await run.until(lambda: "network(registries)" in run.shown())
                    assert "again allows" not in run.shown()
                    await press("y")
                    await run.until(lambda: "not seen; y again allows" in run.shown())
                else:
                    await run.until(lambda: "PgDn shows the rest" in run.shown() or "No room to show it" in run.shown())
                assert not run.agent.called("answer_permission"), key
                await press("y" if key in ("a", "s") else key)
                await run.until(lambda: run.agent.called("answer_permission"))
                assert run.agent.called("answer_permission")[0][:2] == (f"r{key}", True)
            await closed(run, asked)


@pytest.mark.slow
async def test_a_held_key_or_another_answer_is_no_second_press(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, question(display=LONG))
        run.clock.now += 1
        await run.pilot.press("y", "y", "y")
        await run.until(lambda: run.app.prompt.text == "yyy")
        run.clock.now += 1
        await run.pilot.press("tab")
        await run.until(lambda: run.app.chat.questions.panel and run.app.chat.questions.panel.has_focus)
        run.clock.now += 1
        await run.answer("y")
        await run.until(lambda: "y again allows" in run.shown())
        run.clock.now += 1
        run.app.post_message(events.Paste("y"))
        await run.until(lambda: "yyyy" in run.app.prompt.text)
        assert not run.agent.called("answer_permission")


@pytest.mark.slow
async def test_who_went_to_the_end_is_not_asked_twice(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for way in ("end", "pagedown"):
            await shown(run, asked := question(way, display=LONG))
            run.clock.now += 1
            await run.answer("y")
            await run.until(lambda: "PgDn shows the rest" in run.shown())
            while "· PgDn" in run.shown():
                await run.pilot.press(way)
                await run.pilot.pause()
            await run.until(lambda: "PgDn shows the rest" not in run.shown() and "Allow bash?" in run.shown())
            await run.pilot.press("home")
            await run.pilot.pause()
            run.clock.now += 1
            await run.answer("a", "y")
            await run.until(lambda: run.agent.called("answer_permission"))
            await closed(run, asked)


@pytest.mark.slow
async def test_no_needs_no_reading(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for keys in (["n"], ["f", "x", "enter"]):
            await shown(run, asked := question(keys[0], display=LONG))
            run.clock.now += 1
            await run.answer(*keys)
            await run.until(lambda: run.agent.called("answer_permission"))
            assert run.agent.called("answer_permission")[0][1] is False
            await closed(run, asked)


WHERE = "runs outside the sandbox, with your rights"


@pytest.mark.slow
async def test_where_a_call_would_run_is_never_cut(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for why in ("", "pip needs the network", "changes a file; " * 40, "x" * 500, "a · b" * 100):
            await shown(run, asked := question(f"r{why[:3]}", reason=f"{why} · {WHERE}" if why else WHERE))
            for size in ((60, 20), (80, 16)):
                await run.pilot.resize_terminal(*size)
                await run.pilot.pause()
                assert WHERE in run.shown() and "make test" in run.shown(), (why, size)
                assert "y yes" in run.shown() or "Yes, this once" in run.shown()
            await closed(run, asked)
