"""What the terminal shows is what the compositor holds, whatever was drawn, moved or left alone on the way."""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import events
from textual.geometry import Offset, Region
from textual.message_pump import MessagePump
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from agent_tui.models.messages import Message, Part, ReasoningPart, TextPart, user_message
from agent_tui.models.requests import Delta
from agent_tui.ui.flow.paint import key
from agent_tui.ui.screens.picker import PickerRows
from agent_tui.ui.terminal.glass import Glass, can_scroll_regions
from agent_tui.ui.textual_private import scrolling
from agent_tui.ui.textual_private.frames import runs
from agent_tui.ui.textual_private.screen import EchoingScreen
from agent_tui.ui.theme import load_themes
from agent_tui.ui.transcript import view
from agent_tui.ui.transcript.view import DocumentView
from tests.support.drawn import NO_WRAP, Drawn, drawn
from tests.support.screen_model import ScreenModel
from tests.support.transcripts import chat
from tests.support.waiting import PATIENCE

SEEDS = range(40) if os.environ.get("AGENT_TUI_LONG_TESTS") else range(3)
STEPS = 60
PIECES = (
    "Some **bold** words and `code`, ",
    "\n\n",
    "\n- an item\n- another, which is so long that it is wrapped at the edge of nearly every screen there is\n",
    "\n```python\ndef f(x):\n    return x + 1\n```\n",
    "\n| a | b |\n|---|---|\n| 1 | 漢字 |\n\n",
    "日本語のとても長い文章がここに続きます、",
    "e\u0301 \U0001f468\u200d\U0001f469 ",
    "[a link](https://example.org/a?b=c) ",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \t tab ",
    "\n# A heading\n",
    "\n---\n",
)

THEMES = [theme for _, theme in sorted(load_themes(Path("/nonexistent")).themes.items()) if not theme.ansi]


