"""A picture on a screen of its own, on a real pseudo terminal: what is sent to it, and what is taken back."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from agent_tui.engine.graphics import ATTRIBUTES
from agent_tui.ui.terminal.pictures import NUMBER
from tests.support.scripts import step
from tests.support.terminal import Terminal, in_terminal

BLUE = b"38;2;0;0;255"
KITTY = b"\x1b_G"


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


@pytest.mark.slow
def test_kitty_shows_it_large_and_is_asked_to_forget_it(tmp_path: Path) -> None:
    with chat(tmp_path, TERM="xterm-kitty") as terminal:
        terminal.wait_for(ATTRIBUTES.encode())
        terminal.type(b"\x1b_Gi=31;OK\x1b\\\x1bP>|kitty(0.40)\x1b\\\x1b[?62;c")
        attach(terminal)
        terminal.type(b"/picture red\r")
        end = terminal.wait_for(f"a=T,U=1,i={NUMBER},".encode())
        terminal.type(b"\x1b")
        terminal.wait_for(f"a=d,d=I,i={NUMBER},".encode(), end)
        leave(terminal)


@pytest.mark.slow
def test_elsewhere_it_is_coarse_blocks_and_nothing_is_asked(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        attach(terminal)
        assert BLUE not in terminal.seen
        terminal.type(b"/picture\r")
        terminal.wait_for(BLUE)
        terminal.type(b"\x1b")
        terminal.wait_for(b"Finished")
        leave(terminal)
    assert KITTY not in terminal.seen and ATTRIBUTES.encode() not in terminal.seen
