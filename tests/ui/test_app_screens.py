"""Panels, pickers and the context screen: what they show is what the agent says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.widgets import Input

from agent_tui.commands.usage_json import context_json
from agent_tui.context.accounting.why import calculation_text
from agent_tui.models.events import (
    CompactionEnded,
    ContextChanged,
    Notice,
    PermissionAsked,
    RetryWaiting,
    TurnEnded,
    TurnStarted,
)
from agent_tui.models.failure import Failure
from agent_tui.models.messages import Message, SummaryPart, TextPart, user_message
from agent_tui.models.session import SessionInfo, SessionState
from agent_tui.models.steps import CompactionRecord
from agent_tui.ui.screens.context import ContextScreen
from agent_tui.ui.screens.context_rows import adds_up, bar_cells, flatten
from agent_tui.ui.screens.models import ModelPicker
from agent_tui.ui.screens.sessions import SessionPicker
from agent_tui.ui.screens.text import TextScreen
from agent_tui.ui.screens.themes import ThemePicker
from agent_tui.ui.widgets.question import pieces_of
from tests.support.app import Running, running
from tests.support.fake_agent import FakeAgent, row, sample_usage


def asked(**more: Any) -> PermissionAsked:
    facts: dict[str, Any] = {
        "request_id": "r1",
        "call_id": "c1",
        "tool": "bash",
        "summary": "make test",
        "display": {"kind": "command", "text": "make test && echo \x1b[31mdone"},
        "patterns": ["bash(make test*)"],
    }
    return PermissionAsked(**{**facts, **more})


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["y"], ("r1", True, None, "")),
        (["a"], ("r1", True, "bash(make test*)", "")),
        (["n"], ("r1", False, None, "")),
        (["down", "enter"], ("r1", True, "bash(make test*)", "")),
        (["f", *"use tox", "enter"], ("r1", False, None, "use tox")),
    ],
)
async def test_permission_by_keyboard_alone(tmp_path: Path, keys: list[str], answer: tuple[object, ...]) -> None:
    async with running(tmp_path) as run:
        run.agent.busy = True
        run.agent.publish(asked())
        await run.until(lambda: run.app.chat.permissions.panel is not None and run.app.chat.permissions.panel.has_focus)
        assert "make test && echo ␛[31mdone" in run.shown()
        run.clock.now += 1
        await run.pilot.press(*keys)
        await run.until(lambda: run.agent.called("answer_permission"))
        assert run.agent.called("answer_permission") == [answer]
        await run.until(lambda: run.app.chat.permissions.panel is None)
        await run.until(lambda: run.app.prompt.has_focus)


async def test_permission_does_not_take_keys_meant_for_the_prompt(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.busy = True
        await run.type("typing alread")
        run.agent.publish(asked())
        await run.until(lambda: run.app.chat.permissions.panel is not None)
        await run.pilot.press("y")
        await run.pilot.pause()
        assert run.app.prompt.text == "typing already"
        assert not run.agent.called("answer_permission")
        run.clock.now += 1
        await run.pilot.press("tab")
        await run.pilot.pause()
        await run.pilot.press("y")
        await run.until(lambda: run.agent.called("answer_permission"))


async def test_several_permissions_come_one_after_the_other_and_end_with_the_turn(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.busy = True
        run.agent.publish(asked())
        run.agent.publish(asked(request_id="r2", call_id="c2", summary="second"))
        await run.until(lambda: run.app.chat.permissions.panel is not None and run.app.chat.permissions.panel.has_focus)
        run.clock.now += 1
        await run.pilot.press("y")
        await run.until(
            lambda: run.app.chat.permissions.panel and run.app.chat.permissions.panel.asked.request_id == "r2"
        )
        run.agent.publish(TurnEnded("interrupted"))
        await run.until(lambda: not run.app.stage.screen.query("PermissionPanel"))


@pytest.mark.parametrize("size", [(80, 24), (60, 16), (20, 5), (200, 50)])
async def test_permission_choices_are_visible_at_any_size(tmp_path: Path, size: tuple[int, int]) -> None:
    async with running(tmp_path, size=size) as run:
        run.agent.busy = True
        run.agent.publish(asked(display={"kind": "diff", "text": "\n".join(f"+line {i}" for i in range(300))}))
        await run.until(lambda: run.app.chat.permissions.panel is not None)
        await run.pilot.pause()
        await run.pilot.pause()
        assert "y" in run.shown() and ("es" in run.shown())
        assert any(word in run.shown().lower() for word in ("yes, this once", "y yes"))


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


async def test_session_picker_lists_this_project_first_and_resumes(tmp_path: Path) -> None:
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
        assert [s.id for s in picker.shown] == ["ses_near", "ses_far"]
        assert "far [red]away" in run.shown()
        await run.type("far")
        await run.pilot.press("enter")
        await run.until(lambda: agent.called("resume"))
        assert agent.called("resume") == ["ses_far"]


async def test_ten_thousand_sessions_draw_only_what_is_seen(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.store.listed = [SessionInfo(f"s{i}", str(tmp_path), title=f"t{i}", messages=1) for i in range(10_000)]
    drawn: list[str] = []
    original = SessionPicker.draw

    def counting(self: SessionPicker, entry: SessionInfo, *rest: Any) -> Any:
        drawn.append(entry.id)
        return original(self, entry, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionPicker, "draw", counting)
        async with running(tmp_path, agent) as run:
            run.app.open_screen("sessions")
            await run.until(lambda: drawn)
            await run.pilot.press("ctrl+end")
            await run.until(lambda: "s9999" in drawn)
    assert len(set(drawn)) < 200


async def test_model_picker_takes_any_litellm_name(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.open_screen("models")
        await run.screen(ModelPicker)
        await run.until(lambda: "$3.00 / $15.00" in run.shown())
        await run.type("groq/some-model")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("set_model"))
        assert run.agent.called("set_model") == ["groq/some-model"]
        await run.until(lambda: "groq/some-model" in run.shown().splitlines()[-1])


async def test_theme_picker_previews_and_escape_restores(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.open_screen("themes")
        await run.screen(ThemePicker)
        await run.pilot.press("down")
        await run.until(lambda: run.app.theme == "agent-light")
        await run.pilot.press("escape")
        await run.until(lambda: run.app.theme == "agent-dark")


async def open_context(run: Running) -> ContextScreen:
    run.app.open_screen("context")
    await run.screen(ContextScreen)
    await run.pilot.pause()
    assert isinstance(run.app.screen, ContextScreen)
    return run.app.screen


async def test_context_screen_shows_the_calculators_numbers(tmp_path: Path) -> None:
    usage = sample_usage()
    async with running(tmp_path, FakeAgent(tmp_path, usage=usage), size=(200, 50)) as run:
        await open_context(run)
        shown = run.shown()
        for number in ("2,600", "500", "1,400", "9,800", "69,900", "41,000", "6,600", "83,800", "32,000"):
            assert number in shown
        assert "84.2k / 200k" in shown and "42.1 %" in shown and "compacts at 168k" in shown
        assert calculation_text(usage) in shown
        assert "rows = total = trigger = 84,200" in shown and "✓" in shown
        assert "about 9 turns left" in shown


async def test_context_rows_open_down_to_single_messages(tmp_path: Path) -> None:
    usage = sample_usage(3)
    agent = FakeAgent(tmp_path, [Message("msg_0", "user", [TextPart("the message itself")])], usage)
    async with running(tmp_path, agent, size=(120, 40)) as run:
        screen = await open_context(run)
        labels = [line.label for line in screen.rows.shown]
        screen.rows.move_to(labels.index("Tool results"))
        await run.pilot.press("right")
        await run.until(lambda: "read src/module_0.py" in run.shown())
        await run.pilot.press("down", "enter")
        await run.screen(TextScreen)
        await run.until(lambda: "the message itself" in run.shown())
        assert "read from the provider's cache" in run.shown()
        await run.pilot.press("escape")
        await run.screen(ContextScreen)
        await run.pilot.press("left", "left")
        await run.until(lambda: "module_0" not in run.shown())


async def test_context_screen_is_live_and_marks_what_is_in_flight(tmp_path: Path) -> None:
    async with running(tmp_path, size=(120, 40)) as run:
        await open_context(run)
        run.agent.publish(ContextChanged(run.agent.usage, in_flight=1_800))
        await run.until(lambda: "~86k / 200k" in run.shown())
        assert "1.8k in flight" in run.shown()
        assert "rows = total = trigger = 84,200" in run.shown()


async def test_context_export_is_the_shared_json(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await open_context(run)
        await run.pilot.press("e")
        path = tmp_path / "context-ses_1.json"
        await run.until(path.exists)
        await run.until(lambda: "Written to" in run.shown())
        assert json.loads(path.read_text()) == context_json(run.agent.usage)


async def test_context_exact_count_stats_and_preview(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await open_context(run)
        await run.pilot.press("x")
        await run.until(lambda: "84,211" in run.shown())
        await run.pilot.press("s")
        await run.until(lambda: "Cache Hits: 90" in run.shown())
        await run.pilot.press("escape", "p")
        await run.until(lambda: "Would summarise 12 messages." in run.shown())


async def test_compaction_history_shows_its_summary(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.records = [
        CompactionRecord(
            "r1",
            "op1",
            "summary",
            ["m1"],
            summary_id="sum",
            before_tokens=171_200,
            after_tokens=24_100,
            kept_messages=6,
        )
    ]
    agent.store.kept = {"sum": Message("sum", "user", [SummaryPart("## Goal\nFix the parser", "r1")])}
    async with running(tmp_path, agent, size=(100, 40)) as run:
        screen = await open_context(run)
        await run.pilot.press("end", "enter")
        await run.until(lambda: "~171.2k → ~24.1k" in run.shown())
        screen.rows.action_last()
        await run.pilot.press("enter")
        await run.until(lambda: "Fix the parser" in run.shown())


async def test_ten_thousand_messages_open_without_walking_them(tmp_path: Path) -> None:
    usage = sample_usage()
    children = [row("message", 4, f"message {i}", message_id=f"m{i}", basis="derived") for i in range(10_250)]
    usage.rows[-1].children[3].children = children
    async with running(tmp_path, FakeAgent(tmp_path, usage=usage)) as run:
        screen = await open_context(run)
        assert len(screen.rows.shown) < 20
        screen.rows.move_to(next(i for i, s in enumerate(screen.rows.shown) if s.label == "Tool results"))
        await run.pilot.press("right")
        await run.until(lambda: len(screen.rows.shown) > 10_000)
        await run.pilot.press("end")
        await run.until(lambda: "Reserve" in run.shown())


async def test_unknown_window_is_said(tmp_path: Path) -> None:
    usage = sample_usage()
    usage.window = usage.limit = usage.reserve = usage.free = usage.over = usage.percent = None
    async with running(tmp_path, FakeAgent(tmp_path, usage=usage)) as run:
        await open_context(run)
        assert "unknown window" in run.shown()
        await run.pilot.press("escape")
        await run.until(lambda: len(run.app.screen_stack) == 1)
        assert "84.2k" in run.shown().splitlines()[-1]


@pytest.mark.parametrize("size", [(200, 50), (80, 24), (60, 16), (20, 5)])
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


@pytest.mark.parametrize("width", [60, 80, 200])
async def test_status_line_always_has_everything(tmp_path: Path, width: int) -> None:
    agent = FakeAgent(tmp_path)
    agent.branch = "feature/a-rather-long-branch-name-that-goes-on"
    agent.info.state = SessionState(compaction_paused=True)
    agent.mode = "accept-edits"
    async with running(tmp_path, agent, size=(width, 24)) as run:
        line = run.shown().splitlines()[-1]
        for part in ("demo", "DEMO", "edits", "feat", "42", "84.2k", "200k", "$0.42", "paused"):
            assert part in line, (part, line)


async def test_status_line_marks_estimates(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(ContextChanged(run.agent.usage, in_flight=800))
        await run.until(lambda: "~85k" in run.shown().splitlines()[-1])
        assert "~42.5 %" in run.shown().splitlines()[-1]
        run.agent.publish(ContextChanged(run.agent.usage))
        await run.until(lambda: "~" not in run.shown().splitlines()[-1])


async def test_retry_counts_down_and_escape_gives_up(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.busy = True
        run.agent.publish(TurnStarted("t"))
        run.agent.publish(RetryWaiting(8, 2, 4, Failure("rate_limit", "Rate limited")))
        await run.until(lambda: "Retry 2 of 3 in 8 s · Esc gives up · Rate limited" in run.shown())
        run.clock.now += 5
        run.app.activity.refresh()
        await run.until(lambda: "in 3 s" in run.shown())
        await run.pilot.press("escape")
        await run.until(lambda: run.agent.called("interrupt"))


async def test_notices_and_unknown_events_are_visible(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(Notice("warning", "something [b]odd[/b]"))
        run.agent.publish(CompactionEnded("not_worth_it", "Not worth it: 3 % smaller."))
        run.agent.publish("a stranger")  # type: ignore[arg-type]
        await run.until(lambda: "Unknown event" in run.shown())
        assert "something [b]odd[/b]" in run.shown() and "Not worth it" in run.shown()


async def test_idle_screen_has_no_running_timer(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(TurnStarted("t"))
        assert run.app.activity._timer is not None
        run.agent.publish(TurnEnded("end"))
        assert run.app.activity._timer is None
        assert not run.app.prompt.cursor_blink


@given(st.lists(st.integers(0, 50_000), min_size=7, max_size=7), st.integers(1, 300_000), st.integers(4, 200))
def test_percentages_and_bar_add_up_for_any_numbers(sizes: list[int], limit: int, width: int) -> None:
    usage = sample_usage()
    usage.rows = [row(r.id, size) for r, size in zip(usage.rows, sizes, strict=True)]
    usage.total, usage.limit, usage.window = sum(sizes), limit, limit + 32_000
    usage.free, usage.over = max(0, limit - usage.total), max(0, usage.total - limit)
    usage.reserve = 32_000
    assert adds_up(usage)
    lines = flatten(usage, set())
    assert sum(line.tenths or 0 for line in lines) == 1000
    assert sum(line.tokens or 0 for line in lines) == usage.window
    assert sum(cells for _, cells in bar_cells(usage, width)) == width


def test_a_wrong_sum_is_not_called_right() -> None:
    usage = sample_usage()
    assert adds_up(usage)
    usage.rows[-1].children[0].tokens += 1
    assert not adds_up(usage)


async def test_search_line_of_a_picker_takes_hostile_text(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.open_screen("sessions", "[/nothing")
        await run.screen(SessionPicker)
        assert run.app.screen.query_one("#search", Input).value == "[/nothing"
        assert "No session matches." in run.shown()


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
        run.app.say("info", "the newest line")
        await run.until(lambda: "the newest line" in run.shown())
        assert transcript.follow and "new" not in run.shown().split("the newest line")[1]


async def test_a_sent_message_goes_to_the_end(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [user_message(f"question {n}\n" * 5) for n in range(40)])
    async with running(tmp_path, agent) as run:
        await run.pilot.press("pageup", "pageup")
        await run.pilot.pause()
        assert not run.app.transcript.follow
        await run.type("go on")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("submit"))
        await run.until(lambda: run.app.transcript.follow)


@given(st.text(alphabet="ab 日\u0301-", max_size=200), st.integers(2, 30))
def test_a_command_is_wrapped_without_losing_a_character(line: str, width: int) -> None:
    pieces = pieces_of(line, width)
    assert "".join(pieces) == line
    assert all(cell_len(piece) <= width for piece in pieces)


def test_a_command_breaks_between_words() -> None:
    assert pieces_of("python -m calc --now", 12) == ["python -m ", "calc --now"]


def _asked(*patterns: str, **display: str) -> PermissionAsked:
    return PermissionAsked("r1", "c1", "edit", "edit long.py", {**display}, list(patterns))


async def test_every_pattern_has_a_key_of_its_own(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(
            _asked("edit(a)", "edit(b)", "edit(c)", "edit(d)", kind="diff", text="-a\n+b", summary="+1 -1")
        )
        await run.until(lambda: "edit(c)" in run.shown())
        shown = run.shown()
        assert "Allow edit?  long.py  +1 -1" in shown and "… and 1 more" in shown
        run.clock.now += 1
        await run.pilot.press("4")
        await run.until(lambda: run.agent.called("answer_permission"))
        assert run.agent.called("answer_permission") == [("r1", True, "edit(c)", "")]


async def test_a_hint_makes_way_for_what_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.activity.begin("Waiting for your permission")
        run.app.stage.hint("Tool output open")
        assert run.app.activity.hint_text
        run.app.activity._hint_over()
        await run.pilot.pause()
        assert "Waiting for your permission" in run.shown()
        run.app.activity.end()
        run.app.stage.hint("stays")
        run.app.activity._hint_over()
        assert run.app.activity.hint_text == "stays"
