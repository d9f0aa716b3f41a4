"""The frame before Textual: the same screen, keys that are kept, and a terminal that is as it was whatever happens."""

from __future__ import annotations

import os
import re
import signal
import termios
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem

from agent_tui.ui.first_frame import FirstFrame, nearest
from tests.support.forms import one_of
from tests.support.screen_model import ScreenModel
from tests.support.terminal import in_terminal

TRUE, FEW = {"COLORTERM": "truecolor"}, {"COLORTERM": ""}
ENTERED, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"
TEXTUAL = b"\x1b[?1000h"
"""What it writes first beside entering the screen."""


def cells(written: bytes, size: tuple[int, int]) -> list[tuple[str, str]]:
    """Every character and how it looks; of a blank only the background can be seen."""
    model = ScreenModel(*size, wraps=True)
    model.feed(written.decode())
    looks = [(cell.text, cell.look) for row in model.rows for cell in row]
    return [(text, look if text.strip() else "".join(re.findall("48;[\\d;]+", look))) for text, look in looks]


LIGHT = {**TRUE, "COLORFGBG": "0;15"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "colors"),
    one_of([((80, 24), TRUE), ((200, 50), TRUE), ((60, 12), FEW), ((80, 24), LIGHT), ((200, 50), FEW)]),
)
def test_textual_goes_on_with_the_same_screen(tmp_path: Path, size: tuple[int, int], colors: dict[str, str]) -> None:
    with in_terminal(tmp_path, {"AGENT_TUI_HOME": str(tmp_path), **colors}, size=size) as terminal:
        begun = terminal.wait_for(TEXTUAL, 0) - len(TEXTUAL)
        drawn = terminal.seen.find(b"\x1b[1;1H", begun)
        assert terminal.seen[:begun].count(ENTERED) == 1 and b"starting" in terminal.seen[:begun]
        if drawn < 0:
            drawn = terminal.wait_for(b"\x1b[1;1H", begun)
        taken = terminal.wait_for(b"\x1b[22;2t", begun)
        assert ENTERED not in terminal.seen[begun:], "it would show an empty screen"
        before, after = cells(terminal.seen[:begun], size), cells(terminal.seen[:taken], size)
        other = [(n % size[0], n // size[0], *pair) for n, pair in enumerate(zip(before, after, strict=True))]
        assert [each for each in other if each[2] != each[3]] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    one_of([{"NO_COLOR": "1"}, {"COLORTERM": "", "TERM": "xterm"}, {"TERM": "linux", "COLORTERM": ""}]),
    ids=["no colours", "16 colours", "console"],
)
def test_where_it_is_not_sure_textual_begins(tmp_path: Path, environment: dict[str, str]) -> None:
    with in_terminal(tmp_path, {"AGENT_TUI_HOME": str(tmp_path), **TRUE, **environment}, size=(80, 24)) as terminal:
        begun = terminal.wait_for(TEXTUAL, 0)
        assert b"starting" not in terminal.seen[:begun]


@pytest.mark.parametrize("number", one_of([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_an_end_before_textual_leaves_the_terminal_as_it_was(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "sitecustomize.py").write_text(
        "import builtins, sys\n"
        "known = builtins.__import__\n"
        "def slow(name, *rest, **more):\n"
        "    if name.startswith('textual'):\n"
        "        sys.stdin.readline()\n"  # for as long as the test wants
        "    return known(name, *rest, **more)\n"
        "builtins.__import__ = slow\n"
    )
    path = f"{tmp_path / 'slow'}:{Path(__file__).resolve().parents[2]}"
    with in_terminal(
        tmp_path, {"AGENT_TUI_HOME": str(tmp_path), **TRUE, "PYTHONPATH": path}, size=(80, 24)
    ) as terminal:
        before = terminal.modes()
        terminal.wait_for(b"starting", 0)
        assert terminal.modes() != before, "what is typed is not echoed into the frame"
        terminal.type(b"abc")
        os.kill(terminal.pid, number)
        terminal.wait_for(LEFT, 0)
        assert terminal.modes() == before
        assert terminal.wait_for_end() in (-number, 130)
        assert b"Traceback" not in terminal.seen and b"abc" not in terminal.seen.partition(LEFT)[0]


def test_what_is_typed_into_it_is_in_the_prompt(tmp_path: Path) -> None:
    with in_terminal(tmp_path, {"AGENT_TUI_HOME": str(tmp_path), **TRUE}, size=(80, 24)) as terminal:
        begin = terminal.wait_for(b"starting", 0)
        terminal.type("hellö".encode())
        terminal.wait_for("hellö".encode(), begin)


def test_256_colours_are_those_that_rich_chooses() -> None:
    for number in range(0, 1 << 24, 4_999):
        red, green, blue = number >> 16, number >> 8 & 255, number & 255
        assert nearest(red, green, blue) == Color.from_rgb(red, green, blue).downgrade(ColorSystem.EIGHT_BIT).number


def test_a_frame_that_cannot_be_written_leaves_the_terminal_as_it_was() -> None:
    owner, terminal = os.openpty()
    os.set_blocking(terminal, False)
    known = signal.getsignal(signal.SIGTERM)
    before = termios.tcgetattr(terminal)
    frame = FirstFrame(terminal, terminal)
    with pytest.raises(OSError):
        frame.show("x" * 1_000_000)  # nobody reads it
    assert not frame.stands and termios.tcgetattr(terminal) == before and signal.getsignal(signal.SIGTERM) == known
    os.close(owner)
    with pytest.raises(OSError):
        frame.show("")  # the window is closed
    os.close(terminal)
