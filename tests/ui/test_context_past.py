"""/context goes back through the steps of a session and forward to now, on the real agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_tui.context.past import SessionPast, StoredSession
from agent_tui.context.timeline import Timeline
from agent_tui.models.events import CompactionEnded, SessionChanged, TurnEnded
from agent_tui.paths import user_paths
from agent_tui.ui.screens.context_screen import ContextScreen
from tests.support.real_app import Chat, Home, make_home

LONG = "".join(f"All of this can be told again in {n} words. " for n in range(130))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return make_home(tmp_path, monkeypatch)


async def ask(chat: Chat, text: str) -> None:
    await chat.say(text)
    await chat.seen.next(TurnEnded)


async def lived(chat: Chat) -> None:
    """Five turns, a compaction, a turn, its undo, a turn, a rewind, a turn."""
    for number in range(5):
        await ask(chat, f"question {number}")
    await chat.say("/compact")
    assert (await chat.seen.next(CompactionEnded)).outcome == "done"
    await ask(chat, "after the compaction")
    await chat.say("/compact undo")
    assert (await chat.seen.next(CompactionEnded)).outcome == "undone"
    await ask(chat, "after the undo")
    await chat.press("escape", "escape")
    await chat.shows("Rewind to before")
    await chat.look()
    await chat.press("enter")
    await chat.seen.next(SessionChanged, lambda event: event.reload)
    await chat.until(lambda: chat.prompt == "after the undo")
    await chat.press(" ", "2", "enter")
    await chat.seen.next(TurnEnded)


def answers(home: Home, count: int) -> None:
    home.script("".join(f"[[step]]\ntext = {json.dumps(f'Answer {n}. {LONG}')}\nchunk = 4000\n" for n in range(count)))


@pytest.mark.slow
async def test_the_arrows_go_through_time_and_escape_returns_to_now(home: Home) -> None:
    answers(home, 8)
    async with home.chat(size=(120, 40)) as chat:
        await lived(chat)
        await chat.say("/context")
        await chat.shows("Reserve")
        live = chat.app.screen
        assert isinstance(live, ContextScreen)
        await chat.until(lambda: live.view.moment.before is not None)
        now = chat.screen()
        total = chat.app.screen.view.moment.usage.total  # type: ignore[attr-defined]
        await chat.press("left")
        await chat.shows("Step 8 of 8", "context before step 8", "change")
        await chat.press("left")
        await chat.shows("Step 7 of 8", "on another branch", "compaction undone")
        await chat.press("left")
        await chat.shows("Step 6 of 8", "1 summary call")
        screen = chat.app.screen
        assert isinstance(screen, ContextScreen)
        moment = screen.view.moment
        assert moment.trigger == moment.usage.total != total
        assert "rows = total = trigger" in screen.view.explained()
        await chat.press("shift+left")
        await chat.shows("Step 1 of 8", "Expected", "billed")
        await chat.press("left")
        await chat.shows("Already at the first step.")
        await chat.press("v")
        await chat.shows("Not possible at an earlier step.")
        await chat.press("right", "escape")
        await chat.hides("Step ")
        assert chat.screen() == now
        await chat.press("left", "end")
        await chat.hides("Step ")
        await chat.press("right")
        await chat.shows("Already at the latest.")
        await chat.press("escape")
        await chat.hides("Reserve")


@pytest.mark.slow
async def test_a_step_of_the_past_can_be_read_and_exported(home: Home) -> None:
    answers(home, 3)
    async with home.chat(size=(120, 40)) as chat:
        await ask(chat, "question 0")
        (home.project / "AGENTS.md").write_text("Be brief.", "utf-8")
        await ask(chat, "question 1")
        await chat.say("/context")
        await chat.shows("Reserve")
        await chat.press("left", "w")
        await chat.shows("Since step 1", "Messages")
        await chat.press("escape", "e")
        await chat.shows("Written to")
        (file,) = user_paths().exports.glob("context-*-step-2*.json")
        data = json.loads(file.read_text("utf-8"))
        assert data["step"]["number"] == 2 and data["compared_with"] == 1
        assert data["delta"] == sum(row["delta"] for row in data["context"]["rows"])
        await chat.press("left", "right", "right")
        await chat.hides("Step ")


@pytest.mark.slow
async def test_what_was_shown_is_made_again_after_a_restart(home: Home) -> None:
    answers(home, 8)
    async with home.chat() as chat:
        await lived(chat)
    with home.store() as store:
        (info,) = store.sessions.all()
        content = store.content(info.id)
        history = SessionPast(StoredSession(content.messages, content.steps, content.records, content.summaries))
        moments = [history.moment(number) for number in range(history.count, 0, -1)]
        assert len(moments) == 8
        assert [(m.problem, m.differs) for m in moments] == [("", 0)] * 8
        timeline = Timeline(content.steps, content.records)
        path = {content.steps[-1].message_id or "", *(message.id for message in moments[0].path)}
        columns = {column.number: column for column in timeline.columns(8, path)}
        for moment in moments:
            assert moment.usage is not None
            column = columns[moment.number]
            assert (column.total, dict(column.stack)) == (moment.usage.total, moment.usage.stack())
        told = [(each.what, each.step, each.undone) for each in timeline.folds()]
        assert told == [("compacted", 6, True)]
        assert [number for number, column in columns.items() if column.left] == [7]


@pytest.mark.slow
async def test_what_happens_now_does_not_move_a_step_of_the_past(home: Home) -> None:
    answers(home, 3)
    async with home.chat(size=(120, 40)) as chat:
        await ask(chat, "question 0")
        await ask(chat, "question 1")
        await chat.say("/context")
        await chat.shows("Reserve")
        await chat.press("left", "left")
        await chat.shows("Step 1 of 2")
        screen = chat.app.screen
        assert isinstance(screen, ContextScreen)
        screen.agent.turns.submit("question 2")
        await chat.seen.next(TurnEnded)
        await chat.shows("Step 1 of 2")
        await chat.press("right")
        await chat.shows("Step 2 of 3")


@pytest.mark.slow
async def test_a_step_that_cannot_be_made_again_says_so_and_shows_no_number_for_it(home: Home) -> None:
    answers(home, 3)
    async with home.chat(size=(80, 24)) as chat:
        await ask(chat, "question 0")
        await ask(chat, "question 1")
        agent = chat.app.chat.holder.agent
        assert agent is not None
        await agent.context.ready()  # what is still counted becomes a step anew
        # Before the screen is there: it makes moments of the past when it has time.
        agent.conversation.steps[0].sent_count += 1
        agent.conversation.steps[1].estimated_input = 1
        await chat.say("/context")
        await chat.shows("Reserve")
        screen = chat.app.screen
        assert isinstance(screen, ContextScreen)
        await chat.press("left")
        await chat.shows("Step 2 of 2", "Shown then: 1 token. Recalculated: +")
        assert "(+" not in chat.screen()
        await chat.press("left")
        await chat.shows("Step 1 of 2", "Cannot show this step")
        assert screen.view.rows.shown == []
        for words in (" used", "System prompt", "adds up"):
            assert words not in chat.screen()


@pytest.mark.slow
async def test_on_a_small_screen_a_step_tells_what_was_billed_what_changed_and_where_more_of_it_is(home: Home) -> None:
    answers(home, 3)
    async with home.chat(size=(60, 20)) as chat:
        for number in range(3):
            await ask(chat, f"question {number}")
        await chat.say("/context")
        await chat.shows("next request")
        await chat.press("left")
        await chat.shows("Step 3 of 3", "Expected ", "billed ", "Since step 2 +", "w changes")
        assert sum("■" in line for line in chat.screen().splitlines()) >= 8
        assert "next request" not in chat.screen()
        await chat.press("w")
        await chat.shows("What changed, and where the number comes from", "last input, as reported")
        await chat.press("escape", "left")
        await chat.shows("Step 2 of 3", "Since step 1 +")


@pytest.mark.slow
async def test_a_click_on_a_column_goes_to_its_step(home: Home) -> None:
    answers(home, 3)
    async with home.chat(size=(100, 30)) as chat:
        for number in range(3):
            await ask(chat, f"question {number}")
        await chat.say("/context")
        await chat.shows("step", "now")
        axis = next(y for y, line in enumerate(chat.screen().splitlines()) if line.startswith("   step"))
        line = chat.screen().splitlines()[axis]
        await chat.pilot.click(offset=(line.index("2"), axis - 1))
        await chat.shows("Step 2 of 3")
        await chat.pilot.click(offset=(line.index("now"), axis - 1))
        await chat.hides("Step 2 of 3")
