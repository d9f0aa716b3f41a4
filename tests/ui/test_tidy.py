"""``/tidy``: what could go is listed, ticked by the user and dropped, with what it brings and costs said before."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.context.tidy import DeadWeight, units_of
from agent_tui.models.events import ContextChanged
from agent_tui.ui.screens.tidy import Ticked, TidyPicker
from tests.support.app import running
from tests.support.real_app import Chat, Home, make_home
from tests.ui.test_real_agent import ask, calls, conversation, records, says


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_worker: None) -> Home:
    return make_home(tmp_path, monkeypatch)


def read_three_times(home: Home) -> None:
    (home.project / "a.txt").write_text("".join(f"line {n} of a file\n" for n in range(200)))
    home.script(
        calls("read", path="a.txt") * 2
        + calls("list", path=".")
        + calls("read", path="a.txt")
        + says("Read.")
        + says("Yes.")
    )


async def opened(chat: Chat) -> TidyPicker:
    await chat.say("/tidy")
    await chat.until(lambda: isinstance(chat.app.screen, TidyPicker) and chat.app.screen.query("#rows"))
    assert isinstance(chat.app.screen, TidyPicker)
    return chat.app.screen


async def test_what_is_ticked_is_dropped_and_comes_back(home: Home) -> None:
    read_three_times(home)
    async with home.chat() as chat:
        await chat.say("/tidy")
        await chat.shows("Nothing to tidy")
        await ask(chat, "read it")
        picker = await opened(chat)
        await chat.shows("[ ] read a.txt", "same lines read again later", "Nothing ticked.")
        await chat.shows("Space tick · Ctrl+A all · Esc close")
        await chat.press("enter")
        await chat.shows("Nothing ticked. Space ticks a line")
        await chat.press("space")
        await chat.shows(
            "[x] read a.txt", "1 call ticked. Drops 2 messages", "Ctrl+A all · Enter drop · Ctrl+L drop later"
        )
        await chat.press("space")
        await chat.shows("Nothing ticked.")
        await chat.press("ctrl+a")
        await chat.shows("2 calls ticked. Drops 4 messages", "less per")
        assert len(picker.ticked) == 2 and records(home) == []
        await chat.press("enter")
        await chat.shows("Dropped 4 messages", "Calls: read a.txt", "undo restores them")
        path = conversation(home)
        (record,) = records(home)
        dropped = [tuple(m.id for m in unit) for unit in units_of(path) if len(unit) > 1][:2]
        assert (record.kind, record.reason) == ("drop", "edit") and {*record.message_ids} == {*dropped[0], *dropped[1]}
        await chat.say("/tidy")
        await chat.shows("Nothing to tidy")
        await chat.say("/context undo")
        await chat.shows("Dropped messages restored")
        await opened(chat)


async def test_escape_answers_nothing_and_enter_or_later_what_is_ticked(tmp_path: Path) -> None:
    found = [DeadWeight((f"m{n}",), f"read {n}.txt", "read again later", 100) for n in range(2)]
    answers: list[Ticked | None] = []
    async with running(tmp_path) as run:
        for number, keys in enumerate((["space", "escape"], ["space", "enter"], ["ctrl+a", "ctrl+l"]), 1):
            run.app.push_screen(TidyPicker(run.agent, found), answers.append)
            await run.screen(TidyPicker)
            await run.pilot.press(*keys)
            await run.until(lambda number=number: len(answers) == number)  # type: ignore[misc]
    assert answers == [None, (found[:1], False), (found, True)]


@pytest.mark.slow
async def test_escape_changes_nothing_and_later_waits(home: Home) -> None:
    read_three_times(home)
    async with home.chat() as chat:
        await ask(chat, "read it")
        await opened(chat)
        await chat.press("space", "escape")
        await chat.until(lambda: not isinstance(chat.app.screen, TidyPicker))
        assert records(home) == []
        await opened(chat)
        await chat.press("ctrl+a", "ctrl+l")
        await chat.seen.next(ContextChanged)
        await chat.until(lambda: not isinstance(chat.app.screen, TidyPicker))
        await chat.shows("Calls: read a.txt")


@pytest.mark.slow
async def test_by_number_without_the_list(home: Home) -> None:
    read_three_times(home)
    async with home.chat() as chat:
        await ask(chat, "read it")
        for wrong in ("drop", "drop 3", "drop x", "some"):
            await chat.say(f"/tidy {wrong}")
        await chat.shows("Usage: /tidy [drop N", "No such number: 3. The list has 1 to 2.")
        await chat.say("/tidy drop 2 2")
        await chat.shows("Dropped 2 messages")
        await chat.say("/tidy all")
        await chat.until(lambda: len(records(home)) == 2)