class Acts:
    """Things that happen, each one a method; which of them comes next is random."""

    def __init__(self, shown: Drawn, seed: int) -> None:
        self.shown = shown
        self.app, self.pilot = shown.run.app, shown.run.pilot
        self.random = random.Random(seed)
        self.number = 0
        self.streaming = False

    async def one(self) -> str:
        names = [name for name in dir(Acts) if name.startswith("do_")]
        name = self.random.choice(names + ["do_stream"] * 8 + ["do_scroll"] * 4)
        act: Callable[[], Awaitable[None]] = getattr(self, name)
        await act()
        return name

    async def do_stream(self) -> None:
        if not self.streaming:
            self.number += 1
            self.streaming = True
            self.app.transcript.begin_answer(Message(f"a{self.number}", "assistant", status="streaming"))
        for _ in range(self.random.randint(1, 6)):
            text = self.random.choice(PIECES)
            self.app.transcript.apply_delta(f"a{self.number}", Delta(1, "text", text))

    async def do_end(self) -> None:
        if self.streaming:
            self.streaming = False
            text = "".join(self.random.choice(PIECES) for _ in range(self.random.randint(1, 30)))
            parts: list[Part] = [ReasoningPart("I thought about it.\n" * 4), TextPart(text)]
            self.app.transcript.end_answer(Message(f"a{self.number}", "assistant", parts))

    async def do_message(self) -> None:
        self.number += 1
        message = user_message("".join(self.random.choice(PIECES) for _ in range(3)))
        message.id = f"u{self.number}"
        self.app.transcript.add_message(message)

    async def do_notice(self) -> None:
        self.app.transcript.add_notice("warning", self.random.choice(PIECES))

    async def do_load(self) -> None:
        self.streaming = False
        self.app.transcript.load(chat(self.random.randint(1, 30)))

    async def do_scroll(self) -> None:
        transcript, how = self.app.transcript, self.random.randrange(7)
        if how == 0:
            transcript.scroll_home(animate=False)
        elif how == 1:
            transcript.scroll_end(animate=False)
        elif how == 2:
            transcript.scroll_page_up(animate=False)
        elif how == 3:
            transcript.scroll_page_down(animate=False)
        else:
            transcript.scroll_relative(y=self.random.choice((-3, -2, -1, 1, 2, 3)), animate=False)

    async def do_type(self) -> None:
        await self.pilot.press(*self.random.choice(("abc", "漢字", ["ctrl+j", "x"], ["ctrl+u"], ["backspace"] * 3)))

    async def do_resize(self) -> None:
        size = self.random.randint(20, 110), self.random.randint(6, 40)
        self.shown.terminal.resize(*size)
        await self.pilot.resize_terminal(*size)

    async def do_resize_and_back(self) -> None:
        """The terminal was of another size for a moment; the app hears only of the size it has again."""
        size = self.app.size
        self.shown.terminal.resize(size.width - 5, size.height - 3)
        self.shown.terminal.resize(*size)
        self.app.post_message(events.Resize(size, size))

    async def do_fold(self) -> None:
        self.app.action_toggle_reasoning()
        self.app.action_toggle_tools()

    async def do_select(self) -> None:
        transcript = self.app.transcript
        if slots := transcript.slots:
            first, last = sorted(self.random.choices(slots, k=2), key=lambda slot: slot.cursor)
            begin, end = (key(s.cursor.entry, s.cursor.piece, s.line.row) for s in (first, last))
            selection = Selection(Offset(self.random.randint(0, 5), begin), Offset(self.random.randint(0, 9), end))
            self.app.stage.screen.selections = {transcript: selection}

    async def do_unselect(self) -> None:
        self.app.transcript.clear_selection()

    async def do_find(self) -> None:
        self.app.transcript.find(self.random.choice(("an", "code", "answer", "日")))
        self.app.transcript.find_prev()

    async def do_stop_finding(self) -> None:
        self.app.transcript.clear_find()

    async def do_activity(self) -> None:
        self.app.stage.hint("A hint")
        self.app.stage.phase(self.random.choice(("Working", "Answering")))

    async def do_rest(self) -> None:
        self.app.activity.end()

    async def do_dialog(self) -> None:
        """Something lies over the transcript, which goes on streaming beneath."""
        self.app.open_screen(self.random.choice(("help", "palette", "themes", "context")))
        await self.shown.settle()
        self.shown.check("a dialog opened")
        await self.do_stream()
        await self.shown.settle()
        self.shown.check("streamed beneath a dialog")
        await self.pilot.press("down", "escape")
        await self.shown.run.until(lambda: len(self.app.screen_stack) == 1)

    async def do_theme(self) -> None:
        theme = self.random.choice(THEMES)
        self.app.register_theme(theme)
        self.app.theme = theme.name

    async def do_redraw(self) -> None:
        self.app.action_redraw()

    async def do_spoil(self) -> None:
        """Something else wrote to the terminal, and the user asks for the screen again."""
        self.shown.terminal.feed("\x1b[3;3H?????")
        self.app.action_redraw()


async def test_a_terminal_that_was_smaller_for_a_moment_is_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        await shown.settle()
        await Acts(shown, 0).do_resize_and_back()
        await shown.run.until(lambda: not any("~" in row for row in shown.terminal.text()))
        await shown.settle()
        shown.check()


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_terminal_shows_what_the_compositor_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        acts, names = Acts(shown, seed), []
        shown.run.app.transcript.load(chat(3))
        await shown.settle()
        shown.check("the start")
        for _ in range(STEPS):
            names.append(await acts.one())
            await shown.settle()
            shown.check(names)
        assert shown.terminal.moves > 0


TEXTS = st.sampled_from(["", "a", "bb", "ccc", "dddd", "漢", "\x1b[1me\x1b[0m", "f" * 12, "g" * 12, "h" * 12])
WIDTH = 14


@st.composite
def screens(draw: st.DrawFn) -> list[dict[int, str]]:
    """Rows of one or two parts; the next screen is often the last one, moved."""
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        text = draw(TEXTS)
        size = cell_len(re.sub(r"\x1b\[\d*m", "", text))
        cut = draw(st.sampled_from([WIDTH, WIDTH - 1]))
        rows.append({0: text + " " * (cut - size)} | ({cut: draw(st.sampled_from("│█"))} if cut < WIDTH else {}))
    return rows


def shown(rows: list[dict[int, str]]) -> ScreenModel:
    model = ScreenModel(WIDTH, len(rows))
    model.feed(NO_WRAP)
    for y, row in enumerate(rows):
        model.feed("".join(f"\x1b[{y + 1};{x + 1}H{text}" for x, text in row.items()))
    return model


