"""Keys, sending, queueing, interrupting: what a hand on the keyboard meets."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.commands.registry import PARTS, listed
from agent_tui.config import Settings
from agent_tui.models.events import QueueChanged, SessionChanged, TurnEnded, TurnStarted, WaitingMessage
from agent_tui.models.messages import user_message
from agent_tui.ui.screens.help import CommandPalette, HelpScreen
from agent_tui.ui.screens.picker import MARK, HistoryPicker
from agent_tui.ui.screens.sessions import RewindPicker
from agent_tui.ui.theme import paint_of
from tests.support.app import Running, running
from tests.support.fake_agent import FakeAgent, UserCommand


def shown_waiting(run: Running) -> list[tuple[str, str]]:
    return [(waits.kind, waits.text) for waits in run.app.queue_view.entries]


def acts(run: Running) -> list[str]:
    """What the agent was asked to do; files are looked at whenever some time has passed."""
    return [name for name, _ in run.agent.calls if name != "refresh_context"]


@pytest.mark.quick
async def test_enter_sends_and_newline_keys_do_not(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("one")
        await run.pilot.press("ctrl+j")
        await run.type("two")
        await run.pilot.press("shift+enter")
        await run.type("three")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("submit"))
        assert run.agent.called("submit") == [("one\ntwo\nthree", [])]
        assert run.app.prompt.is_empty


async def test_what_is_typed_and_sent_before_the_agent_is_there_waits_for_it(tmp_path: Path) -> None:
    import asyncio

    from agent_tui.ui.app import AgentApp

    agent, gate = FakeAgent(tmp_path), asyncio.Event()

    async def factory() -> FakeAgent:
        await gate.wait()
        return agent

    app = AgentApp(factory, Settings(), agent.paths, tmp_path)
    async with app.run_test() as pilot:
        await pilot.press(*"early", "enter")
        await pilot.pause()
        assert app.chat.sender.waiting == [(("early", [], []), False)]
        gate.set()
        await asyncio.wait_for(app.opened.wait(), 20)
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        assert agent.called("submit") == [("early", [])]


async def test_what_was_not_sent_is_shown_and_enter_on_empty_sends_it(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.publish(QueueChanged([WaitingMessage("w", "from before", "held")]))
        assert shown_waiting(run) == [("held", "from before")]
        await run.pilot.pause()
        assert "Enter sends" in run.shown()
        run.agent.turns.busy = True
        await run.pilot.press("enter")
        assert not run.agent.called("send_waiting")
        run.agent.turns.busy = False
        await run.pilot.press("enter")
        assert run.agent.called("send_waiting")


@pytest.mark.quick
async def test_enter_while_busy_queues_visibly_and_up_takes_it_back(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        run.agent.publish(TurnStarted())
        await run.type("later please")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.waiting.listed)
        await run.until(lambda: "later please" in run.shown())
        assert shown_waiting(run) == [("queued", "later please")]
        await run.pilot.press("up")
        await run.until(lambda: not run.app.prompt.is_empty)
        assert run.app.prompt.text == "later please"
        assert run.app.queue_view.entries == []


@pytest.mark.slow
async def test_ctrl_s_steers_the_running_turn(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        await run.type("use pytest")
        await run.pilot.press("ctrl+s")
        await run.until(lambda: run.agent.called("steer"))
        assert shown_waiting(run) == [("steer", "use pytest")]


@pytest.mark.quick
async def test_escape_interrupts_and_keeps_the_queue(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        run.agent.publish(TurnStarted())
        await run.type("next")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.waiting.listed)
        await run.pilot.press("escape")
        await run.until(lambda: run.agent.called("interrupt"))
        assert shown_waiting(run) == [("queued", "next")]
        run.agent.publish(TurnEnded("interrupted"))
        await run.pilot.pause()
        assert "Interrupted" in run.shown()
        assert run.app.activity.phase == ""


@pytest.mark.quick
async def test_ctrl_c_interrupts_clears_and_quits_only_twice(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        await run.pilot.press("ctrl+c")
        await run.pilot.pause()
        assert len(run.agent.called("interrupt")) == 1
        await run.type("text")
        await run.pilot.press("ctrl+c")
        await run.pilot.pause()
        assert run.app.prompt.is_empty
        assert "brings it back" in run.shown()
        await run.pilot.press("ctrl+c")
        run.clock.now += 3
        await run.pilot.press("ctrl+c")
        await run.pilot.pause()
        assert run.app.return_value is None
        run.clock.now += 1
        await run.pilot.press("ctrl+c")
        await run.pilot.pause()
        assert run.app.return_value == 0


@pytest.mark.slow
async def test_ctrl_c_copies_a_selection_first(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.agent.turns.busy = True
        await run.type("copy me")
        run.app.prompt.select_all()
        await run.pilot.press("ctrl+c")
        await run.pilot.pause()
        assert run.app.clipboard == "copy me"
        assert not run.agent.called("interrupt")
        assert run.app.prompt.text == "copy me"


async def test_ctrl_d_deletes_and_quits_on_empty(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("ab")
        await run.pilot.press("home", "ctrl+d", "ctrl+d")
        await run.pilot.pause()
        assert run.app.prompt.is_empty
        assert run.app.return_value is None
        await run.pilot.press("ctrl+d")
        await run.pilot.pause()
        assert run.app.return_value == 0


async def test_undo_and_redo_have_the_shells_keys(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("word")
        await run.pilot.press("ctrl+underscore")
        await run.pilot.pause()
        assert run.app.prompt.text != "word"
        await run.pilot.press("alt+underscore")
        await run.pilot.pause()
        assert run.app.prompt.text == "word"


@pytest.mark.quick
async def test_shift_tab_goes_through_the_permission_modes(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        modes = []
        for _ in range(4):
            await run.pilot.press("shift+tab")
            await run.pilot.pause()
            modes.append(run.agent.mode.now)
        assert modes == ["accept-edits", "plan", "ask", "accept-edits"], "auto is not one key away"
        assert "edits" in run.shown().splitlines()[-1]
        for mode in ("auto", "bypass"):
            run.agent.mode.set(mode)
            run.agent.publish(SessionChanged(run.agent.conversation.info))
            await run.until(lambda mode=mode: mode in run.shown().splitlines()[-1])  # type: ignore[misc]
            await run.pilot.press("shift+tab")
            assert run.agent.mode.now == "ask"


async def test_question_mark_on_empty_shows_keys_and_is_a_character_otherwise(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("why?")
        assert run.app.prompt.text == "why?"
        await run.pilot.press("ctrl+c", "?")
        await run.screen(HelpScreen)
        assert "Shift+Enter" in run.shown()
        await run.pilot.press("escape")
        await run.until(lambda: len(run.app.screen_stack) == 1)


async def test_help_runs_nothing_and_puts_a_command_into_an_empty_prompt(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for search, keys in (("", ["enter", "enter"]), ("clear", ["enter", "enter", "enter"])):
            run.app.open_screen("help", search)
            await run.screen(HelpScreen)
            await run.pilot.press(*keys)
            assert isinstance(run.app.screen, HelpScreen) and not acts(run)
            assert "Tab put into the prompt" in run.shown() and "Enter" not in run.shown().splitlines()[-2]
            await run.pilot.press("escape")
        run.app.open_screen("help", "clear")
        await run.screen(HelpScreen)
        await run.pilot.press("tab")
        await run.until(lambda: run.app.prompt.text == "/clear ")
        run.app.open_screen("help", "compact")
        await run.screen(HelpScreen)
        await run.pilot.press("tab")
        await run.until(lambda: "The prompt is not empty" in run.shown())
        assert run.app.prompt.text == "/clear " and not acts(run)


@pytest.mark.slow
async def test_help_has_six_parts_and_cuts_nothing_however_narrow(tmp_path: Path) -> None:
    async with running(tmp_path, size=(60, 200)) as run:
        await run.type("/help")
        await run.pilot.press("enter")
        await run.screen(HelpScreen)
        screen = run.app.screen
        assert isinstance(screen, HelpScreen)
        for width in (60, 80, 130):
            await run.pilot.resize_terminal(width, 200)
            await run.pilot.pause()
            assert not [line for line in run.shown().splitlines() if "│" in line and "…" in line]
            rows = [row for row in screen.shown if not row.more]
            assert [row.left for row in rows if row.heading] == [*PARTS, "Keys"] and len(PARTS) == 5
            assert [row.left for row in rows if row.command] == [f"/{command.name}" for command in listed()]


@pytest.mark.quick
async def test_history_up_down_and_search(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for text in ("first message", "second message"):
            await run.type(text)
            await run.pilot.press("enter")
            await run.pilot.pause()
        await run.type("draft")
        await run.pilot.press("up")
        await run.pilot.pause()
        assert run.app.prompt.text == "second message"
        await run.pilot.press("up")
        await run.pilot.pause()
        assert run.app.prompt.text == "first message"
        await run.pilot.press("down", "down")
        await run.pilot.pause()
        assert run.app.prompt.text == "draft"
        await run.pilot.press("ctrl+c", "ctrl+r")
        await run.screen(HistoryPicker)
        await run.type("first")
        await run.pilot.press("enter")
        await run.until(lambda: len(run.app.screen_stack) == 1)
        assert run.app.prompt.text == "first message"


async def test_history_and_draft_survive_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("kept")
        await run.pilot.press("enter")
        await run.pilot.pause()
        await run.type("unfinished")
        run.app.leave()
    async with running(tmp_path) as run:
        assert run.app.prompt.text == "unfinished"
        await run.pilot.press("ctrl+c", "up", "up")
        await run.pilot.pause()
        assert run.app.prompt.text == "kept"


@pytest.mark.slow
async def test_a_draft_yields_to_what_is_typed_before_it_can_be_seen(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("unfinished")
        run.app.leave()
    async with running(tmp_path) as run:
        run.clock.now += 1
        await run.type("hello")
        assert run.app.prompt.text == "unfinishedhello"
        run.app.prompt.set_text("unfinished")
        run.app.leave()
    async with running(tmp_path) as run:
        assert run.app.prompt.text == "unfinished"
        await run.type("hello")
        assert run.app.prompt.text == "hello"
        await run.pilot.press("up")
        await run.pilot.pause()
        assert run.app.prompt.text == "unfinished"


async def test_escape_twice_on_empty_goes_back_to_a_message(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path, [user_message("the first question"), user_message("the second question")])
    async with running(tmp_path, agent) as run:
        await run.pilot.press("escape")
        run.clock.now += 5
        await run.pilot.press("escape")
        await run.pilot.pause()
        assert len(run.app.screen_stack) == 1
        await run.pilot.press("escape")
        await run.screen(RewindPicker)
        run.clock.now += 1
        await run.pilot.press("down", "enter")
        await run.until(lambda: agent.called("rewind"))
        await run.until(lambda: run.app.prompt.text == "the first question")
        assert agent.conversation.path == []


@pytest.mark.slow
async def test_escape_twice_is_twice_in_a_row(tmp_path: Path) -> None:
    async with running(tmp_path, FakeAgent(tmp_path, [user_message("the first question")])) as run:
        for between in (["x", "backspace"], [*"/mcp none", "enter"], ["left"]):
            await run.pilot.press("escape", *between)
            await run.until(lambda: run.app.prompt.is_empty)
            await run.pilot.press("escape")
            await run.pilot.pause()
            assert len(run.app.screen_stack) == 1, between
            await run.pilot.press("escape")
            await run.screen(RewindPicker)
            run.clock.now += 1
            await run.pilot.press("escape")
            await run.until(lambda: len(run.app.screen_stack) == 1)
            run.clock.now += 5


async def test_keys_can_be_rebound(tmp_path: Path) -> None:
    settings = Settings()
    settings.keys = {"send": "ctrl+x", "palette": "f2"}
    async with running(tmp_path, settings=settings) as run:
        await run.type("hello")
        await run.pilot.press("enter")
        await run.pilot.pause()
        assert not run.agent.called("submit")
        await run.pilot.press("ctrl+x")
        await run.until(lambda: run.agent.called("submit"))
        await run.pilot.press("f2")
        await run.screen(CommandPalette)


async def test_palette_runs_commands_and_offers_the_users_own(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.project.own_commands = [UserCommand("review", "reviews the diff")]
    async with running(tmp_path, agent) as run:
        await run.pilot.press("ctrl+p")
        await run.screen(CommandPalette)
        await run.type("reviews")
        await run.pilot.press("enter")
        await run.until(lambda: agent.called("submit"))
        assert agent.called("submit") == [("review: ", [])]


async def test_the_palette_says_whole_what_a_command_does_on_a_screen_of_80_columns(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    async with running(tmp_path, agent, size=(80, 24)) as run:
        await run.pilot.press("ctrl+p")
        await run.screen(CommandPalette)
        palette = run.app.screen
        assert isinstance(palette, CommandPalette)
        width = palette.rows.scrollable_content_region.width - MARK - 1
        for entry in palette.all:
            said = "".join(text for text, _ in palette.draw(entry, width, paint_of(run.app), False))
            assert said.startswith(entry.label.split(" ")[0]) and said.rstrip().endswith(f"  {entry.detail}")
