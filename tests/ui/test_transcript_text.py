"""Selecting, copying, finding: logical text, whatever the width and whatever is folded."""

from __future__ import annotations

import pytest
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import SELECT_ALL

from agent_tui.models.messages import Message, ReasoningPart, ToolCallPart, ToolResultPart, user_message
from agent_tui.ui.transcript import FindState, Transcript, reader
from agent_tui.ui.transcript.document import Cursor
from agent_tui.ui.transcript.messages import CopyRequested, FindChanged, LinkClicked, PinAsked
from tests.support.waiting import PATIENCE
from tests.ui.transcripts import Holder, answer, chat, screen

pytestmark = [pytest.mark.quick, pytest.mark.versions]

SOURCE = (
    "A paragraph that is **long enough** to be wrapped at this width.\n\n- one\n  - two\n\n"
    "```py\nif x:\n    y()\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"
)


async def drag(pilot: Pilot[None], t: Transcript, start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(t, offset=start)
    await pilot.hover(t, offset=end)
    await pilot.mouse_up(t, offset=end)
    await pilot.pause()


async def test_everything_is_the_logical_text() -> None:
    app = Holder()
    async with app.run_test(size=(30, 40)) as pilot:
        t = app.transcript
        t.load([user_message("ask *this*"), answer(SOURCE)])
        await pilot.pause()
        t.screen.selections = {t: SELECT_ALL}
        assert t.selected_text() == (
            "ask *this*\n\nA paragraph that is long enough to be wrapped at this width.\n\n- one\n  - two\n\n"
            "if x:\n    y()\n\n| a | b |\n|---|---|\n| 1 | 2 |"
        )
        assert t.screen.get_selected_text() == t.selected_text()


async def test_dragging_over_a_wrapped_paragraph_unwraps_it() -> None:
    app = Holder()
    async with app.run_test(size=(30, 20)) as pilot:
        t = app.transcript
        t.load([answer("alpha beta gamma delta epsilon zeta eta theta iota kappa")])
        await pilot.pause()
        lines = screen(t)
        assert "epsilon" not in lines[1]
        await drag(pilot, t, (8, 1), (6, 2))
        assert t.selected_text() == "beta gamma delta epsilon zeta"[: len(t.selected_text())]
        assert t.selected_text().startswith("beta gamma") and "\n" not in t.selected_text()


async def test_a_selection_stays_on_its_text_when_things_move() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load([*chat(3), answer("target words here", "x")])
        await pilot.pause()
        y = next(k for k, line in enumerate(screen(t)) if "target" in line)
        await drag(pilot, t, (2, y), (7, y))
        assert t.selected_text() == "target"
        t.add_message(user_message("pushes everything up\n" * 5))
        await pilot.pause()
        await pilot.resize_terminal(50, 25)
        await pilot.pause()
        assert t.selected_text() == "target"


async def test_wide_characters_are_selected_whole() -> None:
    app = Holder()
    async with app.run_test(size=(60, 10)) as pilot:
        t = app.transcript
        t.load([answer("日本語テキスト ok")])
        await pilot.pause()
        await drag(pilot, t, (4, 1), (6, 1))
        assert t.selected_text() == "本語"


async def test_code_and_decoration() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load([answer("```py\nif x:\n    y()\n```\n\n> quoted text\n\n1. item")])
        await pilot.pause()
        await drag(pilot, t, (0, 1), (59, 3))
        assert t.selected_text() == "if x:\n    y()"
        y = next(k for k, line in enumerate(screen(t)) if "quoted" in line)
        await drag(pilot, t, (0, y), (50, y + 2))
        assert t.selected_text() == "quoted text\n\n1. item"


async def test_double_click_takes_a_word_and_triple_a_paragraph() -> None:
    app = Holder()
    async with app.run_test(size=(24, 10)) as pilot:
        t = app.transcript
        t.load([answer("some words that are wrapped over lines")])
        await pilot.pause()
        await pilot.click(t, offset=(8, 1), times=2)
        assert t.selected_text() == "words"
        await pilot.click(t, offset=(8, 1), times=3)
        assert t.selected_text() == "some words that are wrapped over lines"


async def test_selecting_and_copying_with_keys() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load([answer("first\n\nsecond\n\nthird")])
        t.focus()
        await pilot.pause()
        await pilot.press("shift+up")
        assert t.selected_text() == "third"
        await pilot.press("shift+up", "shift+up")
        assert t.selected_text() == "second\n\nthird"
        await pilot.press("y")
        await pilot.pause()
        copied = [m for m in app.posted if isinstance(m, CopyRequested)]
        assert [(m.text, m.what) for m in copied] == [("second\n\nthird", "selection")]


async def test_a_key_asks_to_pin_the_selected_message_or_the_newest_of_the_users_in_view() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        first, second = user_message("call it quokka"), user_message("and?")
        t.load([first, answer("fine"), second, answer("well", "m2")])
        t.focus()
        await pilot.pause()
        await pilot.press("P")
        await pilot.press("shift+up", "P")
        await pilot.pause()
        assert [m.message_id for m in app.posted if isinstance(m, PinAsked)] == [second.id, "m2"]


async def test_copy_helpers() -> None:
    app = Holder()
    async with app.run_test(size=(60, 40)) as pilot:
        t = app.transcript
        t.load(
            [answer("**one**", "m1"), user_message("and?"), answer("two\n```sh\nls\n```\n", "m2", ReasoningPart("hm"))]
        )
        await pilot.pause()
        assert t.last_answer() == "two\n```sh\nls\n```\n"
        assert t.last_code() == "ls"
        y = next(k for k, line in enumerate(screen(t)) if line.endswith("sh · copy"))
        await pilot.click(t, offset=(55, y))
        await pilot.pause()
        assert [(m.text, m.what) for m in app.posted if isinstance(m, CopyRequested)] == [("ls", "code")]


async def test_the_copy_label_of_long_code_copies_all_of_it() -> None:
    app = Holder()
    async with app.run_test(size=(60, 40)) as pilot:
        t = app.transcript
        code = "\n".join(f"line {k}" for k in range(250))
        t.load([answer(f"```\n{code}\n```")])
        await pilot.pause()
        t.scroll_home(animate=False)
        await pilot.pause()
        await pilot.click(t, offset=(55, 1))
        await pilot.pause()
        assert [m.text for m in app.posted if isinstance(m, CopyRequested)] == [code]


async def test_links_are_told() -> None:
    app = Holder()
    async with app.run_test(size=(60, 10)) as pilot:
        app.transcript.load([answer("go [there](https://x.org/a) now")])
        await pilot.pause()
        await pilot.click(app.transcript, offset=(6, 1))
        await pilot.pause()
        assert [m.url for m in app.posted if isinstance(m, LinkClicked)] == ["https://x.org/a"]


async def test_finds_in_everything_and_opens_what_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FIND_SLICE", PATIENCE)
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        call = ToolCallPart("c", "bash", '{"command": "make"}')
        t.load(
            [
                user_message("where is the NEEDLE?"),
                Message("a", "assistant", [ReasoningPart("a **needle** in thought"), call]),
                Message("r", "tool", [ToolResultPart("c", "bash", "output\nneedle in output\nneedle again")]),
                *chat(20),
                answer("a wrapped nee**dle** here", "z"),
            ]
        )
        await pilot.pause()
        state = t.find("needle")
        assert state == FindState("needle", 5, 5, True)
        total = state.total
        assert t.find_next() == FindState("needle", 1, total, True)
        assert "NEEDLE" in "".join(screen(t))
        t.find_next()
        assert any("│ a needle in thought" in line for line in screen(t))
        t.find_next()
        assert any("needle in output" in line for line in screen(t))
        assert t.find_prev().current == 2
        strips = [t.render_line(y) for y in range(20)]
        found = [s.style for strip in strips for s in strip if s.style is not None and s.text.lower() == "needle"]
        styles = {style.bgcolor for style in found}
        reverse = [style for style in found if style.reverse]
        assert styles and reverse
        t.clear_find()
        assert not [s for y in range(20) for s in t.render_line(y) if s.style and s.style.reverse]


async def test_the_search_takes_new_messages_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FIND_SLICE", PATIENCE)
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load(chat(3))
        await pilot.pause()
        assert t.find("special") == FindState("special", 0, 0, True)
        t.add_message(user_message("something special"))
        assert t.find_next() == FindState("special", 1, 1, True)
        assert t.find("") == FindState("", 0, 0, True)


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_search_begins_where_one_looks(monkeypatch: pytest.MonkeyPatch, at_once: bool) -> None:
    monkeypatch.setattr(reader, "FIND_SLICE", PATIENCE if at_once else 0.0)
    app = Holder()
    async with app.run_test(size=(60, 12)) as pilot:
        t = app.transcript
        said = {5: "a needle, early", 40: "a needle, and a needless one", 70: "a needle, late"}
        t.load([user_message(said.get(n, f"line {n}")) for n in range(80)])
        await pilot.pause()

        async def found(text: str) -> str:
            t.find(text)
            while t.finder is not None and not t.finder.complete:
                t._search(t.finder, True)
            await pilot.pause()
            return next(line.strip() for line in screen(t) if "needle" in line)

        assert "late" in await found("needle"), "at the end the newest is nearest"
        t.clear_find()
        t.go_to(Cursor(20, 0, 0))
        await pilot.pause()
        assert "and" in await found("needle")
        assert t.finder is not None and (t.finder.state.current, t.finder.state.total) == (2, 4)
        assert "and" in await found("needles"), "from the same place while one types on"
        assert "early" in await found("early"), "what is only above is found, too"


async def test_a_long_search_goes_on_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FIND_SLICE", 0.0)
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load(chat(3))
        await pilot.pause()
        state = t.find("line 9")
        assert not state.complete
        while t.finder is not None and not t.finder.complete:
            t._search(t.finder, True)
        await pilot.pause()
        last = [m.state for m in app.posted if isinstance(m, FindChanged)][-1]
        assert last == FindState("line 9", 3, 3, True)


async def test_offsets_of_every_line_lead_to_its_text() -> None:
    app = Holder()
    async with app.run_test(size=(40, 30)) as pilot:
        t = app.transcript
        t.load([user_message("ask"), answer(SOURCE)])
        await pilot.pause()
        for y in range(len([line for line in screen(t) if line])):
            _, offset = t.screen.get_widget_and_offset_at(20, y)
            assert isinstance(offset, Offset)
