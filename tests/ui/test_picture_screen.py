"""A picture on a screen of its own, by each way that terminals have: what is sent to them, and what is taken back."""

from __future__ import annotations

import base64
import io
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from agent_tui.engine.terminal import ATTRIBUTES, LIMITS
from tests.support.pixel import sixels_in
from tests.support.scripts import step
from tests.support.terminal import Terminal, in_terminal

SIXEL, FILE, ERASED, BLOCK = b"\x1bP0;1;0q", b"\x1b]1337;File=", b"\x1b[0m\x1b[2J", "▀".encode()
DRAWN = b"\x1b\\\x1b8"
KITTY = b"\x1b_G"
DRAWS_SIXELS = b"\x1b[?63;1;4;22c"
OPENS = b"click or /picture shows it"


def png(width: int, height: int, color: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), color).save(out, "PNG")
    return out.getvalue()


@contextmanager
def chat(folder: Path, **more: str) -> Iterator[Terminal]:
    """A chat whose user attaches a red picture; a tool answers with a blue one."""
    (folder / "state").mkdir(exist_ok=True)
    (folder / "red.png").write_bytes(png(800, 100, "red"))
    (folder / "blue.png").write_bytes(png(60, 90, "blue"))
    (folder / "script.toml").write_text(step(read={"path": "blue.png"}) + step("Looked.\n" * 30 + "\nFinished"))
    base = {"AGENT_TUI_HOME": str(folder), "TERM": "xterm-256color", "COLORTERM": "truecolor", "TMUX": ""}
    base |= {"AGENT_TUI_DEMO_SCRIPT": str(folder / "script.toml"), "TERM_PROGRAM": "", "LC_TERMINAL": ""}
    with in_terminal(folder, {**base, **more}) as terminal:
        yield terminal


def attach(terminal: Terminal) -> None:
    terminal.wait_for(b"DEMO", 0)
    terminal.type(b"look at @red.png\x1b[200~ please\x1b[201~\r")
    terminal.wait_for(b"Finished")


def leave(terminal: Terminal) -> None:
    terminal.type(b"\x15\x04")
    assert terminal.wait_for_end() == 0


def drawn(seen: bytes) -> bool:
    # Two blocks of different colours side by side: those of the wordmark have one.
    blocks = re.search(BLOCK + rb"\x1b\[0m\x1b\[[0-9;]+m" + BLOCK, seen)
    return any(mark in seen for mark in (SIXEL, FILE)) or b"a=T" in seen or blocks is not None


