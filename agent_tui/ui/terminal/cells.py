"""How large a cell of the terminal is."""

from __future__ import annotations

import struct
import sys

from agent_tui.engine.terminal import believed

USUAL = (10, 20)
"""Pixels of a cell, wide and high, where the terminal does not say."""


def cell_size(otherwise: tuple[int, int] = USUAL) -> tuple[int, int]:
    """Pixels of a cell, wide and high, as the terminal told the system; ``otherwise`` where it did not."""
    try:
        import fcntl
        import termios

        packed = fcntl.ioctl(sys.__stdin__.fileno() if sys.__stdin__ else 0, termios.TIOCGWINSZ, bytes(8))
    except (ImportError, OSError, ValueError):
        return otherwise
    rows, columns, width, height = struct.unpack("HHHH", packed)
    if not rows or not columns:
        return otherwise
    return believed((width // columns, height // rows)) or otherwise
