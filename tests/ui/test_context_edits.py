"""What is done to the context by its screen: nothing happens before its price was seen, and all of it comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_tui.commands.report import ContextReport
from agent_tui.commands.report_json import context_json
from agent_tui.engine.edits import Dropped
from agent_tui.models.events import ContextChanged, SessionChanged, TurnEnded
from agent_tui.models.messages import Message, TextPart
from agent_tui.ui.screens.context_screen import ContextScreen
from agent_tui.ui.screens.text import TextScreen
from tests.support.app import Running, running
from tests.support.fake_agent import FakeAgent
from tests.support.forms import one_of
from tests.support.real_app import Home, make_home
from tests.support.usages import sample_usage
from tests.ui.test_context_screen import open_context

RESULTS = "messages/tool_results"


def agent_with_messages(home: Path) -> FakeAgent:
    messages = [Message(f"msg_{i}", "user", [TextPart(f"日本 🎉 words {i}")]) for i in range(3)]
    return FakeAgent(home, messages, sample_usage(3))


async def at_results(run: Running, label: str = "read src/module_0.py") -> ContextScreen:
    """The screen, its cursor on a tool result."""
    screen = await open_context(run)
    screen.view.toggle(RESULTS)
    await go_to(run, screen, label)
    return screen


async def go_to(run: Running, screen: ContextScreen, label: str) -> None:
    rows = screen.view.rows
    rows.move_to(next(i for i, line in enumerate(rows.shown) if line.label == label))
    await run.pilot.pause()


@pytest.mark.quick
async def test_a_message_is_dropped_once_its_price_was_seen(tmp_path: Path) -> None:
    agent = agent_with_messages(tmp_path)
    async with running(tmp_path, agent, size=(80, 24)) as run:
        screen = await at_results(run)
        assert "d drop" in run.shown()
        await run.pilot.press("d")
        await run.until(lambda: "Drops 1 messages." in run.shown())
        assert "l: drop later" in run.shown() and not agent.called("drop")
        await run.pilot.resize_terminal(60, 20)
        await run.until(lambda: "Esc: cancel" in run.shown())
        await run.pilot.press("d")
        await run.until(lambda: "Dropped." in run.shown())
        assert agent.called("drop") == [(["msg_0"], False)] and isinstance(run.app.screen, ContextScreen)
        await run.pilot.press("u")
        await run.until(lambda: "Taken back." in run.shown())
        assert screen.view.rows.line is not None and screen.view.rows.line.label == "read src/module_0.py"


@pytest.mark.slow
async def test_only_keys_that_do_something_are_offered(tmp_path: Path) -> None:
    agent = agent_with_messages(tmp_path)
    async with running(tmp_path, agent, size=(200, 50)) as run:
        screen = await at_results(run)

        async def offered(label: str) -> str:
            await go_to(run, screen, label)
            return run.shown().splitlines()[-1]

        foot = await offered("read src/module_0.py")
        assert all(f" {key} " in f" {foot} " for key in ("Enter", "d", "z", "p", "u"))
        for label, enter in (("System prompt", True), ("Free", False), ("Reserve", False)):
            foot = await offered(label)
            assert not {"d drop", "z fold", "p pin"} & set(foot.split("   ")) and ("Enter open" in foot) == enter
        agent.edits.refused = "It is pinned."
        foot = await offered("read src/module_0.py")
        assert "d drop" not in foot and "z fold" in foot
        agent.conversation.read_only = True
        foot = await offered("read src/module_1.py")
        assert "d drop" not in foot and "z fold" not in foot and "p pin" not in foot and "w why" in foot


async def test_a_fold_that_takes_more_than_was_marked_shows_the_range(tmp_path: Path) -> None:
    agent = agent_with_messages(tmp_path)
    async with running(tmp_path, agent, size=(200, 50)) as run:
        screen = await at_results(run)
        agent.edits.folds = ("msg_0", "msg_1", "msg_2")
        await run.pilot.press("space")
        await go_to(run, screen, "read src/module_2.py")
        await run.pilot.press("space", "z")
        await run.until(lambda: "1 more than chosen, from “日本 🎉 words 0” to “日本 🎉 words 2”" in run.shown())
        assert "z: fold · Esc: cancel" in run.shown() and not agent.called("fold")


@pytest.mark.quick
async def test_what_is_asked_is_answered_now_or_later(tmp_path: Path) -> None:
    agent = agent_with_messages(tmp_path)
    async with running(tmp_path, agent, size=(120, 40)) as run:
        screen = await at_results(run)
        for key, later in (("enter", False), ("y", False), ("l", True)):
            agent.calls.clear()
            await go_to(run, screen, "read src/module_0.py")
            await run.pilot.press("d")
            await run.until(lambda: "Drops 1 messages." in run.shown())
            await run.pilot.press(key)
            await run.until(lambda: agent.called("drop"))
            assert agent.called("drop") == [(["msg_0"], later)], key
            await run.until(lambda: not screen.edits.asking)


@pytest.mark.slow
async def test_a_question_is_declined_or_left(tmp_path: Path) -> None:
    agent = agent_with_messages(tmp_path)
    async with running(tmp_path, agent, size=(120, 40)) as run:
        screen = await at_results(run)
        for key in ("escape", "n", "down"):
            await go_to(run, screen, "read src/module_0.py")
            await run.pilot.press("d")
            await run.until(lambda: "Drops 1 messages." in run.shown())
            await run.pilot.press(key)
            await run.until(lambda: "Drops" not in run.shown())
            assert not screen.edits.asking and run.app.screen is screen, key
            await run.pilot.press("l", "y")
            await run.pilot.pause()
            assert not agent.called("drop"), key
        await run.pilot.press("enter")
        await run.screen(TextScreen)


@pytest.mark.slow
async def test_what_is_marked_goes_together(tmp_path: Path) -> None:
    agent = agent_with_messages(tmp_path)
    async with running(tmp_path, agent, size=(80, 24)) as run:
        screen = await at_results(run)
        await run.pilot.press("shift+down")
        assert "d drop 2" in run.shown() and run.shown().count("✓") == 2
        await run.pilot.press("space")
        await run.until(lambda: "d drop 1" in run.shown())
        await run.pilot.press("space")
        await run.until(lambda: "d drop 2" in run.shown())
        await run.pilot.press("escape")
        await run.until(lambda: "✓" not in run.shown())
        assert run.app.screen is screen
        await go_to(run, screen, "read src/module_0.py")
        await run.pilot.press("shift+down", "shift+down", "z")
        await run.until(lambda: "Folds msg_0 to msg_2. · ~445 behind. z: fold" in run.shown())
        await run.pilot.press("z")
        await run.until(lambda: "Folded." in run.shown())
        assert agent.called("fold") == [("msg_0", "msg_2")]
        await go_to(run, screen, "Tool results")
        await run.pilot.press("d", "d")
        await run.until(lambda: agent.called("drop"))
        assert agent.called("drop") == [(["msg_0", "msg_1", "msg_2"], False)], "a kind is all of its messages"


@pytest.mark.slow
async def test_what_cannot_be_dropped_says_why(tmp_path: Path) -> None:
    agent = agent_with_messages(tmp_path)
    async with running(tmp_path, agent, size=(80, 24)) as run:
        screen = await at_results(run)
        for label, said in (
            ("Memory (2)", "Memory files are sent with every request."),
            ("Messages", "to open Messages and mark some"),
            ("Free", "only messages can be"),
        ):
            await go_to(run, screen, label)
            await run.pilot.press("d")
            await run.pilot.pause()
            assert said in run.shown() and not screen.edits.asking
        agent.edits.refused = "That is still running its tools. Drop it when they have finished."
        await go_to(run, screen, "read src/module_0.py")
        await run.pilot.press("d")
        await run.until(lambda: "That is still running its tools" in run.shown())
        await run.pilot.press("d", "r")
        await run.until(lambda: "r to restore it" in run.shown())
        assert not agent.called("drop") and not agent.called("restore")


async def test_what_is_dropped_stays_and_is_restored_one_by_one(tmp_path: Path) -> None:
    agent = agent_with_messages(tmp_path)
    agent.edits.gone = [
        Dropped(agent.conversation.path[0], 700, "rec_1"),
        Dropped(agent.conversation.path[1], 90, "", waiting=True),
    ]
    async with running(tmp_path, agent, size=(80, 40)) as run:
        screen = await open_context(run)
        assert "Dropped: 2 messages, ~700 not sent" in run.shown()
        assert "dropped when the cache is cold" in run.shown()
        await go_to(run, screen, "日本 🎉 words 0")
        struck = [s for s in run.app.screen._compositor.render_strips() if "words 0" in s.text]
        assert any(segment.style is not None and segment.style.strike for segment in struck[0])
        assert "d restore" in run.shown()
        await run.pilot.press("d")
        await run.until(lambda: "Restored." in run.shown())
        assert agent.called("restore") == [["msg_0"]]
        data = context_json(ContextReport.of(agent))["dropped"]
        assert [(each["message_id"], each["tokens"], each["waiting"]) for each in data] == [
            ("msg_0", 700, False),
            ("msg_1", 90, True),
        ]


@pytest.mark.slow
async def test_an_edit_waits_for_the_step_and_outlives_the_screen(tmp_path: Path) -> None:
    agent = agent_with_messages(tmp_path)
    agent.turns.busy = True
    agent.edits.done = asyncio.Event()
    async with running(tmp_path, agent, size=(80, 24)) as run:
        await at_results(run)
        await run.pilot.press("d", "d")
        await run.until(lambda: "when the running step ends" in run.shown())
        await run.pilot.press("escape")
        await run.until(lambda: not isinstance(run.app.screen, ContextScreen))
        agent.edits.done.set()
        await run.until(lambda: agent.called("drop"))


async def test_a_question_of_another_session_is_not_answered(tmp_path: Path) -> None:
    agent = agent_with_messages(tmp_path)
    async with running(tmp_path, agent, size=(80, 24)) as run:
        screen = await at_results(run)
        await run.pilot.press("d")
        await run.until(lambda: screen.edits.asking)
        agent.conversation.info.id = "ses_other"
        agent.publish(SessionChanged(agent.conversation.info))
        agent.publish(ContextChanged(agent.usage))
        await run.pilot.press("d")
        await run.until(lambda: "The session changed" in run.shown() or not screen.edits.asking)
        assert not agent.called("drop")


@pytest.mark.slow
@pytest.mark.parametrize("size", one_of([((8, 20),), ((24, 8),), ((200, 50),)]))
async def test_it_works_at_any_size(tmp_path: Path, size: tuple[int, int]) -> None:
    agent = agent_with_messages(tmp_path)
    async with running(tmp_path, agent, size=size) as run:
        screen = await at_results(run)
        await run.pilot.press("space", "d")
        await run.until(lambda: screen.edits.asking)
        await run.pilot.resize_terminal(*reversed(size))
        await run.pilot.press("d")
        await run.until(lambda: agent.called("drop"))


async def test_all_keys_are_told(tmp_path: Path) -> None:
    async with running(tmp_path, agent_with_messages(tmp_path), size=(80, 40)) as run:
        await open_context(run)
        await run.pilot.press("question_mark")
        await run.screen(TextScreen)
        await run.pilot.pause()
        for words in (
            "Undo the newest edit",
            "Shift+↓",
            "Restore a dropped message",
            "Preview a compaction",
        ):
            assert words in run.shown()


@pytest.mark.slow
async def test_a_real_answer_is_dropped_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home: Home = make_home(tmp_path, monkeypatch)
    async with home.chat(size=(100, 40)) as chat:
        (home.project / "notes.md").write_text("a line of notes\n" * 60)
        for question in ("question 0", "mind @notes.md", "question 2"):
            await chat.say(question)
            await chat.seen.next(TurnEnded)
        await chat.say("/context")
        await chat.shows("Reserve")
        screen = chat.app.screen
        assert isinstance(screen, ContextScreen)
        await chat.until(lambda: screen.view.moment.before is not None)
        before = screen.view.moment.usage.total
        rows = screen.view.rows
        rows.move_to(next(i for i, line in enumerate(rows.shown) if line.label == "answers"))
        await chat.press("enter", "down", "d")
        await chat.shows("Drops 1 message", "tokens less per request")
        await chat.press("d")
        await chat.shows("Dropped 1 message", "Dropped: 1 message")
        assert screen.view.moment.usage.total < before
        await chat.press("left")
        await chat.shows("Step 3 of 3")
        await chat.press("d")
        await chat.shows("Not possible at an earlier step.")
        await chat.press("escape")
        await chat.hides("Step 3 of 3")
        await chat.press("u")
        await chat.shows("Dropped messages restored")
        await chat.hides("Dropped: 1 message")
        assert screen.view.moment.usage.total == before
        screen.view.toggle("messages/attachments")
        rows.move_to(next(i for i, line in enumerate(rows.shown) if line.label == "notes.md"))
        await chat.press("d")
        await chat.shows("Drops 1 attachment")
        await chat.press("d")
        await chat.shows("Dropped 1 attachment", "Dropped: 1 attachment", "notes.md, dropped")
        rows.move_to(next(i for i, line in enumerate(rows.shown) if line.label == "permission mode"))
        await chat.press("d")
        await chat.shows("only be dropped with their message")
        await chat.press("escape")
        await chat.shows("▸ Dropped 1 attachment")