@pytest.mark.slow
def test_sixels_are_drawn_within_the_terminals_limits_and_leave_nothing(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        terminal.wait_for(ATTRIBUTES.encode())
        terminal.type(DRAWS_SIXELS)
        terminal.wait_for(LIMITS.encode())
        terminal.type(b"\x1b[?1;0;16S\x1b[?2;0;500;300S" + DRAWS_SIXELS)
        attach(terminal)
        assert OPENS in terminal.seen and not drawn(terminal.seen)  # nothing while the answer streams
        terminal.type(b"/picture red\r")
        end = terminal.wait_for(DRAWN)
        picture = sixels_in(terminal.seen[:end].decode("utf-8", "replace"))[0]
        assert picture.size == (500, 62) and picture.colors <= 16
        assert set(picture.dots.values()) == {(100, 0, 0)} and len(picture.dots) == 500 * 62
        terminal.type(b"\x1b[C")
        erased = terminal.wait_for(ERASED, end)
        terminal.wait_for(DRAWN, erased)
        picture = sixels_in(terminal.seen[erased:].decode("utf-8", "replace"))[0]
        assert picture.size == (60, 90) and set(picture.dots.values()) == {(0, 0, 100)}
        terminal.type(b"\x1b")
        back = terminal.wait_for(ERASED, terminal.seen.rindex(DRAWN))
        terminal.wait_for(b"Finished", back)
        leave(terminal)
    assert not drawn(terminal.seen[back:]) and FILE not in terminal.seen and KITTY not in terminal.seen


def sizes(seen: bytes) -> list[tuple[int, int]]:
    """In pixels, of all pictures that were drawn."""
    return [picture.size for picture in sixels_in(seen.decode("utf-8", "replace"))]


@pytest.mark.slow
def test_another_size_draws_it_anew_and_the_end_takes_it_away(tmp_path: Path) -> None:
    # What a shell exported is not the window's size.
    with chat(tmp_path, AGENT_TUI_UI__IMAGES="sixel", COLUMNS="80", LINES="24") as terminal:
        terminal.resize(100, 40)
        attach(terminal)
        terminal.type(b"/picture red\r")
        end = terminal.wait_for(DRAWN)
        terminal.resize(50, 30)
        # The first size may have been drawn twice: the screen draws anew whenever its layout settles.
        while sizes(terminal.seen)[-1] != (500, 62):
            end = terminal.wait_for(DRAWN, end)
        assert sizes(terminal.seen)[0] == (800, 100)
        assert b"\x1b[39;1H" in terminal.seen, "the caption is where forty rows end"
        assert sizes(terminal.seen[terminal.seen.rindex(ERASED) :]) == [(500, 62)]
        end = len(terminal.seen)
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.wait_for_end() == 0
    last = terminal.seen[end:]
    assert 0 <= last.find(ERASED) < last.find(b"\x1b[?1049l") and SIXEL not in last


@pytest.mark.slow
def test_iterm2_gets_a_file_with_a_clean_name_and_no_question_is_waited_for(tmp_path: Path) -> None:
    with chat(tmp_path, TERM_PROGRAM="iTerm2") as terminal:
        attach(terminal)
        assert not drawn(terminal.seen)
        terminal.type(b"/picture red\r")
        end = terminal.wait_for(b"\x07\x1b8", terminal.wait_for(FILE))
        terminal.type(b"\x1b")
        terminal.wait_for(ERASED, end)
        leave(terminal)
    files = re.findall(rb"\x1b\]1337;File=([^:]*):([A-Za-z0-9+/=]*)\x07", terminal.seen)
    assert len(files) == 1 and SIXEL not in terminal.seen
    keys = dict(pair.split(b"=", 1) for pair in files[0][0].split(b";"))
    assert base64.b64decode(keys[b"name"]) == b"red.png"
    assert (keys[b"inline"], keys[b"width"], keys[b"height"], keys[b"doNotMoveCursor"]) == (b"1", b"80", b"5", b"1")
    with Image.open(io.BytesIO(base64.b64decode(files[0][1]))) as shown:
        assert shown.size == (800, 100) and shown.convert("RGB").getpixel((3, 3)) == (255, 0, 0)


@pytest.mark.slow
def test_an_older_kitty_draws_it_and_is_asked_to_forget_it(tmp_path: Path) -> None:
    with chat(tmp_path, TERM="xterm-kitty") as terminal:
        terminal.wait_for(ATTRIBUTES.encode())
        terminal.type(b"\x1b_Gi=31;EINVAL:no\x1b\\\x1bP>|kitty(0.26.5)\x1b\\\x1b_Gi=32;OK\x1b\\\x1b[?62;c")
        attach(terminal)
        assert b"a=T" not in terminal.seen
        terminal.type(b"/picture\r")
        end = terminal.wait_for(DRAWN, terminal.wait_for(b"a=T,C=1,"))
        terminal.type(b"\x1b")
        terminal.wait_for(b"a=d,d=I,", end)
        leave(terminal)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [b"\x1b[?62;22c", b""], ids=["says what it can", "says nothing"])
def test_where_nothing_is_drawn_it_is_coarse_blocks_and_says_so(tmp_path: Path, answer: bytes) -> None:
    with chat(tmp_path) as terminal:
        terminal.wait_for(ATTRIBUTES.encode())
        terminal.type(answer)
        attach(terminal)
        assert not drawn(terminal.seen)
        terminal.type(b"/picture\r")
        terminal.wait_for(BLOCK)
        terminal.type(b"\x1b")
        terminal.wait_for(b"Finished")
        leave(terminal)
    assert b"38;2;0;0;255" in terminal.seen
    assert SIXEL not in terminal.seen and FILE not in terminal.seen and KITTY not in terminal.seen
    assert LIMITS.encode() not in terminal.seen
