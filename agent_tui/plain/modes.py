"""How a terminal treats what is typed: by itself, or letter by letter as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import termios
from collections.abc import Callable


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


class Window:
    """What happens to the terminal around the program: it goes to the background and comes back (``back``), the window
    gets another size (``resized``). ``step_aside`` is called before it goes."""

    def __init__(
        self, modes: Modes, step_aside: Callable[[], None], back: Callable[[], None], resized: Callable[[], None]
    ) -> None:
        self._modes = modes
        self._step_aside = step_aside
        self._loop = asyncio.get_running_loop()
        self._handlers = {signal.SIGTSTP: self.suspend, signal.SIGCONT: back, signal.SIGWINCH: resized}
        self._back = back

    def open(self) -> None:
        for number, handler in self._handlers.items():
            self._loop.add_signal_handler(number, handler)

    def close(self) -> None:
        for number in self._handlers:
            self._loop.remove_signal_handler(number)

    def suspend(self) -> None:
        """Ctrl+Z. Where nobody could wake it up again the system does not stop it."""
        self._step_aside()
        self._modes.restore()
        self._loop.remove_signal_handler(signal.SIGTSTP)
        os.kill(os.getpid(), signal.SIGTSTP)
        self._loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        self._back()


def edits_itself(descriptor: int) -> bool:
    """Whether a terminal is one at which letters are typed. Where it does not show them, a program types (the shell of
    an editor), which has its own line and its own history."""
    try:
        local = termios.tcgetattr(descriptor)[3]
    except (termios.error, OSError):
        return False
    return bool(local & termios.ECHO and local & termios.ICANON)
