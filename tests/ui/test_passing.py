"""What is meant for the terminal around tmux or GNU screen gets there."""

from __future__ import annotations

import base64

import pytest

from agent_tui.ui.terminal.driver import Window
from agent_tui.ui.terminal.passing import LONGEST, passed_on

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("environment", "written"),
    [
        ({}, "\x1b]9;done\x07"),
        ({"TMUX": "/tmp/tmux,1,0"}, "\x1bPtmux;\x1b\x1b]9;done\x07\x1b\\"),
        ({"STY": "1.pts"}, "\x1bP\x1b]9;done\x07\x1b\\"),
    ],
)
def test_a_notification_is_handed_on(environment: dict[str, str], written: str) -> None:
    class Terminal:
        def __init__(self) -> None:
            self.written = ""

        def write_to_terminal(self, sequence: str) -> None:
            self.written += sequence

        def write_outside(self, sequence: str) -> None:
            self.written += passed_on(sequence, environment)

        def bell(self) -> None:
            self.written += "\a"

    terminal = Terminal()
    Window(terminal).notify("done")
    assert terminal.written == f"{written}\a"


def test_a_long_sequence_goes_through_screen_in_pieces() -> None:
    copied = f"\x1b]52;c;{base64.b64encode(bytes(3_000)).decode()}\x07"
    pieces = passed_on(copied, {"STY": "1.pts"}).removesuffix("\x1b\\").split("\x1b\\")
    assert "".join(piece.removeprefix("\x1bP") for piece in pieces) == copied
    assert max(map(len, pieces)) <= LONGEST + 2
