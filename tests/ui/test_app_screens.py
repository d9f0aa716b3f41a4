"""Panels and pickers: what they show is what the agent says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import events
from textual.css.query import NoMatches
from textual.widgets import Input

from agent_tui.models.events import (
    CompactionEnded,
    ContextChanged,
    Notice,
    PermissionAnswered,
    PermissionAsked,
    RuleOffer,
    TurnEnded,
    TurnStarted,
)
from agent_tui.models.messages import user_message
from agent_tui.models.session import SessionHit, SessionInfo, SessionState
from agent_tui.ui.safety import Guarded
from agent_tui.ui.screens.context_screen import ContextScreen
from agent_tui.ui.screens.models import ModelPicker
from agent_tui.ui.screens.sessions import SessionPicker
from agent_tui.ui.widgets.bodies import pieces_of
from tests.support.app import running
from tests.support.fake_agent import FakeAgent
from tests.support.forms import some

if TYPE_CHECKING:
    from agent_tui.ui.chat.view import Opened


def asked(**more: Any) -> PermissionAsked:
    facts: dict[str, Any] = {
        "request_id": "r1",
        "call_id": "c1",
        "tool": "bash",
        "summary": "make test",
        "display": {"kind": "command", "text": "make test && echo \x1b[31mdone"},
        "offers": [RuleOffer(("bash(make test*)",))],
    }
    return PermissionAsked(**{**facts, **more})


ANSWERS: list[tuple[list[str], tuple[bool, RuleOffer | None, str]]] = [
    (["y"], (True, None, "")),
    (["a", "y"], (True, RuleOffer(("bash(make test*)",)), "")),
    (["n"], (False, None, "")),
    (["down", "enter", "enter"], (True, RuleOffer(("bash(make test*)",)), "")),
    (["f", *"use tox", "enter"], (False, None, "use tox")),
]


@pytest.mark.quick
async def test_permission_by_keyboard_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        for number, (keys, answer) in enumerate(ANSWERS):
            run.agent.calls.clear()
            run.agent.publish(asked(request_id=f"r{number}", call_id=f"c{number}"))
            await run.until(lambda: run.app.chat.questions.panel is not None and run.app.chat.questions.panel.has_focus)
            assert "make test && echo ␛[31mdone" in run.shown()
            run.clock.now += 1
            await run.answer(*keys)
            await run.until(lambda: run.agent.called("answer_permission"))
            assert run.agent.called("answer_permission") == [(f"r{number}", *answer)], keys
            await run.until(lambda: run.app.chat.questions.panel is None)
            await run.until(lambda: run.app.prompt.has_focus)


@pytest.mark.slow
async def test_several_permissions_come_one_after_the_other_and_close_with_their_call(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        run.agent.publish(asked())
        run.agent.publish(asked(request_id="r2", call_id="c2", summary="second"))
        await run.until(lambda: run.app.chat.questions.panel is not None and run.app.chat.questions.panel.has_focus)
        run.clock.now += 1
        await run.answer("y")
        await run.until(lambda: run.app.chat.questions.panel and run.app.chat.questions.panel.asked.request_id == "r2")
        run.agent.publish(PermissionAnswered("r2", False))
        await run.until(lambda: not run.app.view.screen.query("PermissionPanel"))


async def test_permission_choices_are_visible_at_any_size(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        run.agent.publish(asked(display={"kind": "diff", "text": "\n".join(f"+line {i}" for i in range(300))}))
        await run.until(lambda: run.app.chat.questions.panel is not None)
        for size in ((80, 24), (60, 16), (20, 5), (200, 50)):
            await run.pilot.resize_terminal(*size)
            await run.pilot.pause()
            assert any(word in run.shown().lower() for word in ("yes, this once", "y yes")), size


@pytest.mark.quick
async def test_find_counts_and_steps(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [user_message("needle one"), user_message("hay"), user_message("needle two")])
    async with running(tmp_path, agent) as run:
        await run.pilot.press("ctrl+f")
        await run.until(lambda: run.app.chat.finding.bar is not None)
        await run.type("needle")
        await run.until(lambda: "of 2" in run.shown())
        await run.pilot.press("escape")
        await run.until(lambda: run.app.chat.finding.bar is None)
        assert run.app.prompt.has_focus


@pytest.mark.quick
async def test_session_picker_lists_this_project_or_all_as_its_key_says(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.store.listed = [
        SessionInfo("ses_far", "/elsewhere", title="far [red]away", updated=900.0, messages=4),
        SessionInfo("ses_near", str(tmp_path), title="near", updated=100.0, messages=2, preview="hello"),
    ]
    async with running(tmp_path, agent) as run:
        run.app.open_screen("sessions")
        await run.screen(SessionPicker)
        picker = run.app.screen
        assert isinstance(picker, SessionPicker)
        assert [hit.session.id for hit in picker.shown] == ["ses_near"]
        assert "this project" in run.shown() and "Ctrl+A all projects" in run.shown()
        await run.type("far")
        await run.until(lambda: "No session matches." in run.shown())
        await run.pilot.press("ctrl+a")
        await run.until(lambda: "far [red]away" in run.shown())
        assert "all projects" in run.shown() and "Ctrl+A this project" in run.shown()
        for _ in "far":
            await run.pilot.press("backspace")
        await run.until(lambda: [hit.session.id for hit in picker.shown] == ["ses_near", "ses_far"])
        # Enter at once means what was typed, not what is still shown.
        await run.pilot.press(*"far", "enter")
        await run.until(lambda: agent.called("resume"))
        assert agent.called("resume") == ["ses_far"]


@pytest.mark.slow
async def test_of_thousands_of_sessions_draw_only_what_is_seen(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.store.listed = [SessionInfo(f"s{i}", str(tmp_path), title=f"t{i}", messages=1) for i in range(2_000)]
    drawn: list[str] = []
    original = SessionPicker.draw

    def counting(self: SessionPicker, entry: SessionHit, *rest: Any) -> Any:
        drawn.append(entry.session.id)
        return original(self, entry, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionPicker, "draw", counting)
        async with running(tmp_path, agent) as run:
            run.app.open_screen("sessions")
            await run.until(lambda: drawn)
            await run.pilot.press("ctrl+end")
            await run.until(lambda: "s1999" in drawn)
    assert len(set(drawn)) < 200


@pytest.mark.slow
async def test_model_picker_takes_any_litellm_name(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.models.keys.add("groq")
        run.app.open_screen("models")
        await run.screen(ModelPicker)
        await run.until(lambda: "$3.00 / $15.00" in run.shown())
        await run.type("groq/some-model")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("set_model"))
        assert run.agent.called("set_model") == ["groq/some-model"]
        await run.until(lambda: "groq/some-model" in run.shown().splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("size", some([(200, 50), (80, 24), (60, 16), (20, 5)], 2))
async def test_resize_storms_and_every_screen_at_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    agent = FakeAgent(tmp_path, [user_message("a question")])
    async with running(tmp_path, agent, size=size) as run:
        for name in ("context", "sessions", "models", "help", "themes", "palette", "rewind", "history", "jobs"):
            run.app.open_screen(name)
            await run.pilot.pause()
            for width, height in ((20, 5), (133, 41), (1, 1), size):
                await run.pilot.resize_terminal(width, height)
            await run.pilot.press("down")
            await run.pilot.press("escape")
            await run.until(lambda: len(run.app.screen_stack) == 1)
        await run.type("still here")
        assert run.app.prompt.text == "still here"


@pytest.mark.quick
async def test_status_line_always_has_everything(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.project.branch = "feature/a-rather-long-branch-name-that-goes-on"
    agent.conversation.info.state = SessionState(compaction_paused=True)
    agent.mode.now = "accept-edits"
    async with running(tmp_path, agent) as run:
        for width in (60, 80, 200):
            await run.pilot.resize_terminal(width, 24)
            await run.pilot.pause()
            line = run.shown().splitlines()[-1]
            for part in ("demo", "DEMO", "edits", "feat", "42", "84.2k", "200k", "$0.42", "paused"):
                assert part in line, (part, line)


async def test_status_line_says_paused_only_where_that_keeps_it_from_compacting(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.conversation.info.state = SessionState(compaction_paused=True)
    async with running(tmp_path, agent) as run:
        assert "paused" in run.shown().splitlines()[-1]
        run.agent.publish(ContextChanged(replace(run.agent.usage, would_compact=True)))
        await run.until(lambda: "paused" not in run.shown().splitlines()[-1])


async def test_status_line_marks_estimates(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(ContextChanged(run.agent.usage, in_flight=800))
        await run.until(lambda: "~85k" in run.shown().splitlines()[-1])
        assert "~42.5 %" in run.shown().splitlines()[-1]
        run.agent.publish(ContextChanged(run.agent.usage))
        await run.until(lambda: "~" not in run.shown().splitlines()[-1])


async def test_notices_and_unknown_events_are_visible(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(Notice("warning", "something [b]odd[/b]"))
        run.agent.publish(CompactionEnded("not_worth_it", "Not worth it: 3 % smaller."))
        run.agent.publish("a stranger")  # type: ignore[arg-type]
        await run.until(lambda: "Cannot show str" in run.shown())
        assert "something [b]odd[/b]" in run.shown() and "Not worth it" in run.shown()


async def test_idle_screen_has_no_running_timer(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(TurnStarted())
        assert run.app.activity._timer is not None
        run.agent.publish(TurnEnded("end"))
        assert run.app.activity._timer is None
        assert not run.app.prompt.cursor_blink


@pytest.mark.slow
async def test_search_line_of_a_picker_takes_hostile_text(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.open_screen("sessions", "[/nothing")
        await run.screen(SessionPicker)
        assert run.app.screen.query_one("#search", Input).value == "[/nothing"
        await run.until(lambda: "No session matches." in run.shown())


@pytest.mark.slow
async def test_the_end_is_followed_through_popups_screens_and_resizes(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [user_message(f"question {n}\n" * 5) for n in range(40)])
    async with running(tmp_path, agent) as run:
        transcript = run.app.transcript
        await run.type("/c")
        await run.until(lambda: run.app.completions.open)
        assert transcript.follow
        await run.pilot.press("escape", "ctrl+c")
        await run.until(lambda: not run.app.completions.open)
        await run.pilot.pause()
        assert transcript.follow
        await run.type("/context")
        await run.pilot.press("enter")
        await run.screen(ContextScreen)
        await run.pilot.resize_terminal(80, 40)
        await run.pilot.pause()
        await run.pilot.press("escape")
        await run.until(lambda: len(run.app.screen_stack) == 1)
        for size in ((80, 50), (60, 12), (100, 30), (80, 24)):
            await run.pilot.resize_terminal(*size)
            await run.pilot.pause()
            assert transcript.follow
        run.app.view.say("info", "the newest line")
        await run.until(lambda: "the newest line" in run.shown())
        assert transcript.follow and "↓" not in run.shown().split("the newest line")[1]


@given(st.text(alphabet="ab 日\u0301-", max_size=200), st.integers(2, 30))
def test_a_command_is_wrapped_without_losing_a_character(line: str, width: int) -> None:
    pieces = pieces_of(line, width)
    assert "".join(pieces) == line
    assert all(cell_len(piece) <= width for piece in pieces)


@pytest.mark.quick
def test_a_command_breaks_between_words() -> None:
    assert pieces_of("python -m calc --now", 12) == ["python -m ", "calc --now"]


def _asked(*patterns: str, **display: Any) -> PermissionAsked:
    return PermissionAsked(
        "r1", "c1", "edit", "edit long.py", {**display}, [RuleOffer((pattern,)) for pattern in patterns]
    )


@pytest.mark.slow
async def test_every_pattern_has_a_key_of_its_own(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(
            _asked("edit(a)", "edit(b)", "edit(c)", "edit(d)", kind="diff", text="-a\n+b", added=1, removed=1)
        )
        await run.until(lambda: "edit(c)" in run.shown())
        shown = run.shown()
        assert "Allow edit?  long.py  +1 −1" in shown
        # A choice is remembered as it is named, and names nothing that it does not remember.
        assert [line.split("Always allow ")[1].split(" in ")[0] for line in shown.splitlines() if "Always" in line] == [
            "edit(a)",
            "edit(b)",
            "edit(c)",
        ]
        assert "edit(d)" not in shown and " more" not in shown
        run.clock.now += 1
        await run.answer("4", "enter")
        await run.until(lambda: run.agent.called("answer_permission"))
        assert run.agent.called("answer_permission") == [("r1", True, RuleOffer(("edit(c)",)), "")]


@pytest.mark.slow
async def test_a_hint_makes_way_for_what_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.activity.begin("Waiting for your permission")
        run.app.view.hint("Tool output open")
        assert run.app.activity.hint_text
        run.app.activity.hint("")
        await run.pilot.pause()
        assert "Waiting for your permission" in run.shown()


async def test_a_screen_that_opens_late_gets_nothing_of_the_word_that_is_typed(tmp_path: Path) -> None:
    names: tuple[Opened, ...] = ("context", "themes", "sessions")
    async with running(tmp_path, FakeAgent(tmp_path, [user_message("a question")])) as run:
        for name in names:
            run.app.prompt.clear_text()
            run.clock.now += 1
            await run.type("ad")
            run.app.open_screen(name)  # what a command does that had to wait
            await run.until(lambda: len(run.app.screen_stack) > 1)
            late = run.app.screen
            await run.type("d this")
            run.app.post_message(events.Paste(" now"))
            await run.until(lambda: run.app.prompt.text == "add this now")
            await run.pilot.press("enter")
            await run.pilot.pause()
            assert run.app.screen is late and run.app.prompt.text == "add this now", name
            run.clock.now += 1
            await run.pilot.press("escape")
            await run.until(lambda: len(run.app.screen_stack) == 1)
            run.app.open_screen(name)
            await run.until(lambda: len(run.app.screen_stack) > 1)
            await run.type("d")
            assert run.app.prompt.text == "add this now", "after a pause keys are the screen's"
            await run.pilot.press(*["escape"] * (1 + bool(run.app.screen.query("#search"))))
            await run.until(lambda: len(run.app.screen_stack) == 1)


@pytest.mark.slow
async def test_a_screen_that_goes_away_does_not_fail_over_its_widgets(tmp_path: Path) -> None:
    async with running(tmp_path, FakeAgent(tmp_path, [user_message("a question")])) as run:
        for name in ("sessions", "models", "help", "themes", "context"):
            run.app.open_screen(name)
            await run.until(lambda: len(run.app.screen_stack) > 1 and run.app.screen.is_mounted)
            screen = run.app.screen
            assert isinstance(screen, Guarded)
            await run.pilot.pause()
            await run.app.pop_screen()
            lost = NoMatches("no widget any more")
            assert screen.survives(lost) and not run.app.net.errors
        run.app.open_screen("help")
        await run.until(lambda: isinstance(run.app.screen, Guarded) and run.app.screen.is_mounted)
        assert isinstance(run.app.screen, Guarded) and run.app.screen.survives(NoMatches("one that should be there"))
        assert run.app.net.errors.pop(), "what is missing on a screen that is there is said"
