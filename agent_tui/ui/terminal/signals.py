"""Signals that end the program."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable


def on_termination(leave: Callable[[], object]) -> None:
    """Calls ``leave`` on the running loop when the process is to end; without effect where the platform has no way."""
    loop = asyncio.get_running_loop()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            try:
                loop.add_signal_handler(number, leave)
            except (NotImplementedError, RuntimeError, ValueError):
                return
