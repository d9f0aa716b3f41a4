"""When the terminal is sent a picture of a screen of its own, when it is to forget it, and how one gets there."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image

from agent_tui.engine.graphics import Graphics, Way, graphics
from agent_tui.models.messages import AttachmentPart, Message, TextPart, ToolCallPart, ToolResultPart
from agent_tui.ui.chat.pictures import NO_VIEWER
from agent_tui.ui.screens.help import HelpScreen
from agent_tui.ui.screens.picture import PictureScreen
from agent_tui.ui.terminal.pictures import FEW_NUMBER, NUMBER
from tests.support.app import Running, running
from tests.support.fake_agent import FakeAgent
from tests.support.starting import use_programs_in


def picture(name: str, color: str) -> AttachmentPart:
    out = io.BytesIO()
    Image.new("RGB", (60, 40), color).save(out, "PNG")
    return AttachmentPart(name, "image/png", data=base64.b64encode(out.getvalue()).decode())


class Told(list[str]):
    """What the terminal was told of the picture on a screen of its own, in a word each."""

    def write(self, sequence: str) -> None:
        if f"i={NUMBER}," in sequence or f"i={FEW_NUMBER}," in sequence:
            self.append("drawn" if "a=T" in sequence else "erased")


@asynccontextmanager
async def conversation(
    home: Path, monkeypatch: pytest.MonkeyPatch, way: Way = "inline"
) -> AsyncIterator[tuple[Running, Told]]:
    """The user attached one picture, and a tool answered with another."""
    messages = [
        Message("u1", "user", [TextPart("look"), picture("first.png", "red")]),
        Message("a1", "assistant", [ToolCallPart("c1", "read", "{}")]),
        Message("t1", "tool", [ToolResultPart("c1", "read", "an image"), picture("second.png", "blue")]),
    ]
    agent, told = FakeAgent(home, messages=messages), Told()
    async with running(home, agent) as r:
        monkeypatch.setattr(r.app, "write_to_terminal", told.write)
        r.app.transcript.load(messages)
        r.app.chat.pictures.use(Graphics(way, "as it can: why"))
        await r.pilot.pause()
        yield r, told


async def opened(r: Running, told: Told, times: int) -> PictureScreen:
    """The screen, once something was drawn so many times."""
    await r.until(lambda: told.count("drawn") == times)
    assert isinstance(r.app.screen, PictureScreen)
    return r.app.screen


async def in_blocks(r: Running) -> PictureScreen:
    """The screen, once it shows one in coarse blocks."""
    await r.until(lambda: "▀" in r.shown())
    assert isinstance(r.app.screen, PictureScreen)
    return r.app.screen


@pytest.mark.slow
async def test_the_command_shows_the_newest_and_keys_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with conversation(tmp_path, monkeypatch) as (r, told):
        assert told == []
        await r.type("/picture")
        await r.pilot.press("enter")
        await opened(r, told, 1)
        assert "second.png · 60 × 40 · image/png" in r.shown() and "2 of 2" in r.shown()
        assert "← → other pictures · o opens it in a viewer · Esc back" in r.shown()
        await r.pilot.press("right", "left")
        screen = await opened(r, told, 2)
        assert "first.png" in r.shown() and screen.index == 0
        await r.pilot.press("escape")
        await r.until(lambda: len(r.app.screen_stack) == 1)
        assert told == ["drawn", "erased", "drawn", "erased"]


async def test_one_that_is_named_or_clicked_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with conversation(tmp_path, monkeypatch, "blocks") as (r, _):
        assert r.shown().count("60 × 40 · click or /picture shows it") == 2
        r.app.open_screen("picture", "FIRST")
        assert (await in_blocks(r)).index == 0
        await r.pilot.press("q")
        await r.until(lambda: len(r.app.screen_stack) == 1)
        line = next(y for y, text in enumerate(r.shown().split("\n")) if "▣ second.png" in text)
        await r.pilot.click(offset=(10, line))
        assert (await in_blocks(r)).index == 1
        await r.pilot.press("escape")
        await r.until(lambda: len(r.app.screen_stack) == 1)
        r.app.transcript.focus()
        await r.pilot.press("enter")
        assert (await in_blocks(r)).index == 1
        await r.pilot.press("escape")
        await r.until(lambda: len(r.app.screen_stack) == 1)
        r.app.open_screen("picture", "third[/]")
        await r.until(lambda: "No picture named third[/] in this conversation." in r.shown())


async def test_why_it_is_coarse_is_said_as_far_as_there_is_room_and_never_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = graphics("auto", {"TMUX": "x"}, lambda: "xterm-256color|xterm|on|256").detail.rpartition(": ")[2]
    async with conversation(tmp_path, monkeypatch, "blocks") as (r, _):
        r.app.chat.pictures._found = Graphics("blocks", f"coarse: {why}")
        r.app.open_screen("picture")
        await r.until(lambda: isinstance(r.app.screen, PictureScreen))
        for width, said in ((200, why), (110, why.partition("; ")[0]), (90, "/doctor"), (60, "Esc back")):
            await r.pilot.resize_terminal(width, 20)
            await r.until(lambda: r.shown().rstrip().endswith(said))  # noqa: B023
            assert "…" not in r.shown().rstrip().split("\n")[-1]


async def test_a_terminal_that_was_somebody_elses_gets_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with conversation(tmp_path, monkeypatch) as (r, told):
        r.app.open_screen("picture")
        await opened(r, told, 1)
        r.app.push_screen(HelpScreen(r.agent, {}, ""))
        await r.screen(HelpScreen)
        await r.pilot.press("escape")
        await opened(r, told, 2)
        r.app.action_redraw()  # as after the program was suspended
        await opened(r, told, 3)
        assert told == ["drawn", "erased"] * 2 + ["drawn"]
        r.app.chat.pictures.end()
        assert told[-1] == "erased"


@pytest.mark.skipif(os.name != "posix", reason="needs a script")
async def test_a_viewer_gets_a_file_of_its_own_or_it_is_said_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with conversation(tmp_path, monkeypatch, "blocks") as (r, _):
        (tmp_path / "bin").mkdir()
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        r.app.open_screen("picture", "second")
        await in_blocks(r)
        await r.pilot.press("o")
        await r.until(lambda: NO_VIEWER in r.shown())
        monkeypatch.setenv("DISPLAY", ":7")
        shown, program = tmp_path / "shown", tmp_path / "bin" / "xdg-open"
        program.write_text(f'#!/bin/sh\n/bin/cp "$1" {shown}.part && /bin/mv {shown}.part {shown}\n')
        program.chmod(0o755)
        use_programs_in(monkeypatch, tmp_path / "bin")
        await r.pilot.press("left", "right", "o")
        await r.until(shown.exists)
        assert NO_VIEWER not in r.shown()
        with Image.open(shown) as image:
            assert image.size == (60, 40) and image.getpixel((1, 1)) == (0, 0, 255)


async def test_while_it_is_open_nothing_of_the_conversation_is_drawn_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with conversation(tmp_path, monkeypatch) as (r, told):
        r.app.open_screen("picture")
        await opened(r, told, 1)
        before = r.shown()
        r.app.transcript.add_message(Message("a2", "assistant", [TextPart("More words.\n\n" * 40)]))
        await r.pilot.press("ctrl+o", "ctrl+f", "x")
        await r.pilot.pause()
        assert r.shown() == before and told == ["drawn"] and len(r.app.screen_stack) == 2
        await r.pilot.press("escape")
        await r.until(lambda: "More words." in r.shown())
        assert r.app.prompt.is_empty


async def test_a_damaged_one_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with conversation(tmp_path, monkeypatch) as (r, told):
        raw = base64.b64encode(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x09\x00\x00\x00\x09").decode()
        broken = AttachmentPart("bad\x1b]0;x\x07.png", "image/png", data=raw)
        r.app.transcript.add_message(Message("u2", "user", [TextPart("this"), broken]))
        r.app.open_screen("picture", "bad")
        await r.until(lambda: "Cannot be shown: it is damaged or not an image" in r.shown())
        assert told == [] and "\x1b" not in r.shown() and "\x07" not in r.shown()


async def test_where_pictures_are_off_it_is_said_and_nothing_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with conversation(tmp_path, monkeypatch) as (r, told):
        r.app.chat.pictures.use(Graphics("line", "a line in the conversation: because"))
        r.app.open_screen("picture")
        await r.until(lambda: "Pictures are a line in the conversation: because." in r.shown())
        assert told == [] and len(r.app.screen_stack) == 1