@settings(max_examples=300 if os.environ.get("AGENT_TUI_LONG_TESTS") else 80, deadline=None)
@given(screens(), st.lists(st.tuples(st.integers(-5, 5), screens()), max_size=6), st.booleans())
def test_any_rows_become_any_others(
    first: list[dict[int, str]], later: list[tuple[int, list[dict[int, str]]]], regions: bool
) -> None:
    """Moved by some rows, with some of the rows of another screen, what stays left out."""
    height = len(first)
    glass, model = Glass(regions), ScreenModel(WIDTH, height)
    model.feed(NO_WRAP)
    glass.fit(WIDTH, height)
    rows = first
    model.feed(glass.draw(dict(enumerate(rows)), dict.fromkeys(range(height), True)))
    assert model.rows == shown(rows).rows
    for by, other in later:
        moved = [rows[y + by] if 0 <= y + by < height else other[y % len(other)] for y in range(height)]
        changes = {y: row for y, row in enumerate(moved) if row != rows[y]}
        whole = {y: list(row) != list(rows[y]) for y, row in changes.items()}
        parts = {
            y: row if whole[y] else {x: text for x, text in row.items() if text != rows[y][x]}
            for y, row in changes.items()
        }
        rows = moved
        model.feed(glass.draw(parts, whole))
        assert model.rows == shown(rows).rows
        assert regions or not model.moves
    assert glass.draw(dict(enumerate(rows)), dict.fromkeys(range(height), True)) == ""


def lines(first: int, height: int = 10) -> dict[int, dict[int, str]]:
    return {y: {0: f"line {first + y}, which is as long as the screen is wide", 50: "│"} for y in range(height)}


@pytest.mark.parametrize("by", [1, 3, -1, -2])
def test_what_only_moved_is_moved(by: int) -> None:
    glass, whole = Glass(True), dict.fromkeys(range(10), True)
    glass.fit(51, 10)
    glass.draw(lines(100), whole)
    sent = glass.draw(lines(100 + by), whole)
    assert sent.count("line") == abs(by)
    glass.draw(lines(100), whole)
    without = Glass(False)
    without.fit(51, 10)
    without.draw(lines(100), whole)
    assert without.draw(lines(100 + by), whole).count("line") == 10


def test_a_terminal_without_scroll_regions_is_known() -> None:
    assert can_scroll_regions("xterm-256color") and can_scroll_regions("linux") and can_scroll_regions("screen")
    assert not can_scroll_regions("dumb") and not can_scroll_regions("")


async def test_nothing_is_sent_where_nothing_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        await shown.settle()
        shown.sent.clear()
        shown.run.app.screen.refresh()
        shown.run.app.transcript.refresh()
        await shown.settle()
        assert shown.sent == []


async def test_a_key_is_shown_before_what_else_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for the time of the next frame does not keep the key waiting."""
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        app = shown.run.app
        await shown.settle()
        app.screen._update_timer.stop()
        app.transcript.add_notice("info", "a line that waits")
        app.post_message(events.Key("Ω", "Ω"))
        async with asyncio.timeout(PATIENCE):
            while not any("Ω" in row for row in shown.terminal.text()):  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert not any("waits" in row for row in shown.terminal.text())

        await shown.settle()
        assert any("waits" in row for row in shown.terminal.text())


async def test_every_frame_is_one_synchronized_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        await shown.settle()
        shown.sent.clear()
        await shown.run.type("hello")
        shown.run.app.transcript.load(chat(4))
        await shown.settle()
        frames = [text for text in shown.sent if "\x1b[?2026" in text]
        assert frames
        for text in frames:
            assert text.startswith("\x1b[?2026h") and text.endswith("\x1b[?2026l") and text.count("\x1b[?2026") == 2


async def test_a_streamed_line_moves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stood above is not sent again."""
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        app = shown.run.app
        app.transcript.load(chat(10))
        app.transcript.begin_answer(Message("s", "assistant", status="streaming"))
        app.transcript.apply_delta("s", Delta(0, "text", "first\n\n"))
        await shown.settle()
        shown.sent.clear()
        app.transcript.apply_delta("s", Delta(0, "text", "second\n\nthird"))
        await shown.settle()
        sent = "".join(shown.sent)
        assert "third" in sent and "answer 9" not in sent and shown.terminal.moves


