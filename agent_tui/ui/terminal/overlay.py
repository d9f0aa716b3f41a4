"""A picture that is drawn over the text: put there once everything else stands, and taken away without a trace."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from agent_tui.ui.screen_buffer import ScreenBuffer
from agent_tui.ui.terminal.kitty import dropping, through_tmux

NUMBER = 0x61_67_74
"""Kitty's number of the picture that is drawn over the text: there is never a second."""


FEW_NUMBER, FEW_RGB = 67, (95, 135, 175)
"""The same where a number has to be one of the 256 colours, and that colour."""


class Place(NamedTuple):
    """Cells of the screen, counted from 0. ``off`` is what tmux has left of this program's pane, and above it."""

    x: int
    y: int
    columns: int
    rows: int
    off: tuple[int, int] = (0, 0)


class Writes(Protocol):
    def write_to_terminal(self, sequence: str) -> None:
        """Sends a control sequence of ours; nothing happens without a terminal."""


class Overlay:
    """``buffer`` is what the terminal is thought to show. ``wrapped``: for tmux, which hands it on."""

    def __init__(self, terminal: Writes, buffer: ScreenBuffer, wrapped: bool) -> None:
        self._terminal = terminal
        self._buffer = buffer
        self._wrapped = wrapped
        self._place: Place | None = None
        self._number = 0

    def put(self, drawing: str, place: Place, number: int = 0) -> None:
        """Draws, with a sequence that does so from the cursor on; the cursor is where it was afterwards. ``number`` is
        kitty's, which has to be told when it is to go."""
        self.wipe()
        self._place, self._number = place, number
        self._write(f"{_at(place, 0)}{drawing}")

    def wipe(self) -> bool:
        """Takes it away, if it is there; what it stood on is unknown then and has to be drawn. Whether it was there."""
        place, self._place = self._place, None
        if place is None:
            return False
        dropped = dropping(self._number) if self._number else ""
        if self._wrapped:
            blank = "".join(f"{_at(place, row)}\x1b[{place.columns}X" for row in range(place.rows))
            self._write(f"{dropped}\x1b[0m{blank}")
            self._buffer.forget_rows(range(place.y, place.y + place.rows))
        else:
            # Konsole shows the rest of an old one below a new one until the whole screen was cleared.
            self._write(f"{dropped}\x1b[0m\x1b[2J")
            self._buffer.forget()
        return True

    def _write(self, sequence: str) -> None:
        whole = f"\x1b7{sequence}\x1b8"
        self._terminal.write_to_terminal(through_tmux(whole) if self._wrapped else whole)


def _at(place: Place, row: int) -> str:
    across, down = place.off
    return f"\x1b[{place.y + row + down + 1};{place.x + across + 1}H"
