"""What the terminal shows is what the compositor holds, whatever was drawn, moved or left alone on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual import events
from textual.geometry import Region
from textual.message_pump import MessagePump
from textual.strip import Strip
from textual.widget import Widget

from agent_tui.models.messages import Message
from agent_tui.models.requests import Delta
from agent_tui.ui.screen_buffer import runs
from agent_tui.ui.screens.picker import PickerRows
from agent_tui.ui.textual_private.drawing import EchoingScreen
from agent_tui.ui.transcript import view
from agent_tui.ui.transcript.view import DocumentView
from tests.support.forms import examples
from tests.support.waiting import PATIENCE
from tests.ui.drawn import drawn
from tests.ui.screen_acts import Acts
from tests.ui.transcripts import chat

if TYPE_CHECKING:
    from agent_tui.ui.chat.view import Opened

pytestmark = pytest.mark.quick

SEEDS = range(examples(3, 40))
STEPS = 60


async def test_a_terminal_that_was_smaller_for_a_moment_is_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        await shown.settle()
        await Acts(shown, 0).do_resize_and_back()
        await shown.run.until(lambda: not any("~" in row for row in shown.terminal.text()))
        await shown.settle()
        shown.check()


@pytest.mark.slow
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
        monkeypatch.setattr("agent_tui.ui.textual_private.drawing.SOON", 1e5)
        shown.sent.clear()
        app.transcript.apply_delta("s", Delta(0, "text", " second"))
        app.view.hint("a hint that waits")
        while app.view.activity not in app.screen._dirty_widgets:  # noqa: ASYNC110
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
        app.view.hint("a hint at once")
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


@pytest.mark.parametrize("name", ["help"])  # a picker of themes draws all that stands behind it anew
async def test_behind_a_dialog_only_what_changed_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: Opened
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
            app.view.screen.refresh(Region(0, 0, 80, 2))
            await shown.settle()
            shown.check(steps)


async def test_what_changes_behind_a_dialog_while_nothing_may_be_drawn_is_drawn_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with drawn(tmp_path, monkeypatch, (80, 24)) as shown:
        app = shown.run.app
        screen = app.view.screen
        assert isinstance(screen, EchoingScreen)
        app.open_screen("help")
        await shown.settle()
        with app.batch_update():
            screen.refresh(Region(0, 0, 80, 2))
            await shown.run.pilot.pause()
            screen.draw_now()
            await shown.run.pilot.pause()
            assert screen._repaint_required
        await shown.settle()
        shown.check("drawn together")


def test_the_rows_of_a_frame_are_asked_for_in_runs() -> None:
    assert runs(dict.fromkeys([])) == []
    assert runs(dict.fromkeys([3, 4, 5, 8, 10, 11])) == [(3, 3), (8, 1), (10, 2)]