async def test_what_else_changes_is_drawn_with_the_next_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The spinner has no frame of its own while an answer has one coming."""
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        app = shown.run.app
        app.transcript.begin_answer(Message("s", "assistant", status="streaming"))
        app.transcript.apply_delta("s", Delta(0, "text", "first"))
        await shown.settle()
        monkeypatch.setattr(view, "FRAME", 1e4)
        monkeypatch.setattr(scrolling, "SOON", 1e5)
        shown.sent.clear()
        app.transcript.apply_delta("s", Delta(0, "text", " second"))
        app.stage.hint("a hint that waits")
        while app.stage.activity not in app.screen._dirty_widgets:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for _ in range(20):  # the screen has nothing more to do
            await asyncio.sleep(0)
        assert not app.screen._update_timer._active.is_set() and not shown.sent

        app.transcript._frame()
        assert isinstance(app.screen, EchoingScreen)
        app.screen.draw_now()
        (frame,) = (text for text in shown.sent if "waits" in text)
        assert "second" in frame


async def test_nothing_waits_for_a_frame_that_is_far_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that takes long to lay out is drawn rarely; a hint is not."""
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        app = shown.run.app
        app.transcript.begin_answer(Message("s", "assistant", status="streaming"))
        app.transcript.apply_delta("s", Delta(0, "text", "first"))
        await shown.settle()
        monkeypatch.setattr(view, "FRAME", 1e4)
        app.transcript.apply_delta("s", Delta(0, "text", " second"))
        app.stage.hint("a hint at once")
        await shown.run.until(lambda: any("at once" in row for row in shown.terminal.text()))
        assert not any("second" in row for row in shown.terminal.text())


async def test_a_frame_needs_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the view nor its scrollbar nor the screen are sent one for an answer that grows."""
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        app = shown.run.app
        app.transcript.load(chat(10))
        app.transcript.begin_answer(Message("s", "assistant", status="streaming"))
        app.transcript.apply_delta("s", Delta(0, "text", "first\n\n"))
        await shown.settle()
        posted: list[str] = []

        def post(widget: MessagePump, message: object) -> bool:
            posted.append(f"{type(message).__name__} to {type(widget).__name__}")
            return True

        with monkeypatch.context() as patched:
            patched.setattr(MessagePump, "post_message", post)
            patched.setattr(Widget, "post_message", post)
            app.transcript.apply_delta("s", Delta(0, "text", "one\n\ntwo\n\nthree"))
            async with asyncio.timeout(PATIENCE):
                while not any("three" in text for text in shown.sent):  # noqa: ASYNC110
                    await asyncio.sleep(0)
        assert posted == []


@pytest.mark.parametrize("name", ["help", "themes"])
async def test_behind_a_dialog_only_what_changed_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        app = shown.run.app
        app.transcript.begin_answer(Message("s", "assistant", status="streaming"))
        app.transcript.apply_delta("s", Delta(0, "text", "first\n\nsecond"))
        await shown.settle()
        app.open_screen(name)
        await shown.settle()
        asked: list[Region] = []
        render = DocumentView.render_lines

        def watched(self: DocumentView, crop: Region) -> list[Strip]:
            asked.append(crop)
            return render(self, crop)

        monkeypatch.setattr(DocumentView, "render_lines", watched)
        shown.sent.clear()
        app.transcript.apply_delta("s", Delta(0, "text", " and more"))
        await shown.settle()
        assert 0 < sum(crop.height for crop in asked) <= 4  # what the answer has
        assert len("".join(shown.sent)) < 600
        shown.check("streamed behind a dialog")


async def test_what_changes_in_a_dialog_and_behind_it_at_once_is_all_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        app = shown.run.app
        app.transcript.begin_answer(Message("s", "assistant", status="streaming"))
        app.open_screen("help")
        await shown.settle()
        rows = app.screen.query_one(PickerRows)
        for steps in range(12):  # of the loop between the two
            rows.action_move(1)
            for _ in range(steps):
                await asyncio.sleep(0)
            app.transcript.apply_delta("s", Delta(0, "text", "one\n\n"))
            app.stage.screen.refresh(Region(0, 0, 80, 2))
            await shown.settle()
            shown.check(steps)


def test_the_rows_of_a_frame_are_asked_for_in_runs() -> None:
    assert runs(dict.fromkeys([])) == []
    assert runs(dict.fromkeys([3, 4, 5, 8, 10, 11])) == [(3, 3), (8, 1), (10, 2)]
