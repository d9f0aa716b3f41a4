"""What MCP servers ask on the screen: forms, addresses and calls of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_tui.commands import desktop
from agent_tui.models.events import Event, QuestionClosed, ServerAsked
from agent_tui.models.forms import Choice, FormField
from agent_tui.ui.widgets.question import QuestionPanel, WholeInput
from tests.support.app import Running, running
from tests.support.showcase import form

HOSTILE = "\x1b]0;gone\x07[bold]x[/bold] \x9b2J\u202egnp.exe"
GIVEN = {"days": 3, "train": False, "seat": "window"}
PAGE = ServerAsked("srv_1", "trips", "url", "Pay there.", url="https://pay.example.com/1", about="pay.example.com")


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


FILLED: list[tuple[list[str], str, dict[str, Any]]] = [
    (["enter", *"Rome", "enter", "s"], "accept", {"city": "Rome", **GIVEN}),
    (
        ["1", *"Rome", "enter", "enter", "backspace", "7", "enter", "s"],
        "accept",
        {**GIVEN, "city": "Rome", "days": 7},
    ),
    (["s", "enter", *"Rome", "enter", "3", "s"], "accept", {**GIVEN, "city": "Rome", "train": True}),
    (["1", *"R", "enter", *"ome", "enter", "s"], "accept", {"city": "Rome", **GIVEN}),
    (["1", *"Rome", "enter", "4", "down", "enter", "s"], "accept", {**GIVEN, "city": "Rome", "seat": "aisle"}),
    (["1", *"Rome", "enter", "4", "escape", "s"], "accept", {"city": "Rome", **GIVEN}),
    (
        ["1", *"Rome", "enter", "5", "space", "down", "space", "b", "s"],
        "accept",
        {"city": "Rome", **GIVEN, "meals": ["b", "d"]},
    ),
    (["1", *"Rome", "enter", "5", "1", "1", "b", "s"], "accept", {"city": "Rome", **GIVEN}),
    (
        ["1", *"Rome", "enter", "2", *["backspace"] * 3, "enter", "s"],
        "accept",
        {"city": "Rome", "train": False, "seat": "window"},
    ),
    (["n"], "decline", {}),
    (["escape"], "cancel", {}),
    (["1", *"Rome", "escape", "escape"], "cancel", {}),
]


@pytest.mark.slow
async def test_a_form_is_filled_in(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for keys, action, values in FILLED:
            run.agent.calls.clear()
            run.clock.now += 5
            await shown(run, form())
            assert "trips asks for input" in run.shown() and "City *: —" in run.shown()
            await run.answer(*keys)
            await run.until(lambda: run.agent.called("answer_server"))
            (name, said, given), *more = run.agent.called("answer_server")
            assert (name, said, more) == ("srv_1", action, []), keys
            if action == "accept":
                assert given == values, keys
            await run.until(lambda: run.app.chat.questions.panel is None and run.app.prompt.has_focus)


async def test_what_is_missing_or_wrong_is_said_and_nothing_is_sent(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, form())
        await run.answer("s")
        await run.pilot.pause()
        assert "City is required." in run.shown()
        await run.answer("2", "backspace", *"99", "enter")
        await run.pilot.pause()
        assert "Days: must be a whole number, 1 to 30" in run.shown()
        assert panel(run).query_one(WholeInput).value == "99"
        assert not run.agent.called("answer_server")


@pytest.mark.quick
async def test_an_address_is_shown_and_opened_only_after_a_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    urls: list[str] = []
    found: list[bool] = []

    def open_address(url: str, clicked: bool) -> bool:
        urls.append(url)
        return found[-1]

    monkeypatch.setattr(desktop, "open_address", open_address)
    async with running(tmp_path) as run:
        for key, action, opened, there in (
            ("y", "accept", 1, True),
            ("o", "accept", 0, True),
            ("n", "decline", 0, True),
            ("y", "accept", 1, False),
        ):
            urls.clear()
            found.append(there)
            run.agent.calls.clear()
            run.clock.now += 5
            await shown(run, PAGE)
            assert "trips asks you to open an address" in run.shown() and "at pay.example.com" in run.shown()
            assert PAGE.url in run.shown() and urls == [] and not run.agent.called("answer_server")
            await run.answer(key)
            await run.until(lambda: run.agent.called("answer_server"))
            assert [said for _, said, _ in run.agent.called("answer_server")] == [action], key
            await run.until(lambda opened=opened: urls == [PAGE.url] * opened)  # type: ignore[misc]
            await run.until(lambda: run.app.chat.questions.panel is None)
        await run.until(lambda: f"open this address yourself: {PAGE.url}" in " ".join(run.shown().split()))


@pytest.mark.quick
async def test_a_servers_text_is_only_drawn(tmp_path: Path) -> None:
    fields = (FormField("a", HOSTILE, "choice", HOSTILE, choices=(Choice(HOSTILE, HOSTILE), Choice("b", "B"))),)
    async with running(tmp_path) as run:
        await shown(run, ServerAsked("srv_1", HOSTILE, "form", HOSTILE, fields))
        for key in ("1", "1"):
            for control in ("\x1b", "\x07", "\x9b", "\u202e"):
                assert control not in run.shown()
            assert "[bold]x[/bold]" in run.shown()
            await run.pilot.press(key)
            await run.pilot.pause()


@pytest.mark.slow
async def test_a_question_that_waits_no_more_goes_away(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await shown(run, form())
        run.agent.turns.busy = False
        run.agent.publish(QuestionClosed("srv_1"))
        await run.until(lambda: not run.app.view.screen.query("ServerPanel"))
        assert not run.agent.called("answer_server") and run.app.prompt.has_focus


@pytest.mark.slow
async def test_rows_and_status_are_to_be_seen_on_every_screen(tmp_path: Path) -> None:
    asked = ServerAsked(
        "srv_1", "trips", "form", "long line " * 300, tuple(FormField(str(n), "x" * 90) for n in range(30))
    )
    async with running(tmp_path) as run:
        await shown(run, asked)
        for size in ((80, 24), (60, 16), (40, 10)):
            await run.pilot.resize_terminal(*size)
            await run.pilot.pause()
            choices = panel(run)._choices
            assert choices.region.height and choices.region.bottom <= run.app.view.status.region.y, size
            await run.pilot.press("up", "up")
            await run.pilot.pause()
            assert "Send" in run.shown(), size
            await run.pilot.press("down", "down")
