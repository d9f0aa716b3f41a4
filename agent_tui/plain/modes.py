"""How a terminal treats what is typed: by itself, or letter by letter as it comes."""

from __future__ import annotations

import contextlib
import os
import termios


class Modes:
    """Has a terminal hand over every key as it is pressed, and be afterwards what it was before."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before: list[int | list[bytes | int]] | None = None

    def enter(self) -> None:
        """Every key comes at once, Ctrl+C among them: in the order in which they are pressed, none of them lost.
        Nothing is changed while the program is in the background, nor where the terminal is gone."""
        with contextlib.suppress(termios.error, OSError):
            if os.tcgetpgrp(self._descriptor) != os.getpgrp():
                return
            before = termios.tcgetattr(self._descriptor)
            if self._before is None:
                self._before = before
            incoming, outgoing, control, local, *speeds = before
            incoming &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
            if incoming & termios.IXON:
                incoming |= termios.IXANY  # else nothing but Ctrl+Q would help after Ctrl+S
            local &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
            characters = [*before[6]]
            characters[termios.VMIN], characters[termios.VTIME] = 1, 0
            raw = [incoming, outgoing, control, local, *speeds[:2], characters]
            termios.tcsetattr(self._descriptor, termios.TCSANOW, raw)

    def restore(self) -> None:
        """What was before. Waits for nothing."""
        if self._before is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)
            self._before = None


def edits_itself(descriptor: int) -> bool:
    """Whether a terminal is one at which letters are typed. Where it does not show them, a program types (the shell of
    an editor), which has its own line and its own history."""
    try:
        local = termios.tcgetattr(descriptor)[3]
    except (termios.error, OSError):
        return False
    return bool(local & termios.ECHO and local & termios.ICANON)
